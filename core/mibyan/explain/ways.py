"""What to say of a name that nobody wants: what was probably meant, and where such a tool could come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.explain.places import code_of
from mibyan.explain.sources import registrations_in
from mibyan.paths import PROJECT_FOLDER
from mibyan.text import one_line, suggestions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mibyan.parts import Parts
    from mibyan.plugins.state import PluginRecord


def suggested(name: str, parts: Parts, records: Sequence[PluginRecord]) -> list[str]:
    """The names that were probably meant, the likeliest first; those of plugins that aren't loaded count."""
    snapshot = parts.store.snapshot
    known = {*snapshot.entries, *snapshot.aliases, *_names_of_unloaded(records)}
    alike = sorted(one for one in known if _folded(one) == _folded(name))
    return list(dict.fromkeys([*alike, *suggestions(name, known)]))


def _folded(name: str) -> str:
    """What is compared where only case and the kind of dash may differ."""
    return name.casefold().replace("-", "_")


def _names_of_unloaded(records: Iterable[PluginRecord]) -> Iterable[str]:
    for record in records:
        manifest = record.candidate.manifest
        if record.is_usable:
            continue
        if manifest is not None and manifest.frozen:
            yield from (tool.name for tool in manifest.tools)
        else:
            yield from (one.name for one in registrations_in(code_of(record.candidate)).found if one.name)


def ways(name: str, parts: Parts) -> list[str]:
    """Where a tool of that name could come from, a sentence each."""
    shown = one_line(name, 64)
    found = [
        *_other_meanings(name, parts),
        "a plugin that is installed (a wheel with an entry point in the group mibyan.plugins): mibyan plugins install SPEC",
        f"a plugin of yours: {parts.home / 'plugins'}/<id>/ with a plugin.yaml and an __init__.py",
        f"a file of yours: {parts.home / 'tools'}/{shown}.py with `registry.register({shown!r}, …)` at its top level",
    ]
    if parts.project is not None:
        found.append(
            f"the project: {parts.project / PROJECT_FOLDER}/plugins or /tools, once trusted (`mibyan plugins trust`)"
        )
    servers = [server for server, said in parts.config.settings.mcp_servers.items() if said.enabled]
    if servers:
        found.append(f"an MCP server of config.yaml ({', '.join(servers)}): what it has is known once it is connected")
    else:
        found.append("an MCP server: `mcp_servers` in config.yaml")
    return found


def _other_meanings(name: str, parts: Parts) -> list[str]:
    """What else bears the name."""
    if parts.toolsets.get(name) is not None:
        return [f"{name!r} is a toolset: `mibyan toolsets show {name}`"]
    if name in parts.plugins.records():
        return [f"{name!r} is a plugin: `mibyan plugins show {name}`"]
    return []
