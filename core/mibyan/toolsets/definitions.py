"""`DefinitionBuilder`: the definitions a model is shown, in a provider's format (registry.D1, D3)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mibyan.report import Decision
from mibyan.schema import formats
from mibyan.tools.current import acting
from mibyan.toolsets.changes import SchemaChanges
from mibyan.toolsets.plans import Shown, State
from mibyan.toolsets.selection import Selection, read_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mibyan.report import DecisionLog
    from mibyan.schema.frozen import FrozenDict
    from mibyan.tools.availability import Availability
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.owner import Owner
    from mibyan.tools.store import RegistrySnapshot
    from mibyan.toolsets.changes import Patch, Schemas
    from mibyan.toolsets.plans import Key, Plan
    from mibyan.toolsets.resolver import ToolsetResolver


class DefinitionBuilder:
    """Builds definitions: toolset filter, availability, the tools' own overrides, the plugins' patches, the format.

    What it worked out is kept until the registry changes; a pass in which nothing changed costs a copy of a list, the
    checks that have no `ttl` and the tools' own overrides. Any thread may build at any time; no lock is taken.

    Args:
        resolver: What toolset names stand for.
        snapshot: Gives the registry's current snapshot, the same object until something changes.
        availability: Probes the tools' checks.
        log: Where decisions go.
        patch: What `mibyan_patch_definitions` says; `None`: nobody implements it.
        is_patched: Whether anybody implements it now.
        patch_token: Gives something that differs, by equality, when the patches would: the hooks' version.
        acting_as: Lets code of a tool's owner run in its name; without one it runs in nobody's.
        clean: Takes secrets out of a text.
    """

    def __init__(
        self,
        resolver: ToolsetResolver,
        snapshot: Callable[[], RegistrySnapshot],
        availability: Availability,
        log: DecisionLog,
        *,
        patch: Patch | None = None,
        is_patched: Callable[[], bool] = lambda: True,
        patch_token: Callable[[], object] | None = None,
        acting_as: Callable[[Owner], acting] = lambda _: acting(None),
        clean: Callable[[str], str] = str,
    ) -> None:
        self._resolver = resolver
        self._snapshot = snapshot
        self._availability = availability
        self._log = log
        self._patch = patch
        self._is_patched = is_patched
        self._patch_token = patch_token
        self._changes = SchemaChanges(log, acting_as, clean)
        self._state: State | None = None

    def build(
        self,
        enabled: Iterable[str] | None = None,
        disabled: Iterable[str] | None = None,
        *,
        platform: str | None = None,
        format: str = "openai",  # noqa: A002 - the published name
        quiet: bool = True,
        warned: set[str] | None = None,
    ) -> list[dict[str, Any]]:
        """The definitions of the tools that a session is shown now: a fresh list of read-only dicts, sorted by name.

        Args:
            enabled: Toolset names; see `ToolsetResolver.select`.
            disabled: Toolset names, taken away last.
            platform: The session's platform.
            format: `openai`, `openai-responses`, `anthropic`, `gemini` or `mcp`.
            quiet: Whether the report needn't tell what was hidden. Nothing is ever printed.
            warned: The unknown names that the session was warned about already; it grows.

        Raises:
            TypeError: A list isn't a list of text.
            ValueError: Nobody knows the format.
        """
        return list(self._shown(enabled, disabled, platform, format, quiet, warned).definitions)

    def show(
        self,
        enabled: Iterable[str] | None = None,
        disabled: Iterable[str] | None = None,
        *,
        platform: str | None = None,
        format: str = "openai",  # noqa: A002 - the published name
        quiet: bool = True,
        warned: set[str] | None = None,
    ) -> Shown:
        """Like `build`, with the names beside the definitions; what it gives is shared and not to be changed."""
        return self._shown(enabled, disabled, platform, format, quiet, warned)

    def build_named(self, names: Iterable[str], *, format: str = "openai", quiet: bool = True) -> list[dict[str, Any]]:  # noqa: A002 - the published name
        """The definitions of the named tools (names or aliases) that are available; unknown names are left out.

        Raises:
            TypeError: `names` isn't a list of text.
            ValueError: Nobody knows the format.
        """
        state = self._current()
        asked = read_names("names", names) or ()
        key = ("names", asked, format)
        plan = state.plans.get(key) if isinstance(format, str) else None
        if plan is None:
            _check_format(format)
            aliases = state.snapshot.aliases
            plan = state.plan(key, Selection(frozenset(aliases.get(name, name) for name in asked)), format)
        return list(self._pass(state, plan, quiet=quiet).definitions)

    def forget(self) -> None:
        """Let go of everything kept, tools of unloaded plugins among it; it is worked out anew when it is needed."""
        self._state = None

    def _current(self) -> State:
        snapshot = self._snapshot()
        state = self._state
        if state is None or state.snapshot is not snapshot:
            state = self._state = State(snapshot, state)
        return state

    def _shown(
        self,
        enabled: Iterable[str] | None,
        disabled: Iterable[str] | None,
        platform: str | None,
        format_: str,
        quiet: bool,  # noqa: FBT001 - by position: this is the way of every request
        warned: set[str] | None,
    ) -> Shown:
        state = self._current()
        if type(enabled) is list:
            enabled = tuple(enabled)
        if type(disabled) is list:
            disabled = tuple(disabled)
        key = (enabled, disabled, platform, format_)
        try:
            plan = state.plans.get(key)
        except TypeError:  # not a list of text: said below
            plan = None
        if plan is None:
            plan = self._planned(state, key, warned)
        if plan.selection.unknown:
            self._resolver.warn(plan.selection, warned)
        return self._pass(state, plan, quiet=quiet)

    def _planned(self, state: State, asked: Key, warned: set[str] | None) -> Plan:
        """The plan for what was asked, its lists read as lists of text."""
        _check_format(asked[3])
        lists = read_names("enabled_toolsets", asked[0]), read_names("disabled_toolsets", asked[1])
        selection = self._resolver.select(*lists, platform=asked[2], warned=warned)
        key = (*lists, *asked[2:])
        return state.plans.get(key) or state.plan(key, selection, asked[3])

    # A pass ------------------------------------------------------------------------------------------------------

    def _pass(self, state: State, plan: Plan, *, quiet: bool) -> Shown:
        plan.used = state.made
        shown = plan.last
        if (
            shown is None
            or not plan.steady
            or not (quiet or shown.reported)
            or (self._patch_token is not None and shown.token != self._patch_token())
        ):
            shown = plan.last = self._probed(state, plan, quiet=quiet)
        return shown

    def _token(self) -> object:
        return None if self._patch_token is None else self._patch_token()

    def _probed(self, state: State, plan: Plan, *, quiet: bool) -> Shown:
        """Ask checks and overrides; the outcome that fits their answers."""
        verdicts = self._availability.verdicts(plan.checked) if plan.checked else {}
        unavailable = {name: verdict.reason for name, verdict in verdicts.items() if not verdict.available}
        hidden = tuple(unavailable)
        overrides = tuple(None if e.name in unavailable else self._changes.override(e) for e in plan.dynamic)
        token = self._token()
        shown = plan.outcomes.get(hidden)
        if shown is None or shown.overrides != overrides or shown.token != token:
            entries = {entry.name: entry for entry in plan.entries if entry.name not in unavailable}
            schemas = self._changed(plan, entries, overrides)
            shown = Shown(self._definitions(state, entries, schemas, plan.format), hidden, overrides, token)
            plan.keep(shown)
        if not (quiet or shown.reported):
            self._report(plan, unavailable)
            shown.reported = True
        return shown

    def _changed(self, plan: Plan, entries: Mapping[str, ToolEntry], overrides: tuple[str | None, ...]) -> Schemas:
        """The schemas that aren't as they were registered, by name."""
        found = {
            entry.name: self._changes.overridden(entry, override)
            for entry, override in zip(plan.dynamic, overrides, strict=True)
            if override is not None
        }
        if self._patch is None or not self._is_patched():
            return found
        schemas = {name: found.get(name, entry.schema) for name, entry in entries.items()}
        self._changes.patch(entries, schemas, self._patch)
        return {name: schema for name, schema in schemas.items() if schema is not entries[name].schema}

    def _definitions(
        self, state: State, entries: Mapping[str, ToolEntry], schemas: Schemas, format_: str
    ) -> dict[str, FrozenDict]:
        """The definitions by name: those of changed schemas are made anew, the others are kept per tool."""
        kept = state.rendered.setdefault(format_, {})
        found = {}
        for name, entry in entries.items():
            if schemas and name in schemas:
                definition = self._rendered(entry, schemas[name], format_)
            elif name in kept:
                definition = kept[name]
            else:
                definition = kept[name] = self._rendered(entry, entry.schema, format_)
            if definition is not None:
                found[name] = definition
        return found

    def _rendered(self, entry: ToolEntry, schema: Mapping[str, Any], format_: str) -> FrozenDict | None:
        """The definition in the provider's words; `None`, and a record, if it has none for it."""
        note = partial(self._relax, entry, format_) if "strict" in schema else None
        hints = entry.annotations if format_ == "mcp" else None
        definition, reason = formats.expressed(schema, format_, annotations=hints, note=note)
        if reason is not None:
            self._leave_out(entry, format_, reason)
        return definition

    # The report --------------------------------------------------------------------------------------------------

    def _leave_out(self, entry: ToolEntry, format_: str, reason: str) -> None:
        text = f"Tool {entry.name!r} is left out of the format {format_!r}: {reason}."
        fix = f"Change its schema: `mibyan tools show {entry.name} --json`; other formats have it."
        self._tell("skipped", entry, text, fix)

    def _relax(self, entry: ToolEntry, format_: str, reason: str) -> None:
        text = (
            f"Tool {entry.name!r} isn't strict in the format {format_!r}: {reason}. Its arguments are validated here."
        )
        self._tell("warning", entry, text, f"Change its schema: `mibyan tools show {entry.name} --json`.")

    def _tell(self, kind: str, entry: ToolEntry, text: str, fix: str) -> None:
        from mibyan.tools.origin import place_of

        if self._log.add(Decision(kind, f"tool:{entry.name}", text, entry.plugin_id, place_of(entry), fix,
                                  problem=True, rule="registry.D4")):  # fmt: skip
            import logging

            logging.getLogger("mibyan.toolsets").warning("%s", text)

    def _report(self, plan: Plan, unavailable: Mapping[str, str | None]) -> None:
        from mibyan.toolsets.records import hidden, missing

        for decision in hidden(plan.selection, self._snapshot()):
            self._log.add(decision)
        entries = {entry.name: entry for entry in plan.entries}
        for name, reason in unavailable.items():
            self._log.add(missing(entries[name], reason or "its check says no"))


def _check_format(name: str) -> None:
    """Let the room that knows the formats refuse an unknown one, also where there is no tool to show."""
    formats.render({"name": "", "parameters": {"type": "object", "properties": {}}}, name)
