"""The plans of a runtime's tools, made on first use and thrown away when the tool changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.dispatch.plan import Plan

if TYPE_CHECKING:
    from mibyan.tools.entry import ToolEntry


class Plans:
    """Plans by tool name; one that was made for an older entry is never used.

    Args:
        validate: Whether arguments are validated where a tool doesn't say otherwise (`dispatch.validate`).
        max_result_chars: Characters of a result where a tool doesn't say otherwise.
    """

    def __init__(self, *, validate: bool, max_result_chars: int) -> None:
        self._validate = validate
        self._max_result_chars = max_result_chars
        self._plans: dict[str, Plan] = {}

    def of(self, entry: ToolEntry) -> Plan:
        """The plan of an entry."""
        plan = self._plans.get(entry.name)
        if plan is None or plan.entry is not entry:
            validates = self._validate if entry.validate is None else entry.validate
            most = entry.max_result_size_chars or self._max_result_chars
            # Two threads may both make one; either serves, since the entry is compared at each use.
            plan = self._plans[entry.name] = Plan(entry, validates, most)
        return plan

    def forget(self, name: str) -> None:
        """Let go of a tool's plan."""
        self._plans.pop(name, None)
