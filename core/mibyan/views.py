"""What plugins, and whoever uses `get_runtime()`, see of parts that only a host may change: to look at (registry.R6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from mibyan.errors import ToolOwnershipError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mibyan.approvals.broker import Approvals
    from mibyan.approvals.requests import ApprovalRequest
    from mibyan.hooks.table import HookChain, HookTable
    from mibyan.plugins.candidate import Note
    from mibyan.plugins.loader import PluginLoader
    from mibyan.plugins.offers import OfferedThings
    from mibyan.plugins.state import PluginRecord
    from mibyan.tools.availability import Availability, Verdict
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.owner import Owner


class PluginsView:
    """The plugins of a runtime, to look at: a host that wants to unload or reload one makes a `Runtime`."""

    __slots__ = ("_loader",)

    def __init__(self, loader: PluginLoader) -> None:
        self._loader = loader

    def load(self) -> None:
        """Find and load the plugins, if that hasn't happened yet; see `PluginLoader.load`."""
        self._loader.load()

    def records(self) -> Mapping[str, PluginRecord]:
        """The plugins by id; see `PluginLoader.records`."""
        return self._loader.records()

    def all_records(self) -> tuple[PluginRecord, ...]:
        """All that was found; see `PluginLoader.all_records`."""
        return self._loader.all_records()

    def get(self, plugin_id: str) -> PluginRecord:
        """One plugin, by its id in any spelling.

        Raises:
            PluginError: There is none; the message has a suggestion.
        """
        return self._loader.get(plugin_id)

    @property
    def offers(self) -> OfferedThings:
        """What plugins offer beside tools and hooks: commands, skills, services, terminal backends."""
        return self._loader.offers

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was passed over while looking for plugins."""
        return self._loader.notes

    def __getattr__(self, name: str) -> Any:
        refuse(f"use `plugins.{name}`")


class HooksView:
    """The hook implementations of a runtime, to look at: `get_runtime().add_hook` adds one, a host removes them."""

    __slots__ = ("_table",)

    def __init__(self, table: HookTable) -> None:
        self._table = table

    @property
    def generation(self) -> int:
        """Grows with each change."""
        return self._table.generation

    def chain(self, hook: str) -> HookChain:
        """The implementations of `hook`, in order; plugins that announced it are imported first."""
        return self._table.chain(hook)

    def names_of(self, owner: Owner) -> tuple[str, ...]:
        """The hooks that `owner` implements or announces, sorted."""
        return self._table.names_of(owner)

    def __getattr__(self, name: str) -> Any:
        refuse(f"use `hooks.{name}`")


class ApprovalsView:
    """The questions of a runtime, to look at: who asks can't answer itself. A host sets its channel, and answers."""

    __slots__ = ("_broker", "_who")

    def __init__(self, broker: Approvals, who: str = "get_runtime()") -> None:
        self._broker = broker
        self._who = who

    @property
    def patience(self) -> float:
        """Seconds after which nobody waits for a decision any more."""
        return self._broker.patience

    def pending(self, session_id: str | None = None) -> list[ApprovalRequest]:
        """The questions that wait for an answer, oldest first; of one session if its id is given."""
        return self._broker.pending(session_id)

    def __getattr__(self, name: str) -> Any:
        refuse(f"use `approvals.{name}`", self._who)


class AvailabilityView:
    """The verdicts on a runtime's tools, to look at, and to forget: how long they hold is the operator's to say."""

    __slots__ = ("_availability",)

    def __init__(self, availability: Availability) -> None:
        self._availability = availability

    @property
    def ttl(self) -> float:
        """Seconds for which a verdict is kept, where its tool doesn't say; 0: for the pass only."""
        return self._availability.ttl

    @property
    def grace(self) -> float:
        """Seconds after a pass within which a failing check is forgiven, where its tool doesn't say."""
        return self._availability.grace

    def verdicts(self, entries: Iterable[ToolEntry]) -> dict[str, Verdict]:
        """The verdict of each entry, by name; see `Availability.verdicts`."""
        return self._availability.verdicts(entries)

    def verdict(self, entry: ToolEntry) -> Verdict:
        """The verdict of one entry."""
        return self._availability.verdicts((entry,))[entry.name]

    def invalidate(self) -> None:
        """Forget every verdict: who asks next probes anew."""
        self._availability.invalidate()

    def __getattr__(self, name: str) -> Any:
        refuse(f"use `availability.{name}`")


def refuse(what: str, who: str = "get_runtime()") -> NoReturn:
    """Refuse what only a host may.

    Raises:
        ToolOwnershipError: Always.
    """
    raise ToolOwnershipError(
        f"{who} can't {what}: it hasn't the host's rights.",
        hint="A host makes its own `mibyan.Runtime(...)` and uses that.",
    )
