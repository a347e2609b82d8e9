"""What plugins need and isn't there: other distributions by their metadata, variables, programs and modules of single tools."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from mibyan._version import __version__
from mibyan.cli.doctor.finding import Finding
from mibyan.plugins.sources.imported import header
from mibyan.report import turn_off
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.metadata import Distribution

    from mibyan.plugins.manifest import FrozenTool
    from mibyan.plugins.state import PluginRecord


def conflicts(records: Iterable[PluginRecord]) -> Iterator[Finding]:
    """Where what a plugin's distribution requires isn't what is installed."""
    for one in records:
        found = _distribution(one)
        if found is not None:
            yield from _python(one, found)
            for text in found.requires or ():
                yield from _conflict(one, text)


def _distribution(one: PluginRecord) -> Distribution | None:
    from importlib.metadata import PackageNotFoundError, PathDistribution, distribution

    if not one.candidate.distribution:
        return None
    folder = Path(one.origin)
    if folder.is_dir():
        return PathDistribution(folder)
    try:
        return distribution(one.candidate.distribution)
    except PackageNotFoundError:
        return None


def _python(one: PluginRecord, found: Distribution) -> Iterator[Finding]:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    wanted = header(found, "Requires-Python")
    try:
        fits = SpecifierSet(wanted).contains(platform.python_version(), prereleases=True)
    except InvalidSpecifier:
        fits = True  # pip doesn't mind either
    if not fits:
        what = f"plugin {one.id!r} is made for Python {wanted}; this is {platform.python_version()}"
        yield Finding("warning", one_line(what, 300), one.origin, turn_off(one.id))


def _conflict(one: PluginRecord, text: str) -> Iterator[Finding]:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        what = f"plugin {one.id!r} requires {one_line(text, 80)!r}, which can't be understood"
        yield Finding("warning", what, one.origin, "tell the plugin's author")
        return
    if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
        return
    version = _version(wanted.name)
    spec = f"{wanted.name}{wanted.specifier}"
    if version is None:
        what = f"plugin {one.id!r} requires {spec}, which isn't installed"
    elif not wanted.specifier.contains(version, prereleases=True):
        what = f"plugin {one.id!r} requires {spec}; {version} is installed"
    else:
        return
    own = "install a version of the plugin that works with this Mibyan"
    yield Finding("warning", what, one.origin, own if wanted.name == "mibyan" else f"python -m pip install '{spec}'")


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    if name == "mibyan":
        return __version__
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def missing(records: Iterable[PluginRecord]) -> Iterator[Finding]:
    """Tools that aren't available because a variable, a program or a module isn't there; of whole plugins the state says it."""
    for one in records:
        for tool in one.candidate.manifest.tools if one.candidate.manifest is not None else ():
            yield from _missing(one, tool)


def _missing(one: PluginRecord, tool: FrozenTool) -> Iterator[Finding]:
    from mibyan.tools.mending import mending
    from mibyan.tools.requirements import missing_requirements

    lacking = missing_requirements(tool.requires)
    if lacking is not None:
        what = f"tool {tool.name!r} of plugin {one.id!r} isn't available: {lacking}"
        yield Finding("warning", one_line(what, 500), one.origin, mending(tool.requires))
    for name in tool.requires_env:
        if not os.environ.get(name) and name not in tool.requires.env:
            what = f"tool {tool.name!r} of plugin {one.id!r} says that it reads the variable {name}, which isn't set"
            yield Finding("info", one_line(what, 500), one.origin, f"export {one_line(name, 100)}=…")
