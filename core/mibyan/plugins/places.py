"""Where the files of a plugin lie: what has to be looked at to see that it is as it was."""
# os and text: these run for each plugin on each start.
# ruff: noqa: PTH112, PTH113, PTH118, PTH120

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from mibyan.filecache import stamp
from mibyan.plugins.sources.files import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mibyan.filecache import StampedCache
    from mibyan.plugins.candidate import Candidate


def places_of(candidate: Candidate, kept: StampedCache) -> tuple[str, ...] | None:
    """The files and folders that make up a plugin, each a path; files that aren't there may be among them.

    Of a wheel it is what its `RECORD` lists, of a file in a tools directory the file and those that it imports, of any
    other its folder or its one file.

    Args:
        candidate: The plugin.
        kept: Keeps what a `RECORD` and a source say.

    Returns:
        `None` when it can't be told.

    Raises:
        OSError: Something can't be read.
        ValueError: A `RECORD` isn't one.
    """
    if candidate.source == "tools" and candidate.root is not None:
        return _of_tool(candidate.origin, str(candidate.root), kept)
    record = os.path.join(candidate.origin, "RECORD")
    manifest = os.path.join(candidate.origin, "extra_metadata", "mibyan.json")
    now = None if candidate.editable else stamp(record)
    if now is not None or (not candidate.editable and os.path.isfile(record)):
        listed: tuple[str, ...] = kept.look_up(f"record:{record}", now, lambda: _listed(record))
        return (record, manifest, *_with_own(candidate, listed))
    place = str(candidate.root) if candidate.root is not None else _file_of(candidate)
    return None if place is None else (place, manifest)


def _with_own(candidate: Candidate, listed: tuple[str, ...]) -> tuple[str, ...]:
    """What a wheel lists, and the folder or file of its module, if somebody has forgotten that."""
    own = str(candidate.root) if candidate.root is not None else _file_of(candidate)
    if own is None or any(f"{own}{os.sep}".startswith(f"{place}{os.sep}") for place in listed):
        return listed
    return (*listed, own)


def _file_of(candidate: Candidate) -> str | None:
    """The one file of a plugin without a folder: a module, or the zip that its distribution lies in."""
    target = candidate.target
    if target is None or target.kind not in {"module", "entry_point"}:
        return None if target is None else target.value
    from mibyan.plugins.sources.modules import find_spec

    above = os.path.dirname(candidate.origin)
    if os.path.isfile(above):
        return above
    spec = find_spec(target.value.partition(":")[0].partition(".")[0])
    return spec.origin if spec is not None and spec.has_location else None


# Wheels -----------------------------------------------------------------------------------------------------------


def _listed(record: str) -> tuple[str, ...]:
    """What a `RECORD` lists: packages as folders, and the files that lie in none; scripts and metadata don't count."""
    import csv

    info = os.path.dirname(record)
    site, own = os.path.dirname(info), os.path.basename(info)  # noqa: PTH119 - text
    text = read_bytes(record).decode("utf-8", "replace")
    try:
        names = [row[0] for row in csv.reader(text.splitlines()) if row and _is_code(row[0], own)]
    except csv.Error as error:
        raise ValueError(f"{record}: {error}") from error
    packages = {name.rpartition("/")[0] for name in names if name.endswith("/__init__.py")}
    return tuple(os.path.join(site, place) for place in dict.fromkeys(_outermost(name, packages) for name in names))


def _is_code(name: str, info: str) -> bool:
    outside = os.path.isabs(name) or name.startswith(("..", f"{info}/"))  # noqa: PTH117 - text
    return not outside and "__pycache__" not in name


def _outermost(name: str, packages: Iterable[str]) -> str:
    """The outermost package that a file lies in (what it lies in may be shared by several wheels), else the file."""
    parts = name.split("/")
    above = ("/".join(parts[:length]) for length in range(1, len(parts)))
    return next((folder for folder in above if folder in packages), name)


# Tools directories ------------------------------------------------------------------------------------------------


def _of_tool(path: str, root: str, kept: StampedCache) -> tuple[str, ...]:
    """A file of a tools directory and the neighbours it imports; the whole directory where it may look at any of it."""
    found: dict[str, None] = {}
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found[file] = None
        if os.path.dirname(file) != root:  # a package: what it imports may be anywhere
            return (root,)
        for neighbour in kept.look_up(f"neighbours:{file}", stamp(file), partial(_neighbours, file)):
            base = os.path.join(root, neighbour)
            if neighbour == "*" or os.path.isdir(base):
                return (root,)
            found[base] = None
            waiting.append(f"{base}.py")
    return tuple(found)


def _neighbours(file: str) -> tuple[str, ...]:
    """The names that a file imports from beside itself; `*`: it may look at any of them."""
    from mibyan.plugins.literals import named_in

    try:
        named = named_in(read_bytes(file))
    except OSError:
        return ()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ("*",)
    return ("*",) if named.looks_around else tuple(sorted(named.neighbours))
