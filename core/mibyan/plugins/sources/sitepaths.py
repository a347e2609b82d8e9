"""Which entries of `sys.path` are searched for installed plugins (plugins.F3).

A cloned repository can bring a `*.dist-info` of its own. So of the entries inside the project and inside the current
directory only those count that somebody installed: below the interpreter's prefix, in its site directories, or named
by a `.pth` file there.
"""
# os.path never raises on what isn't there, and these run for each entry on each start.
# ruff: noqa: PTH109, PTH110, PTH118

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from mibyan.plugins.sources.files import is_directory, names_in, read_bytes
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


@record
class Interpreter:
    """Where the running Python keeps what was installed."""

    #: `sys.prefix` and `sys.base_prefix`, real paths.
    prefixes: tuple[str, ...]
    #: Site directories, the user's among them, real paths.
    site_directories: tuple[str, ...]

    @classmethod
    def running(cls) -> Interpreter:
        """The interpreter that runs this."""
        return cls(_real(dict.fromkeys((sys.prefix, sys.base_prefix))), _real(dict.fromkeys(_site_directories())))

    def has(self, place: str) -> bool:
        """Whether `place` is below a prefix or a site directory."""
        return any(_within(place, border) for border in (*self.prefixes, *self.site_directories))


def _site_directories() -> Iterator[str]:
    site = sys.modules.get("site")
    if site is None:  # python -S
        return
    yield from site.getsitepackages() if hasattr(site, "getsitepackages") else ()
    if site.ENABLE_USER_SITE and site.USER_SITE:
        yield site.USER_SITE


def searched(
    path: Sequence[str], inside: Iterable[Path], interpreter: Interpreter | None = None
) -> tuple[list[str], dict[str, str]]:
    """The entries of `path` that exist and may be searched, in order, each real path once.

    The second result are the others: each with the folder that it is inside.

    Args:
        path: `sys.path`; an empty entry is the current directory.
        inside: The project and the current directory.
        interpreter: `None`: the running one.
    """
    borders = _real(dict.fromkeys(map(str, inside)))
    places = _places(path)
    around = {place: [border for border in borders if _within(place, border)] for place in places}
    if not any(around.values()):
        return list(places.values()), {}
    known = interpreter or Interpreter.running()
    installed = [place for place in places if not around[place] or _installed(place, around[place], known)]
    named = _named_by_pth(known, [place for place in installed if known.has(place)])
    kept = [place for place in places if place in installed or place in named]
    return [places[place] for place in kept], {places[place]: around[place][0] for place in places if place not in kept}


def _places(path: Sequence[str]) -> dict[str, str]:
    """The entries that exist, by their real paths, in order."""
    places: dict[str, str] = {}
    for entry in path:
        if not isinstance(entry, str):
            continue
        try:
            place = os.path.realpath(entry or os.getcwd())
        except (OSError, ValueError):  # the current directory is gone; a NUL in the entry
            continue
        if os.path.exists(place):
            places.setdefault(place, entry or place)
    return places


def _installed(place: str, around: Iterable[str], interpreter: Interpreter) -> bool:
    """Whether an entry inside all of `around` is one of the interpreter's own."""
    if place in interpreter.site_directories:
        return True
    # A prefix such as /usr that itself holds the project says nothing about what is in the project.
    prefixes = [p for p in interpreter.prefixes if not any(_within(border, p) for border in around)]
    return any(_within(place, prefix) for prefix in prefixes)


def _named_by_pth(interpreter: Interpreter, further: Iterable[str]) -> set[str]:
    """The directories that `.pth` files in the site directories and in `further` name (as `site` reads them)."""
    return {
        os.path.realpath(os.path.join(directory, line))
        for directory in dict.fromkeys((*interpreter.site_directories, *further))
        for line in _pth_lines(directory)
    }


def _pth_lines(directory: str) -> Iterator[str]:
    if not is_directory(directory):
        return
    try:
        names = [name for name in names_in(directory) if name.endswith(".pth") and not name.startswith(".")]
    except OSError:
        return
    for name in names:
        try:
            text = read_bytes(os.path.join(directory, name)).decode("utf-8-sig", "surrogateescape")
        except OSError:
            continue
        lines = map(str.rstrip, text.splitlines())
        yield from (
            line for line in lines if line and "\0" not in line and not line.startswith(("#", "import ", "import\t"))
        )


def _within(place: str, border: str) -> bool:
    return place == border or place.startswith(border.rstrip(os.sep) + os.sep)


def _real(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(os.path.realpath(path) for path in paths)
