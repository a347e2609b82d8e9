"""Globs of commands: those of `approvals.deny`, which find a command anywhere, and those of `command_allowlist`, which admit only what they cover as a whole (terminal.P3)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_PARTS: Final = re.compile(r"\[!?\]?[^\]]*\]|[*?]")
#: What can begin another command. A wildcard of the allowlist never stands for it.
_NO_COMMAND: Final = r"[^;&|<>()$`\n\r]"
_ANYTHING: Final = r"[\s\S]"


def is_pattern(glob: str) -> bool:
    """Whether it has wildcards: `*`, `?` or `[...]`."""
    return _PARTS.search(glob) is not None


def literal(command: str) -> str:
    """The glob that only this very command matches."""
    return re.sub(r"[*?\[]", r"[\g<0>]", command)


def denies(glob: str, command: str, simple: Iterable[str] = ()) -> bool:
    """Whether a deny glob finds a command.

    Args:
        glob: `*` stands for any text, also over lines.
        command: The whole command.
        simple: The simple commands in it, decoded.
    """
    from mibyan.approvals.normal import normalised

    pattern = _compiled(glob, _ANYTHING)
    texts = {command, command.strip(), normalised(command).strip()}
    for one in simple:
        name, blank, rest = one.partition(" ")
        texts |= {one, f"{name.rsplit('/', 1)[-1]}{blank}{rest}"}
    return any(pattern.fullmatch(text) for text in texts)


def admits(glob: str, command: str, simple: Iterable[str] | None) -> bool:
    """Whether a glob of the allowlist covers the whole of a command.

    One without wildcards admits that very text. A wildcard stands for arguments: never for what can begin another
    command (`;`, `&`, `|`, `<`, `>`, brackets, `$`, a backtick, a line end), and each program that the command would
    run, also through another one (`sudo`, `find -exec`, `sh -c`), must be named by a word of the glob.

    Args:
        glob: An entry of `command_allowlist`.
        command: The whole command.
        simple: The simple commands in it, decoded; `None`: they can't be told.
    """
    from mibyan.approvals.normal import normalised

    command = command.strip()
    if not is_pattern(glob) or literal(command) == glob:
        return command == glob.strip() or literal(command) == glob
    pattern = _compiled(glob, _NO_COMMAND)
    if simple is None or not pattern.fullmatch(command) or not pattern.fullmatch(normalised(command).strip()):
        return False
    words = [_compiled(word, _NO_COMMAND) for word in glob.split() if word.strip("*?")]
    return all(any(word.fullmatch(one.partition(" ")[0]) for word in words) for one in simple)


@lru_cache(maxsize=512)
def _compiled(glob: str, anything: str) -> re.Pattern[str]:
    """The glob as a regular expression in which a wildcard stands for characters of the class `anything`.

    The piece between two stars is taken where it is found first, once and for all: time doesn't explode.
    """
    pieces: list[str] = [""]
    last = 0
    for match in _PARTS.finditer(glob):
        pieces[-1] += re.escape(glob[last : match.start()])
        last = match.end()
        if match[0] == "*":
            pieces.append("")
        else:
            pieces[-1] += anything if match[0] == "?" else f"(?={anything}){_set(match[0])}"
    pieces[-1] += re.escape(glob[last:])
    if len(pieces) == 1:
        return re.compile(pieces[0])
    inner = "".join(f"(?>{anything}*?{piece})" for piece in pieces[1:-1] if piece)
    return re.compile(f"{pieces[0]}{inner}{anything}*{pieces[-1]}")


def _set(text: str) -> str:
    """`[...]` of a glob as a class of a regular expression; the brackets themselves if it can't be one."""
    inner = text[1:-1]
    negated, inner = inner.startswith("!"), inner.removeprefix("!")
    inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", inner)
    try:
        return re.compile(f"[{'^' if negated else ''}{inner}]").pattern
    except re.error:
        return re.escape(text)
