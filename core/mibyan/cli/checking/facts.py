"""`Facts`: what a plugin's files say without being run, whichever form it has: a folder, a project, a wheel."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, TypeAlias

from mibyan.cli.checking.copying import is_junk
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: `folder`: a folder with a plugin.yaml; `project`: what becomes a wheel, also one that was unpacked from an sdist.
Form: TypeAlias = Literal["folder", "project", "wheel"]


@record
class Facts:
    """What a plugin's files say."""

    form: Form
    #: The folder, the project's or the unpacked wheel's.
    root: Path
    #: The plugin's id: what its folder or its distribution's name gives.
    id: str
    #: The distribution's name; of a folder the folder's.
    name: str
    #: Empty: not said; `None`: it is known once the wheel is built.
    version: str | None
    description: str | None
    readme: bool | None
    license: bool | None
    #: Of a distribution its entry points by group, names and values as written; `None`: known once the wheel is built.
    groups: Mapping[str, list[tuple[str, str]]] | None
    #: The Python files that are the plugin's.
    sources: tuple[Path, ...]
    #: The manifest's file, if it has one.
    manifest: Path | None
    #: What it requires, as written (PEP 508).
    requires: tuple[str, ...] = ()
    #: Of a wheel: the names of the modules and packages at its top.
    tops: tuple[str, ...] = ()
    #: The file that says name, version and entry points.
    origin: str = ""
    #: What the folder is called in commands; empty: its path.
    called: str = ""

    def shown(self, path: Path) -> str:
        """A path of it as people know it: relative to its root."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)


def python_files(root: Path) -> tuple[Path, ...]:
    """The Python files below a folder, sorted; without those of environments, caches and builds."""
    found: list[Path] = []
    for place, names, files in os.walk(root):
        folder = type(root)(place)
        names[:] = [name for name in names if not is_junk(folder / name, root)]
        found += [folder / name for name in files if name.endswith(".py")]
    return tuple(sorted(found))
