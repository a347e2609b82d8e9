"""The file names in a diff's headers: quoted, prefixed, with time stamps."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r'\\(?:([0-7]{3})|([abfnrtv"\\]))')
_ESCAPED = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, '"': 34, "\\": 92}
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')

#: `a/` and `b/`, and what git's `diff.mnemonicPrefix` makes of them.
_PREFIXES = {("a", "b"), ("i", "w"), ("c", "i"), ("c", "w"), ("o", "w")}

#: The extended header lines that mean something to us.
_EXTENDED = (
    "new file mode", "deleted file mode", "new mode", "rename from", "rename to", "copy from", "copy to",
    "GIT binary patch", "Binary files",
)  # fmt: skip


def path(text: str) -> str | None:
    """The path in a header line: unquoted, without a time stamp; `None` for /dev/null."""
    text = text.removesuffix("\r")
    if quoted := _QUOTED.match(text):
        return _unquoted(quoted[1])
    text = text.split("\t", 1)[0].rstrip()
    return None if text == "/dev/null" else text


def pair(old_text: str, new_text: str) -> tuple[str | None, str | None]:
    """The paths in the lines `--- …` and `+++ …`, without git's `a/` and `b/` where they have them."""
    old, new = path(old_text), path(new_text)
    if old is None or new is None:
        return old and old.removeprefix("a/"), new and new.removeprefix("b/")
    if (old[:1], new[:1]) in _PREFIXES and old[1:2] == new[1:2] == "/":
        return old[2:], new[2:]
    return old, new


def git_pair(text: str) -> tuple[str | None, str | None]:
    """The paths in `diff --git a/… b/…`; two empty ones when they can't be told apart (later lines name them then)."""
    if quoted := _QUOTED.match(text):
        rest = text[quoted.end() :].strip()
        return pair(f'"{quoted[1]}"', rest)
    middle = len(text.removesuffix("\r")) // 2
    old, new = text[:middle], text[middle + 1 :]
    if text[middle : middle + 1] == " " and old[2:] == new.removesuffix("\r")[2:]:
        return pair(old, new)
    return "", ""


def extended(line: str) -> tuple[str, str]:
    """A line of git's extended header as `(key, value)`; two empty texts when it is another line."""
    key = next((key for key in _EXTENDED if line.startswith(key)), "")
    return key, line[len(key) :].strip() if key else ""


def _unquoted(inner: str) -> str:
    r"""What stands in quotes, as C would read it: `a/\303\251.txt`."""
    raw = b"".join(_bytes(piece) for piece in re.split(r"(\\[0-7]{3}|\\.)", inner))
    return raw.decode("utf-8", "surrogateescape")


def _bytes(piece: str) -> bytes:
    escape = _ESCAPE.fullmatch(piece)
    if escape is None:
        return piece.encode("utf-8", "surrogatepass")
    return bytes([int(escape[1], 8) & 0xFF if escape[1] else _ESCAPED[escape[2]]])
