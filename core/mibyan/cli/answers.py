"""Answers that still hold: what a listing said before, said again when nothing that it stands on has changed.

A listing is a function of what is installed and what is written. The run that works it out also notes all that it stands
on (`mibyan.cli.footprint`): paths, and what was there. The next one looks at each of these paths again, and nothing else;
if one of them isn't as it was, or the surroundings aren't, the listing is worked out anew. So presence is never cached:
what was installed a second ago is there. Nothing of this is for terminals, for projects, or where a plugin's code counts.
"""
# os, text, no typing: this is all that a listing imports when its answer holds.
# ruff: noqa: PTH109, PTH111, PTH117, PTH118

from __future__ import annotations

import os
import sys
import time

from mibyan.filecache import CacheFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias

    #: What was there by folder and name below it: status in four numbers, `None` for nothing.
    Looks: TypeAlias = Mapping[str, tuple[tuple[str, ...], tuple[tuple[int, int, int, int] | None, ...]]]

#: Options with which what is asked isn't only what there is.
_OTHERWISE = (
    "--home",
    "--project",
    "--trace",
    "--debug",
    "--locked",
    "--strict",
    "--plugin",
    "--no-plugin",
    "--safe-mode",
)
_GROUPS = frozenset({"tools", "toolsets"})
#: Variables that say where a shell runs, not what there is.
_NOISE = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "WINDOWID", "GPG_TTY", "TMUX_PANE", "TERM_SESSION_ID"})
_SHAPE = "answers 1"
#: Answers that are kept.
_LIMIT = 40


class Answers:
    """The answers that are kept in a profile, and what they stand on.

    Args:
        words: What is asked: the words of the command line.
        home: The profile's folder, a real path.
    """

    def __init__(self, words: Sequence[str], home: str) -> None:
        #: When it was asked, in nanoseconds since the epoch.
        self.started = time.time_ns()
        self._words = tuple(words)
        self._file = CacheFile(os.path.join(home, "cache", "answers.bin"), _SHAPE)
        self._around = _surroundings()

    def recall(self) -> tuple[str, int] | None:
        """The text and the exit code, if they still hold."""
        kept = self._file.read()
        if kept is None or kept["around"] != self._around or self._words not in kept["answers"]:
            return None
        if not all(map(_is_as_it_was, kept["looks"].items())):
            return None
        text, code = kept["answers"][self._words]
        return text, code

    def keep(self, looks: Looks, text: str, code: int) -> None:
        """Keep an answer; those of before that stand on something else are dropped."""
        kept = self._file.read()
        same = kept is not None and kept["around"] == self._around and kept["looks"] == looks
        answers = dict(list(kept["answers"].items())[1 - _LIMIT :]) if same else {}
        answers[self._words] = (text, code)
        self._file.write({"around": self._around, "looks": looks, "answers": answers})


def answers_to(words: Sequence[str]) -> Answers | None:
    """The answers among which one to these words may be; `None` where none is kept."""
    if (
        os.name != "posix"
        or _GROUPS.isdisjoint(words)
        or any(word.startswith(_OTHERWISE) for word in words)
        or not _is_pipe()
    ):
        return None
    home = os.environ.get("MIBYAN_HOME") or os.path.expanduser("~/.mibyan")
    if not os.path.isabs(home) or "\0" in home:
        return None
    try:
        return Answers(words, os.path.realpath(home))
    except (OSError, ValueError, UnicodeError):  # the current directory is gone; undecodable words
        return None


def say_again(text: str) -> bool:
    """Write an answer as it was written before; false if that can't be done as simply as that."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OSError, ValueError):
        return False
    return True


def _is_pipe() -> bool:
    """Whether nobody looks at standard output, and it takes every character."""
    stream = sys.stdout
    try:
        return stream is not None and stream.encoding.lower() in {"utf-8", "utf8"} and not stream.isatty()
    except (AttributeError, ValueError):
        return False


def _is_as_it_was(look: tuple[str, tuple[tuple[str, ...], tuple[Any, ...]]]) -> bool:
    """Whether each thing in a folder is what it was, or isn't there as it wasn't."""
    folder, (names, before) = look
    look_at = os.stat
    for name, was in zip(names, before, strict=True):
        try:
            now = look_at(f"{folder}/{name}")
        except OSError:
            if was is not None:
                return False
        else:
            if was != (now.st_mtime_ns, now.st_ctime_ns, now.st_size, now.st_ino):
                return False
    return True


def _surroundings() -> bytes:
    """A digest of all that isn't a file: the interpreter, its path, the environment, the current directory, the user."""
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b

    environment = sorted(f"{name}={value}" for name, value in os.environ.items() if name not in _NOISE)
    finders = [
        f"{type(finder).__module__} {getattr(finder, '__qualname__', type(finder).__qualname__)}"
        for finder in sys.meta_path
    ]
    user = os.geteuid() if hasattr(os, "geteuid") else 0
    told = (
        sys.version,
        sys.executable,
        sys.prefix,
        sys.base_prefix,
        str(sys.flags),
        os.path.realpath(os.getcwd()),
        str(user),
    )
    whole = "\0".join((*told, "", *sys.path, "", *finders, "", *environment))
    return blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=32).digest()
