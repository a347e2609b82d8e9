"""Finds a plugin that is really installed in the environment of the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.errors import PluginError

if TYPE_CHECKING:
    from pathlib import Path

    from mibyan.plugins.candidate import Candidate

__tracebackhide__ = True  # a failing test shows its own lines


def find_installed_plugin(name: str, home: Path) -> Candidate:
    """The installed plugin with an id, in a distribution of that name, or whose entry point names that module.

    A module that no distribution names is a plugin of its own, as in `plugins.modules`: so a source tree can be tested
    before it is installed.

    Args:
        name: `weather`, `mibyan-plugin-weather` or `mibyan_plugin_weather`.
        home: Keeps what is read on the way.

    Raises:
        PluginError: There is none; the message names those that there are.
    """
    from mibyan.plugins.sources.cache import ContentCache
    from mibyan.plugins.sources.installed import find_installed
    from mibyan.plugins.sources.modules import find_modules, is_importable, is_module_name

    cache = ContentCache.of_home(home)
    found = [candidate for candidate in find_installed(cache) if candidate.shadowed_by is None]
    for candidate in found:
        if name in {candidate.id, candidate.distribution, _module(candidate)}:
            return candidate
    same = _of_same_name(name, found)
    if same is not None:
        return same
    if is_module_name(name) and is_importable(name):
        return next(iter(find_modules([name], cache, said_by="load_plugin")))
    raise _unknown(name, found)


def _of_same_name(name: str, found: list[Candidate]) -> Candidate | None:
    from mibyan.plugins.sources import ids

    return next((one for one in found if ids.same(name, one.id) or ids.canonical(name) == one.distribution), None)


def _module(candidate: Candidate) -> str | None:
    return None if candidate.target is None else candidate.target.value.partition(":")[0]


def _unknown(name: str, found: list[Candidate]) -> PluginError:
    from mibyan.plugins.sources import ids

    known = ", ".join(sorted(candidate.id for candidate in found)) or "none"
    hint = (
        "Install the project into the environment of the tests (`pip install -e .`), with an entry point in the group "
        f"'mibyan.plugins'. Installed plugins: {known}."
    )
    return PluginError(ids.unknown(name, [candidate.id for candidate in found]), hint=hint)
