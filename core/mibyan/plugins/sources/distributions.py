"""Installed distributions as they lie on disk: found by one look into each directory (plugins.F3, F4)."""
# A thousand distributions are looked at on each start: os and plain text are several times as fast as pathlib.
# ruff: noqa: PTH110, PTH116, PTH118, PTH122, PTH208

from __future__ import annotations

import os
import re
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
        return any(_is_whole(os.path.join(self.entry, name)) for name in self._by_key.get(key, ()))

    def distributions(self) -> list[Distribution]:
        """Those whose name or entry points may concern us, by name."""
        found = [(name, data) for name, data in self._entry_points() if data or name[:7].lower() in _NAMED]
        found.sort(key=lambda pair: canonical(name_and_version(pair[0])[0]))
        if len({canonical(name_and_version(name)[0]) for name, _ in found}) < len(found):
            found.sort(key=lambda pair: _newest_first(pair[0]))
        return [self._distribution(name, data) for name, data in found if self._is_installed(name)]

    def _entry_points(self) -> Iterator[tuple[str, bytes]]:
        """Each distribution's folder, with the bytes of its entry points if they may concern us.

        One whose entry points can't be read is a note and nothing else.
        """
        known: dict[str, tuple[Any, bytes]] = self._cache.recall("entry points", self.entry) or {}
        fresh: dict[str, tuple[Any, bytes]] = {}
        for name in self._names:
            path = f"{self.entry}/{name}/entry_points.txt"
            try:
                now = stamp_of(os.stat(path))
                entry = known.get(name)
                if entry is None or entry[0] != now or now is None:
                    data = read_bytes(path)
                    entry = fresh[name] = (now, data if may_concern(data) else b"")
                yield name, entry[1]
            except (FileNotFoundError, NotADirectoryError):
                yield name, b""
            except OSError as error:
                self.notes.append(unreadable(f"can't be read: {reason(error)}", path))
        if fresh:
            there = set(self._names)
            kept = {name: entry for name, entry in {**known, **fresh}.items() if name in there}
            self._cache.remember("entry points", self.entry, kept)

    def _is_installed(self, name: str) -> bool:
        info = os.path.join(self.entry, name)
        if not name.startswith("~") and _is_whole(info):
            return True
        self.notes.append(_leftover(info))
        return False

    def _distribution(self, name: str, entry_points: bytes) -> Distribution:
        info = os.path.join(self.entry, name)
        shown, version = name_and_version(name)
        if not version or name.endswith(".egg-info"):
            shown, version = _from_metadata(info, shown, version)
        return Distribution(shown, version, info, self.entry, entry_points, reader(info), reader(self.entry))


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
        try:
            return read_bytes(os.path.join(folder, name))
        except (OSError, ValueError):
            return None

    return read


def _is_whole(info: str) -> bool:
    """Whether the metadata is there: an interrupted uninstall leaves a folder without it."""
    return os.path.exists(os.path.join(info, "METADATA")) or os.path.exists(os.path.join(info, "PKG-INFO"))


def _newest_first(name: str) -> tuple[str, list[tuple[int, int, str]], str]:
    """Sorts by name, and the same name by version, the newest first: two folders of one name are an old and a new."""
    shown, version = name_and_version(name)
    parts = [(0, -int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", version) if part]
    return canonical(shown), parts, name


def _leftover(info: str) -> Note:
    text = "what an interrupted uninstall has left (no METADATA): passed over"
    return Note("leftover", text, info, "delete the folder, or install the distribution again")
