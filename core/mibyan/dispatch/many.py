"""Many calls at once, for a caller that waits on its thread (dispatch.P1 to P3)."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from mibyan.dispatch import answers
from mibyan.dispatch.guard import FAREWELL
from mibyan.dispatch.many_gates import GateStep
from mibyan.dispatch.many_sections import attended, ended, make_batch, opening, result_of, steps_of
from mibyan.dispatch.steps import CallCancelled
from mibyan.tools.results import ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.dispatch.call import Call
    from mibyan.dispatch.dispatcher import Dispatcher
    from mibyan.dispatch.guard import Guard
    from mibyan.dispatch.many_batch import Batch
    from mibyan.dispatch.many_members import Member, Section


def call_many(
    dispatcher: Dispatcher, calls: Sequence[Call], workers: int, timeout: float | None
) -> list[ToolResult]:  # fmt: skip
    """Run calls of one session as planned; their results in call order.

    Args:
        dispatcher: The runtime's dispatcher.
        calls: The calls.
        workers: Calls that run at once, at most.
        timeout: Seconds for all of them.

    Raises:
        KeyboardInterrupt: It came meanwhile; its `results` has the result of each call.
    """
    if not calls or dispatcher._refusing:
        return [answers.closed(call) for call in calls]
    batch = make_batch(dispatcher, calls, workers, timeout)
    with attended(dispatcher, batch):
        return _Watch(dispatcher, batch).results()


class _Watch:
    """The one who waits: drives what the batch lets go on, and gives up what is overdue."""

    def __init__(self, dispatcher: Dispatcher, batch: Batch) -> None:
        self._dispatcher = dispatcher
        self._batch = batch
        self._running: dict[Guard, Member] = {}
        self._told = False
        self._interrupt: KeyboardInterrupt | None = None
        self._until = float("inf")
        self._bell = threading.Lock()
        self._bell.acquire()
        batch.ring = self._ring

    def results(self) -> list[ToolResult]:
        """Drive the batch to its end; the result of each call."""
        while True:
            try:
                self._open()
                self._run()
                break
            except KeyboardInterrupt as interrupt:
                if self._interrupt is not None:
                    break
                self._interrupted(interrupt)
        for guard in self._running:
            guard.leave()
        results = [result_of(self._dispatcher, member) for member in self._batch.members]
        if self._interrupt is None:
            return results
        self._interrupt.results = results  # type: ignore[attr-defined]
        raise self._interrupt

    def _open(self) -> None:
        """`on_session_start`, if no call of the session was made yet."""
        guard = opening(self._dispatcher, self._batch)
        if guard is not None:
            guard.wait(guard.start)

    def _run(self) -> None:
        while not self._batch.is_over and time.monotonic() < self._until:
            self._end_running()
            while (section := self._batch.next()) is not None:
                self._start(section)
            if not self._collect() and not self._batch.is_over:
                self._bell.acquire(timeout=self._patience())

    def _start(self, section: Section) -> None:
        call, dispatcher = section.member.call, self._dispatcher
        if section.ending is not None:
            ending = ended(dispatcher, self._batch, section.member, section.ending)
            if isinstance(ending, ToolResult):
                self._batch.answered(section.member, ending)
                return
            steps, step = ending
        else:
            steps, step = steps_of(dispatcher, self._batch, section), None
        guard = dispatcher._guard(call, steps)
        guard.poke = self._ring
        self._running[guard] = section.member
        if step is None:
            guard.start()
        else:
            guard.resume(step)

    def _collect(self) -> bool:
        """Take what has come to an end, or is to be given up; whether there was anything."""
        over = [guard for guard in self._running if guard.look()]
        for guard in over:
            member = self._running.pop(guard)
            guard.leave()
            self._take(guard, member)
        return bool(over)

    def _take(self, guard: Guard, member: Member) -> None:
        try:
            value = guard.outcome()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):  # The handler's, or one of its hooks'.
                self._interrupted(error)
            value = member.call.answer or self._dispatcher._pipeline.given_up(member.call, error)
        if isinstance(value, GateStep):
            self._batch.came_to(member, value.place)
        else:
            self._batch.answered(member, value)

    def _end_running(self) -> None:
        """Once nothing more shall begin: end what runs, unless its own deadline does."""
        why = self._batch.ending
        if not self._told and isinstance(why, CallCancelled):
            self._told = True
            for guard in self._running:
                guard.cancel(str(why))

    def _interrupted(self, interrupt: KeyboardInterrupt) -> None:
        """End it all; the observers get a second."""
        self._interrupt = self._interrupt or interrupt
        self._until = min(self._until, time.monotonic() + FAREWELL)
        self._batch.stop(CallCancelled("it was interrupted"))

    def _patience(self) -> float:
        seconds = min((guard.patience() for guard in self._running), default=3600.0)
        return max(0.0, min(seconds, self._batch.patience(), self._until - time.monotonic()))

    def _ring(self) -> None:
        try:
            self._bell.release()
        except RuntimeError:
            return
