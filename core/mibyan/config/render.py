"""Values as YAML that reads back as the same values, quoted only where it must be."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from mibyan.config.scalars import plain_text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Text that is plain in every context and to every reader.
_PLAIN = re.compile(r"(?!.*:(?: |$))[A-Za-z_./~][\w./@+*?^$%=~:-]*( [\w./@+*?^$%=~-]+)*", re.ASCII)
#: What single quotes can't hold: control characters, line ends of every kind, a byte order mark.
_NEEDS_ESCAPES = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

#: Characters of a list that is written in one line.
_LINE = 88


def inline(value: Any, *, quote: str | None = None) -> str:
    """A value in one line.

    Args:
        value: JSON types; tuples count as lists.
        quote: The quotes that text had before, which it keeps where it can.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return _text(value, quote)
        case dict():
            return "{" + ", ".join(f"{_text(name)}: {inline(part)}" for name, part in value.items()) + "}"
        case _:
            return "[" + ", ".join(inline(part) for part in value) + "]"


def block(path: Sequence[str], value: Any, step: int) -> list[str]:
    """The lines of a key and what is below it, each relative to the key's own indentation.

    Args:
        path: The key's name, and those of what is below it down to the value.
        value: JSON types.
        step: Blanks a level.
    """
    name, *rest = path
    head = f"{_text(name)}:"
    if rest:
        below = block(rest, value, step)
    elif isinstance(value, dict) and value:
        below = [line for key, part in value.items() for line in block([key], part, step)]
    elif isinstance(value, list | tuple) and value and is_long(value):
        below = items(value, step)
    else:
        return [f"{head} {inline(value)}"]
    return [head, *(" " * step + line for line in below)]


def items(value: Sequence[Any], step: int) -> list[str]:
    """The lines of a list's items, relative to their dashes; mappings that are long are written a key a line."""
    lines: list[str] = []
    for part in value:
        if isinstance(part, dict) and part and len(inline(part)) > _LINE:
            first, *others = [line for key, below in part.items() for line in block([key], below, step)]
            lines += [f"- {first}", *(f"  {line}" for line in others)]
        else:
            lines.append(f"- {inline(part)}")
    return lines


def is_long(value: Any) -> bool:
    """Whether a list is better written an item a line."""
    return len(inline(value)) > _LINE or any(isinstance(part, dict | list | tuple) and part for part in value)


def _text(text: str, quote: str | None = None) -> str:
    """Text as a scalar."""
    if _NEEDS_ESCAPES.search(text) or quote == '"':
        return _NEEDS_ESCAPES.sub(_escape, json.dumps(text, ensure_ascii=False))
    if quote != "'" and _PLAIN.fullmatch(text) and not text.endswith(":") and plain_text_of(text) is not None:
        return text
    return "'" + text.replace("'", "''") + "'"


def _escape(match: re.Match[str]) -> str:
    """A character that must not stand in YAML as it is."""
    return f"\\u{ord(match[0]):04x}"
