"""What is remembered between two passes over definitions: plans, their outcomes, and each tool's definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mibyan.tools.entry import NO_REQUIREMENTS

if TYPE_CHECKING:
    from mibyan.schema.frozen import FrozenDict
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.store import RegistrySnapshot
    from mibyan.toolsets.selection import Selection

    #: What a plan is for: the lists or names, and the format.
    Key: TypeAlias = tuple[Any, ...]

#: Plans kept for one state of the registry; the one that was used longest ago goes first.
_PLANS = 128
#: Outcomes kept of one plan: its tools come and go with their checks.
_OUTCOMES = 8


class Shown:
    """The outcome of a pass."""

    __slots__ = ("definitions", "hidden", "names", "overrides", "reported", "token")

    def __init__(
        self,
        definitions: dict[str, FrozenDict],
        hidden: tuple[str, ...],
        overrides: tuple[str | None, ...],
        token: object,
    ) -> None:
        #: The definitions, sorted by name.
        self.definitions = tuple(definitions.values())
        #: The tools' names in the same order.
        self.names = tuple(definitions)
        #: The tools that weren't available.
        self.hidden = hidden
        #: What the tools' own overrides said, as JSON text.
        self.overrides = overrides
        #: The version of the hooks that patched it.
        self.token = token
        #: Whether the report has what was hidden.
        self.reported = False


class Plan:
    """What can be said before any check runs, and the outcomes so far."""

    __slots__ = ("checked", "dynamic", "entries", "format", "last", "outcomes", "selection", "steady", "used")

    def __init__(self, selection: Selection, entries: tuple[ToolEntry, ...], format_: str) -> None:
        self.selection = selection
        #: The selected tools, sorted by name.
        self.entries = entries
        self.format = format_
        #: The tools whose availability must be asked for in each pass.
        self.checked = tuple(
            [
                entry
                for entry in entries
                if entry.check_fn is not None or (entry.requires is not NO_REQUIREMENTS and entry.requires)
            ]
        )
        #: The tools that override their schema in each pass.
        self.dynamic = tuple([entry for entry in entries if entry.dynamic_schema_overrides is not None])
        #: Whether nothing needs to be asked before the last outcome is given again.
        self.steady = not (self.checked or self.dynamic)
        #: How many plans there had been when this one was used last.
        self.used = 0
        self.last: Shown | None = None
        self.outcomes: dict[tuple[str, ...], Shown] = {}

    def keep(self, shown: Shown) -> None:
        """Remember an outcome; where there are too many, start anew."""
        if len(self.outcomes) >= _OUTCOMES:
            self.outcomes.clear()
        self.outcomes[shown.hidden] = shown


class State:
    """What was worked out for one snapshot of the registry."""

    __slots__ = ("made", "plans", "rendered", "snapshot")

    def __init__(self, snapshot: RegistrySnapshot, before: State | None) -> None:
        self.snapshot = snapshot
        self.plans: dict[Key, Plan] = {}
        #: Plans made so far.
        self.made = 0
        #: The definition of each of the snapshot's tools, by format: `None` where its schema can't be expressed.
        self.rendered: dict[str, dict[str, FrozenDict | None]] = {}
        if before is not None:
            now, then = snapshot.entries.get, before.snapshot.entries.get
            for format_, known in before.rendered.copy().items():
                self.rendered[format_] = {name: one for name, one in known.copy().items() if now(name) is then(name)}

    def plan(self, key: Key, selection: Selection, format_: str) -> Plan:
        """Make and keep the plan for a selection."""
        entries = self.snapshot.entries
        plan = Plan(selection, tuple([entries[name] for name in sorted(selection.names) if name in entries]), format_)
        while len(self.plans) >= _PLANS:
            oldest, _ = min(list(self.plans.items()), key=lambda item: item[1].used)
            self.plans.pop(oldest, None)
        self.made += 1
        self.plans[key] = plan
        return plan
