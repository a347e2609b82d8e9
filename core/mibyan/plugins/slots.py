"""`PluginSlot`: one plugin's place in a runtime, from being found to being unloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.plugins.sources import ids
from mibyan.plugins.state import ACTIVE, FOUND, NEEDS, READY, PluginRecord
from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mibyan.hooks.table import HookTable
    from mibyan.plugins.candidate import Candidate
    from mibyan.plugins.context import PluginContext
    from mibyan.plugins.importing import PluginCode
    from mibyan.plugins.learned import Learned
    from mibyan.plugins.ledger import Ledger, Recalled
    from mibyan.plugins.state import State
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.owner import Owner
    from mibyan.tools.store import RegistryStore


@record(frozen=False, eq=False)
class PluginSlot:
    """What the loader knows about one plugin; changed only by the loader."""

    candidate: Candidate
    #: Its place in the order of all plugins.
    rank: int = 0
    state: State = FOUND
    reason: str = ""
    hint: str | None = None
    rule: str = ""
    decided_by: str | None = None
    ledger: Ledger | None = None
    context: PluginContext | None = None
    code: PluginCode | None = None
    #: The modules that its manifest names and that are imported.
    named: set[str] = field(default_factory=set)
    #: Of project code: the bytes that were hashed when it was found to be trusted, by path below its root.
    sources: Mapping[str, bytes] | None = None
    #: Of a frozen plugin: the entries that its manifest announced.
    announced: dict[str, ToolEntry] = field(default_factory=dict)
    #: Of a plugin without frozen definitions: what was learned of it, as long as that stands for its import.
    learned: Learned | None = None
    #: The tools that were recalled, see `Ledger.recalled`.
    recalled: dict[str, Recalled] = field(default_factory=dict)
    #: Whether its main module had been imported before the plugin was.
    was_there: bool = False
    #: What its failed load had registered and was taken back: names and places of tools.
    lost: tuple[tuple[str, str | None], ...] = ()
    import_ms: float | None = None
    #: When its loading ended in this state, in seconds since the epoch.
    loaded_at: float | None = None
    #: Whether its code is being imported right now.
    busy: bool = False

    @property
    def id(self) -> str:
        """The plugin's id."""
        return self.candidate.id

    @property
    def is_active(self) -> bool:
        """Whether its code is imported and has registered."""
        return self.state == ACTIVE

    @property
    def is_frozen(self) -> bool:
        """Whether its manifest defines its tools."""
        return self.candidate.manifest is not None and self.candidate.manifest.frozen

    def renew(self, candidate: Candidate) -> None:
        """Be found anew."""
        self.candidate, self.code, self.sources, self.import_ms, self.loaded_at = candidate, None, None, None, None
        self.learned, self.recalled = None, {}
        self.become(FOUND)

    def become(
        self, state: State, reason: str = "", hint: str | None = None, rule: str = "", decided_by: str | None = None
    ) -> None:
        """Be in another state."""
        self.state, self.reason, self.hint = state, reason, hint
        self.rule, self.decided_by = rule, decided_by

    def record(
        self, store: RegistryStore, hooks: HookTable, names: Mapping[Owner, list[str]] | None = None
    ) -> PluginRecord:
        """What is to be said about the plugin now.

        Args:
            store: The tools.
            hooks: The hooks.
            names: The names of all tools by owner (`tools_by_owner`), if they are known already.
        """
        owner = self.ledger.owner if self.ledger is not None and self.ledger.phase != "closed" else None
        tools: tuple[str, ...] = ()
        overrides: tuple[str, ...] = ()
        rejected: tuple[str, ...] = ()
        if owner is not None:
            tools = tuple(sorted((tools_by_owner(store) if names is None else names).get(owner, ())))
            overrides = tuple(name for name in tools if len(store.candidates(name).stack) > 1)
            rejected = _lost(store, owner)
        implemented = hooks.names_of(owner) if owner is not None else ()
        shown = tuple(name for name in implemented if name != "mibyan_register")
        return PluginRecord(
            self.candidate, self.state, self.reason, self.hint, owner, tools, shown, overrides, self.import_ms,
            self.loaded_at, None, self.rule, self.decided_by, rejected,
        )  # fmt: skip


def _lost(store: RegistryStore, owner: Owner) -> tuple[str, ...]:
    """The names that an owner wanted for its tools and others have, sorted."""
    holdings = {name: store.candidates(name) for name in store.contested()}
    return tuple(sorted(
        name for name, holding in holdings.items()
        if holding.lost_by(owner) is not None and all(entry.owner is not owner for entry in holding.stack)
    ))  # fmt: skip


def tools_by_owner(store: RegistryStore) -> dict[Owner, list[str]]:
    """The names of the tools that each owner holds."""
    found: dict[Owner, list[str]] = {}
    for name, entry in store.snapshot.entries.items():
        found.setdefault(entry.owner, []).append(name)
    return found


def find_slot(slots: Sequence[PluginSlot], name: str) -> PluginSlot | None:
    """The plugin with an id, in any spelling; of several the one that counts."""
    found = ids.resolve(name, [slot.id for slot in slots])
    named = [slot for slot in slots if slot.id == found]
    counting = [slot for slot in named if slot.state in {READY, ACTIVE, FOUND, NEEDS}]
    return next(iter([*counting, *named]), None)
