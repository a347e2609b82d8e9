"""A project's config.yaml: it can take away, never add (somebody else may have written it).

It accepts `plugins.disabled`, `toolsets.disabled`, `approvals.deny`, `mcp_servers.<known>.enabled: false`, lower numbers
in `dispatch`, `processes` and `agent`, and `hooks`, which stay apart until they are trusted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.config.keys import join_key, value_at
from mibyan.config.layers import written
from mibyan.config.scalars import describe
from mibyan.text import suggest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mibyan.config.keys import KeyPath
    from mibyan.config.layers import Layer
    from mibyan.config.problems import Problem
    from mibyan.config.settings import Settings
    from mibyan.config.yamlfile import Document

#: What problems call a project's file.
LABEL = ".mibyan/config.yaml"

#: Lists that a project may add to: each takes something away.
_DENY_LISTS: frozenset[KeyPath] = frozenset({("plugins", "disabled"), ("toolsets", "disabled"), ("approvals", "deny")})
#: Sections in which a project may lower numbers.
_LIMITS = frozenset({"dispatch", "processes", "agent"})


def narrow(settings: Settings, document: Document, data: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The settings' data with what a project's document takes away.

    Args:
        settings: The operator's settings.
        document: The project's document, for the lines.
        data: What `check` made of it.

    Returns:
        The data of the narrowed settings, without the project's hooks, and what isn't narrowing.
    """
    result = settings.to_data()
    problems: list[Problem] = []
    for path, value in _leaves(data, ()):
        if path[0] == "hooks":
            continue
        problem = _apply(result, path, value)
        if problem is not None:
            problems.append(document.problem(path, *problem))
    return result, sorted(problems, key=lambda problem: problem.line or 0)


def add_places(own: Mapping[str, str], guest: Layer, settings: Settings) -> dict[str, str]:
    """Where each key is written, the project's among them.

    What a project adds to a list is found by its number in the list that both make together.
    """
    lines = dict(own)
    for path, value in written(guest.document.data):
        place = guest.document.where(path)
        is_item = path[:-1] in _DENY_LISTS
        number = value_at(settings.to_data(), path[:-1]).index(value) if is_item else path[-1]
        key = join_key((*path[:-1], number))
        is_shared = isinstance(value, dict) or path in _DENY_LISTS or is_item
        lines[key] = lines.get(key, place) if is_shared else place
    return lines


def _leaves(data: dict[str, Any], path: KeyPath) -> list[tuple[KeyPath, Any]]:
    """The keys that have no mapping below them, with their values; an empty mapping counts as one."""
    leaves: list[tuple[KeyPath, Any]] = []
    for name, value in data.items():
        place = (*path, name)
        leaves.extend(_leaves(value, place) if isinstance(value, dict) and value else [(place, value)])
    return leaves


def _apply(result: dict[str, Any], path: KeyPath, value: Any) -> tuple[str, str | None] | None:
    """Take away what `path: value` says; a message and a suggestion when that isn't narrowing."""
    if path in _DENY_LISTS:
        section = result[str(path[0])]
        section[path[1]] = list(dict.fromkeys([*section[path[1]], *value]))
        return None
    if path[0] == "mcp_servers":
        return _switch_off(result["mcp_servers"], path, value)
    if path[0] in _LIMITS:
        return _lower(result, path, value)
    if _could_narrow(path) and value == {}:
        return None
    return "a project's config only narrows, and this key doesn't; it belongs into the config.yaml of your home", None


def _could_narrow(path: KeyPath) -> bool:
    """Whether there is something below `path` that a project may say."""
    return any(allowed[: len(path)] == path for allowed in _DENY_LISTS)


def _switch_off(servers: dict[str, Any], path: KeyPath, value: Any) -> tuple[str, str | None] | None:
    """Switch a known MCP server off."""
    if len(path) == 1:
        return None
    name = str(path[1])
    if name not in servers:
        return "a project can't add an MCP server, and the config.yaml of your home has none of this name", suggest(
            name, servers
        )
    if path[2:] != ("enabled",) or value is not False:
        return "a project can only say 'enabled: false' of an MCP server", None
    servers[name]["enabled"] = False
    return None


def _lower(result: dict[str, Any], path: KeyPath, value: Any) -> tuple[str, str | None] | None:
    """Lower a number."""
    if value == {}:
        return None
    section: Any = result
    for part in path[:-1]:
        section = section[part]
    current = section[path[-1]]
    if not _is_number(current) or not _is_number(value):
        return "a project can only lower numbers here; this key belongs into the config.yaml of your home", None
    if value > current:
        return f"a project can only lower it: expected at most {describe(current)}, got {describe(value)}", None
    section[path[-1]] = value
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
