"""What a plugin's content is at this moment, as one digest: what became of a load holds for exactly that (plugins.L9)."""
# os and text: these run for each plugin on each start.
# ruff: noqa: PTH116, PTH118

from __future__ import annotations

import hashlib
import os
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from mibyan._version import __version__
from mibyan.plugins.sources.files import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mibyan.plugins.candidate import Candidate

#: Files that a plugin may have; what has more isn't told apart at all.
FILES_LIMIT = 5_000
#: Bytes up to which a folder's files are read; the content of larger ones is kept by time of change and size.
BYTES_LIMIT = 4 * 1024 * 1024

#: The interpreter and the Mibyan that a load was done by: another one may come to something else.
LOADED_BY = f"{sys.implementation.cache_tag} {__version__}"

#: Whose files are read: people edit them, copy them and check them out anew.
_READ = frozenset({"user", "project", "tools"})


class Contents:
    """The digests of plugins during one look at them; a folder that several share is looked at once."""

    def __init__(self) -> None:
        self._folders: dict[str, str | None] = {}

    def digest(self, candidate: Candidate) -> str | None:
        """The digest of a plugin's content, hexadecimal; `None` when that can't be told.

        Of a wheel it is its version and the state of its `RECORD`; of an editable install, a module and a built-in
        plugin the path, time of change and size of each file; of a folder and of a tools directory the bytes.
        """
        said = self._said(candidate)
        if said is None:
            return None
        whole = (LOADED_BY, candidate.source, candidate.origin, candidate.version, said)
        return hashlib.sha256("\0".join(whole).encode("utf-8", "surrogatepass")).hexdigest()

    def _said(self, candidate: Candidate) -> str | None:
        record = None if candidate.editable else _state(os.path.join(candidate.origin, "RECORD"))
        if record is not None:
            return record
        place = str(candidate.root) if candidate.root is not None else _file_of(candidate)
        if place is None:
            return None
        if place not in self._folders:
            self._folders[place] = _folder_said(place, read=candidate.source in _READ)
        inside = self._folders[place]
        manifest = _state(os.path.join(candidate.origin, "extra_metadata", "mibyan.json")) or ""
        return None if inside is None else f"{inside} {manifest}"


def _file_of(candidate: Candidate) -> str | None:
    """The one file of a plugin without a folder: a module, or the zip that its distribution lies in."""
    target = candidate.target
    if target is None or target.kind not in {"module", "entry_point"}:
        return None if target is None else target.value
    from mibyan.plugins.sources.modules import find_spec

    above = os.path.dirname(candidate.origin)  # noqa: PTH120 - text
    if os.path.isfile(above):  # noqa: PTH113 - text
        return above
    spec = find_spec(target.value.partition(":")[0].partition(".")[0])
    return spec.origin if spec is not None else None


def _folder_said(place: str, *, read: bool) -> str | None:
    """What the files in a folder (or the one file) are; `None` when that can't be told."""
    try:
        files = [(name, path, status) for name, path, status in _files(place)]
        small = sum(status.st_size for _, _, status in files) <= BYTES_LIMIT
        parts = (_file_said(path, status, read=read and small) for _, path, status in files)
        return _digest(f"{name}\0{part}" for (name, _, _), part in zip(files, parts, strict=True))
    except (OSError, ValueError):
        return None


def _files(place: str) -> Iterator[tuple[str, str, os.stat_result]]:
    """The files below a folder: the path below it, the path, its status; hidden ones and bytecode don't count.

    Raises:
        OSError: Something can't be looked at.
        ValueError: There are too many.
    """
    if not os.path.isdir(place):  # noqa: PTH112 - text
        yield "", place, os.stat(place)
        return
    waiting, seen = [""], 0
    while waiting:
        below = waiting.pop()
        for entry in sorted(os.scandir(os.path.join(place, below)), key=lambda entry: entry.name):
            if entry.name.startswith(".") or entry.name == "__pycache__":
                continue
            name = os.path.join(below, entry.name)
            seen += 1
            if seen > FILES_LIMIT:
                raise ValueError(f"more than {FILES_LIMIT} files")
            if entry.is_dir(follow_symlinks=False):
                waiting.append(name)
            else:
                yield name, entry.path, _followed(entry)


def _followed(entry: os.DirEntry[str]) -> os.stat_result:
    """The status of the file that an entry is or leads to; of a link to nowhere or to a folder its own."""
    with suppress(OSError):
        status = entry.stat()
        if not stat.S_ISDIR(status.st_mode):
            return status
    return entry.stat(follow_symlinks=False)


def _file_said(path: str, status: os.stat_result, *, read: bool) -> str:
    """What a file is: its bytes' digest where they are to be read and can be, else its time of change and size."""
    if read:
        with suppress(OSError):
            return hashlib.sha256(read_bytes(path, BYTES_LIMIT)).hexdigest()
    return _status_said(status)


def _status_said(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns} {status.st_size}"


def _state(path: str) -> str | None:
    """The time of change and the size of a file; `None` if it isn't there."""
    try:
        return _status_said(os.stat(path))
    except (OSError, ValueError):
        return None


def _digest(parts: Iterable[str]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part.encode("utf-8", "surrogatepass"))
        whole.update(b"\n")
    return whole.hexdigest()
