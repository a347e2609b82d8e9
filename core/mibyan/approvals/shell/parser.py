"""`parse`: the syntax tree of shell code, from `shfmt` (mvdan's parser; the program comes with the wheel `shfmt-py`).

The tree is shfmt's typed JSON: each node a dict, commands and words with `Type`, all with `Pos` and `End` (`Offset` in bytes).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from typing import Any, Final

from mibyan.errors import MibyanError

#: Seconds that the parser has for one command, with all the code that is inside its words (terminal.J4).
PATIENCE: Final = 2.0
#: Characters of a command that are judged at all.
MAX_LENGTH: Final = 1_000_000
#: Pieces of code that are parsed for one command.
MAX_PARSES: Final = 64
#: Comments that are none in one piece of code.
_MOST_MENDS: Final = 8


class UnparsableError(MibyanError):
    """The code can't be read: not as shell, or not in time."""


class Parser:
    """Parses the code of one command, within its time.

    Args:
        patience: Seconds for all of it.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self._until = time.monotonic() + patience
        self._left = MAX_PARSES

    def parse(self, code: str) -> dict[str, Any]:
        """The tree of `code`.

        Raises:
            UnparsableError: It isn't shell code, takes too long to read, is nested too deeply, or there is no parser.
        """
        self._left -= 1
        if len(code) > MAX_LENGTH or self._left < 0:
            raise UnparsableError("it is too long to be judged")
        for _ in range(_MOST_MENDS):
            tree = self._tree(code)
            mended = _with_mended_comments(code, tree)
            if mended is None:
                return tree
            code = mended
        raise UnparsableError("it has comments that are none")

    def _tree(self, code: str) -> dict[str, Any]:
        answer, problem = _run(code, "bash", self._until - time.monotonic())
        if answer is None and problem is not None:
            raise UnparsableError(problem)
        try:
            tree: dict[str, Any] = json.loads(answer or "{}")
        except RecursionError:
            raise UnparsableError("it is nested too deeply") from None
        except ValueError as error:
            raise UnparsableError(f"the parser's answer can't be read: {error}") from None
        return tree


def _with_mended_comments(code: str, tree: dict[str, Any]) -> str | None:
    """The code such that shfmt 3.14 reads its comments as shells do; `None`: it does already.

    shfmt takes `'a'#b` in brackets for a comment, and a backslash at a comment's end for a continuation; no shell does.
    """
    if "#" not in code:
        return None
    comments, ends = _comments_and_words(tree)
    raw = bytearray(code.encode("utf-8", "surrogateescape"))
    wrong = min(comments & ends, default=None)
    if wrong is not None:
        raw[wrong:wrong] = b"\\"
        return raw.decode("utf-8", "surrogateescape")
    mended = False
    for start in comments:
        end = raw.find(b"\n", start)
        if end > start and raw[end - 1] == ord("\\"):
            raw[end - 1] = ord(" ")
            mended = True
    return raw.decode("utf-8", "surrogateescape") if mended else None


def _comments_and_words(tree: dict[str, Any]) -> tuple[set[int], set[int]]:
    """Where comments begin, and where words end, in bytes."""
    comments: set[int] = set()
    ends: set[int] = set()
    todo: list[Any] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo += node
        elif isinstance(node, dict):
            if "Hash" in node:
                comments.add(node["Hash"].get("Offset", 0))
            elif node.get("Parts"):
                ends.add(node.get("End", {}).get("Offset", 0))
            todo += [value for value in node.values() if isinstance(value, dict | list)]
    return comments, ends


def _run(code: str, dialect: str, seconds: float) -> tuple[str | None, str | None]:
    """The parser's answer, or what it says about the code."""
    program = parser_path()
    if program is None:
        raise UnparsableError("there is no shell parser", hint="pip install shfmt-py")
    try:
        done = subprocess.run(
            [program, "--to-json", "-ln", dialect],
            input=code.encode("utf-8", "surrogateescape"), capture_output=True, timeout=max(seconds, 0.01), check=False,
            cwd=os.sep, env={},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UnparsableError(f"it can't be read within {PATIENCE:g} s") from None
    except (OSError, ValueError) as error:
        raise UnparsableError(f"the shell parser can't be started: {error}") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return None, said[-1][:200] if said else f"the parser ended with {done.returncode}"
    return done.stdout.decode("utf-8", "surrogateescape"), None


_PROGRAM: list[str | None] = []


def parser_path() -> str | None:
    """Where `shfmt` is: beside this Python's programs, else on `PATH`; looked up once."""
    if not _PROGRAM:
        name = "shfmt.exe" if os.name == "nt" else "shfmt"
        folders = (sysconfig.get_path("scripts"), os.path.dirname(sys.executable))  # noqa: PTH120
        places = [os.path.join(folder, name) for folder in folders if folder]  # noqa: PTH118
        found = next((place for place in places if os.access(place, os.X_OK)), None)
        _PROGRAM.append(found or shutil.which(name))
    return _PROGRAM[0]
