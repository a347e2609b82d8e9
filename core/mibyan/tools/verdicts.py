"""What is said of a registration: once in the log, and as a record in the report (registry.R4, R5, R10, R11)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mibyan.errors import ToolOverrideError, ToolOwnershipError
from mibyan.report import Decision
from mibyan.tools.namespace import Verdict

if TYPE_CHECKING:
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.owner import Owner
    from mibyan.tools.store import RegistryStore

log = logging.getLogger("mibyan.registry")


def whose(owner: Owner) -> str:
    """Who an owner is, for people."""
    match owner.kind:
        case "host":
            return "the host"
        case "unattributed":
            return "code that can't be attributed to a plugin"
    return f"plugin {owner.id!r}"


def retired(owner: Owner, what: str) -> ToolOwnershipError:
    """The error of code whose owner was removed (its plugin was unloaded, or its loading failed) and that does `what`."""
    return ToolOwnershipError(
        f"{whose(owner)} can't {what}: it isn't loaded (any more).", plugin_id=owner.plugin_id,
        hint="Stop threads, timers and tasks in ctx.on_unload(...).",
    )  # fmt: skip


def tell(store: RegistryStore, verdict: Verdict, entry: ToolEntry, before: ToolEntry | None) -> bool:
    """Log the verdict once and put it into the report; whether the registration took effect."""
    if verdict is Verdict.TAKEN:
        return True
    if verdict is Verdict.REPLACED:
        log.debug("Tool replaced: %r (toolset %r) by its owner", entry.name, entry.toolset)
        return True
    if verdict is Verdict.RESERVED:
        reason = (f"Tool registration REJECTED: {entry.name!r} (toolset {entry.toolset!r}) is a reserved name: "
                  "only the runtime itself may hold it.")  # fmt: skip
        return _reject(store, entry, reason, "Give the tool another name.")
    if before is None:
        before = entry
    if verdict is Verdict.OVERRIDDEN:
        reason = (f"Tool override: {entry.name!r} (toolset {entry.toolset!r}, {whose(entry.owner)}) displaces the tool "
                  f"from toolset {before.toolset!r} ({whose(before.owner)}).")  # fmt: skip
        log.info("%s", reason)
        store.decide(Decision("overridden", f"tool:{entry.name}", reason, entry.plugin_id, entry.origin,
                              fix=_undo_override(entry)))  # fmt: skip
        return True
    if verdict is Verdict.LAST_WINS:
        reason = (f"Tool {entry.name!r} of toolset {entry.toolset!r} ({whose(entry.owner)}) replaces the one of toolset "
                  f"{before.toolset!r} ({whose(before.owner)}): namespace.collisions is last_wins.")  # fmt: skip
        log.warning("%s", reason)
        store.decide(Decision("replaced", f"tool:{entry.name}", reason, entry.plugin_id, entry.origin,
                              fix="namespace: {collisions: reject}", problem=True))  # fmt: skip
        return True
    reason = (f"Tool registration REJECTED: {entry.name!r} (toolset {entry.toolset!r}) would shadow existing tool from "
              f"toolset {before.toolset!r} ({whose(before.owner)})")  # fmt: skip
    if verdict is Verdict.REFUSED:
        _refuse(store, entry, reason)
    return _reject(store, entry, reason, "Rename one of the two, or register it with override=True.")


def _reject(store: RegistryStore, entry: ToolEntry, reason: str, fix: str) -> bool:
    log.error("%s", reason)
    store.decide(
        Decision("rejected", f"tool:{entry.name}", reason, entry.plugin_id, entry.origin, fix=fix, problem=True)
    )
    return False


def _refuse(store: RegistryStore, entry: ToolEntry, reason: str) -> None:
    log.error("%s: override=True, but the operator hasn't allowed it", reason)
    source = "\n      source: project" if entry.owner.source == "project" else ""
    yaml = f"plugins:\n  entries:\n    {entry.owner.id}:\n      allow_tool_override: true{source}"
    if entry.owner.kind != "plugin":
        yaml = "Only a plugin or the host can override a tool."
    store.decide(
        Decision("rejected", f"tool:{entry.name}", reason, entry.plugin_id, entry.origin, fix=yaml, problem=True)
    )
    hint = f"The operator can allow it in config.yaml:\n{yaml}" if entry.owner.kind == "plugin" else yaml
    raise ToolOverrideError(f"{reason}: override=True needs the operator's opt-in.", plugin_id=entry.plugin_id,
                            origin=entry.origin, hint=hint)  # fmt: skip


def _undo_override(entry: ToolEntry) -> str | None:
    if entry.plugin_id is None:
        return None
    return f"plugins.entries.{entry.plugin_id}.allow_tool_override: false"
