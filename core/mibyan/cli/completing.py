"""`complete`: what a shell asks while somebody types: answers fast, runs no plugin, and never says a word beside it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Set by the scripts of `mibyan completion`: the shell that asks; the words typed so far are the arguments.
VARIABLE: Final = "_MIBYAN_COMPLETE"

#: A line of its own: the shell shall complete names of files, or of folders.
_FILES: Final = {"file": ":files", "dir": ":dirs"}
#: Characters of a description.
_LIMIT: Final = 80


def complete(words: Sequence[str]) -> int:
    """Print what the last of `words` may become: a line each, `value<TAB>description`; nothing if that can't be told.

    Args:
        words: The words after the program's name, as the shell has them; the last one is being typed.
    """
    stream, descriptor = sys.stdout, os.open(os.devnull, os.O_RDWR)
    try:
        sys.stderr = sys.stdout = open(descriptor, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - the process ends here
        typed = [_unquoted(word) for word in _rejoined(words)]
        lines = list(_lines(typed, whole=os.environ.get(VARIABLE) != "bash"))
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
        stream.buffer.write(data)
        stream.flush()
    except KeyboardInterrupt:
        return 130
    except BaseException:
        return 0  # somebody is typing: nothing to complete is the only answer that doesn't disturb
    return 0


def _lines(words: Sequence[str], *, whole: bool) -> Iterator[str]:
    """A line for each completion; with `whole` of the word as it stands, else of what is behind its `=`."""
    last = words[-1] if words else ""
    option, sign, _ = last.partition("=")
    prefix = f"{option}{sign}" if whole and sign and option.startswith("--") else ""
    for item in items(words[:-1], last):
        if item.type in _FILES:
            yield _FILES[item.type]
        else:
            yield f"{prefix}{item.value}\t{_told(item.help)}".rstrip("\t")


def items(before: Sequence[str], typed: str) -> list[Any]:
    """What the word `typed` may become, as click's `CompletionItem`s.

    Args:
        before: The words in front of it, without the program's name.
        typed: The word that is being typed.
    """
    from click.shell_completion import ShellComplete

    from mibyan.cli.root import root

    return ShellComplete(root, {}, "mibyan", VARIABLE).get_completions(list(before), typed)


def _told(text: str | None) -> str:
    """A description on one line, without what could play tricks on a terminal."""
    from mibyan.text import one_line

    return one_line(text, _LIMIT) if text else ""


def _rejoined(words: Sequence[str]) -> list[str]:
    """The words as they will be: bash takes `--home=x` apart at the sign."""
    joined: list[str] = []
    glue = False
    for word in words:
        if glue or (word == "=" and joined and joined[-1].startswith("--")):
            joined[-1] += word
            glue = word == "=" and not glue
        else:
            joined.append(word)
    return joined


def _unquoted(word: str) -> str:
    """A word without the quotes that the shell would take away; one that isn't closed yet counts as closed."""
    if not set(word) & set("'\"\\"):
        return word
    import shlex

    for end in ("", '"', "'"):
        try:
            return "".join(shlex.split(word.removesuffix("\\") + end, posix=True))
        except ValueError:
            continue
    return word
