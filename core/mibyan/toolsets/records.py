"""What is said in the report of tools that a session isn't shown: hidden by toolsets, not available."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.report import Decision
from mibyan.tools.mending import mending
from mibyan.tools.origin import place_of
from mibyan.toolsets.bundles import home_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.snapshot import RegistrySnapshot
    from mibyan.toolsets.selection import Selection

#: Tools that a record names; the others are counted.
_NAMED = 20


def hidden(selection: Selection, snapshot: RegistrySnapshot) -> Iterator[Decision]:
    """A record for each tool that a denial took away, and one for each toolset that isn't enabled."""
    denied = dict(selection.denied)
    for name, toolset in denied.items():
        stand = selection.denials[toolset]
        entry = snapshot.entries.get(name)
        who, where = (None, None) if entry is None else (entry.plugin_id, place_of(entry))
        yield Decision("hidden", f"tool:{name}", f"Denied with the toolset {toolset!r}.", who, where,
                       stand.without(toolset), rule="registry.T4", decided_by=stand.line)  # fmt: skip
    yield from _left_out(selection, snapshot, denied)


def _left_out(selection: Selection, snapshot: RegistrySnapshot, denied: dict[str, str]) -> Iterator[Decision]:
    if not selection.limits:
        return
    stand = selection.limits[-1]
    for toolset, names in snapshot.toolsets.items():
        out = [name for name in names if name not in selection.names and name not in denied]
        if out:
            reason = f"Not among {stand.argument}: {_listed(out)}."
            yield Decision("hidden", f"toolset:{home_of(toolset)}", reason, fix=stand.with_(home_of(toolset)),
                           rule="registry.T4", decided_by=stand.line)  # fmt: skip


def missing(entry: ToolEntry, reason: str) -> Decision:
    """The record of a tool that isn't available."""
    rule = "registry.V1" if mending(entry.requires) else "registry.V2"
    return Decision("unavailable", f"tool:{entry.name}", f"Unavailable: {reason}.", entry.plugin_id, place_of(entry),
                    mending_of(entry, reason), rule=rule)  # fmt: skip


def mending_of(entry: ToolEntry, reason: str) -> str:
    """What would make a tool available."""
    unset = _unset(entry)
    if commands := mending(entry.requires):
        return commands
    if unset:
        return f"What it says it needs isn't set: {'; '.join(f'export {name}=…' for name in unset)}"
    return f"Provide what its check asks for ({reason}), then `mibyan tools why {entry.name}` asks it again."


def _unset(entry: ToolEntry) -> list[str]:
    import os

    return [name for name in entry.requires_env if not os.environ.get(name)]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
