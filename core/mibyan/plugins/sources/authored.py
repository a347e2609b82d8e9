"""A plugin where its author works on it: a folder, a project that becomes a wheel, or a package with a manifest (plugins.M1)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mibyan.errors import MibyanError
from mibyan.paths import decode_text, read_bytes
from mibyan.plugins.candidate import Candidate, Target
from mibyan.plugins.manifest import parse_manifest
from mibyan.plugins.sources.entrypoints import GROUP, EntryPoint, entry_point, groups
from mibyan.plugins.sources.folders import _target
from mibyan.plugins.sources.ids import differing, distribution_id, name_problem
from mibyan.plugins.sources.manifests import FOLDER_MANIFEST, WHEEL_MANIFEST, _parse
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PROJECT = "pyproject.toml"
#: Bytes of a manifest or a pyproject.toml.
_LIMIT = 10_000_000
#: Keys that say what the plugin needs to be loaded, or that its code says itself.
_NOT_ALONE = frozenset({
    "tools", "hooks", "overrides", "requires", "requires_mibyan", "requires_plugins", "after", "config_schema",
})  # fmt: skip


class NotAPluginError(MibyanError):
    """There is no plugin at a path."""


@record
class Authored:
    """A plugin's sources."""

    #: The plugin, by its manifest without tools: its code is what is looked at.
    candidate: Candidate
    #: The folder by which it is found again.
    place: Path
    #: The manifest's file, which needn't be there yet.
    path: Path
    #: What is in it; empty if it isn't there. A new one begins with it.
    data: Mapping[str, Any]
    #: The text of the file; `None` if it isn't there.
    text: str | None
    #: Folders in which its modules are found.
    folders: tuple[str, ...] = ()
    #: What has to be done for the file to get into the wheel; empty: nothing.
    advice: str = ""
    #: What the manifest is called where its path is of no use to anybody; empty: its path.
    shown: str = ""

    @property
    def called(self) -> str:
        """What the manifest is called."""
        return self.shown or str(self.path)


def find_authored(path: Path) -> Authored:
    """The plugin at a path; nothing of it is imported.

    Args:
        path: A folder with a `plugin.yaml`, with a `pyproject.toml`, a package with a `mibyan.json`, or one of those files;
            or the folder in which a wheel is unpacked.

    Raises:
        NotAPluginError: It is none of them.
        MibyanError: Its manifest or pyproject.toml can't be used.
    """
    place = Path(os.path.abspath(path))  # noqa: PTH100 - links stay: the id is the name that was given
    if place.name in {FOLDER_MANIFEST, WHEEL_MANIFEST, _PROJECT} and place.is_file():
        place = place.parent
    if not place.is_dir():
        what = "isn't a plugin's folder" if place.exists() else "isn't there"
        raise NotAPluginError(
            f"{path} {what}", hint="Name a folder with a plugin.yaml, or a project with a pyproject.toml."
        )
    if (place / _PROJECT).is_file():
        return _project(place)
    if (place / "__init__.py").is_file() and (found := _project_of(place)) is not None:
        return found
    if (place / FOLDER_MANIFEST).is_file():
        return _folder(place)
    if (place / WHEEL_MANIFEST).is_file():
        return _package(place)
    infos = [folder for folder in place.glob("*.dist-info") if (folder / "entry_points.txt").is_file()]
    if len(infos) == 1:
        return _unpacked(place, infos[0])
    raise NotAPluginError(f"{path} isn't a plugin: it has neither {FOLDER_MANIFEST} nor {_PROJECT}",
                          hint=f"Write a {FOLDER_MANIFEST} with at least `id: {place.name}`.")  # fmt: skip


def _project_of(package: Path) -> Authored | None:
    """The project whose plugin a package is: an editable install is known by its package's folder."""
    root = next((folder for folder in package.parents if (folder / _PROJECT).is_file()), None)
    try:
        found = None if root is None else _project(root)
    except MibyanError:  # somebody else's project
        return None
    return found if found is not None and found.candidate.root == package else None


