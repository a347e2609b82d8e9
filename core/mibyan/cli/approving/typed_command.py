"""`command_of`: a shell command as it is given on the command line."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from mibyan.cli.exits import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


def command_of(words: Sequence[str]) -> str:
    """The text that bash would get.

    Args:
        words: One word is a command line as it is; several are the words of one command, and each stays one; `-` is
            what comes on standard input, without its last line end.

    Raises:
        UsageError: There is none, or standard input can't be read.
    """
    if list(words) == ["-"]:
        from mibyan.cli.arguments import read_standard_input

        text = read_standard_input().removesuffix("\n")
    else:
        text = words[0] if len(words) == 1 else shlex.join(words)
    if not text.strip():
        raise UsageError("There is no command. Give it as one word: mibyan approvals test 'git push --force'.")
    return text
