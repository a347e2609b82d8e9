"""The claims of tools that were registered: who has the name, who was displaced, who came too late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.explain.answer import Claim
from mibyan.explain.places import code_of, place_of_tool
from mibyan.explain.sources import places_of
from mibyan.tools.namespace import Verdict
from mibyan.tools.origin import place_of
from mibyan.tools.verdicts import let_in, opt_in, opt_in_line, undo_override, whose

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mibyan.explain.answer import ClaimState
    from mibyan.plugins.state import PluginRecord
    from mibyan.report import Decision
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.namespace import Act
    from mibyan.tools.owner import Owner
    from mibyan.tools.store import RegistryStore


class Registered:
    """Makes claims of what a registry holds.

    Args:
        store: The registry.
        records: The plugins, for the places of frozen tools.
    """

    def __init__(self, store: RegistryStore, records: Sequence[PluginRecord]) -> None:
        self._store = store
        self._by_owner: Mapping[Owner, PluginRecord] = {
            record.owner: record for record in records if record.owner is not None
        }

    def holder(self, name: str) -> ToolEntry | None:
        """The tool that answers to a name or alias."""
        return self._store.find(name)

    def claims(self, name: str) -> Iterator[Claim]:
        """Those that don't have the name: displaced ones, the last first, then those that were rejected."""
        holding = self._store.candidates(name)
        over = holding.stack[1:]
        for entry, winner in reversed(list(zip(holding.stack, over, strict=False))):
            yield self._displaced(entry, winner)
        for act, verdict in {act.owner: (act, verdict) for act, verdict in holding.losers}.values():
            claim = self._lost(name, act, verdict, holding.holder)
            if claim is not None:
                yield claim

    def of(
        self,
        entry: ToolEntry,
        state: ClaimState,
        reason: str,
        rule: str,
        fix: str | None,
        decided_by: str | None = None,
    ) -> Claim:
        """The claim of an entry."""
        owner = entry.owner
        return Claim(entry.name, state, reason, rule, owner.id if owner.kind != "unattributed" else None,
                     owner.source or None, entry.toolset, self.place(entry), decided_by, fix)  # fmt: skip

    def place(self, entry: ToolEntry) -> str | None:
        """`file:line` of a tool; of one whose code isn't imported by reading its source."""
        record = self._by_owner.get(entry.owner)
        if entry.activate is None or record is None:
            return place_of(entry)
        manifest = record.candidate.manifest
        for tool in manifest.tools if manifest is not None else ():
            if tool.name == entry.name:
                return place_of_tool(record.candidate, tool)
        # A plugin that was learned: where its text registers the tool, unless that was kept.
        found = [] if entry.origin else places_of(entry.name, code_of(record.candidate))
        return found[0].place if found else place_of(entry) or record.origin

    def _displaced(self, entry: ToolEntry, winner: ToolEntry) -> Claim:
        fix = undo_override(winner) or "It is the host's doing."
        if winner.owner.is_host:
            return self.of(entry, "displaced", f"{whose(winner.owner)} overrides it", "registry.R5", fix)
        line = opt_in_line(self._store, winner)
        if self._store.policy.may_override(winner.owner, entry.name):
            reason = f"{whose(winner.owner)} overrides it, and you allow that"
            return self.of(entry, "displaced", reason, "registry.R5", fix, line)
        line = self._store.line_of(("namespace", "collisions"))
        reason = f"{whose(winner.owner)} came later, and namespace.collisions is last_wins"
        return self.of(entry, "displaced", reason, "registry.R10", "namespace: {collisions: reject}", line)

    def _lost(self, name: str, act: Act, verdict: Verdict, holder: ToolEntry | None) -> Claim | None:
        entry = act.entry
        if entry is None or holder is None or holder is entry:
            return None
        if verdict is Verdict.REFUSED:
            reason = f"{whose(holder.owner)} has the name; it asks to override that, and you haven't allowed it"
            line = opt_in_line(self._store, entry)
            return self.of(entry, "rejected", reason, "registry.R5", opt_in(entry.owner), line)
        which = "the name" if entry.name == name else f"the name {name!r}, which would be its alias"
        reason = f"{whose(holder.owner)} has {which} already (toolset {holder.toolset!r}); the first one keeps it"
        rule = "registry.R4" if entry.name == name else "registry.R8"
        return self.of(entry, "rejected", reason, rule, let_in(entry, holder))


def told(name: str, decisions: Sequence[Decision], known: set[str | None]) -> Iterator[Claim]:
    """The claims that only the report remembers: of reserved names, and of plugins that were rolled back.

    Args:
        name: The tool's.
        decisions: What the report has about it.
        known: The plugins whose claims are known already.
    """
    # A plugin whose claim was refused, and that was rolled back for it, has both.
    latest = {one.plugin_id: one for kind in ("failed", "rejected") for one in decisions if one.kind == kind}
    for plugin_id, decision in latest.items():
        if plugin_id not in known:
            state: ClaimState = "rolled_back" if decision.kind == "failed" else "rejected"
            yield Claim(name, state, decision.reason, decision.rule or "plugins.L2", plugin_id, None, None,
                        decision.origin, decision.decided_by, decision.fix)  # fmt: skip
