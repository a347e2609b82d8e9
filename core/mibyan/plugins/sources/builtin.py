"""Built-in plugins: found through their manifests like any other, without importing anything of them."""

from __future__ import annotations

import json
from pathlib import Path

from mibyan.plugins.candidate import Candidate, Discovery, Note, Target, unreadable
from mibyan.plugins.manifest import Manifest
from mibyan.plugins.sources.files import is_directory, is_file, names_in, read_bytes, reason
from mibyan.plugins.sources.manifests import WHEEL_MANIFEST
from mibyan.plugins.sources.modules import find_spec

#: The package that holds them; Mibyan never imports it.
PACKAGE = "mibyan_builtin"


def find_builtin(package: Path | None = None) -> Discovery:
    """The built-in plugins, by id.

    Args:
        package: The folder of `mibyan_builtin`; `None`: the installed one.
    """
    folder = package or builtin_folder()
    if folder is None:
        return Discovery(notes=(_missing(),))
    try:
        names = names_in(folder)
    except OSError as error:
        return Discovery(notes=(unreadable(f"built-in plugins: {reason(error)}", str(folder)),))
    found = [_candidate(folder / name, name) for name in names if _may_be_plugin(folder, name)]
    return Discovery(tuple(sorted(found, key=lambda candidate: candidate.id)))


def builtin_folder() -> Path | None:
    """The folder of `mibyan_builtin`: beside `mibyan` as in the wheel, else where the import system finds it."""
    beside = Path(__file__).parents[3] / PACKAGE
    if is_directory(beside):
        return beside
    spec = find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) if places else None


def _may_be_plugin(folder: Path, name: str) -> bool:
    return not name.startswith((".", "_")) and is_file(folder / name / WHEEL_MANIFEST)


def _candidate(root: Path, name: str) -> Candidate:
    """The plugin in `root`; its manifest ships with Mibyan, so it is read without being checked."""
    path = root / WHEEL_MANIFEST
    try:
        manifest = Manifest.from_trusted(json.loads(read_bytes(path)))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        return Candidate(name, "builtin", str(path), root=root, problem=f"{path}: {reason(error)}", hint=_REINSTALL)
    target = Target("module", manifest.module or f"{PACKAGE}.{name}")
    return Candidate(manifest.id or name, "builtin", str(path), manifest.version, root, target, manifest)


_REINSTALL = "Mibyan's own files are damaged: install it again"


def _missing() -> Note:
    return Note("warning", f"the package {PACKAGE!r} isn't installed, so there are no built-in plugins", "", _REINSTALL)
