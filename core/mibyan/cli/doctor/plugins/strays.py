"""Files and folders among the plugins' that belong to no plugin, and what plugins kept that are gone."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from mibyan.cli.doctor.finding import Finding
from mibyan.paths import PROJECT_FOLDER
from mibyan.plugins.sources.files import is_directory, is_file, names_in
from mibyan.plugins.sources.ids import key
from mibyan.plugins.sources.manifests import FOLDER_MANIFEST

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from mibyan.cli.doctor.finding import Patient
    from mibyan.plugins.state import PluginRecord


def problems(patient: Patient, records: Iterable[PluginRecord]) -> Iterator[Finding]:
    """What lies in the folders of plugins and is none, and states of plugins that nobody has any more."""
    found = list(records)
    roots = {str(one.candidate.root) for one in found if one.candidate.root is not None}
    if patient.home is not None:
        yield from _in_plugins(patient.home / "plugins", roots)
        if not patient.safe_mode:  # else the others aren't even looked for
            yield from _states(patient.home / "state", {key(one.id) for one in found})
    if patient.project is not None:
        yield from _in_plugins(patient.project / PROJECT_FOLDER / "plugins", roots)


def _in_plugins(folder: Path, roots: Collection[str]) -> Iterator[Finding]:
    for name in _names(folder):
        path = folder / name
        if name.endswith(".py") and is_file(path):
            where = folder.parent / "tools"
            yield Finding("warning", "a file among the plugins' folders is no plugin", str(path),
                          f"a single file of tools belongs into {where}; a plugin is a folder with a {FOLDER_MANIFEST}")  # fmt: skip
        elif is_directory(path) and not _is_known(path, roots):
            yield from _stray(path)


def _is_known(path: Path, roots: Collection[str]) -> bool:
    """Whether it is a plugin's, a category with one, or has been told as one without a manifest."""
    inside = [path, *(path / name for name in _names(path))]
    return any(str(one) in roots or is_file(one / "__init__.py") for one in inside)


def _stray(path: Path) -> Iterator[Finding]:
    deep = next(iter(sorted(path.glob(f"*/*/{FOLDER_MANIFEST}"))), None)
    if deep is not None:
        yield Finding("warning", "a plugin this deep in the folders isn't found: only one level of categories is looked through",
                      str(deep.parent), f"mv {shlex.quote(str(deep.parent))} {shlex.quote(str(path))}")  # fmt: skip
        return
    yield Finding("info", "the folder belongs to no plugin", str(path),
                  f"give it a {FOLDER_MANIFEST}, or rm -r {shlex.quote(str(path))}")  # fmt: skip


def _states(folder: Path, known: Collection[str]) -> Iterator[Finding]:
    """States of plugins; that of a project's plugin (`id@…`) is in use where the project is."""
    for name in _names(folder):
        if "@" not in name and key(name) not in known and is_directory(folder / name):
            path = folder / name
            yield Finding("info", f"it was kept by a plugin {name!r}, which isn't there", str(path),
                          f"rm -r {shlex.quote(str(path))}, unless the plugin comes back")  # fmt: skip


def _names(folder: Path) -> list[str]:
    try:
        return [name for name in names_in(folder) if not name.startswith((".", "__"))]
    except OSError:
        return []
