"""Reading what a shell says about its exported variables (`export -p`), whichever shell it is."""

from __future__ import annotations

import re
from typing import Final

#: `declare -x NAME=…` of bash, `export NAME=…` of others and of bash as sh.
_STATEMENT: Final = re.compile(rb"(?:declare -(?P<flags>[A-Za-z]+)|export) (?P<name>[A-Za-z_]\w*)")
#: The pieces of a word, up to the end of its line.
_PIECE: Final = re.compile(
    rb"\$'(?P<ansi>(?:[^'\\]|\\.)*)'|'(?P<single>[^']*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\"|\\(?P<escaped>.)"
    rb"|(?P<plain>[^'\"\\\n$]+|\$)",
    re.DOTALL,
)
_IN_DOUBLE: Final = re.compile(rb"\\([$`\"\\\n])")
_IN_ANSI: Final = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_LETTERS: Final = {
    b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
}  # fmt: skip


def read_exports(text: bytes) -> dict[str, str]:
    """The variables that have a value, and aren't arrays; bytes that aren't UTF-8 as `os.fsdecode` has them."""
    found: dict[str, str] = {}
    place = 0
    while place < len(text):
        statement = _STATEMENT.match(text, place)
        if statement is None:
            place = text.find(b"\n", place) + 1 or len(text)
            continue
        value, place = _value(text, statement.end())
        if value is not None and not {*b"aA"} & {*(statement["flags"] or b"")}:
            found[statement["name"].decode()] = value.decode("utf-8", "surrogateescape")
    return found


def _value(text: bytes, place: int) -> tuple[bytes | None, int]:
    """The value that begins at `place`, `None` if none does, and where the next statement begins."""
    if text[place : place + 1] != b"=":
        return None, place + 1
    pieces, place = [], place + 1
    while (piece := _PIECE.match(text, place)) is not None:
        pieces.append(_plain(piece))
        place = piece.end()
    return b"".join(pieces), place + 1


def _plain(piece: re.Match[bytes]) -> bytes:
    """What a piece of a word stands for."""
    kind, raw = piece.lastgroup, piece[piece.lastgroup or 0]
    if kind == "double":
        return _IN_DOUBLE.sub(lambda found: b"" if found[1] == b"\n" else found[1], raw)
    return _IN_ANSI.sub(_letter, raw) if kind == "ansi" else raw


def _letter(found: re.Match[bytes]) -> bytes:
    if found[1] or found[2]:
        return bytes([int(found[1], 8) & 0xFF if found[1] else int(found[2], 16)])
    return _LETTERS.get(found[3], found[3])
