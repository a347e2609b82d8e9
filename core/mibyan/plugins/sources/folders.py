"""Folder plugins: `<root>/<id>/plugin.yaml`, with one level of category folders (plugins.F5)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mibyan.plugins.candidate import Candidate, Discovery, Note, Target, unreadable
from mibyan.plugins.sources.files import is_directory, is_file, names_in, reason
from mibyan.plugins.sources.ids import differing, module_name, name_problem
from mibyan.plugins.sources.manifests import FOLDER_MANIFEST, read_manifest
from mibyan.records import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.plugins.manifest import Manifest
    from mibyan.plugins.sources.cache import ContentCache


def find_folders(root: Path, source: Literal["user", "project"], cache: ContentCache) -> Discovery:
    """The plugins below `root`, in the order of their ids; a `root` that isn't there has none."""
    notes: list[Note] = []
    found = [_candidate(folder, source, cache) for folder in _plugin_folders(root, notes)]
    found.sort(key=lambda candidate: (candidate.id, candidate.origin))
    return Discovery(tuple(_without_collisions(found)), tuple(notes))


def _plugin_folders(root: Path, notes: list[Note]) -> Iterator[Path]:
    """The folders that have a manifest: in `root`, and in its folders that haven't (categories)."""
    for folder in _folders_in(root, notes):
        if _has_manifest(folder):
            yield folder
        elif is_file(folder / "__init__.py"):
            notes.append(_no_manifest(folder))
        else:
            yield from _category(folder, notes)


def _category(folder: Path, notes: list[Note]) -> Iterator[Path]:
    for plugin in _folders_in(folder, notes):
        if _has_manifest(plugin):
            yield plugin
        elif is_file(plugin / "__init__.py"):
            notes.append(_no_manifest(plugin))


def _folders_in(root: Path, notes: list[Note]) -> list[Path]:
    """The folders in `root` that may be plugins; hidden and dunder ones are passed over without a word."""
    try:
        names = names_in(root)
    except FileNotFoundError:
        return []
    except OSError as error:
        notes.append(unreadable(f"can't be searched for plugins: {reason(error)}", str(root)))
        return []
    return [root / name for name in names if not name.startswith((".", "__")) and is_directory(root / name)]


def _has_manifest(folder: Path) -> bool:
    """Whether there is anything called `plugin.yaml`: one that can't be read is that plugin's problem."""
    try:
        return (folder / FOLDER_MANIFEST).is_symlink() or (folder / FOLDER_MANIFEST).exists()
    except OSError:
        return False


def _no_manifest(folder: Path) -> Note:
    alike = next((name for name in ("plugin.yml", "plugin.json", "manifest.yaml") if is_file(folder / name)), None)
    text = f"has {alike}, not {FOLDER_MANIFEST}" if alike else f"has an __init__.py, but no {FOLDER_MANIFEST}"
    hint = (
        f"rename it to {FOLDER_MANIFEST}" if alike else f"write a {FOLDER_MANIFEST} with at least `id: {folder.name}`"
    )
    return Note("near_miss", text, str(folder), hint)


def _candidate(folder: Path, source: Literal["user", "project"], cache: ContentCache) -> Candidate:
    path = folder / FOLDER_MANIFEST
    manifest, problem = read_manifest(path, cache, by_bytes=source == "project")
    target = None
    problem = name_problem(folder.name) or problem
    if manifest is not None and problem is None:
        target, problem = _target(folder, manifest)
        problem = differing(manifest.id, folder.name, "manifest") or problem
    return Candidate(
        folder.name,
        source,
        str(path),
        manifest.version if manifest else "",
        folder,
        None if problem else target,
        manifest,
        problem,
        None if problem is None else f"mend {path}, or take the folder away",
    )


def _target(folder: Path, manifest: Manifest) -> tuple[Target | None, str | None]:
    """What is imported: the file that the manifest names, else the folder as a package."""
    name = manifest.module
    if name is None:
        if is_file(folder / "__init__.py"):
            return Target("package_dir", str(folder), folder), None
        return None, "has no __init__.py, and its manifest names no file (`module: NAME.py`)"
    if Path(name).name != name or not name.endswith(".py"):
        return None, f"the manifest's `module` must be the name of a .py file in the folder, not {name!r}"
    if not is_file(folder / name):
        return None, f"the manifest names {name!r}, which isn't there"
    return Target("file", str(folder / name), folder / name), None


def _without_collisions(found: list[Candidate]) -> Iterator[Candidate]:
    """The candidates; those whose ids would be the same, or the same module name, are refused (plugins.L5)."""
    alike: dict[str, list[Candidate]] = {}
    for candidate in found:
        alike.setdefault(module_name(candidate.id), []).append(candidate)
    for candidate in found:
        rivals = [other for other in alike[module_name(candidate.id)] if other is not candidate]
        yield _refused(candidate, rivals[0]) if rivals else candidate


def _refused(candidate: Candidate, rival: Candidate) -> Candidate:
    problem = f"its id {candidate.id!r} can't be told from that of {rival.root} ({rival.id!r}); both are off"
    hint = f"rename one of {candidate.root} and {rival.root}"
    return replace(candidate, target=None, problem=problem, hint=hint)
