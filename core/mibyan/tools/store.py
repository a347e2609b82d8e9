"""The state behind a registry: names, who holds them, and what every owner did.

Writers take the lock; user code (handlers, checks, validation) never runs under it. Readers take no lock: a single
look-up reads one dict, a whole view is a `RegistrySnapshot`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from mibyan.report import Decision, DecisionLog
from mibyan.tools.namespace import Act, Holding, Policy, Verdict, perform, replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mibyan.tools.availability import Verdict as Availability
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.owner import Owner

#: Acts kept for one contested name; a plugin that registers and removes it for ever must not fill the memory.
_HISTORY = 256


@dataclass(frozen=True)
class RegistrySnapshot:
    """What a registry held at one moment."""

    #: Entries by their own names.
    entries: Mapping[str, ToolEntry]
    #: Tool names by alias.
    aliases: Mapping[str, str]
    #: Toolset names by alias.
    toolset_aliases: Mapping[str, str]
    #: Grows by one with each mutation.
    generation: int

    @cached_property
    def toolsets(self) -> Mapping[str, tuple[str, ...]]:
        """The sorted names of the tools of each toolset, toolsets in sorted order."""
        found: dict[str, list[str]] = {}
        for name, entry in self.entries.items():
            found.setdefault(entry.toolset, []).append(name)
        return MappingProxyType({toolset: tuple(sorted(found[toolset])) for toolset in sorted(found)})


@dataclass(frozen=True, slots=True)
class Toolset:
    """A bundle of tools as a plugin or the operator declares it."""

    name: str
    tools: tuple[str, ...] = ()
    #: Names of other toolsets that belong to it.
    includes: tuple[str, ...] = ()
    description: str = ""
    #: `builtin`, `composite`, `posture`, `preset`, `registry`, `alias`, `custom`, `plugin` or `mcp`.
    kind: str = "plugin"
    #: Where it was declared.
    origin: str | None = None
    owner: Owner | None = field(default=None, compare=False)


class RegistryStore:
    """Names and their holders; see `ToolRegistry` for the view that code gets of it."""

    def __init__(self, *, last_wins: bool = False, log: DecisionLog | None = None) -> None:
        self._lock = threading.RLock()
        #: Readers look one name up here without a lock: an alias leads to an entry of another name.
        self._held: dict[str, ToolEntry] = {}
        self._acts: dict[str, list[Act]] = {}
        self._toolset_aliases: dict[str, tuple[str, Owner]] = {}
        self._toolsets: dict[str, Toolset] = {}
        self._opt_ins: dict[str, bool | frozenset[str]] = {}
        #: Owners that were removed: what they register late belongs to nobody who could be unloaded.
        self._retired: WeakSet[Owner] = WeakSet()
        self._snapshot: RegistrySnapshot | None = None
        self._writing = 0
        self.generation = 0
        self.log = DecisionLog() if log is None else log
        self.policy = Policy(last_wins=last_wins, may_override=self._may_override)
        #: Set by the runtime: `dispatch(name, args, context) -> str` and `definitions(names, quiet) -> list[dict]`.
        self.dispatcher: Callable[[str, Any, dict[str, Any]], str] | None = None
        self.definer: Callable[[Any, bool], list[dict[str, Any]]] | None = None
        #: Set by the runtime: one pass over entries, with the verdict of each by name.
        self.prober: Callable[[Iterable[ToolEntry]], Mapping[str, Availability]] | None = None
        #: Set by the runtime: the names of the tools that a toolset's name stands for.
        self.members: Callable[[str], tuple[str, ...]] | None = None
        #: The runtime's parts; `None` for a registry made by hand. The facade finds the runtime of a plugin through it.
        self.parts: Any = None
        #: Set by the runtime: called, without the lock, when an entry went away or was replaced.
        self.on_change: Callable[[str], None] | None = None

    # Reading -----------------------------------------------------------------------------------------------------

    def find(self, name: str) -> ToolEntry | None:
        """The entry that answers to `name` (its own name or an alias)."""
        entry = self._held.get(name)
        if entry is None or entry.name == name:
            return entry
        return self._held.get(entry.name)

    @property
    def snapshot(self) -> RegistrySnapshot:
        """A consistent view; the same object until something changes."""
        snapshot = self._snapshot
        if snapshot is not None and snapshot.generation == self.generation:
            return snapshot
        for _ in range(3):
            # A writer shows itself by an odd count: what was copied meanwhile may be half a change.
            before = self._writing
            snapshot = self._copy()
            if before % 2 == 0 and before == self._writing:
                break
        else:
            with self._lock:
                snapshot = self._copy()
        self._snapshot = snapshot
        return snapshot

    def _copy(self) -> RegistrySnapshot:
        generation, held, toolset_aliases = self.generation, self._held.copy(), self._toolset_aliases.copy()
        return RegistrySnapshot(
            MappingProxyType({name: entry for name, entry in held.items() if entry.name == name}),
            MappingProxyType({name: entry.name for name, entry in held.items() if entry.name != name and entry.name in held}),
            MappingProxyType({alias: toolset for alias, (toolset, _) in toolset_aliases.items()}),
            generation,
        )  # fmt: skip

    @property
    def declared_toolsets(self) -> Mapping[str, Toolset]:
        """The toolsets that plugins declared, by name."""
        return self._toolsets.copy()

    def candidates(self, name: str) -> Holding:
        """Everybody who wants `name`: the stack of accepted entries (the last one answers) and the losers."""
        with self._lock:
            return replay(name, self._history(name), self.policy)

    # Writing -----------------------------------------------------------------------------------------------------

    def register(self, entry: ToolEntry, *, override: bool) -> tuple[Verdict, ToolEntry | None]:
        """Let `entry` claim its name and its aliases; the verdict and who held the name before.

        Raises:
            ToolOwnershipError: The owner was removed.
        """
        act = Act(entry.owner, entry, override)
        with self._lock:
            self._require_present(entry.owner, f"register the tool {entry.name!r}")
            before = self._held.get(entry.name)
            verdict = self._perform(entry.name, act)
            if verdict.accepted:
                self._claim_aliases(entry, before, override=override)
        self._tell(entry.name)
        return verdict, before

    def replace(self, entry: ToolEntry) -> bool:
        """Put `entry` in the place of its owner's lazy entry of that name (registry.R12); false if there is none.

        The generation grows only if the definition changed.

        Raises:
            ToolOwnershipError: The owner was removed.
        """
        with self._lock:
            self._require_present(entry.owner, f"register the tool {entry.name!r}")
            before = self._own(entry)
            if before is None:
                return False
            same = before.schema == entry.schema and before.toolset == entry.toolset
            self._acts[entry.name] = [
                Act(act.owner, entry, act.override) if act.entry is before else act for act in self._history(entry.name)
            ]
            self._settle(entry.name, grow=not same)
        self._tell(entry.name)
        return True

    def deregister(self, name: str, owner: Owner) -> bool:
        """Take away what `owner` holds of `name` (the host: whoever holds it)."""
        with self._lock:
            holding = self.candidates(name)
            mine = [entry for entry in holding.stack if owner.is_host or entry.owner is owner]
            if not mine:
                if any(act.owner is owner for act, _ in holding.losers):
                    # It gives up a claim that was rejected: the name doesn't come to it later.
                    self._perform(name, Act(owner, None), grow=False)
                return False
            gone = holding.stack[-1] if owner.is_host else mine[-1]
            self._perform(name, Act(owner, None))
            for alias in gone.aliases:
                self._perform(alias, Act(gone.owner, None), grow=False)
            self._drop_toolset_aliases(gone.toolset)
        self._tell(name)
        return True

    def remove_owner(self, owner: Owner) -> None:
        """Let the registry look as if `owner` had never acted: what it displaced or kept out comes back.

        It can't register anything any more: a plugin that is loaded anew has a new owner.
        """
        with self._lock:
            self._retired.add(owner)
            names = [name for name, entry in self._held.items() if entry.owner is owner]
            names += [name for name, acts in self._acts.items() if any(act.owner is owner for act in acts)]
            toolsets = {entry.toolset for entry in self._held.values() if entry.owner is owner}
            for name in dict.fromkeys(names):
                self._acts[name] = [act for act in self._history(name) if act.owner is not owner]
                self._settle(name)
            self._toolsets = {name: spec for name, spec in self._toolsets.items() if spec.owner is not owner}
            self._toolset_aliases = {a: held for a, held in self._toolset_aliases.items() if held[1] is not owner}
            for toolset in toolsets:
                self._drop_toolset_aliases(toolset)
            self.generation += 1
        for name in dict.fromkeys(names):
            self._tell(name)

    def alias_toolset(self, alias: str, toolset: str, owner: Owner) -> str | None:
        """Let `alias` mean `toolset`; the toolset that has the name already, if it is another's.

        Raises:
            ToolOwnershipError: The owner was removed.
        """
        with self._lock:
            self._require_present(owner, f"register the toolset alias {alias!r}")
            held, holder = self._toolset_aliases.get(alias, (None, None))
            if held is not None and held != toolset and holder is not owner and not owner.is_host:
                return held
            if alias in self.snapshot.toolsets or alias in self._toolsets:
                return alias
            self._toolset_aliases[alias] = (toolset, owner)
            self.generation += 1
        return None

    def declare_toolset(self, toolset: Toolset) -> Toolset | None:
        """Keep a plugin's bundle; the other's bundle of that name, if there is one.

        Raises:
            ToolOwnershipError: The owner was removed.
        """
        with self._lock:
            self._require_present(toolset.owner, f"register the toolset {toolset.name!r}")
            held = self._toolsets.get(toolset.name)
            if held is not None and held.owner is not toolset.owner:
                return held
            self._toolsets[toolset.name] = toolset
            self.generation += 1
        return None

    def opt_in(self, owner_id: str, allowed: bool | frozenset[str]) -> None:  # noqa: FBT001 - one of the two forms of the key
        """Say which tools the owner of that id may override."""
        with self._lock:
            self._opt_ins[owner_id] = allowed

    def decide(self, decision: Decision) -> None:
        """Put a decision into the report."""
        self.log.add(decision)

    # Within the lock ---------------------------------------------------------------------------------------------

    def _require_present(self, owner: Owner | None, what: str) -> None:
        if owner is not None and owner in self._retired:
            from mibyan.tools.verdicts import retired

            raise retired(owner, what)

    def _history(self, name: str) -> list[Act]:
        """What was done about `name`: written down only once a second owner, or an override, is concerned."""
        acts = self._acts.get(name)
        if acts is not None:
            return acts
        entry = self._held.get(name)
        return [] if entry is None else [Act(entry.owner, entry)]

    def _perform(self, name: str, act: Act, *, grow: bool = True) -> Verdict:
        held = self._held.get(name)
        if name not in self._acts and act.entry is not None and (held is None or held.owner is act.owner):
            verdict = self.policy.decide(name, held, act)
            if verdict in (Verdict.TAKEN, Verdict.REPLACED):
                self._hold(name, act.entry, grow=grow)
                return verdict
        history = self._history(name)
        holding = replay(name, history, self.policy)
        verdict = perform(name, holding, act, self.policy)
        if verdict is not Verdict.RESERVED:
            # A refused override is kept too: once the holder is gone it is a registration of a free name.
            self._acts[name] = _compact([*history, act])[-_HISTORY:]
            self._settle(name, grow=grow and verdict.accepted)
        return verdict

    def _settle(self, name: str, *, grow: bool = True) -> None:
        """Let the holder of `name` be who its history says."""
        acts = self._acts[name]
        holding = replay(name, acts, self.policy)
        if len({act.owner for act in acts}) < 2 and len(holding.stack) < 2:
            del self._acts[name]
        self._hold(name, holding.holder, grow=grow)

    def _hold(self, name: str, entry: ToolEntry | None, *, grow: bool) -> None:
        self._writing += 1
        if entry is None:
            self._held.pop(name, None)
        else:
            self._held[name] = entry
        if grow:
            self.generation += 1
        else:
            self._snapshot = None
        self._writing += 1

    def _own(self, entry: ToolEntry) -> ToolEntry | None:
        """The entry of that name which the new entry's owner has (it may be displaced)."""
        for held in reversed(self.candidates(entry.name).stack):
            if held.owner is entry.owner and held.name == entry.name:
                return held
        return None

    def _claim_aliases(self, entry: ToolEntry, before: ToolEntry | None, *, override: bool) -> None:
        if before is not None and before.owner is entry.owner:
            for alias in before.aliases:
                if alias not in entry.aliases:
                    self._perform(alias, Act(entry.owner, None), grow=False)
        for alias in entry.aliases:
            held = self._held.get(alias)
            verdict = self._perform(alias, Act(entry.owner, entry, override), grow=False)
            if not verdict.accepted and held is not None:
                self.decide(_alias_rejected(alias, entry, held))

    def _drop_toolset_aliases(self, toolset: str) -> None:
        """registry.R7: a toolset's aliases go with its last tool."""
        if any(entry.toolset == toolset for entry in self._held.values()):
            return
        self._toolset_aliases = {a: held for a, held in self._toolset_aliases.items() if held[0] != toolset}

    def _may_override(self, owner: Owner, name: str) -> bool:
        allowed = self._opt_ins.get(owner.id)
        if allowed is None or owner.kind != "plugin":
            return owner.kind == "plugin" and owner.may_override(name)
        return allowed if isinstance(allowed, bool) else name in allowed

    def _tell(self, name: str) -> None:
        if self.on_change is not None:
            self.on_change(name)


def _compact(acts: list[Act]) -> list[Act]:
    """`acts` without removals that follow one another: the second removes nothing."""
    if len(acts) > 1 and acts[-1].entry is None and acts[-2].entry is None and acts[-1].owner is acts[-2].owner:
        return acts[:-1]
    return acts


def _alias_rejected(alias: str, entry: ToolEntry, held: ToolEntry) -> Decision:
    return Decision(
        "rejected",
        f"tool:{alias}",
        f"The alias {alias!r} of tool {entry.name!r} (toolset {entry.toolset!r}) is held by tool {held.name!r} "
        f"of toolset {held.toolset!r}.",
        plugin_id=entry.plugin_id,
        origin=entry.origin,
        problem=True,
    )
