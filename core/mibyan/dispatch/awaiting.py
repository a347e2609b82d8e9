"""Waiting for a call in an event loop, and driving one there (imported by the async faces only)."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.guard import FAREWELL, Guard, due, overdue
from mibyan.dispatch.steps import CallCancelled, Outcome, Step, StepTimeout
from mibyan.tools.current import acting

if TYPE_CHECKING:
    from collections.abc import Callable
    from weakref import WeakKeyDictionary

    from mibyan.dispatch.call import Call
    from mibyan.dispatch.guard import Threads
    from mibyan.dispatch.perform import Performer
    from mibyan.dispatch.quick.guard import QuickGuard
    from mibyan.dispatch.steps import Steps


async def wait_for(guard: Guard, begin: Callable[[], None]) -> Any:
    """Wait for a guarded call without holding the loop.

    Args:
        guard: The call.
        begin: Starts it.

    Raises:
        asyncio.CancelledError: The awaiting task was cancelled; the observers have seen the call's end.
    """
    bell = _bell_of(guard)
    begin()
    try:
        while not guard.look():
            await _until(bell, guard.patience())
    except asyncio.CancelledError:
        guard.cancel("the host cancelled it")
        await farewell(guard, bell)
        raise
    finally:
        guard.leave()
    return guard.outcome()


def _bell_of(guard: Guard) -> asyncio.Event:
    """An event of this loop that the guard sets from its threads."""
    loop = asyncio.get_running_loop()
    bell = asyncio.Event()

    def poke() -> None:
        try:
            loop.call_soon_threadsafe(bell.set)
        except RuntimeError:  # The host closed its loop while the call was running.
            return

    guard.poke = poke
    return bell


async def _until(bell: asyncio.Event, seconds: float | None) -> None:
    try:
        async with asyncio.timeout(seconds):
            await bell.wait()
    except TimeoutError:
        return
    bell.clear()


async def farewell(guard: Guard, bell: asyncio.Event) -> None:
    """Let the observers of a cancelled call finish, for a second at most."""
    until = time.monotonic() + FAREWELL
    while not guard.finished and time.monotonic() < until:
        try:
            await _until(bell, 0.05)
        except asyncio.CancelledError:
            return


class Waker:
    """Wakes one loop for all that threads have finished meanwhile: waking it costs a system call each time."""

    __slots__ = ("_coming", "_due")

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()
        self._coming = False

    def soon(self, loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
        """Call `function` on the loop, from any thread; nothing if the host has closed it."""
        self._due.append(function)
        if not self._coming:
            self._coming = True
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._run)

    def _run(self) -> None:
        self._coming = False  # Before it looks: who comes after that wakes the loop again.
        with suppress(IndexError):
            while True:
                self._due.popleft()()


async def wait_quickly(guard: QuickGuard, wakers: WeakKeyDictionary[asyncio.AbstractEventLoop, Waker]) -> Any:
    """Wait for a compiled call on the runtime's threads without holding the loop; see `QuickGuard.wait`.

    Args:
        guard: The call.
        wakers: What wakes the loops that wait for this runtime.

    Raises:
        asyncio.CancelledError: The awaiting task was cancelled; the observers have seen the call's end.
    """
    loop = asyncio.get_running_loop()
    bell = loop.create_future()
    waker = wakers.get(loop)
    if waker is None:
        waker = wakers[loop] = Waker()

    def ring() -> None:
        if not bell.done():
            bell.set_result(None)

    guard.wake = partial(waker.soon, loop, ring)
    guard.start()
    patience = guard.first_look
    try:
        while not guard.is_over:
            timer = loop.call_later(patience, ring)
            try:
                await bell
            finally:
                timer.cancel()
            if guard.look():
                break
            bell, patience = loop.create_future(), guard.patience()
    except asyncio.CancelledError:
        guard.cancel("the host cancelled it")
        if guard.successor is not None:
            await farewell(guard.successor, _bell_of(guard.successor))
            guard.successor.leave()
        raise
    if guard.successor is not None:
        return await wait_for(guard.successor, lambda: None)
    return guard.outcome()


async def run_on(threads: Threads, function: Callable[[], Any]) -> Any:
    """Wait for a function that runs on one of the runtime's threads, in a copy of this context.

    Raises:
        BaseException: What it raised.
    """
    future: Future[Any] = Future()
    context = contextvars.copy_context()

    def job() -> None:
        try:
            future.set_result(context.run(function))
        except BaseException as error:
            future.set_exception(error)

    threads.submit(job)
    return await asyncio.wrap_future(future)


class LoopDriver:
    """Drives the pipeline of a call with an async handler on the running loop, up to its answer.

    Args:
        call: The call.
        steps: The pipeline's generator for it.
        performer: Runs steps.
        threads: Where sync steps run.
        watched: Makes the guard that goes on with the observers.
    """

    def __init__(
        self, call: Call, steps: Steps, performer: Performer, threads: Threads, watched: Callable[[Call, Steps], Guard]
    ) -> None:
        self._call = call
        self._steps = steps
        self._performer = performer
        self._threads = threads
        self._watched = watched
        self._loop = asyncio.get_running_loop()
        self._bell = asyncio.Event()
        self._cancelled: str | None = None

    async def run(self) -> Any:
        """Run to the end; what the generator returns.

        Raises:
            asyncio.CancelledError: The awaiting task was cancelled; the observers have seen the call's end.
        """
        outcome: Outcome | None = None
        cancelled: asyncio.CancelledError | None = None
        while True:
            try:
                with acting(None):
                    step: Step = self._steps.send(outcome)
            except StopIteration as stop:
                if cancelled is not None:
                    raise cancelled from None
                return stop.value
            step.call, self._call.step = self._call, step
            if self._call.answer is not None:
                return await self._observed(step, cancelled)
            try:
                outcome = await self._perform(step)
            except asyncio.CancelledError as error:
                cancelled = error
                outcome = Outcome(error=CallCancelled("the host cancelled it"))

    async def _observed(self, step: Step, cancelled: asyncio.CancelledError | None) -> Any:
        """Let the observers see the answer: they mustn't hold it up, and go on when nobody waits any more."""
        guard = self._watched(self._call, self._steps)
        if cancelled is None:
            return await wait_for(guard, lambda: guard.resume(step))
        bell = _bell_of(guard)
        guard.resume(step)
        await farewell(guard, bell)
        guard.leave()
        raise cancelled

    def cancel(self, why: str) -> None:
        """End the call from outside, from any thread (`Session.interrupt`, `Runtime.close`)."""
        try:
            self._loop.call_soon_threadsafe(self._stop, why)
        except RuntimeError:
            return

    def _stop(self, why: str) -> None:
        if self._call.answer is None:
            self._cancelled = self._cancelled or why
            self._bell.set()

    async def _perform(self, step: Step) -> Outcome:
        since = time.monotonic()
        running = self._start(step)
        running.add_done_callback(lambda _: self._bell.set())
        try:
            why = await self._wait(running, step, since)
        except asyncio.CancelledError:
            self._give_up(step, running, CallCancelled("the host cancelled it"))
            raise
        if why is None and running.cancelled():
            why = CallCancelled("its task was cancelled")
        if why is None:
            return running.result()
        self._give_up(step, running, why)
        return Outcome(error=why)

    async def _wait(self, running: asyncio.Future[Outcome], step: Step, since: float) -> BaseException | None:
        """Wait for the end of a step; why it is to be given up, if it doesn't end in time."""
        while not running.done():
            if self._cancelled is not None:
                return CallCancelled(self._cancelled)
            why = overdue(step, since, self._call)
            if why is not None:
                return why
            moment = due(step, since, self._call)
            await _until(self._bell, None if moment == float("inf") else max(0.0, moment - time.monotonic()))
        return None

    def _give_up(self, step: Step, running: asyncio.Future[Outcome], why: BaseException) -> None:
        if not isinstance(why, StepTimeout):
            self._call.abandoned = True
        step.end(why)
        if not step.done:
            self._threads.gave_up(step)
        running.cancel()

    def _start(self, step: Step) -> asyncio.Future[Outcome]:
        if step.is_async and not step.on_runtime_loop:
            task = self._loop.create_task(self._performer.perform_here(step))
            task.add_done_callback(lambda _: None if step.over is None else self._threads.came_back(step))
            return task
        return self._on_thread(step)

    def _on_thread(self, step: Step) -> asyncio.Future[Outcome]:
        """A sync step on one of the runtime's threads."""
        loop = self._loop
        future: asyncio.Future[Outcome] = loop.create_future()
        context = contextvars.copy_context()

        def settle(outcome: Outcome) -> None:
            if not future.done():
                future.set_result(outcome)

        def job() -> None:
            outcome = Outcome() if step.over is not None else context.run(self._performer.perform, step)
            if step.over is not None:
                self._threads.came_back(step)
                return
            try:
                loop.call_soon_threadsafe(settle, outcome)
            except RuntimeError:
                return

        try:
            self._threads.submit(job, step.thread)
        except RuntimeError as error:
            future.set_result(Outcome(error=CallCancelled(str(error))))
        return future
