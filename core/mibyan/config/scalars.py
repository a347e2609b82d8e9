"""Single values of YAML: what text stands for, and how a value is shown to people."""

from __future__ import annotations

import math
import re
from typing import Any

from mibyan.text import one_line

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {
    spelling: value
    for word, value in {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}.items()
    for spelling in (word, word.capitalize(), word.upper())
}
#: Digits behind a leading zero are text: an id, or the user's own idea of octal.
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]*)|0o[0-7_]+|0x[0-9a-fA-F_]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9][0-9_]*|(0|[1-9][0-9_]*)(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

_TAG = "tag:yaml.org,2002:"
_KINDS: dict[str, type | tuple[type, ...]] = {
    _TAG + "null": type(None), _TAG + "bool": bool, _TAG + "int": int, _TAG + "float": (float, int),
}  # fmt: skip

#: Characters of a value that a message shows.
_SHOWN = 60


def resolve(text: str, tag: str | None, *, plain: bool) -> Any:
    """What a scalar stands for.

    Args:
        text: The scalar without its quotes.
        tag: Its explicit tag, if it has one.
        plain: Whether it was written without quotes (and without a tag).

    Returns:
        `None`, a boolean, an int, a finite float or text.

    Raises:
        ValueError: It is a number that a setting can't be, or its tag isn't a core one; the message is a sentence.
    """
    if plain:
        return _resolve_plain(text)
    if tag in {None, "!", _TAG + "str"}:
        return text
    if tag not in _KINDS:
        raise ValueError(f"the tag {tag} isn't known here; leave it out")
    value = _resolve_plain(text)
    if not isinstance(value, _KINDS[tag]):
        raise ValueError(f"{describe(text)} isn't what its tag {tag} says")  # noqa: TRY004 - the text is wrong, not the caller
    return value


def _resolve_plain(text: str) -> Any:
    """What a scalar without quotes stands for."""
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return _integer(text)
    if _NOT_FINITE.fullmatch(text) or (_FLOAT.fullmatch(text) and not math.isfinite(float(text.replace("_", "")))):
        raise ValueError(f"{describe(text)} isn't a finite number; put quotes around it if it is text")
    return float(text.replace("_", "")) if _FLOAT.fullmatch(text) else text


def _integer(text: str) -> int:
    """The integer that `text` is."""
    digits = text.replace("_", "")
    if len(digits) > 1000:
        raise ValueError(f"a number of {len(digits):,} digits; put quotes around it if it is text")
    if not digits[-1:].isalnum():
        raise ValueError(f"{describe(text)} isn't a number; put quotes around it if it is text")
    return int(digits, {"0o": 8, "0x": 16}.get(digits[:2], 10))


def describe(value: Any) -> str:
    """A value as a message shows it: short, and as YAML would have it."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case str():
            return f"'{one_line(value, _SHOWN)}'"
        case int() if value.bit_length() > 200:
            return "a very large number"
        case int() | float():
            return str(value)
    return f"a {type(value).__name__}"


def plain_text_of(text: str) -> str | None:
    """`text`, if it stands for itself when it is written without quotes; `None` when it must be quoted."""
    try:
        return text if _resolve_plain(text) == text and "\n" not in text else None
    except ValueError:
        return None
