"""What a session makes of a tool that has its name: hidden by toolsets, not available, left out of a format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.records import record
from mibyan.toolsets.bundles import home_of
from mibyan.toolsets.records import mending_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.explain.answer import ClaimState
    from mibyan.parts import Parts
    from mibyan.tools.entry import ToolEntry
    from mibyan.toolsets.selection import Selection


@record
class Asked:
    """The session that is asked about, as `rt.definitions` takes it."""

    enabled: Sequence[str] | None = None
    disabled: Sequence[str] | None = None
    platform: str | None = None
    #: `None`: whether some format leaves the tool out decides nothing.
    format: str | None = None
    #: Whether code of frozen plugins may be run to find out more.
    load: bool = False


@record
class Finding:
    """What a session makes of a tool."""

    state: ClaimState
    reason: str
    rule: str
    fix: str | None = None
    decided_by: str | None = None


def judge(entry: ToolEntry, parts: Parts, asked: Asked, left_out: dict[str, str]) -> Finding:
    """What keeps a tool from a session, or that nothing does.

    Args:
        entry: The tool; it has its name.
        parts: The runtime's.
        asked: The session.
        left_out: The formats that can't express it.
    """
    return (
        _hidden(entry, parts, asked) or _unavailable(entry, parts, asked) or _left_out(asked, left_out) or _ready(entry)
    )


def _ready(entry: ToolEntry) -> Finding:
    off = f"mibyan plugins disable {entry.plugin_id}" if entry.plugin_id else None
    return Finding("ready", "it has the name, the session's toolsets have it, and it is available", "registry.R4", off)


def _hidden(entry: ToolEntry, parts: Parts, asked: Asked) -> Finding | None:
    selection = parts.toolsets.select(asked.enabled, asked.disabled, platform=asked.platform)
    if entry.name in selection.names:
        return None
    toolset = dict(selection.denied).get(entry.name)
    if toolset is None:
        return _not_enabled(entry, parts, selection)
    stand = selection.denials[toolset]
    reason = f"the toolset {toolset!r} is denied by {stand.argument}, and deny wins"
    return Finding("hidden", reason, "registry.T4", stand.without(toolset), stand.line)


def _not_enabled(entry: ToolEntry, parts: Parts, selection: Selection) -> Finding:
    stand = selection.limits[-1]
    toolset = home_of(entry.toolset)
    rules = {name: parts.toolsets.rule_against(name, entry) for name in _names_of(stand.argument, parts)}
    broken = next(((name, rule) for name, rule in rules.items() if rule), None)
    if broken is not None:
        reason = f"the preset {broken[0]!r} takes {broken[1]}"
        return Finding("hidden", reason, "registry.T3", f"Enable {toolset!r} by its own name.", stand.line)
    reason = f"its toolset {toolset!r} isn't in {stand.argument}"
    return Finding("hidden", reason, "registry.T4", stand.with_(toolset), stand.line)


def _names_of(argument: str, parts: Parts) -> list[str]:
    """The preset that a platform starts from, where it is one."""
    if argument.startswith("platform "):
        return [f"mibyan-{argument.split(chr(39))[1]}"]
    if argument.startswith("platform_toolsets."):
        return list(parts.config.settings.platform_toolsets.get(argument.partition(".")[2]) or ())
    return list(parts.config.settings.toolsets.enabled or ()) if argument == "toolsets.enabled" else []


def _unavailable(entry: ToolEntry, parts: Parts, asked: Asked) -> Finding | None:
    from mibyan.tools.requirements import missing_requirements

    missing = missing_requirements(entry.requires)
    if missing is None and entry.activate is not None and entry.check_fn is not None and not asked.load:
        reason = f"whether its check passes is known once plugin {entry.owner.id!r} is imported"
        return Finding("unchecked", reason, "registry.V1", f"mibyan tools why {entry.name} --load")
    verdict = parts.availability.verdicts([entry])[entry.name]
    if verdict.available:
        return None
    reason = verdict.reason or "its check says no"
    rule = "registry.V1" if missing is not None else "registry.V2"
    return Finding("unavailable", reason, rule, mending_of(entry, reason))


def _left_out(asked: Asked, left_out: dict[str, str]) -> Finding | None:
    if asked.format is None or asked.format not in left_out:
        return None
    reason = f"the format {asked.format!r} can't express it: {left_out[asked.format]}"
    return Finding("left_out", reason, "registry.D4", "Change its schema, or use another format.")


def formats_without(entry: ToolEntry) -> dict[str, str]:
    """The formats that can't express a tool, each with the reason."""
    from mibyan.schema import formats

    found: dict[str, str] = {}
    for name in formats.FORMATS:
        _, reason = formats.expressed(entry.schema, name, annotations=entry.annotations)
        if reason is not None:
            found[name] = reason
    return found
