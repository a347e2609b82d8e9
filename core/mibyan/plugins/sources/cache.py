"""`ContentCache`: what files of plugins came to, from one start to the next, in `$MIBYAN_HOME/cache/discovery.bin`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mibyan.filecache import CacheFile, StampedCache, stamp
from mibyan.plugins.manifest import Manifest
from mibyan.records import field_names

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: What was kept by a Mibyan that read manifests otherwise is worth nothing.
_SHAPE = f"discovery 4 {' '.join(field_names(Manifest))}"


class ContentCache:
    """Results by kind and file, each good while the file stays as it is.

    Args:
        path: Where they are kept, see `CacheFile`; `None`: memory only.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._kept = StampedCache(CacheFile(path, _SHAPE) if path is not None else None)

    @classmethod
    def of_home(cls, home: Path) -> ContentCache:
        """The one that all runtimes of a profile use."""
        return cls(home / "cache" / "discovery.bin")

    def look_up(self, kind: str, path: str | os.PathLike[str], compute: Callable[[], Any]) -> Any:
        """What `compute` gave for the file's present content; called only if that isn't known.

        The value must be what `CacheFile` takes. For a file that can't be looked at it is computed each time; what raises isn't kept.
        """
        return self._kept.look_up(f"{kind}:{os.fspath(path)}", stamp(path), compute)

    def look_up_bytes(self, kind: str, data: bytes, compute: Callable[[], Any]) -> Any:
        """What `compute` gave for these bytes, wherever they lie: for files whose times a stranger may set."""
        from hashlib import sha256

        key = f"{kind}:sha256:{sha256(data).hexdigest()}"
        return self._kept.look_up(key, len(data), compute)

    def recall(self, kind: str, place: str) -> Any:
        """What `remember` was given last, whatever has become of the place; `None` if nothing was."""
        return self._kept.get(f"{kind}:{place}", kind)

    def remember(self, kind: str, place: str, value: Any) -> None:
        """Keep a value that itself says what it holds for."""
        self._kept.keep(f"{kind}:{place}", kind, value)

    def save(self) -> None:
        """Write the file, if something is new and it can be written."""
        self._kept.save()
