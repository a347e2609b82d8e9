"""`main`: where the command line is entered and left.

Data goes to standard output, everything else to standard error. What a command ends with is its exit code:
0 ok; 1 the result's status is error, timeout or cancelled; 2 usage or configuration; 3 blocked, denied, untrusted;
128 and the signal's number if one ended it (130: Ctrl-C).
"""

from __future__ import annotations

import gc
import os
import sys

# `typing` isn't imported: `--version` and a listing that still holds don't need it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mibyan.cli.answers import Answers

#: The number of SIGINT.
_CTRL_C = 2

#: Objects that are made before the garbage collector looks for circles among the young ones.
_OBJECTS = 100_000

#: Options of `mibyan` that are followed by a value.
_WITH_VALUE = frozenset({"--home", "--project", "--plugin", "--no-plugin", "--trace"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and say what to exit with.

    Args:
        argv: The words after the program's name; `None`: those of this process, which ends with this.
    """
    if argv is not None:
        return _ended_with(_run, list(argv))
    if "_MIBYAN_COMPLETE" in os.environ:  # a shell asks, by way of the script that `mibyan completion` prints
        from mibyan.cli.completing import complete

        return complete(sys.argv[1:])
    code = _ended_with(_of_process, sys.argv[1:])
    if "mibyan.plugins.importing" in sys.modules:
        from mibyan.cli.output import close_to_others

        close_to_others()
    if "threading" in sys.modules:
        from mibyan.cli.leaving import leave

        code = leave(code)
    # The interpreter would look through everything for circles, several times, only to throw all of it away.
    gc.disable()
    gc.freeze()
    return code


def _of_process(words: list[str]) -> int:
    """Run this process's own command line; what was said before is said again if it still holds.

    Raises:
        KeyboardInterrupt: It came meanwhile.
    """
    from mibyan.cli.answers import answers_to, say_again

    asked = answers_to(words)
    known = asked.recall() if asked is not None else None
    if known is not None and say_again(known[0]):
        return known[1]
    # A start makes many objects, and hardly one that is garbage.
    gc.set_threshold(_OBJECTS, 20, 20)
    return _run(words, asked)


def _run(words: list[str], asked: Answers | None = None) -> int:
    if _asks_version(words):
        return _version(as_json="--json" in words)
    from mibyan.cli.running import run

    return run(words, asked)


def _ended_with(run: Callable[[list[str]], int], words: list[str]) -> int:
    try:
        return run(words)
    except KeyboardInterrupt as interrupt:
        from mibyan.cli.output import say

        number = getattr(interrupt, "number", _CTRL_C)
        say("mibyan: interrupted" if number == _CTRL_C else f"mibyan: ended by signal {number}")
        return 128 + int(number)


def _asks_version(words: Sequence[str]) -> bool:
    """Whether `--version` stands before the command; told without click, which takes longer to import than to answer."""
    following = iter(words)
    for word in following:
        if word == "--version":
            return True
        if word in _WITH_VALUE:
            next(following, None)
        elif not word.startswith("--") or word == "--":
            return False
    return False


def _version(*, as_json: bool) -> int:
    from mibyan._version import __version__
    from mibyan.cli.answers import say_again

    text = f'{{"version": "{__version__}"}}\n' if as_json else f"mibyan {__version__}\n"
    return 0 if sys.stdout is not None and say_again(text) else _write_anyway(text)


def _write_anyway(text: str) -> int:
    """Write text to a standard output that isn't in order."""
    from mibyan.cli.output import Output, OutputError, say

    try:
        Output().write(text)
    except OutputError as error:
        say(f"mibyan: error: {error}")
        return 1
    return 0


def __getattr__(name: str) -> Any:
    """`cli`, the click group of all commands, loads when it is first asked for (PEP 562)."""
    if name != "cli":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mibyan.cli.root import root

    return root
