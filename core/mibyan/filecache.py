"""Files of `$MIBYAN_HOME/cache`: what was worked out of other files before, for as long as those stay as they are.

Presence is never cached, only content: whoever asks looks at the file each time and compares its *stamp*, and reads it
only when that has changed. A cache is never an error and never an authority: one that is missing, damaged, another
version's, somebody else's or writable by others is empty, and one that can't be written isn't.
"""
# os and text, neither typing nor contextlib: this runs before anything else does, on each start.
# ruff: noqa: PTH102, PTH105, PTH108, PTH116, PTH118, PTH208, SIM105

from __future__ import annotations

import marshal
import os
import stat
import time
from binascii import crc32

from mibyan._version import __version__

# `typing` isn't imported either.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    #: Time of the last change of content and of status, both in nanoseconds since the epoch, size in bytes, and inode.
    Stamp: TypeAlias = tuple[int, int, int, int]

#: Bytes of a cache file; nobody has tools for more.
_SIZE_LIMIT = 64 * 1024 * 1024
#: The marshal format that every supported Python reads.
_FORMAT = 4
#: Nanoseconds in which a second change may get the same time as the first: two ticks of a slow kernel's clock, and of a
#: file system that keeps whole seconds (FAT keeps even ones).
_TICK, _SECONDS = 20_000_000, 2_000_000_000
#: Seconds after which what a killed writer has left is in nobody's use.
_ABANDONED = 60.0

#: A pipe is never waited for, a link never followed.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def stamp(path: str | os.PathLike[str]) -> Stamp | None:
    """The stamp of the file at `path`, links followed; `None` if it can't be looked at, or see `stamp_of`."""
    try:
        return stamp_of(os.stat(path))
    except (OSError, ValueError):
        return None


def stamp_of(status: os.stat_result) -> Stamp | None:
    """The stamp of a file; `None` if it was changed so lately that another change could leave it the same.

    A program may set the time of change back (`touch -r`, `cp -p`, an archive), but not that of status.
    """
    changed, touched = status.st_mtime_ns, status.st_ctime_ns
    latest = changed if os.name == "nt" else touched  # Windows has the time of making there
    if 0 <= time.time_ns() - latest < (_TICK if latest % 1_000_000_000 else _SECONDS):
        return None
    return changed, touched, status.st_size, status.st_ino


class CacheFile:
    """One file that holds one value.

    The value is made of `None`, booleans, numbers, text, bytes, tuples, lists and dicts; it comes back equal.

    Args:
        path: The file. Its folder is made when the folder above it is there.
        shape: What the value looks like: one with another shape, or of another version of Mibyan, isn't read.
    """

    def __init__(self, path: str | os.PathLike[str], shape: str) -> None:
        self._path = os.fspath(path)
        self._head = f"mibyan {__version__} {shape}\n".encode()

    def read(self) -> Any:
        """The value; `None` if there is none that can be trusted."""
        try:
            content = _read_own(self._path)
        except OSError:
            return None
        at = len(self._head)
        if content[:at] != self._head:
            return None
        payload = content[at + 4 :]
        # What was damaged must not reach `marshal`, which may crash over it.
        if int.from_bytes(content[at : at + 4], "little") != crc32(payload):
            return None
        try:
            return marshal.loads(payload)  # noqa: S302 - this user's own file, as bytecode is
        except (EOFError, ValueError, TypeError):
            return None

    def write(self, value: Any) -> bool:
        """Replace the value, whole or not at all; whether that went well.

        Nothing waits for the disk: what a power cut leaves is found to be damaged.
        """
        folder, name = os.path.split(self._path)
        try:
            payload = marshal.dumps(value, _FORMAT)
            _make(folder)
            _sweep(folder, name)
            _replace(folder, name, self._head + crc32(payload).to_bytes(4, "little") + payload)
        except (OSError, ValueError):
            return False
        return True


def is_sound(content: bytes) -> bool:
    """Whether the content of a file is that of a `CacheFile`, of whatever version, undamaged."""
    head, _, rest = content.partition(b"\n")
    return head.startswith(b"mibyan ") and int.from_bytes(rest[:4], "little") == crc32(rest[4:])


