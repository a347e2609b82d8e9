"""Escapes in texts: what `$'…'`, `printf` and `echo -e` make of a backslash."""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|0?([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_SINGLE = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip


def unescaped(text: str) -> str:
    """`text` with its escapes replaced; one that gives NUL ends nothing and is dropped."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(_replacement, text).replace("\x00", "")


def _replacement(match: re.Match[str]) -> str:
    for group in (1, 2, 3):
        if match[group]:
            code = int(match[group], 16)
            return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else ""
    if match[4]:
        return chr(int(match[4], 8) & 0xFF)
    if match[5]:
        return chr(ord(match[5].upper()) ^ 0x40) if ord(match[5]) < 128 else ""
    return _SINGLE.get(match[6], "\\" + match[6])
