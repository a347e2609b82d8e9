"""Tells what became of plugins: a record in the report each, and one line in the log (architecture, *Decisions are data*)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.plugins.state import ACTIVE, FAILED, FOUND, PROBLEMS, READY
from mibyan.report import Decision

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mibyan.plugins.candidate import Note
    from mibyan.plugins.slots import PluginSlot
    from mibyan.report import DecisionLog

#: What a note is in the report.
_KINDS = {"unknown": "unknown", "shadowed": "shadowed"}
#: Notes that an operator would want to know about; the others are for `doctor`.
_PROBLEMS = frozenset({"near_miss", "unknown", "warning", "unreadable"})


def tell_state(slot: PluginSlot, log: DecisionLog, error: BaseException | None = None) -> None:
    """Put a plugin's state into the report, and say a failure in the log."""
    kind = "loaded" if slot.state in {READY, ACTIVE} else slot.state
    if kind != FOUND:
        log.add(Decision(kind, f"plugin:{slot.id}", slot.reason, slot.id, slot.candidate.origin, slot.hint,
                         problem=slot.state in PROBLEMS))  # fmt: skip
    if slot.state == FAILED:
        import logging

        logger = logging.getLogger("mibyan.plugins")
        logger.error("Plugin %r (%s) isn't loaded: %s", slot.id, slot.candidate.origin, slot.reason)
        logger.debug("Plugin %r failed here:", slot.id, exc_info=error)


def tell_notes(notes: Iterable[Note], log: DecisionLog) -> None:
    """Put what was passed over while looking for plugins into the report; say in the log what couldn't be looked at."""
    for note in notes:
        kind = _KINDS.get(note.kind, "warning" if note.kind == "warning" else "skipped")
        subject = f"config:{note.origin}" if note.kind == "unknown" else f"path:{note.origin}"
        log.add(Decision(kind, subject, note.text, None, note.origin, note.hint, problem=note.kind in _PROBLEMS))
        if note.kind == "unreadable":
            import logging

            logging.getLogger("mibyan.plugins").warning("%s %s; plugins there aren't loaded", note.origin, note.text)
