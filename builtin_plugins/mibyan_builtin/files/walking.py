"""The files below a directory, in one order everywhere, without following symbolic links."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mibyan_builtin.files.workspace import DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: The directories (and git's pointer files) of version control, which are never searched.
VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj", ".bzr", "CVS", "_darcs"})


def walk(top: int, stop: Callable[[], None], *, links: bool = False) -> Iterator[str]:
    """The regular files below an open directory, as paths relative to it, sorted by name level by level.

    Directories that can't be read are passed over, and so are those of version control.

    Args:
        top: The directory's descriptor.
        stop: Called in each directory; raises when the call is over.
        links: Give symbolic links too, as names.
    """
    pending = [""]
    while pending:
        path = pending.pop()
        if path and not path.endswith("/"):
            yield path
            continue
        stop()
        pending += reversed([path + name for name in _names(top, path, links=links)])


def below(top: int, path: str) -> int:
    """The descriptor of a directory below `top`, reached without following a symbolic link.

    Raises:
        OSError: It isn't there any more, or isn't a directory.
    """
    here = os.dup(top)
    for name in filter(None, path.split("/")):
        parent = here
        try:
            here = os.open(name, DIRECTORY, dir_fd=parent)
        finally:
            os.close(parent)
    return here


def _names(top: int, path: str, *, links: bool) -> list[str]:
    """The names in a directory that are walked to, directories with a slash."""
    try:
        directory = below(top, path)
    except OSError:
        return []
    try:
        listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return []
    finally:
        os.close(directory)
    try:
        with os.scandir(listed) as found:
            named = [(entry.name, _mark(entry, links=links)) for entry in found if entry.name not in VERSION_CONTROL]
    finally:
        os.close(listed)
    return [name + mark for name, mark in sorted(named, key=lambda each: os.fsencode(each[0])) if mark is not None]


def _mark(entry: os.DirEntry[str], *, links: bool) -> str | None:
    """A slash for a directory, nothing for a file, `None` for what isn't given."""
    try:
        if entry.is_dir(follow_symlinks=False):
            return "/"
        if entry.is_file(follow_symlinks=False) or (links and entry.is_symlink()):
            return ""
    except OSError:
        pass
    return None
