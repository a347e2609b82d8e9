"""`ImportPlaces`: folders that are on `sys.path` for a while, and leave it with all that was imported from them."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

__tracebackhide__ = True  # a failing test shows its own lines


class ImportPlaces:
    """Folders on `sys.path`, all of them below one.

    Args:
        root: What is imported from below it is taken out of the process by `close`.
    """

    def __init__(self, root: Path) -> None:
        self._root = os.path.join(os.path.realpath(root), "")  # noqa: PTH118 - text, with a separator
        self._prefixes = (self._root, os.path.join(root, ""))  # noqa: PTH118 - likewise
        self._known = dict(sys.modules)
        #: The folders, in the order in which they are searched.
        self.folders: list[str] = []

    def add(self, folder: Path) -> None:
        """Put a folder on `sys.path`: before what was there, behind those that were added before."""
        place = str(folder)
        if place not in self.folders:
            last = max((index for index, entry in enumerate(sys.path) if entry in self.folders), default=-1)
            sys.path.insert(last + 1, place)
            self.folders.append(place)
        importlib.invalidate_caches()

    def require_new(self, module: str) -> None:
        """See that a module of that name would be imported from here.

        Raises:
            ValueError: One was imported from elsewhere, and Python imports a module once.
        """
        top = sys.modules.get(module.partition(".")[0])
        if top is not None and not self._holds(top):
            raise ValueError(
                f"the module {module!r} is imported already, from {getattr(top, '__file__', 'elsewhere')}: give the "
                "distribution another name, or another module (`entry_points=`, `files=`)"
            )

    def close(self) -> None:
        """Take the folders off `sys.path`, and the modules that were imported from them out of the process."""
        for place in self.folders:
            if place in sys.path:
                sys.path.remove(place)
        self.folders.clear()
        for name, module in sys.modules.copy().items():
            if self._known.get(name) is not module and self._holds(module):
                sys.modules.pop(name, None)
        self._known.clear()
        for place in [place for place in sys.path_importer_cache.copy() if place.startswith(self._prefixes)]:
            sys.path_importer_cache.pop(place, None)
        importlib.invalidate_caches()

    def _holds(self, module: ModuleType | None) -> bool:
        """Whether a module was imported from below the root; never raises, whatever stands in `sys.modules`."""
        return any(map(self._is_below, _places_of(module)))

    def _is_below(self, place: str) -> bool:
        return place.startswith(self._prefixes) or os.path.realpath(place).startswith(self._root)


def _places_of(module: ModuleType | None) -> Iterator[str]:
    try:
        values = vars(module)
        found = [values.get("__file__"), *(values.get("__path__") or ())]
    except Exception:
        return
    yield from (place for place in found if isinstance(place, str))
