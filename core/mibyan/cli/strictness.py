"""What `--strict` doesn't let pass: plugins that aren't ready, names of toolsets that nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.plugins.state import DISABLED, FOUND, USABLE, standing
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mibyan.plugins.state import PluginRecord
    from mibyan.toolsets.selection import Selection


def unready(records: Iterable[PluginRecord], *, loaded: bool = True) -> list[str]:
    """A sentence for each plugin that is neither usable nor off because the operator wants it so.

    Args:
        records: The plugins; of several with one id it is enough if one is usable.
        loaded: Whether plugins were loaded; else those that nothing speaks against count as usable.
    """
    found = list(records)
    fine = USABLE if loaded else USABLE | {FOUND}
    usable = {record.id for record in found if record.state in fine}
    return [
        one_line(f"plugin {record.id} {standing(record.state, record.reason)}", 500)
        for record in found
        if record.id not in usable and record.state != DISABLED
    ]


def unknown_toolsets(selections: Sequence[Selection]) -> list[str]:
    """A sentence for each toolset's name that nobody knows."""
    from mibyan.toolsets.selection import unknown_sentence

    return [unknown_sentence(name, meant) for selection in selections for name, meant in selection.unknown]