def _folder(root: Path) -> Authored:
    """A folder plugin."""
    path = root / FOLDER_MANIFEST
    data, text = read(path)
    manifest = parse_manifest(_alone(data), str(path))
    target, problem = _target(root, manifest)
    problem = name_problem(root.name) or problem or differing(manifest.id, root.name, "manifest")
    candidate = Candidate(
        root.name, "user", str(path), manifest.version, root, None if problem else target, manifest, problem
    )
    return Authored(candidate, root, path, data, text)


def _package(root: Path) -> Authored:
    """A package whose `mibyan.json` lies in it, as those of the built-in plugins do."""
    path = root / WHEEL_MANIFEST
    data, text = read(path)
    manifest = parse_manifest(_alone(data), str(path))
    top, names = root, [root.name]
    while (top.parent / "__init__.py").is_file():
        top = top.parent
        names.insert(0, top.name)
    target = Target("module", manifest.module or ".".join(names))
    candidate = Candidate(manifest.id or root.name, "pip", str(path), manifest.version, root, target, manifest)
    return Authored(candidate, root, path, data, text, (str(top.parent),))


def _unpacked(root: Path, info: Path) -> Authored:
    """A wheel that is unpacked."""
    file = info / "entry_points.txt"
    lines = groups(decode_text(read_bytes(file, limit=_LIMIT), file)).get(GROUP, [])
    if len(lines) != 1:
        raise NotAPluginError(
            f"{file.name} has {len(lines)} entry points in {GROUP!r}: a plugin has one", origin=str(file)
        )
    name, entry = info.name.removesuffix(".dist-info").rpartition("-")[0], entry_point(*lines[0])
    plugin_id, folders = distribution_id(name), _packages(root, entry.module)
    named = [info / "extra_metadata" / WHEEL_MANIFEST, *(folder / FOLDER_MANIFEST for folder in folders)]
    path = next((one for one in named if one.is_file()), named[0])
    data, text = read(path) if path.is_file() else ({"manifest_version": 1, "id": plugin_id}, None)
    manifest = parse_manifest(_alone(data), str(path))
    problem = differing(entry.name, plugin_id, "entry point's name") or differing(manifest.id, plugin_id, "manifest")
    inner = root.joinpath(*entry.module.split("."))
    candidate = Candidate(
        plugin_id, "pip", str(path), manifest.version, inner if inner.is_dir() else None,
        None if problem else Target("entry_point", entry.value), manifest, problem, distribution=name,
    )  # fmt: skip
    return Authored(candidate, root, path, data, text, (str(root),))


def _project(root: Path) -> Authored:
    """A project that becomes a wheel."""
    import tomllib

    file = root / _PROJECT
    try:
        said = tomllib.loads(decode_text(read_bytes(file, limit=_LIMIT), file))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise MibyanError(f"{file} isn't TOML: {error}", origin=str(file), hint="Mend the file.") from None
    name, entry = _identity(root, said)
    plugin_id = distribution_id(name)
    problem = name_problem(plugin_id) or differing(entry.name, plugin_id, "entry point's name")
    base = next((base for base in _bases(root, said) if _has_module(base, entry.module)), None)
    if base is None:
        problem = (
            problem or f"its module {entry.module!r} isn't found in the project: neither in src nor beside {_PROJECT}"
        )
    path, advice = _manifest_file(root, said, base, entry)
    data, text = read(path) if path.is_file() else (_beginning(plugin_id, said), None)
    manifest = parse_manifest(_alone(data), str(path))
    problem = problem or differing(manifest.id, plugin_id, "manifest")
    inner = None if base is None else base.joinpath(*entry.module.split("."))
    own = inner if inner is not None and inner.is_dir() else None
    target = None if problem else Target("entry_point", entry.value)
    candidate = Candidate(plugin_id, "pip", str(path), manifest.version, own, target, manifest, problem, f"mend {file}",
                          distribution=name, editable=True)  # fmt: skip
    return Authored(candidate, root, path, data, text, () if base is None else (str(base),), advice)


