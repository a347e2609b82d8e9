"""Waiting for a call in an event loop, and driving one there (imported by the async faces only)."""

from __future__ import annotations

import asyncio
import contextvars
import time
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.guard import LATE, Guard, due
from mibyan.dispatch.steps import CallCancelled, DeadlinePassed, Outcome, Step, StepTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.dispatch.call import Call
    from mibyan.dispatch.perform import Performer
    from mibyan.dispatch.steps import Steps


async def wait_for(guard: Guard) -> Any:
    """Wait for a guarded call without holding the loop.

    Raises:
        asyncio.CancelledError: The awaiting task was cancelled; the observers have seen the call's end.
    """
    loop = asyncio.get_running_loop()
    bell = asyncio.Event()

    def poke() -> None:
        try:
            loop.call_soon_threadsafe(bell.set)
        except RuntimeError:  # The host closed its loop while the call was running.
            return

    guard.poke = poke
    guard.start()
    try:
        while not guard.look():
            await _until(bell, guard.patience())
    except asyncio.CancelledError:
        guard.cancel("the host cancelled it")
        await _observers(guard, bell)
        raise
    return guard.outcome()


async def _until(bell: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await bell.wait()
    except TimeoutError:
        return
    bell.clear()


async def _observers(guard: Guard, bell: asyncio.Event) -> None:
    """Let the observers of a cancelled call finish, for a second at most."""
    until = time.monotonic() + 1.0
    while not guard.finished and time.monotonic() < until:
        try:
            await _until(bell, 0.05)
        except asyncio.CancelledError:
            return


class LoopDriver:
    """Drives the pipeline of a call with an async handler on the running loop."""

    def __init__(
        self, steps: Steps, call: Call, performer: Performer, submit: Callable[[Callable[[], None], str], None]
    ) -> None:
        self._steps = steps
        self._call = call
        self._performer = performer
        self._submit = submit
        self._loop = asyncio.get_running_loop()
        self._running: asyncio.Future[Outcome] | None = None
        self._cancelled: str | None = None

    async def run(self) -> Any:
        """Run to the end; what the generator returns."""
        outcome: Outcome | None = None
        cancelled: asyncio.CancelledError | None = None
        while True:
            try:
                step = self._steps.send(outcome)
            except StopIteration as stop:
                if cancelled is not None:
                    raise cancelled from None
                return stop.value
            try:
                outcome = await self._perform(step)
            except asyncio.CancelledError as error:
                cancelled = error
                outcome = Outcome(error=CallCancelled("the host cancelled it"))

    def cancel(self, why: str) -> None:
        """End the call from outside, from any thread (`Session.interrupt`, `Runtime.close`)."""
        self._cancelled = why
        try:
            self._loop.call_soon_threadsafe(self._stop)
        except RuntimeError:
            return

    def _stop(self) -> None:
        if self._running is not None and not self._running.done() and self._call.answer is None:
            self._call.abandoned = True
            self._running.cancel()

    async def _perform(self, step: Step) -> Outcome:
        since = time.monotonic()
        if step.is_async and not step.on_runtime_loop:
            self._running = self._loop.create_task(self._performer.perform_here(step))
        else:
            self._running = self._on_thread(step)
        running = self._running
        done = await self._wait(running, step, since)
        if not step.counts and self._call.deadline is not None:
            self._call.deadline += time.monotonic() - since
        if done:
            return self._read(running)
        self._call.abandoned = True
        running.cancel()
        own = step.limit is not None and time.monotonic() >= since + step.limit
        return Outcome(error=StepTimeout(step.label) if own else DeadlinePassed(step.label))

    def _read(self, running: asyncio.Future[Outcome]) -> Outcome:
        """The outcome; a cancellation that was asked for from outside isn't the handler's own."""
        if running.cancelled():
            return Outcome(error=CallCancelled(self._cancelled or "its task was cancelled"))
        outcome = running.result()
        if self._cancelled is not None and isinstance(outcome.error, asyncio.CancelledError):
            return Outcome(error=CallCancelled(self._cancelled))
        return outcome

    async def _wait(self, running: asyncio.Future[Outcome], step: Step, since: float) -> bool:
        """Whether the step ended before it was due."""
        while not running.done():
            moment = due(step, since, self._call)
            if self._call.answer is not None and self._call.deadline is not None:
                moment = min(moment, max(self._call.deadline, since) + LATE)
            seconds = None if moment == float("inf") else max(0.0, moment - time.monotonic())
            try:
                await asyncio.wait({running}, timeout=seconds)
            except asyncio.CancelledError:
                self._call.abandoned = True
                running.cancel()
                raise
            if not running.done() and seconds is not None and time.monotonic() >= moment:
                return False
        return True

    def _on_thread(self, step: Step) -> asyncio.Future[Outcome]:
        """A sync step on one of the runtime's threads."""
        loop = self._loop
        future: asyncio.Future[Outcome] = loop.create_future()
        context = contextvars.copy_context()

        def settle(outcome: Outcome) -> None:
            if not future.done():
                future.set_result(outcome)

        def job() -> None:
            outcome = context.run(self._performer.perform, step)
            try:
                loop.call_soon_threadsafe(settle, outcome)
            except RuntimeError:
                return

        try:
            self._submit(job, step.thread)
        except RuntimeError:
            future.set_result(Outcome(error=CallCancelled("the runtime is closed")))
        return future
