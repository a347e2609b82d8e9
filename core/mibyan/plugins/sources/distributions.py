"""Installed distributions as they lie on disk: found by one look into each directory (plugins.F3, F4)."""
# A thousand distributions are looked at on each start: os and plain text are several times as fast as pathlib.
# ruff: noqa: PTH116, PTH122, PTH208

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from mibyan.filecache import stamp_of
from mibyan.plugins.candidate import Note, unreadable
from mibyan.plugins.sources.entrypoints import may_concern
from mibyan.plugins.sources.files import read_bytes, reason
from mibyan.plugins.sources.ids import canonical
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mibyan.plugins.sources.cache import ContentCache

_ENDINGS = (".dist-info", ".egg-info")
#: Whether a file can be looked at from its folder.
_FROM_FOLDERS = os.stat in os.supports_dir_fd
#: How the name of a plugin begins.
_NAMED = frozenset({"mibyan_", "mibyan-", "mibyan."})
_EGG = re.compile(r"(?P<name>[^-]+)(?:-(?P<version>.+?))?(?:-py\d[\d.]*(?:-.*)?)?")


@record
class Distribution:
    """A distribution whose name or entry points may concern us."""

    name: str
    version: str
    #: Its `*.dist-info` or `*.egg-info`.
    info: str
    #: The entry of `sys.path` that it lies in.
    entry: str
    #: The bytes of its `entry_points.txt`.
    entry_points: bytes
    #: The bytes of a file by its path below `info`, or below `entry`; `None` if it can't be read.
    read: Callable[[str], bytes | None]
    read_code: Callable[[str], bytes | None]
    #: Whether its files are files of the file system.
    on_disk: bool = True

    @property
    def key(self) -> str:
        """Its canonical name: two with the same are one distribution at two places."""
        return canonical(self.name)


class Listing:
    """The distributions in one directory of `sys.path`.

    Args:
        entry: The directory.
        cache: Keeps what entry points say: a file that hasn't changed is looked at, and not opened.
    """

    def __init__(self, entry: str, cache: ContentCache) -> None:
        self.entry = entry
        self._cache = cache
        self.notes: list[Note] = []
        self._names = self._infos()
        self._by_key: dict[str, list[str]] | None = None

    def _infos(self) -> list[str]:
        try:
            return [name for name in os.listdir(self.entry) if name.endswith(_ENDINGS)]
        except OSError as error:
            self.notes.append(unreadable(f"can't be searched for plugins: {reason(error)}", self.entry))
            return []

    def has(self, key: str) -> bool:
        """Whether there is a whole distribution of that canonical name."""
        if self._by_key is None:
            self._by_key = {}
            for name in self._names:
                self._by_key.setdefault(canonical(name_and_version(name)[0]), []).append(name)
        return any(_is_whole(f"{self.entry}/{name}") for name in self._by_key.get(key, ()))

    def distributions(self) -> list[Distribution]:
        """Those whose name or entry points may concern us, by name."""
        named = [(canonical(name_and_version(name)[0]), name, data) for name, data in self._concerning()]
        if len({key for key, _, _ in named}) < len(named):
            named.sort(key=lambda three: _newest_first(three[1]))
        else:
            named.sort()
        return [self._distribution(name, data) for _, name, data in named if self._is_installed(name)]

    def _concerning(self) -> list[tuple[str, bytes]]:
        """The folders of those that may concern us, each with the bytes of its entry points if these may.

        One whose entry points can't be read is a note and nothing else.
        """
        known: dict[str, tuple[Any, bytes]] = self._cache.recall("entry points", self.entry) or {}
        fresh: dict[str, tuple[Any, bytes]] = {}
        found: list[tuple[str, bytes]] = []
        with _looking_below(self.entry) as look:
            for name in self._names:
                try:
                    now = look(f"{name}/entry_points.txt")
                    kept = known.get(name)
                    # A stamp was kept only once a further change would give another: no need to ask how old this one is.
                    if kept is None or kept[0] != (now.st_mtime_ns, now.st_ctime_ns, now.st_size, now.st_ino):
                        kept = fresh[name] = self._read(name, now)
                    data = kept[1]
                except (FileNotFoundError, NotADirectoryError):
                    data = b""
                except OSError as error:
                    path = f"{self.entry}/{name}/entry_points.txt"
                    self.notes.append(unreadable(f"can't be read: {reason(error)}", path))
                    continue
                if data or name[:7].lower() in _NAMED:
                    found.append((name, data))
        if fresh:
            self._keep({**known, **fresh})
        return found

    def _read(self, name: str, status: os.stat_result) -> tuple[Any, bytes]:
        """The stamp of a distribution's entry points before they were read, and the bytes if they may concern us."""
        stamp = stamp_of(status)
        data = read_bytes(f"{self.entry}/{name}/entry_points.txt")
        return stamp, data if may_concern(data) else b""

    def _keep(self, entries: dict[str, tuple[Any, bytes]]) -> None:
        there = set(self._names)
        kept = {name: entry for name, entry in entries.items() if name in there}
        self._cache.remember("entry points", self.entry, kept)

    def _is_installed(self, name: str) -> bool:
        info = f"{self.entry}/{name}"
        if not name.startswith("~") and _is_whole(info):
            return True
        self.notes.append(_leftover(info))
        return False

    def _distribution(self, name: str, entry_points: bytes) -> Distribution:
        info = f"{self.entry}/{name}"
        shown, version = name_and_version(name)
        if not version or name.endswith(".egg-info"):
            shown, version = _from_metadata(info, shown, version)
        return Distribution(shown, version, info, self.entry, entry_points, reader(info), reader(self.entry))


