"""Opening a file of the workspace for reading: regular files only, and never one that would make the caller wait."""

# ruff: noqa: PTH123 - descriptors and the system's own files, which pathlib has no words for

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from mibyan import ToolError
from mibyan_builtin.files.problems import problem, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan_builtin.files.workspace import Location

#: Entries of a directory that are looked at for a suggestion.
MAX_ENTRIES = 5000
#: Entries of a directory that a message lists.
LISTED = 20

#: Not following a link that was put there meanwhile, not waiting for a FIFO's writer, not becoming a terminal's child.
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a block device",
    stat.S_IFLNK: "a symbolic link that changed meanwhile",
}


@contextmanager
def opened(location: Location) -> Iterator[tuple[IO[bytes], os.stat_result]]:
    """The regular file at `location`, open for reading, with its status.

    Raises:
        ToolError: There is none (with what it may be called instead), it isn't a regular file, or it can't be read.
    """
    require_regular(location, existing(location))
    try:
        descriptor = os.open(location.name, READ, dir_fd=location.directory)
    except OSError as error:
        raise problem(error, location.given) from None
    with open(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        require_regular(location, status)
        yield stream, status


def existing(location: Location) -> os.stat_result:
    """The status of what is at `location`.

    Raises:
        ToolError: There is nothing; the hint names what is there instead.
    """
    status = location.stat()
    if status is None:
        raise not_found(location)
    return status


def require_regular(location: Location, status: os.stat_result) -> None:
    """Refuse what isn't a regular file: reading it could block, or never end.

    Raises:
        ToolError: It isn't one.
    """
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFREG:
        return
    if kind == stat.S_IFDIR:
        raise ToolError(f"It is a directory: {shown(location.given)}", hint=_listing(location))
    what = _KINDS.get(kind, "not a regular file")
    raise ToolError(f"It is {what}, not a regular file: {shown(location.given)}")


def not_found(location: Location) -> ToolError:
    """The error for a missing file: what is there instead, in the directory where the way ended."""
    from difflib import get_close_matches

    wanted = location.missing[0] if location.missing else location.name
    names = get_close_matches(wanted[:128], entries(location.directory), n=3, cutoff=0.6)
    if location.missing:
        parents = location.path.parents[len(location.missing) - 1]
        hint = f"The directory {shown(str(parents))} doesn't exist."
        hint += f" Did you mean {', '.join(names)}?" if names else ""
        return ToolError(f"File not found: {shown(location.given)}", hint=hint)
    hint = f"Did you mean {', '.join(names)}?" if names else "search_files with target=files finds files by name."
    return ToolError(f"File not found: {shown(location.given)}", hint=hint)


def entries(directory: int, name: str = ".") -> list[str]:
    """The sorted names in a directory that is open, at most `MAX_ENTRIES`; none when it can't be listed."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return []
    try:
        with os.scandir(descriptor) as found:
            return sorted(entry.name for entry, _ in zip(found, range(MAX_ENTRIES), strict=False))
    finally:
        os.close(descriptor)


def _listing(location: Location) -> str:
    names = entries(location.directory, location.name)
    if not names:
        return "Give the path of a file; search_files with target=files lists what a directory has."
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"Give the path of a file in it: {', '.join(names[:LISTED])}{more}."
