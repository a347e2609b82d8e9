"""What is said of a registration: once in the log, and as a record in the report (registry.R4, R5, R10, R11)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mibyan.errors import ToolOverrideError, ToolOwnershipError
from mibyan.report import Decision
from mibyan.tools.namespace import Verdict
from mibyan.tools.origin import place_of

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
    if verdict is Verdict.LOCKED_OUT:
        return False  # The guard has told it.
    if verdict is Verdict.RESERVED:
        reason = (f"Tool registration REJECTED: {entry.name!r} (toolset {entry.toolset!r}) is a reserved name: "
                  "only the runtime itself may hold it.")  # fmt: skip
        return _reject(store, entry, reason, f"Give the tool another name than {entry.name!r}.", "registry.R11")
    return _told(store, verdict, entry, entry if before is None else before)


def _told(store: RegistryStore, verdict: Verdict, entry: ToolEntry, before: ToolEntry) -> bool:
    """Tell a verdict that concerns another's tool; whether the registration took effect."""
    if verdict is Verdict.OVERRIDDEN:
        reason = (f"Tool override: {entry.name!r} (toolset {entry.toolset!r}, {whose(entry.owner)}) displaces the tool "
                  f"from toolset {before.toolset!r} ({whose(before.owner)}).")  # fmt: skip
        log.info("%s", reason)
        _decide(store, "overridden", entry, reason, undo_override(entry), "registry.R5", opt_in_line(store, entry))
        return True
    if verdict is Verdict.LAST_WINS:
        reason = (f"Tool {entry.name!r} of toolset {entry.toolset!r} ({whose(entry.owner)}) replaces the one of toolset "
                  f"{before.toolset!r} ({whose(before.owner)}): namespace.collisions is last_wins.")  # fmt: skip
        log.warning("%s", reason)
        line = store.line_of(("namespace", "collisions"))
        _decide(store, "replaced", entry, reason, "namespace: {collisions: reject}", "registry.R10", line)
        return True
    reason = (f"Tool registration REJECTED: {entry.name!r} (toolset {entry.toolset!r}) would shadow existing tool from "
              f"toolset {before.toolset!r} ({whose(before.owner)})")  # fmt: skip
    if verdict is Verdict.REFUSED:
        _refuse(store, entry, reason)
    return _reject(store, entry, reason, let_in(entry, before), "registry.R4")


def _decide(
    store: RegistryStore, kind: str, entry: ToolEntry, reason: str, fix: str | None, rule: str,
    decided_by: str | None = None,
) -> None:  # fmt: skip
    store.decide(Decision(kind, f"tool:{entry.name}", reason, entry.plugin_id, place_of(entry), fix,
                          kind != "overridden", rule, decided_by))  # fmt: skip


def alias_rejected(alias: str, entry: ToolEntry, held: ToolEntry) -> Decision:
    """The record of an alias that another tool has."""
    return Decision(
        "rejected",
        f"tool:{alias}",
        f"The alias {alias!r} of tool {entry.name!r} (toolset {entry.toolset!r}) is held by tool {held.name!r} "
        f"of toolset {held.toolset!r}.",
        plugin_id=entry.plugin_id,
        origin=place_of(entry),
        fix=f"Give one of the two another alias than {alias!r}.",
        problem=True,
        rule="registry.R8",
    )


def _reject(store: RegistryStore, entry: ToolEntry, reason: str, fix: str, rule: str) -> bool:
    log.error("%s", reason)
    _decide(store, "rejected", entry, reason, fix, rule)
    return False


def _refuse(store: RegistryStore, entry: ToolEntry, reason: str) -> None:
    log.error("%s: override=True, but the operator hasn't allowed it", reason)
    yaml = opt_in(entry.owner)
    _decide(store, "rejected", entry, reason, yaml, "registry.R5", opt_in_line(store, entry))
    hint = f"The operator can allow it in config.yaml:\n{yaml}" if entry.owner.kind == "plugin" else yaml
    raise ToolOverrideError(f"{reason}: override=True needs the operator's opt-in.", plugin_id=entry.plugin_id,
                            origin=place_of(entry), hint=hint)  # fmt: skip


# What would change it ------------------------------------------------------------------------------------------------


def opt_in(owner: Owner) -> str:
    """The lines of config.yaml that let a plugin override tools."""
    if owner.kind != "plugin":
        return "Only a plugin or the host can override a tool."
    source = "\n      source: project" if owner.source == "project" else ""
    return f"plugins:\n  entries:\n    {owner.id}:\n      allow_tool_override: true{source}"


def opt_in_line(store: RegistryStore, entry: ToolEntry) -> str | None:
    """The line of config.yaml that says whether the tool's plugin may override tools."""
    return store.line_of(("plugins", "entries", entry.owner.id, "allow_tool_override"))


def undo_override(entry: ToolEntry) -> str | None:
    """The line of config.yaml that takes an override back; `None`: it is the host's."""
    if entry.plugin_id is None:
        return None
    return f"plugins.entries.{entry.plugin_id}.allow_tool_override: false"


def let_in(entry: ToolEntry, holder: ToolEntry) -> str:
    """What would give `entry` the name that `holder` has."""
    free = (
        f"`mibyan plugins disable {holder.plugin_id}` frees the name" if holder.plugin_id else "Rename one of the two"
    )
    if entry.owner.kind != "plugin":
        return f"{free}; or register it with override=True."
    if holder.owner is entry.owner:
        return f"One plugin registers it twice, in the toolsets {holder.toolset!r} and {entry.toolset!r}: rename one of the two."  # fmt: skip
    return (f"{free}; or {entry.plugin_id} registers it with override=True and you allow that: "
            f"plugins.entries.{entry.plugin_id}.allow_tool_override: [{entry.name}]")  # fmt: skip
