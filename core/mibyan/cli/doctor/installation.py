"""Mibyan's own installation: its distribution, what it needs, its extras, the programs called `mibyan` on PATH."""
# os and text: what is found on PATH may be anything.
# ruff: noqa: PTH118, PTH123

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from mibyan._version import __version__
from mibyan.cli.doctor.finding import Finding
from mibyan.plugins.sources.imported import header

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.metadata import Distribution

    from packaging.requirements import Requirement

    from mibyan.cli.doctor.finding import Patient, Severity
    from mibyan.config.settings import Settings

_NAME = "mibyan"
#: What Mibyan needs in any case.
BASE = ("click", "cookiecutter", "docstring-parser", "filelock", "importlib-metadata", "jsonschema-rs", "packaging",
        "pluggy", "pydantic", "pyyaml", "rich", "shfmt-py")  # fmt: skip
#: The extra that a terminal backend needs, where it needs one; the others need the program of their name.
_BACKENDS = {"docker": "docker", "modal": "modal", "daytona": "daytona", "vercel_sandbox": "vercel"}
_PROGRAMS = {"ssh": "ssh", "singularity": "singularity"}


def dependencies(patient: Patient) -> Iterator[Finding]:
    """What Mibyan needs and isn't there, or isn't the version that it works with; extras that aren't installed."""
    own = _distributions()
    if not own:
        yield Finding("info", "Mibyan isn't installed as a distribution: what it needs can't be compared", _folder(),
                      "python -m pip install .")  # fmt: skip
        return
    yield from _copies(own)
    groups = _requirements(own[0])
    for requirement in groups.pop("", []):
        yield from _missing(requirement, "error", f"python -m pip install '{requirement.name}{requirement.specifier}'")
    yield from _extras(groups, _wanted(patient.config.settings) if patient.config is not None else set())


def _distributions() -> list[Distribution]:
    """The distributions called `mibyan` on `sys.path`, the one that counts first, each place once."""
    from importlib.metadata import distributions

    named = [one for one in distributions(name=_NAME) if header(one, "Name")]
    found = {str(one.locate_file("")): one for one in reversed(named)}
    return list(reversed(found.values()))


def _copies(own: list[Distribution]) -> Iterator[Finding]:
    first = own[0]
    if first.version != __version__:
        yield Finding("warning", f"the code is {__version__}, but what is installed says {first.version}", _folder(),
                      "python -m pip install --force-reinstall mibyan")  # fmt: skip
    for other in own[1:]:
        yield Finding("warning", f"a second copy, {other.version}, lies behind the one that counts", str(other.locate_file("")),
                      "python -m pip uninstall mibyan (there), or take the entry from PYTHONPATH")  # fmt: skip


def _requirements(own: Distribution) -> dict[str, list[Requirement]]:
    """What the distribution requires: by extra, the empty name for always."""
    from packaging.requirements import Requirement

    groups: dict[str, list[Requirement]] = {"": []}
    extras = [extra for extra in own.metadata.get_all("Provides-Extra") or () if extra != "all"]
    for text in own.requires or ():
        requirement = Requirement(text)
        if requirement.name == _NAME:
            continue
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            groups[""].append(requirement)
            continue
        for extra in extras:
            if requirement.marker.evaluate({"extra": extra}):
                groups.setdefault(extra, []).append(requirement)
    return groups


def _missing(requirement: Requirement, grade: Severity, fix: str) -> Iterator[Finding]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        yield Finding(
            grade, f"{requirement.name} isn't installed; {requirement.name}{requirement.specifier} is needed", None, fix
        )
        return
    if not requirement.specifier.contains(found, prereleases=True):
        yield Finding(grade, f"{requirement.name} is {found}; {requirement.specifier} is needed", None, fix)