def _identity(root: Path, said: Mapping[str, Any]) -> tuple[str, EntryPoint]:
    """The distribution's name and its entry point."""
    file = root / _PROJECT
    name = _at(said, "project", "name")
    lines = list(_mapping(_at(said, "project", "entry-points", GROUP)).items())
    if not isinstance(name, str) or not lines:
        lacking = f'an entry point in [project.entry-points."{GROUP}"]' if isinstance(name, str) else "a project.name"
        raise NotAPluginError(f"{file} has no plugin: it lacks {lacking}",
                              hint=f'[project.entry-points."{GROUP}"] has a line `ID = "MODULE"`.')  # fmt: skip
    found = entry_point(lines[0][0], str(lines[0][1]))
    if len(lines) > 1 or not found.well_formed:
        raise NotAPluginError(
            f'{file}: a plugin has one entry point `ID = "MODULE"` or `"MODULE:ATTRIBUTE"` in {GROUP!r}'
        )
    return name, found


def _bases(root: Path, said: Mapping[str, Any]) -> Iterator[Path]:
    """Where the project's packages may lie."""
    packages = _at(said, "tool", "hatch", "build", "targets", "wheel", "packages")
    where = _at(said, "tool", "setuptools", "packages", "find", "where")
    yield from (root / str(package).rpartition("/")[0] for package in packages or () if isinstance(packages, list))
    yield from (root / str(place) for place in where or () if isinstance(where, list))
    yield root / "src"
    yield root


def _has_module(base: Path, module: str) -> bool:
    inner = base.joinpath(*module.split("."))
    return inner.is_dir() or inner.with_name(f"{inner.name}.py").is_file()


def _manifest_file(root: Path, said: Mapping[str, Any], base: Path | None, entry: EntryPoint) -> tuple[Path, str]:
    """Where the project's manifest is or belongs, and what is to be done for it to count."""
    extra = _mapping(_at(said, "tool", "hatch", "build", "targets", "wheel", "extra-metadata"))
    named = next((source for source, place in extra.items() if place == WHEEL_MANIFEST), None)
    if named is not None:
        return root / named, ""
    folders = [] if base is None else _packages(base, entry.module)
    data = next((folder / FOLDER_MANIFEST for folder in folders if (folder / FOLDER_MANIFEST).is_file()), None)
    if data is not None:
        return data, ""
    backend = _at(said, "build-system", "build-backend")
    if backend == "hatchling.build" or not folders:
        line = f'[tool.hatch.build.targets.wheel.extra-metadata] "{WHEEL_MANIFEST}" = "{WHEEL_MANIFEST}"'
        return root / WHEEL_MANIFEST, f"the wheel has the manifest once {_PROJECT} says: {line}"
    return folders[0] / FOLDER_MANIFEST, f"the wheel has the manifest if {FOLDER_MANIFEST} is among its package data"


def _packages(base: Path, module: str) -> list[Path]:
    """The folders of the packages that a module is or lies in, the nearest first."""
    parts = module.split(".")
    folders = [base.joinpath(*parts[:length]) for length in range(len(parts), 0, -1)]
    return [folder for folder in folders if folder.is_dir()]


def _beginning(plugin_id: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """What a new manifest begins with."""
    description = _at(said, "project", "description")
    data = {"manifest_version": 1, "id": plugin_id}
    return {**data, "description": description} if isinstance(description, str) and description else data


def read(path: Path, what: str = "a manifest is") -> tuple[dict[str, Any], str]:
    """What is in a manifest's file, as far as it is a mapping, and its text.

    Args:
        path: A `.json`, or YAML.
        what: What has to be a mapping, for the message.

    Raises:
        MibyanError: It isn't YAML or JSON, or no mapping.
    """
    text = decode_text(read_bytes(path, limit=_LIMIT), path)
    try:
        data, _ = _parse(text.removeprefix("\ufeff"), str(path))
    except (ValueError, RecursionError) as error:
        raise MibyanError(f"{path} can't be read: {error}", origin=str(path), hint="Mend the file.") from None
    if not isinstance(data, dict):
        raise MibyanError(f"{path}: {what} a mapping of keys", origin=str(path), hint="Mend the file.")
    return data, text


def _alone(data: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest without what its code says itself, and without what it needs from others."""
    return {key: value for key, value in data.items() if key not in _NOT_ALONE}


def _at(data: Any, *keys: str) -> Any:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
