"""Reading files that strangers made: never waits at a pipe, never reads without end, follows links."""
# os and text: these run for each file on each start.
# ruff: noqa: PTH116, PTH208

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Bytes of a manifest, of metadata and of a Python source that are read; nothing written by a person is longer.
TEXT_LIMIT = 4 * 1024 * 1024

#: A pipe or a terminal line with such a name must not hold up the search.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class NotAFileError(OSError):
    """Something else than a regular file, or a file larger than allowed."""


def read_bytes(path: str | os.PathLike[str], limit: int = TEXT_LIMIT) -> bytes:
    """The bytes of the regular file at `path`.

    Raises:
        NotAFileError: It is a directory, a pipe, a device …, or has more than `limit` bytes.
        OSError: It can't be read.
    """
    descriptor = os.open(path, _FLAGS)
    try:
        size = _checked_size(os.fstat(descriptor), limit)
        data = os.read(descriptor, size + 1)
        if len(data) != size:
            data = _rest(descriptor, data, limit)
    finally:
        os.close(descriptor)
    return data


def _checked_size(status: os.stat_result, limit: int) -> int:
    if not stat.S_ISREG(status.st_mode):
        raise NotAFileError("not a regular file")
    if status.st_size > limit:
        raise NotAFileError(f"larger than {limit:,} bytes")
    return status.st_size


def _rest(descriptor: int, data: bytes, limit: int) -> bytes:
    """All of the file, whose size isn't what was said (it grows, or `/proc` made it)."""
    parts, total = [data], len(data)
    while part := os.read(descriptor, 1 << 16):
        parts.append(part)
        total += len(part)
        if total > limit:
            raise NotAFileError(f"larger than {limit:,} bytes")
    return b"".join(parts)


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a regular file at `path` (links followed); false when that can't be told."""
    return _is(path, stat.S_ISREG)


def is_directory(path: str | os.PathLike[str]) -> bool:
    """Whether there is a directory at `path` (links followed); false when that can't be told."""
    return _is(path, stat.S_ISDIR)


def _is(path: str | os.PathLike[str], kind: Callable[[int], bool]) -> bool:
    try:
        return kind(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def names_in(directory: str | os.PathLike[str]) -> list[str]:
    """The names in `directory`, sorted: the same whatever order the file system keeps.

    Raises:
        OSError: It isn't there, or can't be read.
    """
    return sorted(os.listdir(directory))


def reason(error: BaseException) -> str:
    """Why a file couldn't be read, in a few words."""
    if isinstance(error, NotAFileError):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 text (byte {error.start})"
    strerror = getattr(error, "strerror", None)
    return (strerror or str(error) or type(error).__name__).lower() if isinstance(error, OSError) else str(error)
