"""`Batch`: which of several calls may go on now. It runs nothing and waits for nothing: its drivers do.

Each call goes from gate to gate. Up to its hooks it runs beside the others; hooks run when those of the calls before it
have run, and questions to a person are put one after the other: a policy sees what it would see in the sequence. A
handler runs when what the plan makes it wait for has ended and, unless it only reads, when every approval of the batch
is settled.
"""

from __future__ import annotations

import time
from bisect import insort
from collections import deque
from typing import TYPE_CHECKING

from mibyan.dispatch.batch_plan_order import Order
from mibyan.dispatch.many_gates import AGAIN, GO
from mibyan.dispatch.many_lanes import Lane
from mibyan.dispatch.many_members import Member, Section
from mibyan.dispatch.steps import CallCancelled, DeadlinePassed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mibyan.dispatch.many_gates import Place
    from mibyan.dispatch.resources_needs import Need
    from mibyan.tools.results import ToolResult

#: Seconds between two looks at the end of a batch, which moves on while a person is waited for.
_LOOK = 0.05


class Batch:
    """The calls of one `call_many`.

    Args:
        members: The calls, in their order.
        workers: Calls that run at once, at most.
        timeout: Seconds for all of them; waiting for a person doesn't count.
    """

    def __init__(self, members: Sequence[Member], workers: int, timeout: float | None) -> None:
        self.members = members
        self.timeout = timeout
        #: Wakes the driver; callable from any thread.
        self.ring: Callable[[], None] = _silence
        #: Why nothing more begins.
        self.ending: BaseException | None = None
        self._workers = workers
        self._started = time.monotonic()
        self._left = len(members)
        self._fresh = deque(members)
        self._hooks, self._approvals = Lane(members, "hooks"), Lane(members, "approval", alone=True)
        #: The positions of those that stand before their handler, sorted.
        self._at_handler: list[int] = []
        #: Those whose approvals aren't settled.
        self._unsettled = {member.index for member in members if member.may_ask}
        #: Those that take one of the workers.
        self._busy: set[int] = set()
        #: The positions of those whose handlers had effects and have ended, one after the other.
        self._ended: list[int] = []
        self._order = Order()
        #: What was put into the order: the first of the members, as far as it is known what each needs.
        self._put: list[Need | None] = []
        self._extend()

    # What the driver asks ----------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether every call has its result."""
        return self._left == 0

    def next(self) -> Section | None:
        """The next section that may run now, taken as running; `None`: wait for one that runs."""
        if self.ending is None:
            over = time.monotonic() >= self.deadline()
            self.ending = DeadlinePassed("the batch") if over else self.members[0].call.ending()
        section = self._next() if self.ending is None else self._next_ending(self.ending)
        if section is not None:
            self._take(section)
        return section

    def patience(self) -> float:
        """Seconds until `next` may have something new although nothing happens; at most an hour."""
        if self.ending is not None:
            return 3600.0
        now = time.monotonic()
        policy = max(_LOOK, min(self._hooks.moment(), self._approvals.moment()) - now)
        held = any(member.call.held for member in self.members) if self.timeout is not None else False
        return min(policy, max(_LOOK if held else 0.0, self.deadline() - now), 3600.0)

    def deadline(self) -> float:
        """The moment of `time.monotonic()` at which the rest is given up; infinity: there is none."""
        if self.timeout is None:
            return float("inf")
        return self._started + self.timeout + sum(member.call.held_seconds for member in self.members)

    # What the driver tells ---------------------------------------------------------------------------------------

    def came_to(self, member: Member, place: Place) -> None:
        """A call has come to a gate."""
        self._release(member)
        member.place, member.since = place, time.monotonic()
        if place == "handler":
            insort(self._at_handler, member.index)
            self._unsettled.discard(member.index)
        else:
            (self._hooks if place == "hooks" else self._approvals).comes(member)
        self._renew(member)
        self._extend()

    def answered(self, member: Member, result: ToolResult) -> None:
        """A call has its result."""
        self._release(member)
        if member.result is None:
            member.result = result
            self._left -= 1
        self._unsettled.discard(member.index)
        if member.acts:
            self._ended.append(member.index)
        self._order.end(member.index)
        self._extend()

    def put_back(self, member: Member) -> None:
        """A section didn't begin."""
        self._release(member)

    def stop(self, why: BaseException) -> None:
        """Let nothing more begin; callable from any thread."""
        if self.ending is None:
            self.ending = why
        self.ring()

    def cancel(self, why: str) -> None:
        """End what runs and skip the rest: the session was interrupted, the runtime or the call around it ends."""
        self.stop(CallCancelled(why))

    # What may run ------------------------------------------------------------------------------------------------

    def _next(self) -> Section | None:
        asking = self._approvals.turn()
        if asking is not None:
            return Section(asking, GO)
        if len(self._busy) >= self._workers:
            return None
        if self._fresh:
            return Section(self._fresh[0])
        next_policy = self._hooks.turn()
        return next(self._handlers(), None) if next_policy is None else Section(next_policy, GO)

    def _handlers(self) -> Iterator[Section]:
        for index in self._at_handler:
            member = self.members[index]
            if index >= len(self._put):
                return
            if self._unsettled and not member.reads_only:
                continue
            stale = [self.members[each] for each in self._order.stale_before(index)]
            yield from (Section(each, AGAIN) for each in stale if each.stands_at("handler"))
            if not stale and self._order.may_run(index):
                yield Section(member, GO)

    def _next_ending(self, why: BaseException) -> Section | None:
        if len(self._busy) >= self._workers:
            return None
        left = next((member for member in self.members if member.result is None and not member.running), None)
        return None if left is None else Section(left, ending=why)

    def _take(self, section: Section) -> None:
        member = section.member
        member.running, member.seen = True, len(self._ended)
        if self._fresh and self._fresh[0] is member:
            self._fresh.popleft()
        if section.ending is None and member.place == "approval":
            self._approvals.passes(member)  # Waiting for a person takes no worker.
            return
        self._busy.add(member.index)
        if section.ending is None and member.place == "hooks":
            self._hooks.passes(member)
        elif section.ending is None and member.place == "handler":
            self._at_handler.remove(member.index)
            if section.outcome is GO:
                self._order.begin(member.index)
                member.acts = not member.reads_only

    def _release(self, member: Member) -> None:
        member.running = False
        self._busy.discard(member.index)

    # What is known of the order ----------------------------------------------------------------------------------

    def _extend(self) -> None:
        """Put calls into the order, one after the other, up to the first of which it isn't known what it needs."""
        while len(self._put) < len(self.members):
            member = self.members[len(self._put)]
            need = member.need if member.result is None else None
            if need is not None:
                self._enter(member, need)
            elif member.result is None:
                return
            self._put.append(need)

    def _renew(self, member: Member) -> None:
        """Put a call into the order again if it needs something else than what was known of it."""
        index, need = member.index, member.need
        if need is None or index >= len(self._put):
            return
        if need is not self._put[index]:
            self._enter(member, need)
            self._put[index] = need

    def _enter(self, member: Member, need: Need) -> None:
        self._order.put(member.index, need)
        if need.kind == "named" and any(index < member.index for index in self._ended[member.seen :]):
            self._order.outdate(member.index)


def _silence() -> None:
    """Nobody is there to be woken."""
