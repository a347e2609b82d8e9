"""What a runtime holds at a moment, as plain data: two of them show what a plugin has left behind (plugins.L7)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mibyan.schema.frozen import thaw

if TYPE_CHECKING:
    from mibyan.runtime import Runtime


def picture(runtime: Runtime) -> dict[str, dict[str, Any]]:
    """Tools, aliases, toolsets, hooks and offers, each by name."""
    snapshot = runtime.registry.snapshot
    loader, hooks = runtime.plugins, runtime.hooks
    owners: dict[str, list[str]] = {}
    for implementation in hooks._implementations:
        owners.setdefault(implementation.hook, []).append(implementation.owner.id)
    for announced in hooks._announced:
        for name in announced.names:
            owners.setdefault(name, []).append(announced.owner.id)
    return {
        "tool": {name: f"{entry.toolset} {entry.owner.id} {_text(entry.schema)}" for name, entry in snapshot.entries.items()},
        "alias": dict(snapshot.aliases),
        "toolset alias": dict(snapshot.toolset_aliases),
        "toolset": {name: f"{one.tools} {one.includes}" for name, one in runtime._parts.store.declared_toolsets.items()},
        "hook": {name: " ".join(sorted(ids)) for name, ids in owners.items()},
        "offer": {f"{kind} {name}": offer.owner.id for (kind, name), offer in loader._loading.offers._offers.items()},
    }  # fmt: skip


def differences(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> list[str]:
    """What isn't as it was, a few words each."""
    found = []
    for kind, held in before.items():
        now = after[kind]
        for name in sorted(held.keys() | now.keys()):
            if held.get(name) != now.get(name):
                what = "is left" if name not in held else "is gone" if name not in now else "is another one"
                found.append(f"the {kind} {name!r} {what}")
    return found


def _text(schema: Any) -> str:
    return json.dumps(thaw(schema), sort_keys=True, default=str)
