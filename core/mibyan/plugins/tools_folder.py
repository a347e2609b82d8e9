"""A directory of tool files that a host names: `mibyan.discover_builtin_tools(dir)` (seed 000, *Discovery*)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mibyan.errors import PluginError
from mibyan.paths import PROJECT_FOLDER
from mibyan.plugins.sources.cache import ContentCache
from mibyan.plugins.sources.ids import same
from mibyan.plugins.sources.selection import Selection
from mibyan.plugins.sources.tools_dir import find_tools
from mibyan.plugins.telling import tell_notes
from mibyan.records import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.plugins.candidate import Candidate
    from mibyan.plugins.services import LoaderServices
    from mibyan.plugins.slots import PluginSlot


def tool_candidates(
    path: str | os.PathLike[str], services: LoaderServices, slots: Sequence[PluginSlot], *, by_host: bool = True
) -> list[Candidate]:
    """The tool files in a directory, as candidates; those that are known by their origin keep their ids.

    Args:
        path: The directory; the project's own keeps the need for trust.
        services: The runtime's parts.
        slots: The plugins that are known.
        by_host: Whether the host names the directory: else no file of it gets an id that the operator speaks of.

    Raises:
        PluginError: It isn't a directory.
    """
    folder = Path(os.path.abspath(path))  # noqa: PTH100 - links stay as they are written
    if not folder.is_dir():
        raise PluginError(
            f"{folder} isn't a directory with tools", origin=str(folder), hint="Name an existing directory."
        )
    found = find_tools(folder, ContentCache.of_home(services.home), prefix=_prefix(folder, services))
    tell_notes(found.notes, services.log)
    selection = Selection.of(services.config.settings.plugins, services.also, services.no)
    taken = {slot.id: slot.candidate.origin for slot in slots}
    if not by_host and not _is_own(folder, services):
        taken = {**dict.fromkeys(services.config.settings.plugins.entries, ""), **taken}
    named = [(_renamed(candidate, taken), candidate.id) for candidate in found.candidates]
    return [_off(candidate) if services.safe_mode else selection.applied(candidate, stem) for candidate, stem in named]


def _is_own(folder: Path, services: LoaderServices) -> bool:
    """Whether it is the profile's own tools directory, whose ids are what the operator speaks of."""
    return os.path.realpath(services.home / "tools") == os.path.realpath(folder)


def _prefix(folder: Path, services: LoaderServices) -> Literal["tools.", "project-tools."]:
    own = services.project / PROJECT_FOLDER / "tools" if services.project is not None else None
    is_project = own is not None and os.path.realpath(own) == os.path.realpath(folder)
    return "project-tools." if is_project else "tools."


def _renamed(candidate: Candidate, taken: dict[str, str]) -> Candidate:
    """The candidate under an id that no file of another directory has: `tools.<stem>.2` if need be."""
    plugin_id, number = candidate.id, 1
    while any(same(plugin_id, known) and origin != candidate.origin for known, origin in taken.items()):
        number += 1
        plugin_id = f"{candidate.id}.{number}"
    return replace(candidate, id=plugin_id)


def _off(candidate: Candidate) -> Candidate:
    return replace(candidate, disabled="in safe mode only built-in plugins are loaded", hint="leave --safe-mode out")