@contextmanager
def _looking_below(folder: str) -> Iterator[Callable[[str], os.stat_result]]:
    """`os.stat` of paths below `folder`; where the system can, the way to the folder itself is gone only once."""
    try:
        opened = os.open(folder, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)) if _FROM_FOLDERS else None
    except OSError:
        opened = None
    if opened is None:
        yield lambda name: os.stat(f"{folder}/{name}")
        return
    try:
        yield partial(os.stat, dir_fd=opened)
    finally:
        os.close(opened)


def name_and_version(info_name: str) -> tuple[str, str]:
    """What the name of a `*.dist-info` (PEP 376, 427) or `*.egg-info` says; the version may be empty."""
    stem, ending = os.path.splitext(info_name)
    if ending == ".egg-info":
        match = _EGG.fullmatch(stem)
        return (match["name"], match["version"] or "") if match else (stem, "")
    name, _, version = stem.rpartition("-")
    return (name, version) if name else (version, "")


def header(metadata: bytes, field: str) -> str:
    """A field of `METADATA` or `PKG-INFO` (RFC 822 headers), empty if it isn't there."""
    head = re.split(rb"\r?\n\r?\n", metadata, maxsplit=1)[0].decode("utf-8", "replace")
    found = re.search(rf"^{field}:[ \t]*(.*?)[ \t\r]*$", head, re.MULTILINE | re.IGNORECASE)
    return found[1] if found else ""


def _from_metadata(info: str, name: str, version: str) -> tuple[str, str]:
    """Name and version as the metadata says them; the file's name is only a hint for eggs."""
    read = reader(info)
    metadata = read("METADATA") or read("PKG-INFO") or b""
    return header(metadata, "Name") or name, header(metadata, "Version") or version


def reader(folder: str) -> Callable[[str], bytes | None]:
    """Reads files below `folder`."""

    def read(name: str) -> bytes | None:
        path = f"{folder}/{name}"
        try:
            # Most aren't there, and an exception costs more than a look.
            return read_bytes(path) if os.access(path, os.F_OK) else None
        except (OSError, ValueError):
            return None

    return read


def _is_whole(info: str) -> bool:
    """Whether the metadata is there: an interrupted uninstall leaves a folder without it."""
    return os.access(f"{info}/METADATA", os.F_OK) or os.access(f"{info}/PKG-INFO", os.F_OK)


def _newest_first(name: str) -> tuple[str, list[tuple[int, int, str]], str]:
    """Sorts by name, and the same name by version, the newest first: two folders of one name are an old and a new."""
    shown, version = name_and_version(name)
    parts = [(0, -int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", version) if part]
    return canonical(shown), parts, name


def _leftover(info: str) -> Note:
    text = "what an interrupted uninstall has left (no METADATA): passed over"
    name = canonical(name_and_version(info.rpartition(os.sep)[2])[0].lstrip("~"))
    return Note("leftover", text, info, f"mibyan plugins uninstall {name}, or install the distribution again")
