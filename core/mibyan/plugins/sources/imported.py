"""Distributions that only `importlib.metadata` can list: in zips, and by other finders (plugins.F4)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from mibyan.plugins.candidate import Note, unreadable
from mibyan.plugins.sources.distributions import Distribution
from mibyan.plugins.sources.entrypoints import may_concern
from mibyan.plugins.sources.ids import canonical
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: Modules of the finders that look through `sys.path`, which is searched without them.
_PATH_FINDERS = ("_frozen_importlib", "importlib", "zipimport")


class ImportedListing:
    """The distributions in one zip on `sys.path`, or of one finder on `sys.meta_path`."""

    def __init__(self, entry: str, find: Callable[[], Iterable[Any]]) -> None:
        self.entry = entry
        self.notes: list[Note] = []
        self._found = self._described(find)

    def _described(self, find: Callable[[], Iterable[Any]]) -> list[Distribution]:
        """What `find` gives; a finder or an archive may fail in any way, which is one note."""
        try:
            return sorted(map(self._distribution, find()), key=lambda found: found.key)
        except Exception as error:
            text = f"can't be searched for plugins: {one_line(f'{type(error).__name__}: {error}')}"
            self.notes.append(unreadable(text, self.entry))
            return []

    def _distribution(self, found: Any) -> Distribution:
        def read(name: str) -> bytes | None:
            text = found.read_text(name)
            return text.encode("utf-8", "surrogateescape") if text is not None else None

        def read_code(name: str) -> bytes | None:
            try:
                return bytes(found.locate_file(name).read_bytes())
            except (OSError, AttributeError, KeyError):
                return None

        name, version = header(found, "Name"), header(found, "Version")
        info = f"{self.entry}/{canonical(name).replace('-', '_')}-{version}.dist-info"
        entry_points = read("entry_points.txt") or b""
        return Distribution(name, version, info, self.entry, entry_points, read, read_code, on_disk=False)

    def has(self, key: str) -> bool:
        """Whether there is a distribution of that canonical name."""
        return any(found.key == key for found in self._found)

    def distributions(self) -> list[Distribution]:
        """Those whose entry points may concern us, by name."""
        return [found for found in self._found if may_concern(found.entry_points)]


def header(found: Any, name: str) -> str:
    """A field of the metadata of an `importlib.metadata` distribution; empty if absent, which Python 3.12 warns to ask for."""
    metadata = found.metadata
    return str(metadata[name]) if name in metadata else ""


def zip_listing(entry: str) -> ImportedListing:
    """The distributions in the archive at `entry`."""

    def find() -> Iterable[Any]:
        from importlib.metadata import distributions

        return distributions(path=[entry])

    return ImportedListing(entry, find)


def finder_listings() -> list[ImportedListing]:
    """The distributions of finders on `sys.meta_path` that aren't the path's own."""
    return [_finder_listing(finder) for finder in sys.meta_path if _lists_distributions(finder)]


def _lists_distributions(finder: object) -> bool:
    module = getattr(finder, "__module__", None) or type(finder).__module__
    return not str(module).startswith(_PATH_FINDERS) and callable(getattr(finder, "find_distributions", None))


def _finder_listing(finder: Any) -> ImportedListing:
    def find() -> Iterable[Any]:
        from importlib.metadata import DistributionFinder

        return list(finder.find_distributions(DistributionFinder.Context()))

    shown = finder if isinstance(finder, type) else type(finder)
    return ImportedListing(f"{shown.__module__}.{shown.__qualname__}", find)
