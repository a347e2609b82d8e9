"""Plugins that come while a runtime runs: found by looking again, and loaded beside those that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.plugins.state import FOUND

if TYPE_CHECKING:
    from mibyan.plugins.loader import PluginLoader


def load_arrived(loader: PluginLoader) -> list[str]:
    """Look for plugins again, and load those that weren't there; the others stay as they are.

    Args:
        loader: A runtime's; one that hasn't loaded loads all.

    Returns:
        The ids of those that have come, whatever became of them, in the order of plugins.F1.
    """
    loader.load()
    known = {slot.candidate.origin for slot in loader._slots}
    slots = [loader._slot_for(candidate) for candidate in loader._discover() if candidate.origin not in known]
    loader._lessons.look_anew()
    for slot in slots:
        if slot.state == FOUND:
            loader._admission.ask(slot, loader._gates)
        if slot.state == FOUND:
            loader._admission.admit(slot, eagerly=True)
    loader._keep(slots)
    return [slot.id for slot in slots]
