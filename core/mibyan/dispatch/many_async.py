"""Many calls at once, for a caller in an event loop (imported by the async face only)."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from mibyan.dispatch import answers
from mibyan.dispatch.awaiting import _until, wait_for
from mibyan.dispatch.guard import FAREWELL
from mibyan.dispatch.many_gates import GateStep
from mibyan.dispatch.many_sections import attended, ended, make_batch, opening, result_of, steps_of
from mibyan.dispatch.steps import CallCancelled
from mibyan.records import record
from mibyan.tools.results import ToolResult

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from mibyan.dispatch.call import Call
    from mibyan.dispatch.dispatcher import Dispatcher
    from mibyan.dispatch.many_batch import Batch
    from mibyan.dispatch.many_members import Member, Section
    from mibyan.dispatch.steps import Cancellable


async def acall_many(
    dispatcher: Dispatcher, calls: Sequence[Call], workers: int, timeout: float | None  # noqa: ASYNC109 - the batch's own
) -> list[ToolResult]:  # fmt: skip
    """Like `call_many`, without holding the running loop; async handlers run on it.

    Raises:
        asyncio.CancelledError: The awaiting task was cancelled; the observers have seen the end of each call.
        KeyboardInterrupt: A handler raised it; its `results` has the result of each call.
    """
    if not calls or dispatcher._refusing:
        return [answers.closed(call) for call in calls]
    batch = make_batch(dispatcher, calls, workers, timeout)
    with attended(dispatcher, batch):
        return await _Waiter(dispatcher, batch).results()


@record(frozen=False, eq=False)
class _Running:
    """A section under way."""

    member: Member
    #: Ends it from outside.
    child: Cancellable


class _Waiter:
    """Drives what the batch lets go on, each section in a task of its own."""

    def __init__(self, dispatcher: Dispatcher, batch: Batch) -> None:
        self._dispatcher = dispatcher
        self._batch = batch
        self._loop = asyncio.get_running_loop()
        self._bell = asyncio.Event()
        self._running: dict[asyncio.Task[Any], _Running] = {}
        self._told = False
        self._interrupt: KeyboardInterrupt | None = None
        batch.ring = self._ring

    async def results(self) -> list[ToolResult]:
        """Drive the batch to its end; the result of each call."""
        try:
            guard = opening(self._dispatcher, self._batch)
            if guard is not None:
                await wait_for(guard, guard.start)
            await self._run()
        except asyncio.CancelledError:
            await self._abandoned()
            raise
        results = [result_of(self._dispatcher, member) for member in self._batch.members]
        if self._interrupt is not None:
            self._interrupt.results = results  # type: ignore[attr-defined]
            raise self._interrupt
        return results

    async def _run(self, until: float = float("inf")) -> None:
        while not self._batch.is_over and time.monotonic() < until:
            self._end_running()
            while (section := self._batch.next()) is not None:
                self._start(section)
            if not self._collect() and not self._batch.is_over:
                await _until(self._bell, max(0.0, min(self._batch.patience(), until - time.monotonic())))

    def _start(self, section: Section) -> None:
        if section.ending is None:
            steps = steps_of(self._dispatcher, self._batch, section)
            child, coming = self._dispatcher._awaitable(section.member.call, steps)
        else:
            ending = ended(self._dispatcher, self._batch, section.member, section.ending)
            if isinstance(ending, ToolResult):
                self._batch.answered(section.member, ending)
                return
            steps, step = ending
            guard = self._dispatcher._guard(section.member.call, steps)
            child, coming = guard, wait_for(guard, lambda: guard.resume(step))
        task = self._loop.create_task(_kept(coming))
        self._running[task] = _Running(section.member, child)
        task.add_done_callback(lambda _: self._bell.set())

    def _collect(self) -> bool:
        """Take what has come to an end; whether there was anything."""
        over = [task for task in self._running if task.done()]
        for task in over:
            self._take(task, self._running.pop(task).member)
        return bool(over)

    def _take(self, task: asyncio.Task[Any], member: Member) -> None:
        value = None if task.cancelled() else task.result()
        if isinstance(value, KeyboardInterrupt):
            self._interrupt = self._interrupt or value
            self._batch.stop(CallCancelled("it was interrupted"))
        if isinstance(value, BaseException):
            value = member.call.answer or self._dispatcher._pipeline.given_up(member.call, value)
        result = value or member.call.answer
        if isinstance(value, GateStep):
            self._batch.came_to(member, value.place)
        elif result is not None:
            self._batch.answered(member, result)
        else:
            self._batch.put_back(member)  # It was cancelled before it began.

    def _end_running(self) -> None:
        """Once nothing more shall begin: end what runs, unless its own deadline does."""
        why = self._batch.ending
        if not self._told and isinstance(why, CallCancelled):
            self._told = True
            for running in self._running.values():
                running.child.cancel(str(why))

    async def _abandoned(self) -> None:
        """The host has cancelled it: end every call, and give the observers a second."""
        self._batch.stop(CallCancelled("the host cancelled it"))
        for task in self._running:
            task.cancel()
        try:
            await self._run(time.monotonic() + FAREWELL)
        except asyncio.CancelledError:
            return

    def _ring(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._bell.set)
        except RuntimeError:  # The host closed its loop meanwhile.
            return


async def _kept(coming: Coroutine[Any, Any, Any]) -> Any:
    """What a section gives; an exception as a value, since a KeyboardInterrupt would end the loop from within a task."""
    try:
        return await coming
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return error