def _extras(groups: dict[str, list[Requirement]], wanted: set[str]) -> Iterator[Finding]:
    from importlib.metadata import PackageNotFoundError, version

    absent = []
    for extra, requirements in sorted(groups.items()):
        there = 0
        for requirement in requirements:
            try:
                version(requirement.name)
                there += 1
            except PackageNotFoundError:
                continue
        if there or extra in wanted:
            for requirement in requirements:
                yield from _missing(requirement, "warning", f"python -m pip install 'mibyan[{extra}]'")
        else:
            absent.append(extra)
    if absent:
        yield Finding(
            "info", f"extras that aren't installed: {', '.join(absent)}", None, "python -m pip install 'mibyan[NAME]'"
        )


def _wanted(settings: Settings) -> set[str]:
    """The extras that the configuration makes use of."""
    wanted = {_BACKENDS[settings.terminal.backend]} if settings.terminal.backend in _BACKENDS else set()
    return wanted | ({"mcp"} if any(server.enabled for server in settings.mcp_servers.values()) else set())


def programs(patient: Patient) -> Iterator[Finding]:
    """The programs called `mibyan` on PATH, and those that the configuration needs."""
    import shutil

    found = _shims()
    if not found:
        scripts = sysconfig.get_path("scripts")
        yield Finding(
            "warning",
            "no program mibyan is on PATH",
            scripts,
            f'export PATH="{scripts}:$PATH", or use python -P -m mibyan',
        )
    for path in found[:1]:
        yield from _shim(path)
    for path in found[1:]:
        yield Finding("info", f"another program mibyan, behind {found[0]}", path)
    backend = patient.config.settings.terminal.backend if patient.config is not None else ""
    program = _PROGRAMS.get(backend)
    if program is not None and shutil.which(program) is None:
        line = patient.config.line_of("terminal.backend") if patient.config is not None else None
        yield Finding("warning", f"terminal.backend is {backend}, and the program {program!r} isn't on PATH", line,
                      f"install {program}, or mibyan config set terminal.backend local")  # fmt: skip


def _shims() -> list[str]:
    """Each `mibyan` on PATH that could be run, by its real path once."""
    found: dict[str, str] = {}
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for name in ("mibyan", "mibyan.exe"):
            path = os.path.join(folder or ".", name)
            if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113 - text
                found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def _shim(path: str) -> Iterator[Finding]:
    """Whether the program that a shell finds is of the Python that runs this."""
    interpreter = _interpreter(path)
    if interpreter is None:
        return
    if not os.path.exists(interpreter):  # noqa: PTH110 - text
        yield Finding(
            "error",
            f"its Python, {interpreter}, isn't there any more",
            path,
            "install Mibyan again, with the Python that is there",
        )
    elif not _same_environment(interpreter):
        yield Finding("warning", f"it is run by another Python, {interpreter}, than this ({sys.executable})", path,
                      f"{sys.executable} -P -m mibyan, or put {sysconfig.get_path('scripts')} first on PATH")  # fmt: skip


def _interpreter(path: str) -> str | None:
    """The Python that a console script names: in its first line, or in the `exec` of its second (long paths)."""
    try:
        with open(path, "rb") as file:
            first, second = file.readline(1024), file.readline(1024)
    except OSError:
        return None
    if first.startswith(b"#!/bin/sh") and b"exec" in second:
        words = second.replace(b"'''exec'", b"").replace(b"'''", b"").split()
        named = words[0].strip(b"\"'") if words else b""
    else:
        named = first[2:].split(b" ")[0].strip() if first.startswith(b"#!") else b""
    text = os.fsdecode(named)
    return text if "python" in os.path.basename(text).lower() and os.path.isabs(text) else None  # noqa: PTH117, PTH119 - text


def _same_environment(interpreter: str) -> bool:
    """Whether an interpreter lies in this one's environment: links to one binary are told apart by their folders."""
    places = (Path(sys.executable).parent, Path(sysconfig.get_path("scripts")))
    return os.path.realpath(Path(interpreter).parent) in {os.path.realpath(place) for place in places}


def versions() -> dict[str, str | None]:
    """The versions of what Mibyan needs in any case, by name; `None`: it isn't installed."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str | None] = {}
    for name in BASE:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _folder() -> str:
    return str(Path(__file__).parents[2])
