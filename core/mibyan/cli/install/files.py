"""Which files a plugin consists of, and the trash for those that no installer removes."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mibyan.errors import MibyanError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def is_installers(info: str) -> bool:
    """Whether an installer can remove what a dist-info describes: it knows its name and its files."""
    path = Path(info)
    if path.name.endswith(".egg-info"):
        return path.is_file() or (path / "PKG-INFO").exists()
    return (path / "METADATA").is_file() and (path / "RECORD").is_file()


def files_of(origin: str, source: str) -> list[str]:
    """What is removed: paths, folders whole where they are the plugin's alone.

    Args:
        origin: A dist-info, a folder or a file.
        source: `pip`, `user` or `tools`.

    Raises:
        MibyanError: It lies in an archive.
    """
    path = Path(origin)
    if source != "pip":
        return [origin]
    if not path.exists():
        raise MibyanError(f"it lies in an archive or comes from a finder, from which nothing can be removed: {origin}",
                          hint="Take the archive from sys.path (PYTHONPATH, a .pth file).")  # fmt: skip
    recorded = _recorded(path)
    files = recorded if recorded is not None else _guessed(path)
    return _gathered(path.parent, [*files, origin])


def _recorded(info: Path) -> list[str] | None:
    """The files of RECORD, or of installed-files.txt; `None` if there is neither.

    Only what lies below the environment's prefix, the user's base or the dist-info's own folder: a RECORD can name anything.
    """
    import csv

    borders = [os.path.realpath(border) for border in {sys.prefix, str(info.parent), _user_base()} if border]
    for name, base in (("RECORD", info.parent), ("installed-files.txt", info)):
        try:
            text = (info / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        paths = [os.path.normpath(base / row[0]) for row in csv.reader(text.splitlines()) if row and row[0]]
        return [path for path in paths if os.path.lexists(path) and _is_within(path, borders)]
    return None


def _user_base() -> str:
    site = sys.modules.get("site")
    return str(site.getuserbase()) if site is not None else ""


def _is_within(path: str, borders: Sequence[str]) -> bool:
    folder = os.path.realpath(os.path.dirname(path))  # noqa: PTH120 - text
    return any(folder == border or folder.startswith(border + os.sep) for border in borders)


def _guessed(info: Path) -> list[str]:
    """The top-level modules that a dist-info without RECORD names, as far as no other distribution has them."""
    named = set(_lines(info / "top_level.txt"))
    for line in _lines(info / "entry_points.txt"):
        if "=" in line:
            named.add(line.partition("=")[2].partition(":")[0].partition(".")[0].strip())
    places = [info.parent / name for top in named if top.isidentifier() for name in (top, f"{top}.py")]
    return [str(place) for place in places if place.exists() and not _is_anothers(place.name, info)]


def _lines(path: Path) -> list[str]:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    return []


def _is_anothers(top: str, info: Path) -> bool:
    for record in info.parent.glob("*-info/RECORD"):
        if record.parent != info and any(
            line.startswith((f"{top}/", f"{top},", f'"{top}/')) for line in _lines(record)
        ):
            return True
    return False


def _gathered(site: Path, files: Sequence[str]) -> list[str]:
    """The files; a folder directly in the site directory whose files all are among them is named instead of them."""
    known = {os.path.realpath(file) for file in files}
    tops = {os.path.join(site, Path(file).relative_to(site).parts[0]) for file in files if _is_below(file, site)}  # noqa: PTH118
    whole = {top for top in tops if os.path.isdir(top) and _is_whole(top, known)}  # noqa: PTH112 - text
    rest = {file for file in files if not any(file == top or file.startswith(top + os.sep) for top in whole)}
    return sorted(whole | rest)


def _is_below(file: str, site: Path) -> bool:
    return file.startswith(str(site) + os.sep)


def _is_whole(folder: str, known: set[str]) -> bool:
    """Whether a folder holds nothing else, but for its bytecode; that of the modules beside it isn't one plugin's."""
    if Path(folder).name == "__pycache__":
        return False
    if os.path.realpath(folder) in known:
        return True
    return all(
        os.path.realpath(os.path.join(above, name)) in known  # noqa: PTH118 - text
        for above, _, names in os.walk(folder)
        if os.path.basename(above) != "__pycache__"  # noqa: PTH119 - text
        for name in names
    )


def outside(files: Sequence[str], origin: str) -> list[str]:
    """The files as they are shown: those that lie elsewhere first."""
    site = str(Path(origin).parent) + os.sep
    return sorted(files, key=lambda file: (file.startswith(site), file))


def trash(home: Path, plugin_id: str, files: Sequence[str]) -> Path:
    """Move files to a new folder of the home's trash, all or none.

    Args:
        home: The profile's folder.
        plugin_id: What the folder is called after.
        files: Files and folders; of a link the link itself is moved.

    Returns:
        The new folder.

    Raises:
        MibyanError: One can't be moved; those that were are back.
    """
    place = _new_folder(home / "trash", plugin_id)
    moved: list[tuple[str, str]] = []
    try:
        for file, target in zip(files, _names(files, place), strict=True):
            shutil.move(file, target)
            moved.append((file, target))
    except (OSError, shutil.Error) as error:
        for file, target in reversed(moved):
            with suppress(OSError, shutil.Error):
                shutil.move(target, file)
        with suppress(OSError):
            place.rmdir()
        raise MibyanError(f"nothing was removed: {error}", hint="Check the permissions of the folders.") from None
    return place


def _new_folder(trash_folder: Path, plugin_id: str) -> Path:
    import re
    import time

    name = re.sub(r"[^\w.-]", "_", plugin_id)[:100] + time.strftime("-%Y%m%d-%H%M%S")
    for more in ("", *(f"-{number}" for number in range(2, 1000))):
        place = trash_folder / f"{name}{more}"
        try:
            place.mkdir(mode=0o700, parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise MibyanError(f"the trash can't be made: {place}: {error.strerror or error}", hint="Check the permissions of the home.") from None  # fmt: skip
        return place
    raise MibyanError(f"the trash is full of {name}", origin=str(trash_folder), hint="Empty it.")


def _names(files: Sequence[str], place: Path) -> Iterator[str]:
    """A path in the trash for each file; of two with one name the second gets a number."""
    taken: set[str] = set()
    for file in files:
        base = os.path.basename(file.rstrip(os.sep))  # noqa: PTH119 - text
        name = next(name for name in (base, *(f"{base}.{n}" for n in range(2, len(files) + 3))) if name not in taken)
        taken.add(name)
        yield str(place / name)
