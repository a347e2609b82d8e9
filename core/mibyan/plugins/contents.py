"""What a plugin's content is at this moment, as one digest: what became of a load holds for exactly that (plugins.L9, M4)."""
# os and text: these run for each plugin on each start.
# ruff: noqa: PTH116

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from mibyan._version import __version__
from mibyan.filecache import CacheFile, StampedCache, stamp_of
from mibyan.plugins.places import places_of
from mibyan.plugins.sources.files import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from mibyan.plugins.candidate import Candidate

    #: A file's path and its status; `None`: there is no such file.
    File: TypeAlias = tuple[str, os.stat_result | None]

#: Files that a plugin may have; what has more isn't told apart at all.
FILES_LIMIT = 5_000
#: Bytes up to which a plugin's files are read; the content of larger ones is kept by time of change and size.
BYTES_LIMIT = 4 * 1024 * 1024

#: Bytes of a plugin that are read to tell what was accepted; of a larger one that can't be told.
PORTABLE_LIMIT = 256 * 1024 * 1024

#: The interpreter and the Mibyan that a load was done by: another one may come to something else.
LOADED_BY = f"{sys.implementation.cache_tag} {sys.platform} {__version__}"


def kept_digests(home: Path) -> StampedCache:
    """The digests that are kept in a profile, by the stamps of the files they are of."""
    return StampedCache(CacheFile(home / "cache" / "contents.bin", "contents 1"))


class Contents:
    """The digests of plugins during one look at them: each file is looked at once.

    Args:
        kept: Digests by the stamps of files, so that what hasn't changed needn't be read; `None`: nothing is kept.
    """

    def __init__(self, kept: StampedCache | None = None) -> None:
        self._kept = StampedCache() if kept is None else kept
        self._looked: dict[str, list[File]] = {}
        self._digests: dict[tuple[str, str], str | None] = {}

    def digest(self, candidate: Candidate) -> str | None:
        """The digest of a plugin's content, hexadecimal; `None` when that can't be told.

        Of a plugin that somebody works on where it lies (an editable install, a built-in one) it is of the path, time of
        change and size of each file, of others of the bytes.
        """
        key = candidate.id, candidate.origin
        if key not in self._digests:
            self._digests[key] = self._digest(candidate)
        return self._digests[key]

    def files(self, candidate: Candidate) -> list[File] | None:
        """The files that make up a plugin; `None` when that can't be told, or there are too many."""
        files: list[File] = []
        try:
            places = places_of(candidate, self._kept)
            if places is None:
                return None
            for place in places:
                if place not in self._looked:
                    self._looked[place] = list(_files(place))
                files += self._looked[place]
        except (OSError, ValueError):
            return None
        return files if len(files) <= FILES_LIMIT else None

    def portable_digest(self, candidate: Candidate) -> str | None:
        """The digest of a plugin's bytes and of where each file lies in it; `None` when that can't be told.

        It is the same on every machine and for every interpreter, also of what is being worked on.
        """
        files = self.files(candidate)
        if files is None:
            return None
        base = str(candidate.root) if candidate.root is not None else os.path.dirname(candidate.origin)  # noqa: PTH120
        key = f"portable:{candidate.id}\0{candidate.origin}"
        digest: str | None = self._kept.look_up(key, _stamps(files), lambda: _portable(base, files))
        return digest

    def save(self) -> None:
        """Keep what was worked out for other processes."""
        self._kept.save()

    def _digest(self, candidate: Candidate) -> str | None:
        files = self.files(candidate)
        if files is None:
            return None
        stamps = _stamps(files)
        now = None if stamps is None else (LOADED_BY, candidate.source, candidate.version, candidate.editable, stamps)
        key = f"digest:{candidate.id}\0{candidate.origin}"
        digest: str = self._kept.look_up(key, now, lambda: _digest_of(candidate, files))
        return digest


def content_of(candidate: Candidate, contents: Contents) -> str:
    """What a plugin is at this moment, as one text; where its files can't be told its version."""
    return contents.digest(candidate) or f"{LOADED_BY} {candidate.version}"


def _stamps(files: Iterable[File]) -> tuple[object, ...] | None:
    """The stamps of files; `None` if one of them was changed just now."""
    stamps: list[object] = []
    for path, status in files:
        stamp = () if status is None else stamp_of(status)
        if stamp is None:
            return None
        stamps += (path, stamp)
    return tuple(stamps)


def _digest_of(candidate: Candidate, files: list[File]) -> str:
    from hashlib import sha256

    size = sum(status.st_size for _, status in files if status is not None)
    read = size <= BYTES_LIMIT and not candidate.editable and candidate.source != "builtin"
    whole = sha256(f"{LOADED_BY}\0{candidate.source}\0{candidate.origin}\0{candidate.version}".encode(*_TEXT))
    for path, status in files:
        whole.update(f"\n{path}\0{_said(path, status, read=read)}".encode(*_TEXT))
    return whole.hexdigest()


def _portable(base: str, files: Iterable[File]) -> str | None:
    """One digest for the bytes of files; an installer's own notes on what it installed don't count."""
    from hashlib import sha256

    whole, left = sha256(), PORTABLE_LIMIT
    for path, status in files:
        name = path[len(base) + 1 :] if path.startswith(f"{base}{os.sep}") else os.path.basename(path)  # noqa: PTH119
        if status is None or (name == "RECORD" or name.endswith(".dist-info/RECORD")):
            continue
        try:
            data = read_bytes(path, left)
        except OSError:
            return None
        left -= len(data)
        whole.update(f"{len(name)}:{name.replace(os.sep, '/')} {sha256(data).hexdigest()}\n".encode(*_TEXT))
    return whole.hexdigest()


_TEXT = ("utf-8", "surrogatepass")


def _said(path: str, status: os.stat_result | None, *, read: bool) -> str:
    """What a file is: its bytes' digest where they are to be read and can be, else its time of change and size."""
    if status is None:
        return ""
    if read:
        from hashlib import sha256

        with suppress(OSError):
            return sha256(read_bytes(path, BYTES_LIMIT)).hexdigest()
    return f"{status.st_mtime_ns} {status.st_size}"


def _files(place: str) -> Iterator[File]:
    """The files below a folder, or the one file; hidden folders and bytecode don't count.

    Raises:
        OSError: Something can't be looked at.
        ValueError: There are too many.
    """
    status = _status(place)
    if status is None or not stat.S_ISDIR(status.st_mode):
        yield place, status
        return
    waiting, seen = [place], 0
    while waiting:
        with os.scandir(waiting.pop()) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        for entry in entries:
            seen += 1
            if seen > FILES_LIMIT:
                raise ValueError(f"more than {FILES_LIMIT} files")
            if not entry.is_dir(follow_symlinks=False):
                yield entry.path, _followed(entry)
            elif not entry.name.startswith(".") and entry.name != "__pycache__":
                waiting.append(entry.path)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _followed(entry: os.DirEntry[str]) -> os.stat_result:
    """The status of the file that an entry is or leads to; of a link to nowhere or to a folder its own."""
    with suppress(OSError):
        status = entry.stat()
        if not stat.S_ISDIR(status.st_mode):
            return status
    return entry.stat(follow_symlinks=False)
