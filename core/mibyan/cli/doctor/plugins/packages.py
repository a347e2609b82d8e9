"""The top-level modules that plugins' wheels install: everybody's names, and names of which another plugin has the same."""

from __future__ import annotations

import csv
import sys
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from mibyan.cli.doctor.finding import Finding
from mibyan.plugins.sources.distributions import reader
from mibyan.records import record
from mibyan.report import turn_off
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mibyan.plugins.state import PluginRecord

#: Names that many would give to a module of their own: who comes first on `sys.path` is imported.
GENERIC = frozenset({
    "api", "app", "assets", "bin", "build", "client", "common", "conf", "config", "constants", "core", "data", "dist", "docs",
    "example", "examples", "helper", "helpers", "lib", "libs", "main", "models", "module", "plugin", "plugins", "resources",
    "schemas", "scripts", "server", "settings", "setup", "shared", "src", "test", "testing", "tests", "tool", "tools", "util",
    "utils", "version",
})  # fmt: skip


@record
class _Module:
    """A top-level module of a wheel."""

    plugin: PluginRecord
    name: str
    #: Whether it is a folder without an `__init__.py`, which several wheels may have a part of.
    is_namespace: bool
    files: frozenset[str]


def generic(records: Iterable[PluginRecord]) -> Iterator[Finding]:
    """Top-level modules with names that anybody could have given, or that the standard library has."""
    for one in records:
        for module in _modules(one):
            if module.name in sys.stdlib_module_names:
                why = "which the standard library has too"
            elif module.name.lower() in GENERIC:
                why = "a name that others use too: who comes first on sys.path is imported"
            else:
                continue
            yield Finding("warning", f"plugin {one.id!r} installs the top-level module {one_line(module.name, 60)!r}, {why}",
                          one.origin, "tell the plugin's author to put it into the plugin's own package")  # fmt: skip


def shared(records: Iterable[PluginRecord]) -> Iterator[Finding]:
    """Top-level modules that two plugins install: one overwrites the other, or hides it."""
    seen: dict[str, list[_Module]] = {}
    for one in records:
        for module in _modules(one):
            for other in seen.setdefault(module.name, []):
                if not (module.is_namespace and other.is_namespace) or module.files & other.files:
                    yield _twice(module, other)
            seen[module.name].append(module)


def _twice(module: _Module, other: _Module) -> Finding:
    ids = f"{other.plugin.id!r} and {module.plugin.id!r}"
    what = f"plugins {ids} both install the top-level module {one_line(module.name, 60)!r}: only one of the two is imported"
    fix = f"uninstall one of them, or {turn_off(module.plugin.id)}"
    return Finding("warning", what, f"{other.plugin.origin}, {module.plugin.origin}", fix)


def _modules(one: PluginRecord) -> list[_Module]:
    """What a wheel installs beside its metadata, by its RECORD, else by its `top_level.txt`; sorted."""
    if not one.candidate.distribution:
        return []
    read = reader(one.origin)
    files = [] if one.candidate.editable else _listed((read("RECORD") or b"").decode("utf-8", "replace"))
    by_name: dict[str, set[str]] = {}
    for file in files:
        top, *below = PurePosixPath(file).parts
        if below or file.endswith((".py", ".so", ".pyd")):
            by_name.setdefault(top.partition(".")[0] if not below else top, set()).add(file)
    found = [
        _Module(one, name, not {f"{name}.py", f"{name}/__init__.py"} & own and not _is_extension(name, own), frozenset(own))
        for name, own in sorted(by_name.items()) if name.isidentifier()
    ]  # fmt: skip
    tops = (read("top_level.txt") or b"").decode("utf-8", "replace").split()
    return found or [_Module(one, name, is_namespace=False, files=frozenset()) for name in sorted(set(tops))]


def _is_extension(name: str, files: Iterable[str]) -> bool:
    return any(file.startswith(f"{name}.") for file in files)


def _listed(text: str) -> list[str]:
    """The files of a RECORD that lie in site-packages and aren't metadata or byte code."""
    try:
        names = [row[0].replace("\\", "/") for row in csv.reader(text.splitlines()) if row]
    except csv.Error:
        return []
    outside = ("..", "/", "__pycache__/")
    return [
        name for name in names if name and not name.startswith(outside) and not _is_metadata(name.partition("/")[0])
    ]


def _is_metadata(top: str) -> bool:
    return top.endswith((".dist-info", ".egg-info", ".data", ".pth"))