class StampedCache:
    """Values by key, each good for one stamp; in memory, and in a file if there is one.

    Args:
        file: Where they are kept from one process to the next; `None`: nowhere.
        limit: How many are kept; beyond it those that this process didn't need are dropped.
    """

    def __init__(self, file: CacheFile | None = None, *, limit: int = 5_000) -> None:
        self._file = file
        self._limit = limit
        self._entries: dict[str, tuple[Any, Any]] | None = None
        self._used: set[str] = set()
        self._new: dict[str, tuple[Any, Any]] = {}

    def get(self, key: str, now: Any) -> Any:
        """The value that was kept for a key under this very stamp; `None` if there is none.

        Args:
            key: What it is about, such as a path.
            now: The stamp, a digest, or anything else that changes when the value does; `None`: nothing is known.
        """
        self._used.add(key)
        known = self._loaded().get(key)
        return known[1] if known is not None and now is not None and known[0] == now else None

    def keep(self, key: str, now: Any, value: Any) -> None:
        """Keep a value; nothing happens if `now` is `None`."""
        if now is not None:
            self._used.add(key)
            self._loaded()[key] = self._new[key] = (now, value)

    def look_up(self, key: str, now: Any, compute: Callable[[], Any]) -> Any:
        """The value that is kept, else what `compute` gives, which is kept; what it raises leaves.

        A `None` that it gives isn't kept.
        """
        value = self.get(key, now)
        if value is None and (value := compute()) is not None:
            self.keep(key, now, value)
        return value

    def save(self) -> None:
        """Write the file, if something is new: beside what other processes have written meanwhile."""
        if not self._new or self._file is None:
            return
        entries = {**self._loaded(), **self._read(), **self._new}
        if len(entries) > self._limit:
            entries = {key: entry for key, entry in entries.items() if key in self._used}
        if self._file.write(entries):
            self._new = {}

    def _loaded(self) -> dict[str, tuple[Any, Any]]:
        if self._entries is None:
            self._entries = self._read()
        return self._entries

    def _read(self) -> dict[str, tuple[Any, Any]]:
        found = self._file.read() if self._file is not None else None
        return found if isinstance(found, dict) else {}


def _read_own(path: str) -> bytes:
    """The bytes of a file that nobody else can have written.

    Raises:
        OSError: It isn't there, isn't a regular file, is somebody else's or is too large.
    """
    descriptor = os.open(path, _READ)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not _is_own(status) or status.st_size > _SIZE_LIMIT:
            raise PermissionError(path)
        content = os.read(descriptor, status.st_size + 1)
        while len(content) <= _SIZE_LIMIT and (more := os.read(descriptor, 1 << 20)):
            content += more
        return content
    finally:
        os.close(descriptor)


def _is_own(status: os.stat_result) -> bool:
    """Whether a file is this user's and nobody else may write to it, as far as the system tells."""
    if not hasattr(os, "geteuid"):  # Windows: the profile's own permissions decide
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _replace(folder: str, name: str, content: bytes) -> None:
    """Write a file beside its place and move it there.

    Raises:
        OSError: It can't be written; nothing is left behind.
    """
    temporary = os.path.join(folder, f".{name}.{os.urandom(8).hex()}.tmp")
    descriptor = os.open(temporary, _WRITE, 0o600)
    try:
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)
        os.replace(temporary, os.path.join(folder, name))
    except BaseException:
        _remove(temporary)
        raise


def _sweep(folder: str, name: str) -> None:
    """Delete what writers of this file that were killed have left."""
    for entry in os.listdir(folder):
        if entry.startswith(f".{name}.") and entry.endswith(".tmp"):
            path = os.path.join(folder, entry)
            try:
                if time.time() - os.lstat(path).st_mtime > _ABANDONED:
                    os.unlink(path)
            except OSError:  # another one sweeps too
                pass


def _make(folder: str) -> None:
    try:
        os.mkdir(folder)
    except FileExistsError:
        pass


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
