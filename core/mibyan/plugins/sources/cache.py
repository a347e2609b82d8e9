"""`ContentCache`: what a file's content came to, kept by its path, time of change and size.

Presence is never cached, only content: the file is looked at each time, and read only when it has changed.
"""
# os.stat takes text as it is: these run for each file on each start.
# ruff: noqa: PTH116

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from mibyan._version import __version__
from mibyan.plugins.manifest import Manifest
from mibyan.plugins.sources.files import read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Entries that are kept; beyond it those that this process didn't need are dropped.
_LIMIT = 5_000
_SIZE_LIMIT = 64 * 1024 * 1024
#: What was kept by a Mibyan that read manifests otherwise is worth nothing.
_SHAPE = f"2 {__version__} {' '.join(Manifest.__slots__)}"


class ContentCache:
    """Results by `(kind, path, mtime_ns, size)`, in memory and, if it has a path, in one JSON file.

    A cache that can't be read is empty; one that can't be written is kept in memory. It is never an error.

    Args:
        path: The file; its folder is made when the folder above it is there. `None`: memory only.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._entries: dict[str, list[Any]] | None = None
        self._used: set[str] = set()
        self._changed = False

    def look_up(self, kind: str, path: str | os.PathLike[str], compute: Callable[[], Any]) -> Any:
        """What `compute` gave for the file's present content; called only if that isn't known.

        The value must be plain JSON data. A file whose state can't be told isn't cached, nor is what raises.
        """
        try:
            status = os.stat(path)
        except OSError:
            return compute()
        return self._look_up(f"{kind}:{os.fspath(path)}", [status.st_mtime_ns, status.st_size], compute)

    def look_up_bytes(self, kind: str, data: bytes, compute: Callable[[], Any]) -> Any:
        """What `compute` gave for these bytes, wherever they lie: for files whose times a stranger may set."""
        from hashlib import sha256

        return self._look_up(f"{kind}:sha256:{sha256(data).hexdigest()}", [0, len(data)], compute)

    def _look_up(self, key: str, state: list[int], compute: Callable[[], Any]) -> Any:
        entry = self._loaded().get(key)
        self._used.add(key)
        if entry is not None and entry[:2] == state:
            return entry[2]
        value = compute()
        self._loaded()[key] = [*state, value]
        self._changed = True
        return value

    def save(self) -> None:
        """Write the file, if something is new and it can be written."""
        if not self._changed or self._path is None or not self._path.parent.parent.is_dir():
            return
        from mibyan.errors import MibyanError
        from mibyan.paths import write_atomic

        try:
            self._path.parent.mkdir(exist_ok=True)
            write_atomic(self._path, json.dumps({"shape": _SHAPE, "entries": self._kept()}))
        except (OSError, ValueError, MibyanError):
            return
        self._changed = False

    def _kept(self) -> dict[str, list[Any]]:
        entries = self._loaded()
        if len(entries) <= _LIMIT:
            return entries
        return {key: entry for key, entry in entries.items() if key in self._used}

    def _loaded(self) -> dict[str, list[Any]]:
        if self._entries is None:
            self._entries = _read(self._path) if self._path is not None else {}
        return self._entries


def _read(path: Path) -> dict[str, list[Any]]:
    """The entries in the file; none if it isn't one of this version's."""
    try:
        content = json.loads(read_bytes(path, _SIZE_LIMIT))
        if content["shape"] != _SHAPE:
            return {}
        entries: dict[str, list[Any]] = content["entries"]
        return {key: entry for key, entry in entries.items() if isinstance(entry, list) and len(entry) == 3}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
