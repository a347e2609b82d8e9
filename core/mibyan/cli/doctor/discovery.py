"""What was found and passed over while looking for plugins: leftovers, copies, near misses, names that nobody has (W6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.cli.doctor.finding import Finding
from mibyan.plugins.state import FAILED, INCOMPATIBLE, NEEDS, SHADOWED, UNTRUSTED, rejection, standing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mibyan.cli.doctor.finding import Patient, Severity
    from mibyan.plugins.candidate import Note
    from mibyan.plugins.state import PluginRecord

_NOTES: dict[str, Severity] = {"unreadable": "error", "near_miss": "warning", "leftover": "warning", "skipped": "warning",
                               "unknown": "warning", "warning": "warning", "shadowed": "info"}  # fmt: skip
_STATES: dict[str, Severity] = {FAILED: "warning", NEEDS: "warning", INCOMPATIBLE: "warning", SHADOWED: "warning",
                                UNTRUSTED: "info"}  # fmt: skip


def passed_over(notes: Sequence[Note], patient: Patient) -> Iterator[Finding]:
    """A finding for each thing that looks like a plugin, or like a plugin's name, and isn't one."""
    for note in notes:
        where = note.origin or None
        if note.kind == "unknown" and patient.config is not None and not note.origin.startswith("--"):
            where = patient.config.line_of(note.origin) or where
        yield Finding(_NOTES.get(note.kind, "warning"), note.text, where, note.hint)


def states(records: Sequence[PluginRecord]) -> Iterator[Finding]:
    """A finding for each plugin that isn't as its operator may think; as its last load left it."""
    for one in records:
        severity = _STATES.get(one.state)
        if severity is not None:
            yield Finding(severity, f"plugin {one.id!r} {standing(one.state, one.reason)}", one.origin, one.hint)
        elif one.rejected:
            told = f"plugin {one.id!r} {standing(one.state, rejection(one.rejected))}"
            yield Finding("warning", told, one.origin, f"mibyan tools why {one.rejected[0]}")
