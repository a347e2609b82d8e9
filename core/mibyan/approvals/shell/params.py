"""Parameter expansion: what `$x`, `${x:-y}`, `${x%y}` and their like are, as far as that is known."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mibyan.approvals.shell.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.approvals.shell.scope import Scope

#: A variable's value: a text, or the texts of an array.
Value = str | list[str]


def expand(node: dict[str, Any], scope: Scope, text_of: Callable[[Any], str]) -> Value:
    """What a `ParamExp` is.

    Args:
        node: The node.
        scope: The variables.
        text_of: The text of a word inside of it.
    """
    name = node.get("Param", {}).get("Value", "")
    value = scope.get(name)
    if node.get("Excl"):
        target = value if isinstance(value, str) else UNKNOWN
        value = scope.get(target) if target.isidentifier() else UNKNOWN
    if "Index" in node:
        value = _indexed(value, text_of(node["Index"]))
    if node.get("Length") or node.get("Width"):
        return str(len(value)) if value is not None and UNKNOWN not in value else UNKNOWN
    if "Exp" in node:
        return _operated(node["Exp"], name, value, scope, text_of)
    if value is None:
        return UNKNOWN
    if "Slice" in node:
        return _each(value, lambda text: _sliced(text, node["Slice"], text_of))
    if "Repl" in node:
        return _each(value, lambda text: _replaced(text, node["Repl"], text_of))
    return value


def _each(value: Value, change: Callable[[str], str]) -> Value:
    return change(value) if isinstance(value, str) else [change(text) for text in value]


def _indexed(value: Value | None, index: str) -> Value | None:
    if value is None or index in {"@", "*"}:
        return value
    items = [value] if isinstance(value, str) else value
    try:
        return items[int(index)]
    except (ValueError, IndexError):
        return UNKNOWN


def _operated(
    exp: dict[str, Any], name: str, value: Value | None, scope: Scope, text_of: Callable[[Any], str]
) -> Value:
    operator, word = exp.get("Op", ""), text_of(exp["Word"]) if exp.get("Word") else ""
    missing = value is None or value in ("", [])
    if operator in {"-", ":-", "=", ":="}:
        if value is None or (missing and operator.startswith(":")):
            if operator in {"=", ":="}:
                scope.set(name, word)
            return word
        return value
    if operator in {"+", ":+"}:
        return word if not missing or scope.is_inherited(name) else ""
    if operator in {"?", ":?"}:
        return UNKNOWN if value is None else value
    if value is None:
        return UNKNOWN
    if operator in {"#", "##", "%", "%%"}:
        return _each(value, lambda text: _trimmed(text, operator, word))
    change = {"^^": str.upper, ",,": str.lower, "^": _first_upper, ",": _first_lower}.get(operator)
    if change is not None and not word:
        return _each(value, change)
    return value if operator == "@" and word in {"Q", "E", "P", "A"} else UNKNOWN


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _first_lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _pattern(glob: str) -> str:
    """A shell pattern as a regular expression; brackets are taken as they are."""
    parts = {"*": ".*", "?": "."}
    return "".join(parts.get(char) or re.escape(char) for char in glob)


def _trimmed(text: str, operator: str, glob: str) -> str:
    if UNKNOWN in text or UNKNOWN in glob or "[" in glob or len(text) > 10_000 or glob.count("*") > 4:
        return UNKNOWN
    pattern = re.compile(_pattern(glob), re.DOTALL)
    sizes = range(len(text) + 1) if len(operator) == 1 else range(len(text), -1, -1)
    for size in sizes:
        piece = text[:size] if operator[0] == "#" else text[len(text) - size :]
        if pattern.fullmatch(piece):
            return text[size:] if operator[0] == "#" else text[: len(text) - size]
    return text


def _sliced(text: str, node: dict[str, Any], text_of: Callable[[Any], str]) -> str:
    try:
        start = int(text_of(node["Offset"]).strip() or 0)
        length = int(text_of(node["Length"]).strip()) if node.get("Length") else None
    except (KeyError, ValueError):
        return UNKNOWN
    if UNKNOWN in text:
        return UNKNOWN
    start = start if start >= 0 else max(len(text) + start, 0)
    end = len(text) if length is None else start + length if length >= 0 else len(text) + length
    return text[start:end]


def _replaced(text: str, node: dict[str, Any], text_of: Callable[[Any], str]) -> str:
    old, new = text_of(node["Orig"]), text_of(node["With"]) if node.get("With") else ""
    if UNKNOWN in text or UNKNOWN in old or any(char in old for char in "*?[") or not old:
        return UNKNOWN
    return text.replace(old, new) if node.get("All") else text.replace(old, new, 1)
