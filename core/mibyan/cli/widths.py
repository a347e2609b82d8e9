"""`cells_of`: how many cells of a line a text takes, told without rich, which is imported for terminals only.

`width_of`: how many a terminal has.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import TextIO

#: Cells of a line where the terminal doesn't say.
_USUAL: Final = 80

_JOINER: Final = "\u200d"
_EMOJI_STYLE: Final = "\ufe0f"
#: Skin tones: part of the emoji before them.
_TONES: Final = range(0x1F3FB, 0x1F400)
#: Letters that make a flag in pairs.
_FLAGS: Final = range(0x1F1E6, 0x1F200)
#: Vowels and final consonants of Hangul syllables that are written letter by letter: part of the one before.
_JAMO: Final = range(0x1160, 0x1200)
#: Categories of characters that take no room: marks, format characters, controls.
_NO_ROOM: Final = frozenset({"Mn", "Mc", "Me", "Cf", "Cc"})


def cells_of(text: str) -> int:
    """The cells that `text` takes: two for wide characters (CJK, emoji), none for marks and what is joined to an emoji."""
    if text.isascii():
        return len(text)
    total, base, joined, flag = 0, 0, False, False
    for char in text:
        width = _width(char)
        number = ord(char)
        if char == _EMOJI_STYLE:
            total, base = total + (base == 1), 2 if base else 0
        elif char == _JOINER:
            joined = base == 2
        elif joined or (number in _TONES and base == 2) or (number in _FLAGS and flag):
            joined = flag = False
        elif width:
            total, base, flag = total + width, width, number in _FLAGS
    return total


def _width(char: str) -> int:
    """The cells of one character by itself."""
    from unicodedata import category, east_asian_width

    number = ord(char)
    if char.isascii():
        return int(char.isprintable())
    if number in _JAMO or category(char) in _NO_ROOM:
        return 0
    return 2 if number in _FLAGS or east_asian_width(char) in {"W", "F"} else 1


def width_of(stream: TextIO | None) -> int:
    """A terminal's width in cells; `$COLUMNS` counts before what it says itself."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said) > 0:
        return int(said)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL if stream is not None else _USUAL
    except (OSError, ValueError, AttributeError):
        return _USUAL
