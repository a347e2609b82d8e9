"""`Lane`: a gate that the calls of a batch pass one at a time and in their order."""

from __future__ import annotations

import time
from bisect import insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.dispatch.many_gates import Place
    from mibyan.dispatch.many_members import Member

#: Seconds for which the others wait for a call that doesn't come on (a check, a hook that hangs).
PATIENCE = 1.0

_ORDER: dict[Place | None, int] = {None: 0, "hooks": 1, "approval": 2, "handler": 3}


class Lane:
    """The order of a batch's calls at one gate.

    A call that keeps the others waiting for longer than `PATIENCE` is overtaken: order is worth less than progress.

    Args:
        members: The calls, in their order.
        place: The gate.
        alone: Whether each waits until the one before has come to its next gate, however long that takes.
    """

    def __init__(self, members: Sequence[Member], place: Place, *, alone: bool = False) -> None:
        self._members = members
        self._place: Place = place
        self._alone = alone
        self._front = 0
        self._last: Member | None = None
        self._since = time.monotonic()
        self._standing: list[int] = []

    def comes(self, member: Member) -> None:
        """A call stands at the gate now."""
        insort(self._standing, member.index)

    def turn(self) -> Member | None:
        """The call that may pass now."""
        self._advance()
        if self._front == len(self._members) or (self._alone and self._is_taken()):
            return None
        front = self._members[self._front]
        if front.stands_at(self._place):
            return front
        if time.monotonic() < self._since + PATIENCE:
            return None
        return self._members[self._standing[0]] if self._standing else None

    def passes(self, member: Member) -> None:
        """A call passes now, or its way ends here."""
        self._standing.remove(member.index)
        self._last, self._since = member, time.monotonic()

    def moment(self) -> float:
        """When somebody may overtake (of `time.monotonic()`); infinity: nobody waits for that."""
        self._advance()
        return self._since + PATIENCE if self._standing else float("inf")

    def _advance(self) -> None:
        while self._front < len(self._members) and self._has_passed(self._members[self._front]):
            self._front += 1
            self._since = time.monotonic()

    def _has_passed(self, member: Member) -> bool:
        return member.result is not None or _ORDER[member.place] > _ORDER[self._place]

    def _is_taken(self) -> bool:
        return self._last is not None and not self._has_passed(self._last)
