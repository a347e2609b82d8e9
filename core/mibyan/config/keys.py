"""Keys as people write them: `dispatch.timeout`, `plugins.entries.'a.b'.config`, `hooks.pre_tool_call[0].command`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from mibyan.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: A key's parts from the top down: names of mappings' keys, and numbers of lists' items.
KeyPath: TypeAlias = tuple[str | int, ...]

_PLAIN = re.compile(r"[^\s.'\"\[\]]+")
_PART = re.compile(
    r"""(?P<plain>[^\s.'"\[\]]+) | '(?P<single>(?:[^']|'')*)' | "(?P<double>(?:[^"\\]|\\.)*)" | \[(?P<index>\d{1,9})\]""",
    re.VERBOSE,
)


def join_key(path: Iterable[str | int]) -> str:
    """The key as text; parts with dots, blanks, quotes or brackets are quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            quoted = part if _PLAIN.fullmatch(part) else "'" + part.replace("'", "''") + "'"
            text += f".{quoted}" if text else quoted
    return text


def split_key(key: str | Sequence[str | int]) -> KeyPath:
    """The parts of a key.

    Args:
        key: As `join_key` gives it, or the parts themselves, which are taken as they are.

    Raises:
        ConfigError: It isn't a key.
    """
    if not isinstance(key, str):
        return tuple(key)
    parts: list[str | int] = []
    position = 0
    while match := _PART.match(key, position):
        parts.append(_part(match))
        position = match.end()
        if position == len(key):
            return tuple(parts)
        # A dot stands before every part but the first and the indices.
        if key[position] == ".":
            position += 1
        elif key[position] != "[":
            break
    raise ConfigError(
        f"{key!r} isn't a key",
        hint="Write the parts with dots between them: dispatch.timeout; quote what has a dot: plugins.entries.'a.b'.config",
    )


def value_at(data: Any, path: Iterable[str | int]) -> Any:
    """What is at `path` in JSON data.

    Raises:
        LookupError: There is nothing.
    """
    for part in path:
        fits = isinstance(part, str) if isinstance(data, dict) else isinstance(part, int) and isinstance(data, list)
        if not fits:
            raise LookupError(part)
        data = data[part]
    return data


def _part(match: re.Match[str]) -> str | int:
    """What one part stands for."""
    if match["index"] is not None:
        return int(match["index"])
    if match["single"] is not None:
        return match["single"].replace("''", "'")
    if match["double"] is not None:
        return re.sub(r"\\(.)", r"\1", match["double"], flags=re.DOTALL)
    return match["plain"]
