"""A command without what only deceives its reader: terminal escapes, NUL, carriage returns, full-width letters (terminal.J3)."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_ESCAPES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b]*(?:\x1b\\)?|\x1b[ -/]*[0-~]?|\x9b[0-?]*[ -/]*[@-~]|\x08"
)
#: Bytes that are no UTF-8, as Python has them; a character each, so that places stay.
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_WIDE: Final = re.compile("[\uff01-\uff5e\u3000]")


def normalised(command: str) -> str:
    """The command as a terminal would show it, in ASCII where it only looks otherwise."""
    text = _ESCAPES.sub("", command) if "\x1b" in command or "\x9b" in command or "\x08" in command else command
    text = without_nul(text).replace("\r\n", "\n")
    return _WIDE.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)


def without_nul(command: str) -> str:
    """The command as a shell could get it."""
    return _SURROGATES.sub("\ufffd", command.replace("\x00", "").replace("\x01", ""))
