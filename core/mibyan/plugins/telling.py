"""Tells what became of plugins: a record in the report each, and one line in the log (architecture, *Decisions are data*)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.plugins.state import ACTIVE, FAILED, FOUND, PROBLEMS, READY, RULES
from mibyan.report import Decision, turn_off

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mibyan.plugins.candidate import Note
    from mibyan.plugins.slots import PluginSlot
    from mibyan.report import DecisionLog

#: What a note is in the report.
_KINDS = {"unknown": "unknown", "shadowed": "shadowed"}
#: The rule that a note is about; a near miss is of the place it was seen at.
_RULES = {"unknown": "plugins.F2", "leftover": "plugins.F3", "skipped": "plugins.F3",
          "shadowed": "plugins.F3", "unreadable": "plugins.F5", "warning": "plugins.F1"}  # fmt: skip
#: Notes that an operator would want to know about; the others are for `doctor`.
_PROBLEMS = frozenset({"near_miss", "unknown", "warning", "unreadable"})


def rule_of(note: Note) -> str | None:
    """The rule by which something was passed over."""
    if note.kind == "near_miss":
        return (
            "plugins.F6"
            if note.origin.endswith(".py")
            else "plugins.F3"
            if note.origin.endswith("-info")
            else "plugins.F5"
        )
    return _RULES.get(note.kind)


def tell_state(
    slot: PluginSlot, log: DecisionLog, error: BaseException | None = None, clean: Callable[[str], str] = str
) -> None:
    """Put a plugin's state into the report, and say a failure in the log; where it failed only for who wants details."""
    kind = "loaded" if slot.state in {READY, ACTIVE} else slot.state
    if kind != FOUND:
        fix = slot.hint or (turn_off(slot.id) if kind == "loaded" else None)
        log.add(Decision(kind, f"plugin:{slot.id}", slot.reason, slot.id, slot.candidate.origin, fix,
                         slot.state in PROBLEMS, slot.rule or RULES[slot.state], slot.decided_by))  # fmt: skip
    if slot.state == FAILED:
        import logging

        logger = logging.getLogger("mibyan.plugins")
        logger.error("Plugin %r (%s) isn't loaded: %s", slot.id, slot.candidate.origin, slot.reason)
        if error is not None and logger.isEnabledFor(logging.DEBUG):
            import traceback

            logger.debug("Plugin %r failed here:\n%s", slot.id, clean("".join(traceback.format_exception(error))))


def tell_lost(slot: PluginSlot, log: DecisionLog) -> None:
    """Put the tools into the report that went with a plugin whose load failed."""
    for name, place in slot.lost:
        reason = f"Rolled back with plugin {slot.id!r}, which failed: {slot.reason}"
        log.add(Decision(FAILED, f"tool:{name}", reason, slot.id, place, slot.hint, rule="plugins.L2"))


def tell_notes(notes: Iterable[Note], log: DecisionLog) -> None:
    """Put what was passed over while looking for plugins into the report; say in the log what couldn't be looked at."""
    for note in notes:
        kind = _KINDS.get(note.kind, "warning" if note.kind == "warning" else "skipped")
        subject = f"config:{note.origin}" if note.kind == "unknown" else f"path:{note.origin}"
        log.add(Decision(kind, subject, note.text, None, note.origin, note.hint, note.kind in _PROBLEMS,
                         rule_of(note)))  # fmt: skip
        if note.kind == "unreadable":
            import logging

            logging.getLogger("mibyan.plugins").warning("%s %s; plugins there aren't loaded", note.origin, note.text)
