"""Importable modules: those named in `plugins.modules`, and where a module's package data lies; nothing is imported."""
# ruff: noqa: PTH110, PTH112 - entries of sys.path are text, and an empty one means the current directory

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mibyan.plugins.candidate import Candidate, Discovery, Target
from mibyan.plugins.sources.ids import differing, name_problem
from mibyan.plugins.sources.manifests import FOLDER_MANIFEST, read_manifest
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.machinery import ModuleSpec

    from mibyan.plugins.manifest import Manifest
    from mibyan.plugins.sources.cache import ContentCache

_MODULE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def find_modules(names: Iterable[str], cache: ContentCache, *, said_by: str = "plugins.modules") -> Discovery:
    """A plugin of the pip tier for each module; its id is the module's name (plugins.F3).

    Args:
        names: Dotted names.
        cache: Keeps checked manifests.
        said_by: Who named them, for hints.
    """
    found = [_candidate(name, cache, said_by) for name in dict.fromkeys(names)]
    return Discovery(tuple(sorted(found, key=lambda candidate: candidate.id)))


def _candidate(name: str, cache: ContentCache, said_by: str) -> Candidate:
    if not is_module_name(name):
        return _refused(name, f"{one_line(name, 60)!r} isn't a module's name", said_by)
    if not is_importable(name):
        return _refused(name, f"there is no module {name.partition('.')[0]!r}", said_by)
    tops = top_folders(name)
    manifest, problem = package_manifest(name, tops, cache)
    problem = name_problem(name) or problem or differing(manifest.id if manifest else "", name, "manifest")
    if problem is not None:
        return _refused(name, problem, said_by)
    return Candidate(
        name, "pip", name, manifest.version if manifest else "", package_folder(name, tops), Target("module", name),
        manifest,
    )  # fmt: skip


def _refused(name: str, problem: str, said_by: str) -> Candidate:
    return Candidate(name, "pip", said_by, problem=problem, hint=f"mend {said_by}, or install the module")


def is_module_name(name: str) -> bool:
    """Whether `name` is a dotted name that could be imported."""
    return _MODULE.fullmatch(name) is not None


def find_spec(name: str) -> ModuleSpec | None:
    """The spec of a top-level module, as `importlib.util.find_spec` gives it, which costs an import that isn't needed."""
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, None)
        except Exception:  # noqa: S112 - a finder of somebody else's may do anything; the next one is asked
            continue
        if spec is not None:
            return spec
    return None


def is_importable(module: str) -> bool:
    """Whether the import system finds the module's top package."""
    return find_spec(module.partition(".")[0]) is not None


def top_folders(module: str) -> list[str]:
    """The folders of the module's top package, where the import system finds them; none for a single file."""
    spec = find_spec(module.partition(".")[0])
    return list(spec.submodule_search_locations or ()) if spec is not None else []


def data_names(module: str) -> Iterator[str]:
    """Where the manifest of a module may lie below its top package's folder, the nearest package first."""
    parts = module.split(".")[1:]
    for length in range(len(parts), -1, -1):
        yield "/".join((*parts[:length], FOLDER_MANIFEST))


def package_manifest(module: str, tops: Iterable[str], cache: ContentCache) -> tuple[Manifest | None, str | None]:
    """The manifest that is package data of a module, in one of its top package's folders; both `None` if there is none."""
    for top in tops:
        for name in data_names(module):
            if os.access(path := f"{top}/{name}", os.F_OK):
                return read_manifest(path, cache)
    return None, None


def package_folder(module: str, tops: Iterable[str]) -> Path | None:
    """The folder of the package that a module is or lies in; `None` for a module that is one file."""
    parts = module.split(".")[1:]
    for top in tops:
        if os.path.isdir(folder := "/".join((top, *parts))):
            return Path(folder)
        if parts and os.path.exists(f"{folder}.py"):
            return Path(folder).parent
    return None
