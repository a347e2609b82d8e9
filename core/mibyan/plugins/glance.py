"""`glance`: the plugins as they would be found now, without a runtime and without importing any (plugins.L8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.plugins.contents import Contents
from mibyan.plugins.gates import Gates
from mibyan.plugins.outcomes import Outcomes
from mibyan.plugins.sources.scan import discover
from mibyan.plugins.survey import survey
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mibyan.config.load import LoadedConfig
    from mibyan.plugins.candidate import Note
    from mibyan.plugins.state import PluginRecord
    from mibyan.tools.lockguard import LockGuard


@record
class _Asker:
    """Who asks: what a plugin's gates want to know of a runtime."""

    config: LoadedConfig
    home: Path
    project: Path | None
    #: Nothing is loaded, so nothing has to be kept out.
    guard: LockGuard | None = None


def glance(
    config: LoadedConfig, home: Path, project: Path | None, *, safe_mode: bool = False, also: Sequence[str] = (),
    no: Sequence[str] = (),
) -> tuple[tuple[PluginRecord, ...], tuple[Note, ...]]:  # fmt: skip
    """All plugins, each with its last load's outcome, and what was passed over while looking for them.

    Args:
        config: The configuration.
        home: `$MIBYAN_HOME`.
        project: The folder that has `.mibyan`, if there is a project.
        safe_mode: Whether only built-in plugins count.
        also: `--plugin` and `MIBYAN_PLUGINS`.
        no: `--no-plugin`.
    """
    doors = Gates(_Asker(config, home, project))
    found = discover(
        config.settings.plugins, home, project, safe_mode=safe_mode, also=also, no=no, unable=doors.is_unable
    )
    return survey(found.candidates, doors, Outcomes(home), Contents()), found.notes
