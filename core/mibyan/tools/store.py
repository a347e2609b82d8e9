"""The state behind a registry: names, who holds them, and what every owner did.

Writers take the lock; user code (handlers, checks, validation) never runs under it. Readers take no lock: a single
look-up reads one dict, a whole view is a `RegistrySnapshot`.
"""

from __future__ import annotations

import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from mibyan.forks import renewed
from mibyan.report import Decision, DecisionLog
from mibyan.tools.claims import Claims
from mibyan.tools.mutation import Mutation
from mibyan.tools.namespace import RESERVED, Act, Holding, Policy, Verdict, noted, perform, replay
from mibyan.tools.snapshot import RegistrySnapshot, Toolset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mibyan.tools.availability import Verdict as Availability
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.lockguard import LockGuard
    from mibyan.tools.owner import Owner

__all__ = ["RegistrySnapshot", "RegistryStore", "Toolset"]


class RegistryStore:
    """Names and their holders; see `ToolRegistry` for the view that code gets of it."""

    def __init__(self, *, last_wins: bool = False, log: DecisionLog | None = None) -> None:
        self._lock = threading.RLock()
        self._mutation = Mutation(self)
        #: Odd while something changes: what is copied then may be half a change.
        self._version = 0
        #: The last snapshot and the version it is of.
        self._kept: tuple[int, RegistrySnapshot] | None = None
        #: Readers look one name up here without a lock: an alias leads to an entry of another name.
        self._held: dict[str, ToolEntry] = {}
        self._acts: dict[str, list[Act]] = {}
        self._toolset_aliases: Claims[str] = Claims()
        self._toolsets: Claims[Toolset] = Claims()
        self._opt_ins: dict[str, bool | frozenset[str]] = {}
        #: Owners that were removed: what they register late belongs to nobody who could be unloaded.
        self._retired: WeakSet[Owner] = WeakSet()
        self._has_retired = False
        #: Owners whose plugin is being loaded anew: their names stay theirs, and answer to nobody meanwhile.
        self._away: set[Owner] = set()
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
        #: Set by the runtime: the configuration line that says a key, for the report.
        self.line_of: Callable[[tuple[str | int, ...]], str | None] = lambda _: None
        #: Under `--locked`: what keeps out what isn't in `mibyan.lock` (`mibyan.tools.lockguard`).
        self.guard: LockGuard | None = None
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
        kept = self._kept
        if kept is not None and kept[0] == self._version:
            return kept[1]
        for _ in range(3):
            version = self._version
            if version % 2 == 0:
                snapshot = self._copy()
                if version == self._version:
                    return self._keep(version, snapshot)
        with self._lock:
            # Only the thread that changes something itself sees an odd version here.
            snapshot = self._copy()
            return snapshot if self._version % 2 else self._keep(self._version, snapshot)

    def _keep(self, version: int, snapshot: RegistrySnapshot) -> RegistrySnapshot:
        kept = self._kept
        if kept is not None and kept[0] == version:
            return kept[1]  # Another reader was faster.
        self._kept = (version, snapshot)
        return snapshot

    def _copy(self) -> RegistrySnapshot:
        generation, held, toolset_aliases = self.generation, self._held.copy(), self._toolset_aliases.held
        return RegistrySnapshot(
            MappingProxyType({name: entry for name, entry in held.items() if entry.name == name}),
            MappingProxyType({name: entry.name for name, entry in held.items() if entry.name != name and entry.name in held}),
            toolset_aliases,
            generation,
        )  # fmt: skip

    @property
    def declared_toolsets(self) -> Mapping[str, Toolset]:
        """The toolsets that plugins declare, by name."""
        return self._toolsets.held

    def candidates(self, name: str) -> Holding:
        """Everybody who wants `name`: the stack of accepted entries (the last one answers) and the losers."""
        with self._lock:
            return replay(name, self._history(name), self.policy)

    def contested(self) -> list[str]:
        """The names that more than one has wanted, or that somebody has given up."""
        return list(self._acts)

    def entries_of(self, owner: Owner) -> tuple[ToolEntry, ...]:
        """What `owner` has registered, also what it doesn't hold."""
        with self._lock:
            found = [entry for name, entry in self._held.items() if entry.owner is owner and entry.name == name]
            found += [act.entry for acts in self._acts.values() for act in acts if act.entry and act.owner is owner]
        return tuple({entry.name: entry for entry in found}.values())

    # Writing -----------------------------------------------------------------------------------------------------

    def register(self, entry: ToolEntry, *, override: bool) -> tuple[Verdict, ToolEntry | None]:
        """Let `entry` claim its name and its aliases; the verdict and who held the name before.

        Raises:
            ToolOwnershipError: The owner was removed.
        """
        if self._takes_free(entry):
            return Verdict.TAKEN, None
        act = Act(entry.owner, entry, override)
        with self._mutation:
            self._require_present(entry.owner, "register the tool", entry.name)
            before = self._held.get(entry.name)
            verdict = self._perform(entry.name, act)
            if verdict.accepted and (entry.aliases or before is not None):
                self._claim_aliases(entry, before, override=override)
        self._tell(entry.name)
        return verdict, before

    def replace(self, entry: ToolEntry) -> bool:
        """Put `entry` in the place of its owner's lazy entry of that name (registry.R12); false if there is none.

        The generation grows only if the definition changed.

        Raises:
            ToolOwnershipError: The owner was removed.
        """
        known = self._own(entry)
        same = known is not None and known.schema == entry.schema and known.toolset == entry.toolset
        with self._mutation:
            self._require_present(entry.owner, "register the tool", entry.name)
            before = self._own(entry)
            # A claim that was rejected may come true when the holder goes: it is for the real entry too.
            claimed = before or self.candidates(entry.name).lost_by(entry.owner)
            if claimed is None:
                return False
            self._acts[entry.name] = [
                Act(act.owner, entry, act.override) if act.entry is claimed else act
                for act in self._history(entry.name)
            ]
            self._settle(entry.name, grow=before is not None and not (same and known is before))
            if before is None:
                return False
        self._tell(entry.name)
        return True

    def deregister(self, name: str, owner: Owner) -> bool:
        """Take away what `owner` holds of `name` (the host: whoever holds it)."""
        with self._mutation:
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
                self._give_up_alias(alias, gone)
            self._drop_toolset_aliases(gone.toolset)
        self._tell(name)
        return True

    def withdraw(self, name: str, owner: Owner) -> None:
        """Let the registry look as if `owner` had never registered `name`: it was recalled, and its code hasn't it."""
        with self._mutation:
            self.deregister(name, owner)
            self._acts[name] = [act for act in self._history(name) if act.owner is not owner]
            self._settle(name)

    def remove_owner(self, owner: Owner, *, returns: bool = False) -> None:
        """Let the registry look as if `owner` had never acted: what it displaced or kept out comes back.

        Args:
            owner: The owner; it can't register anything any more: a plugin that is loaded anew has a new one.
            returns: Whether its plugin is about to be loaded anew: until `forget_places` its names are kept for it.
        """
        with self._mutation:
            self._retired.add(owner)
            self._has_retired = True
            if returns:
                self._away.add(owner)
            names = [name for name, entry in self._held.items() if entry.owner is owner]
            names += [name for name, acts in self._acts.items() if any(act.owner is owner for act in acts)]
            tops = [replay(name, self._history(name), self.policy).holder for name in names]
            for name in dict.fromkeys(names):
                history = self._history(name)
                self._acts[name] = history if returns else [act for act in history if act.owner is not owner]
                self._settle(name)
            if not returns:
                self._mutation.grows |= self._toolsets.remove_owner(owner) | self._toolset_aliases.remove_owner(owner)
                for toolset in {entry.toolset for entry in tops if entry is not None and entry.owner is owner}:
                    self._drop_toolset_aliases(toolset)
        for name in dict.fromkeys(names):
            self._tell(name)

    def forget_places(self, owner: Owner) -> None:
        """The plugin of `owner` was loaded anew, or couldn't be: names it didn't take again are free."""
        if owner in self._away:
            with self._mutation:
                self._away.discard(owner)
                self.remove_owner(owner)

    def alias_toolset(self, alias: str, toolset: str, owner: Owner) -> str | None:
        """Let `alias` mean `toolset`; the toolset that has the name already, if it is another's.

        Raises:
            ToolOwnershipError: The owner was removed.
        """
        with self._mutation:
            self._require_present(owner, "register the toolset alias", alias)
            if alias in self._toolsets.held or any(entry.toolset == alias for entry in self._held.values()):
                return alias
            before = self._toolset_aliases.held.get(alias)
            held = self._toolset_aliases.claim(alias, owner, toolset, self._returns_as)
            self._mutation.grows |= held != before
        return None if held == toolset else held

    def declare_toolset(self, toolset: Toolset) -> Toolset | None:
        """Keep a plugin's bundle; the other's bundle of that name, if there is one.

        Raises:
            ToolOwnershipError: The owner was removed.
        """
        with self._mutation:
            self._require_present(toolset.owner, "register the toolset", toolset.name)
            held = self._toolsets.claim(toolset.name, toolset.owner, toolset, self._returns_as)
            self._mutation.grows |= held is toolset
        return None if held is toolset else held

    def opt_in(self, owner_id: str, allowed: bool | frozenset[str]) -> None:  # noqa: FBT001 - one of the two forms of the key
        """Say which tools the owner of that id may override."""
        with self._lock:
            self._opt_ins[owner_id] = allowed

    def fork_locks(self) -> tuple[Any, ...]:
        """See `mibyan.forks`: a change has several steps."""
        return (self._lock,)

    def after_fork(self) -> None:
        """In a child process: nobody else changes anything, and what another thread was changing is changed."""
        self._lock = renewed(self._lock)
        self._mutation.after_fork()
        self.log.after_fork()

    def decide(self, decision: Decision) -> None:
        """Put a decision into the report."""
        self.log.add(decision)

    # Within the lock ---------------------------------------------------------------------------------------------

    def _require_present(self, owner: Owner | None, what: str, name: str) -> None:
        if self._has_retired and owner is not None and owner in self._retired:
            from mibyan.tools.verdicts import retired

            raise retired(owner, f"{what} {name!r}")

    def _takes_free(self, entry: ToolEntry) -> bool:
        """The usual registration, in one step: a name that nobody wanted before, and no alias. Whether it was one."""
        name = entry.name
        if name in RESERVED or entry.aliases:
            return False
        with self._lock:
            if name in self._held or name in self._acts or self._has_retired:
                return False
            self._mutation.take(name, entry)
        self._tell(name)
        return True

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
        before, after = self._around(act, self._history(name))
        verdict = perform(name, replay(name, before, self.policy), act, self.policy)
        if verdict is not Verdict.RESERVED:
            # A refused override is kept too: once the holder is gone it is a registration of a free name.
            self._acts[name] = noted(name, [*before, act, *after], self.policy)
            self._settle(name, grow=grow and verdict.accepted)
        return verdict

    def _around(self, act: Act, history: list[Act]) -> tuple[list[Act], list[Act]]:
        """What came before an act and what after it: a plugin that is loaded anew has the place that it had before."""
        for index, old in enumerate(history if self._away and act.entry is not None else ()):
            if self._returns_as(old.owner, act.owner):
                return history[:index], [later for later in history[index:] if later.owner is not old.owner]
        return history, []

    def _returns_as(self, old: Owner | None, new: Owner | None) -> bool:
        """Whether `new` is the owner of a plugin that is loaded anew, and `old` its former one."""
        return (
            old in self._away and old is not None and new is not None and (old.id, old.source) == (new.id, new.source)
        )

    def _settle(self, name: str, *, grow: bool = True) -> None:
        """Let the holder of `name` be who its history says."""
        acts = self._acts[name]
        holding = replay(name, acts, self.policy)
        holder = holding.holder
        if holder is not None and holder.owner in self._away:
            holder = None
        elif len({act.owner for act in acts}) < 2 and len(holding.stack) < 2:
            del self._acts[name]
        self._hold(name, holder, grow=grow)

    def _hold(self, name: str, entry: ToolEntry | None, *, grow: bool) -> None:
        self._mutation.changed |= self._held.get(name) is not entry
        self._mutation.grows |= grow
        if entry is None:
            self._held.pop(name, None)
        else:
            self._held[name] = entry

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
                    self._give_up_alias(alias, before)
        for alias in entry.aliases:
            held = self._held.get(alias)
            verdict = self._perform(alias, Act(entry.owner, entry, override), grow=False)
            if not verdict.accepted and held is not None:
                from mibyan.tools.verdicts import alias_rejected

                self.decide(alias_rejected(alias, entry, held))

    def _give_up_alias(self, alias: str, entry: ToolEntry) -> None:
        """`entry` answers to `alias` no longer; a tool of that very name, of the same owner, does."""
        if not any(held.owner is entry.owner and held.name == alias for held in self.candidates(alias).stack):
            self._perform(alias, Act(entry.owner, None), grow=False)

    def _drop_toolset_aliases(self, toolset: str) -> None:
        """registry.R7: a toolset's aliases go with its last tool."""
        if self._toolset_aliases.held and not any(entry.toolset == toolset for entry in self._held.values()):
            self._toolset_aliases.remove_meaning(toolset)

    def _may_override(self, owner: Owner, name: str) -> bool:
        allowed = self._opt_ins.get(owner.id)
        if allowed is None or owner.kind != "plugin":
            return owner.kind == "plugin" and owner.may_override(name)
        return allowed if isinstance(allowed, bool) else name in allowed

    def _tell(self, name: str) -> None:
        if self.on_change is not None:
            self.on_change(name)
