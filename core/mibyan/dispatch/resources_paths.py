"""Where a path leads: to one place, however it is written (dispatch.P2)."""

# ruff: noqa: PTH111, PTH118, PTH120 - texts as tools write them; `pathlib` would tidy away what matters

from __future__ import annotations

import os
import sys

from mibyan.records import record

#: Symbolic links that are followed; Linux stops at as many.
MAX_LINKS = 40


@record
class Place:
    """The end of a path, whether or not something is there yet."""

    #: Absolute, without symbolic links.
    end: str
    #: What must be as it is for the path to lead there, beside the directories above: the symbolic links on the way to
    #: its last name, and the directories that it leaves again by `..`.
    way: tuple[str, ...] = ()
    #: The symbolic links that the last name itself stands for.
    last_links: tuple[str, ...] = ()


def places(text: str, cwd: str) -> list[Place]:
    """Every place that a tool can mean by `text`.

    A tool that reads `~` as the user's home means another one than a tool that doesn't, and one that takes `..` away
    before it follows links another one than the system: each reading counts.

    Args:
        text: The path as the tool names it.
        cwd: Where a relative one starts.

    Raises:
        ValueError: It can't be a path (a NUL character).
    """
    readings = {os.path.join(cwd, text)}
    if text.startswith("~"):
        readings.add(os.path.join(cwd, os.path.expanduser(text)))
    if ".." in text:
        readings |= {os.path.normpath(reading) for reading in readings}
    return [follow(reading) for reading in sorted(readings)]


def follow(path: str) -> Place:
    """Where an absolute path leads.

    Raises:
        ValueError: It can't be a path.
    """
    if os.name != "posix":
        return Place(os.path.realpath(path))
    return _Way(path).place()


def key(path: str) -> str:
    """`path` in the spelling that the system compares by."""
    if sys.platform in {"darwin", "win32"}:
        import unicodedata

        return unicodedata.normalize("NFC", os.path.normcase(path)).casefold()
    return path


def identity(path: str) -> str | None:
    """What two names of one file have in common (hard links); `None` for a directory, and where nothing is."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    # A directory has one name only, and what is in it is found by its path.
    return None if status.st_mode & 0o170000 == 0o040000 else f"\0{status.st_dev}:{status.st_ino}"


class _Way:
    """One walk along a path, name by name, as the system does it."""

    def __init__(self, path: str) -> None:
        self.here = "/"
        self.pending = path.split("/")[::-1]
        self.way: list[str] = []
        self.links = 0
        self.last_links: list[str] = []

    def place(self) -> Place:
        while self.pending:
            name = self.pending.pop()
            if name == "..":
                self.way.append(self.here)
                self.here = os.path.dirname(self.here)
            elif name not in {"", "."}:
                self._go(os.path.join(self.here, name))
        return Place(self.here, tuple(self.way), tuple(self.last_links))

    def _go(self, step: str) -> None:
        """Take one step; over a link, the way goes on where it points to."""
        target = _target(step)
        if target is None or self.links == MAX_LINKS:
            self.here = step
            return
        self.links += 1
        is_last = all(name in {"", "."} for name in self.pending)
        (self.last_links if is_last else self.way).append(step)
        if target.startswith("/"):
            self.here = "/"
        self.pending += target.split("/")[::-1]


def _target(path: str) -> str | None:
    """What the symbolic link at `path` says; `None` when there is none."""
    try:
        return os.readlink(path)  # noqa: PTH115
    except OSError:
        return None
