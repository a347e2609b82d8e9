"""What it costs to find plugins again: among a thousand distributions, in a tools folder, and trusted ones of a project.

Each of ours does what a start does: it begins with what an earlier one has kept in the home's cache, looks at every file
anew and reads what has changed. What is kept is read from its file each time.
"""

# The floors are loops of `os` and `open`, the quickest there is.
# ruff: noqa: PTH116, PTH123, PTH208

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import distributions
from benchmarks.figures import Target
from benchmarks.harness import Pair, measure, milliseconds
from mibyan.plugins.sources.cache import ContentCache
from mibyan.plugins.sources.digest import digest_folder
from mibyan.plugins.sources.installed import find_installed
from mibyan.plugins.sources.tools_dir import find_tools
from mibyan.plugins.sources.trust import TrustStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.figures import Figure
    from benchmarks.harness import Effort
    from mibyan.plugins.candidate import Discovery

GROUP = "finding"

_DISTRIBUTIONS = 1_000
_PLUGINS = 100
_TOOL_FILES = 80
_FILES = 10

_TOOL = '''\
"""Tides of harbour {number}."""

from __future__ import annotations

import json

import mibyan


@mibyan.tool(toolset="tides", read_only=True)
def tide_{number:02}(day: str, hours: int = 24) -> str:
    """High and low water of a day.

    Args:
        day: The day, as in 2026-10-01.
        hours: Hours to look ahead.
    """
    return json.dumps([day, hours])
'''
_MODULE = '''\
"""Part {number} of what deploys."""


def step(name: str) -> str:
    """One step."""
    return f"{{name}} {number}"
'''
#: Seconds after which a file counts as unchanged on any file system.
_SETTLED = 2.1


def figures(effort: Effort) -> list[Figure]:
    """All figures of finding."""
    with tempfile.TemporaryDirectory(prefix="mibyan-bench-") as folder:
        pairs = [
            _distributions(Path(folder, "installed")),
            _tools(Path(folder, "tools")),
            _digests(Path(folder, "project")),
        ]
        time.sleep(_SETTLED)
        return measure(GROUP, [pair() for pair in pairs], effort.runs)


def _distributions(folder: Path) -> Callable[[], Pair]:
    """The plugins among a thousand distributions; beside them a loop that looks for entry points and nothing else."""
    site = _made(folder / "lib" / "site-packages")
    distributions.write(site, _DISTRIBUTIONS, _PLUGINS)
    found = _Found(folder, lambda cache: find_installed(cache, path=[str(site)], inside=(folder / "work",)), _PLUGINS)
    return lambda: Pair("installed plugins, 1,000 distributions", "reading each entry_points.txt",
                        partial(milliseconds, partial(_read_each, [str(site)])), found.again(), "ms", Target(1.5))  # fmt: skip


def _tools(folder: Path) -> Callable[[], Pair]:
    """The verdicts on tool files."""
    tools = _made(folder / "home" / "tools")
    _write(tools, {f"tide{number:02}.py": _TOOL.format(number=number) for number in range(_TOOL_FILES)})
    found = _Found(folder, partial(find_tools, tools), _TOOL_FILES)
    return lambda: Pair("verdicts on 80 tool files", "os.stat of each", partial(milliseconds, partial(_look_at_each, str(tools))),
                        found.again(), "ms", Target(1, subject="ours"))  # fmt: skip


def _digests(folder: Path) -> Callable[[], Pair]:
    """Whether a project's plugin is what was trusted: every file is read and hashed each time."""
    plugin, home = _made(folder / ".mibyan" / "plugins" / "deploy"), _made(folder / "home")
    modules = {f"part{number}.py": _MODULE.format(number=number) for number in range(_FILES - 2)}
    _write(plugin, {"__init__.py": "", "plugin.yaml": "manifest_version: 1\nid: deploy\n", **modules})
    store = TrustStore(home)
    store.trust("deploy", digest_folder(plugin), folder)

    def check() -> None:
        if not store.check("deploy", plugin, folder).trusted:
            raise RuntimeError("the plugin that was trusted isn't")

    return lambda: Pair("digests of a project plugin, 10 files", "SHA-256 of each",
                        partial(milliseconds, partial(_hash_each, str(plugin))), partial(milliseconds, check), "ms",
                        Target(0.5, subject="ours"))  # fmt: skip


class _Found:
    """What a start finds that isn't the first."""

    def __init__(self, folder: Path, find: Callable[[ContentCache], Discovery], number: int) -> None:
        self._home = folder / "home"
        self._find = find
        self._number = number
        _made(self._home / "cache")

    def again(self) -> Callable[[], float]:
        """Find it for the first time, keep that, and give what measures the second time.

        Raises:
            RuntimeError: It isn't what should be found.
        """
        cache = ContentCache.of_home(self._home)
        found = self._find(cache)
        cache.save()
        if len(found) != self._number or found.notes or not all(one.usable for one in found):
            raise RuntimeError(f"{self._number} plugins should be found, without notes; these are: {found}")
        return partial(milliseconds, lambda: self._find(ContentCache.of_home(self._home)))


def _read_each(path: Sequence[str]) -> list[bytes]:
    found = []
    for entry in path:
        for name in os.listdir(entry):
            if name.endswith((".dist-info", ".egg-info")):
                try:
                    with open(f"{entry}/{name}/entry_points.txt", "rb") as file:
                        found.append(file.read())
                except FileNotFoundError:
                    pass
    return found


def _look_at_each(folder: str) -> list[os.stat_result]:
    return [os.stat(f"{folder}/{name}") for name in sorted(os.listdir(folder))]


def _hash_each(folder: str) -> list[str]:
    found = []
    for name in sorted(os.listdir(folder)):
        with open(f"{folder}/{name}", "rb") as file:
            found.append(hashlib.sha256(file.read()).hexdigest())
    return found


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
