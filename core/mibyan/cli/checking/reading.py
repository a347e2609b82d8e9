"""What the files of a plugin say, read from each form that it may have; problems with the reading are checks that failed."""

from __future__ import annotations

import csv
import io
from base64 import urlsafe_b64decode
from email.parser import HeaderParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mibyan.cli.checking.facts import Facts, python_files
from mibyan.errors import MibyanError
from mibyan.paths import decode_text, read_bytes
from mibyan.plugins.sources.authored import find_authored
from mibyan.plugins.sources.authored import read as read_data
from mibyan.plugins.sources.entrypoints import GROUP, groups
from mibyan.plugins.sources.ids import canonical, distribution_id
from mibyan.plugins.sources.manifests import FOLDER_MANIFEST, WHEEL_MANIFEST
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from email.message import Message

    from mibyan.cli.checking.checks import Checklist

_PROJECT = "pyproject.toml"
#: Bytes of a text file that is read.
_LIMIT = 10_000_000
#: Files of a dist-info that its RECORD needn't have a hash of.
_UNHASHED = ("RECORD", "RECORD.jws", "RECORD.p7s")


def folder_facts(root: Path) -> Facts:
    """A folder plugin's."""
    path = root / FOLDER_MANIFEST
    try:
        data, _ = read_data(path)
    except MibyanError:
        data = {}
    names = {name.lower() for name in (entry.name for entry in root.iterdir())}
    return Facts(
        "folder", root, root.name, root.name, _text(data.get("version")), _text(data.get("description")),
        any(name.startswith("readme") for name in names),
        bool(data.get("license")) or any(name.startswith(("licen", "copying")) for name in names),
        None, python_files(root), path, origin=str(path),
    )  # fmt: skip


# Projects ---------------------------------------------------------------------------------------------------------


def project_facts(root: Path, found: Checklist, called: str = "") -> Facts | None:
    """A project's, by its pyproject.toml; `None` if that can't be used, which is a check that has failed."""
    import tomllib

    file = root / _PROJECT
    try:
        said = tomllib.loads(decode_text(read_bytes(file, limit=_LIMIT), file))
    except (tomllib.TOMLDecodeError, MibyanError, RecursionError) as error:
        found.fail("project", f"{_PROJECT} can't be read: {error}", f"mend {file}", str(file))
        return None
    if "build-system" not in said:
        found.fail("project", f"{_PROJECT} says no [build-system], so nobody knows how to build it",
                   f'{file}: [build-system] requires = ["hatchling"], build-backend = "hatchling.build"', str(file))  # fmt: skip
    else:
        found.ok("project", f"{_PROJECT} is in order")
    project = _mapping(said.get("project"))
    later = {str(word) for word in _list(project.get("dynamic"))} if "name" in project else {"name", "entry-points", "version", "description", "readme", "license"}  # fmt: skip
    name = _text(project.get("name"))
    entry_points = {
        str(group): [(str(key), str(value)) for key, value in _mapping(lines).items()]
        for group, lines in _mapping(project.get("entry-points")).items()
    }

    def said_of(key: str) -> Any:
        return None if key in later else project.get(key) or ""

    sources, manifest = _sources(root)
    version, description = (None if said_of(key) is None else str(said_of(key)) for key in ("version", "description"))
    return Facts(
        "project", root, distribution_id(name) if name else "", name, version, description,
        None if "readme" in later else bool(project.get("readme")),
        None if "license" in later else bool(project.get("license") or project.get("license-files") or _has_license(root)),
        None if "entry-points" in later else entry_points, sources, manifest,
        tuple(map(str, _list(project.get("dependencies")))), origin=str(file), called=called,
    )  # fmt: skip


def _sources(root: Path) -> tuple[tuple[Path, ...], Path | None]:
    """The sources that become the wheel's, and the manifest; of a project that isn't right yet all of its sources."""
    try:
        found = find_authored(root)
    except MibyanError:
        return python_files(root), next((root / name for name in (WHEEL_MANIFEST,) if (root / name).is_file()), None)
    path = found.path if found.path.is_file() else None
    own = found.candidate.root
    if own is not None:
        return python_files(own), path
    target, base = found.candidate.target, found.folders
    if target is None or not base:
        return python_files(root), path
    module = Path(base[0], *target.value.partition(":")[0].split("."))
    return (module.with_name(f"{module.name}.py"),), path


def _has_license(root: Path) -> bool:
    return any(path.name.lower().startswith(("licen", "copying")) for path in root.iterdir())


def is_meant_as_plugin(root: Path) -> bool:
    """Whether a project has something to do with Mibyan at all: what its pyproject.toml says may be wrong."""
    try:
        text = read_bytes(root / _PROJECT, limit=_LIMIT).decode("utf-8", "replace")
    except MibyanError:
        return False
    return "mibyan" in text.lower()


# Wheels -----------------------------------------------------------------------------------------------------------


