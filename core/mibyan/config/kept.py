"""`KeptLayers`: files that haven't changed since they were checked, in `$MIBYAN_HOME/cache/config.bin`.

Such a file costs neither yaml nor pydantic. Only what is sound is kept: a file with problems is checked each time.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mibyan.config.layers import Layer, file_layer
from mibyan.config.yamlfile import Document
from mibyan.filecache import CacheFile, StampedCache, stamp

if TYPE_CHECKING:
    from pathlib import Path

#: To be raised whenever the same text may come to something else.
_SHAPE = "config 1"
#: Files that are kept: the home's, and those of projects.
_LIMIT = 100


class KeptLayers:
    """The layers of configuration files.

    Args:
        home: The profile's folder; nothing is written as long as it isn't there.
    """

    def __init__(self, home: Path) -> None:
        self._kept = StampedCache(CacheFile(home / "cache" / "config.bin", _SHAPE), limit=_LIMIT)

    def file_layer(self, path: Path, label: str) -> Layer:
        """What a config.yaml says; see `layers.file_layer`."""
        now = stamp(path)
        known = self._kept.get(os.fspath(path), now)
        if known is not None:
            written, lines, data = known
            return Layer(Document(label, written, lines), path, data=data)
        layer = file_layer(path, label)
        if layer.exists and not layer.problems:
            self._kept.keep(os.fspath(path), now, (layer.document.data, layer.document.lines, layer.data))
        return layer

    def save(self) -> None:
        """Write what is new, if it can be written."""
        self._kept.save()