def wheel_facts(root: Path, file: Path, found: Checklist) -> Facts | None:
    """An unpacked wheel's; `None` if it has no metadata, which is a check that has failed.

    Args:
        root: Where it is unpacked.
        file: The wheel, for its name.
        found: Takes what is wrong with its metadata and its RECORD.
    """
    infos = [path for path in root.iterdir() if path.name.endswith(".dist-info") and path.is_dir()]
    if len(infos) != 1 or not (infos[0] / "METADATA").is_file() or not (infos[0] / "WHEEL").is_file():
        what = f"{len(infos)} dist-info folders" if len(infos) != 1 else "no METADATA or no WHEEL in its dist-info"
        found.fail("wheel.metadata", f"it isn't a wheel: it has {what}", _BUILD, str(file))
        return None
    info = infos[0]
    try:
        message = HeaderParser().parsestr(_read(info / "METADATA"))
        entry_points = groups(_read(info / "entry_points.txt")) if (info / "entry_points.txt").is_file() else {}
    except MibyanError as error:
        found.fail("wheel.metadata", error.message, _BUILD, str(file))
        return None
    name, version = _header(message, "Name"), _header(message, "Version")
    _check_names(file, info, name, version, found)
    _check_record(root, info, found)
    tops = sorted({path.stem if path.suffix == ".py" else path.name for path in root.iterdir() if _is_module(path)})
    return Facts(
        "wheel", root, distribution_id(name) if name else "", name, version, _header(message, "Summary"),
        bool(_header(message, "Description") or str(message.get_payload()).strip()),
        any(_header(message, key) for key in ("License", "License-Expression", "License-File")),
        entry_points, python_files(root), _shipped(root, info, entry_points),
        tuple(map(str, message.get_all("Requires-Dist") or ())), tuple(tops), f"{file.name}: {info.name}/METADATA", "PROJECT",
    )  # fmt: skip


def _check_names(file: Path, info: Path, name: str, version: str, found: Checklist) -> None:
    """Whether the file's name, the dist-info's and METADATA agree."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename
    from packaging.version import InvalidVersion, Version

    try:
        said_name, said_version, _, _ = parse_wheel_filename(file.name)
        agree = said_name == canonical(name) and said_version == Version(version)
    except (InvalidWheelFilename, InvalidVersion) as error:
        found.fail("wheel.metadata", f"its name or version isn't one: {error}", _BUILD, str(file))
        return
    if not agree or canonical(info.name.removesuffix(".dist-info")) != canonical(f"{name}-{version}"):
        found.fail("wheel.metadata", f"the file is called {file.name!r}, its dist-info {info.name!r}, and METADATA says {name!r} {version!r}",
                   _BUILD, str(file))  # fmt: skip
    else:
        found.ok("wheel.metadata", f"{name} {version}")


def _check_record(root: Path, info: Path, found: Checklist) -> None:
    """Whether RECORD lists what is there, with its digests."""
    where = f"{info.name}/RECORD"
    try:
        rows = {row[0]: row[1] for row in csv.reader(io.StringIO(_read(info / "RECORD"))) if len(row) >= 2}
    except (MibyanError, csv.Error) as error:
        found.fail("wheel.record", f"its RECORD can't be read: {error}", _BUILD, where)
        return
    there = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    unhashed = {f"{info.name}/{name}" for name in _UNHASHED}
    wrong = [name for name in sorted(there & rows.keys() - unhashed) if not _fits(root / name, rows[name])]
    for names, what in (
        (sorted(rows.keys() - there - unhashed), "RECORD lists files that aren't there"),
        (sorted(there - rows.keys() - unhashed), "RECORD doesn't list files that are there"),
        (wrong, "files aren't those that RECORD has digests of"),
    ):
        if names:
            found.fail("wheel.record", f"{what}: {_listed(names)}", _BUILD, where)
    found.ok("wheel.record", f"RECORD fits the {len(there)} files")


def _fits(path: Path, digest: str) -> bool:
    import hashlib

    kind, _, value = digest.partition("=")
    if kind not in {"sha256", "sha384", "sha512"}:
        return False
    try:
        return hashlib.new(kind, path.read_bytes()).digest() == urlsafe_b64decode(value + "=" * (-len(value) % 4))
    except ValueError:
        return False


def _shipped(root: Path, info: Path, entry_points: Mapping[str, Any]) -> Path | None:
    """The manifest that a wheel has: in its dist-info, else beside the plugin's module."""
    path = info / "extra_metadata" / WHEEL_MANIFEST
    if path.is_file():
        return path
    lines = entry_points.get(GROUP) or [("", "")]
    parts = lines[0][1].partition(":")[0].strip().split(".")
    folders = (root.joinpath(*parts[:length]) for length in range(len(parts), 0, -1))
    return next((folder / FOLDER_MANIFEST for folder in folders if (folder / FOLDER_MANIFEST).is_file()), None)


def _is_module(path: Path) -> bool:
    if path.is_dir():
        return path.name.isidentifier()
    return path.suffix in {".py", ".so", ".pyd"}


def _header(message: Message, key: str) -> str:
    """A header's text; nothing where the builder wrote that it doesn't know."""
    text = str(message.get(key) or "").strip()
    return "" if text == "UNKNOWN" else text


def _read(path: Path) -> str:
    return decode_text(read_bytes(path, limit=_LIMIT), path)


def _listed(names: Iterable[str], limit: int = 5) -> str:
    """Some names, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(one_line(name, 80) for name in every[:limit]) + more


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


_BUILD = "Build it again: python -m build"
