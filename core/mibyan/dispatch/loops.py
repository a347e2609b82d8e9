"""The runtime's own event loops: where async code runs for callers that have no loop, or that block theirs.

The first loop lives as long as the runtime, so cached async clients stay alive and background tasks go on between
calls. A handler on it that calls the sync API blocks it: what that call needs goes to the next loop, and so on by depth
of nesting; the depth travels in a context variable, also through worker threads. Where it doesn't (a bare thread that
a handler waits for), the one who waits sees that the loop doesn't turn and moves its coroutine to the next one.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.steps import CallCancelled

if TYPE_CHECKING:
    from collections.abc import Callable

#: The loops that callers of this context block: a runtime's own as often as that is so.
_BLOCKED: ContextVar[tuple[Loops, ...]] = ContextVar("mibyan_blocked_loops", default=())

#: Seconds after which a loop that hasn't begun with a coroutine counts as blocked by whoever waits for it.
STUCK = 1.0

#: Seconds between two looks whether a loop that was given up can end.
_LINGER = 0.1


#: Loops that turn in the process that this one was forked from.
_ABANDONED: list[asyncio.AbstractEventLoop] = []


class LoopThread:
    """An event loop in a daemon thread."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        started = threading.Event()
        self.loop.call_soon(started.set)
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()
        started.wait()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self._finish()

    def _finish(self) -> None:
        """Cancel what is left, give it a moment, and close."""
        try:
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self.loop.run_until_complete(asyncio.wait(tasks, timeout=0.5))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        except RuntimeError:
            pass
        finally:
            self.loop.close()

    def answers(self, within: float) -> bool:
        """Whether the loop still turns: a handler that blocks it keeps it from answering."""
        turned = threading.Event()
        return self.soon(turned.set) and turned.wait(within)

    def soon(self, function: Callable[..., Any], *args: Any, context: contextvars.Context | None = None) -> bool:
        """Call `function` on the loop; false when the loop has ended."""
        try:
            self.loop.call_soon_threadsafe(function, *args, context=context)
        except RuntimeError:
            return False
        return True

    def stop(self) -> None:
        """Ask the loop to end."""
        self.soon(self.loop.stop)

    def abandon(self) -> None:
        """In a child process: let go of a loop that turns in the parent, whose selector both share.

        `close` would take descriptors out of that selector, for the parent too; so only this process's copies of the
        descriptors are closed. The loop itself, and what waits on it, is kept: collecting it would make a noise.
        """
        _ABANDONED.append(self.loop)
        if self.thread is threading.current_thread():
            return  # It was a handler on this very loop that forked.
        with suppress(Exception):
            for task in asyncio.all_tasks(self.loop):
                setattr(task, "_log_destroy_pending", False)  # noqa: B010 - asyncio's own
        for name in ("_selector", "_ssock", "_csock"):
            with suppress(Exception):
                getattr(self.loop, name).close()
        with suppress(Exception):
            setattr(self.loop, "_closed", True)  # noqa: B010 - asyncio's own

    def retire(self) -> None:
        """Ask the loop to end once nothing runs on it any more."""
        self.soon(self._stop_when_idle)

    def _stop_when_idle(self) -> None:
        if asyncio.all_tasks(self.loop):
            self.loop.call_later(_LINGER, self._stop_when_idle)
        else:
            self.loop.stop()


class Pending:
    """A coroutine on its way on one of the runtime's loops."""

    def __init__(self, loops: Loops, make: Callable[[], Any], depth: int) -> None:
        self._loops = loops
        self._make = make
        self._depth = depth
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._turn = 0
        self._begun = False
        self._task: asyncio.Task[None] | None = None
        self._why: str | None = None
        self.future: Future[Any] = Future()
        #: The loop it runs on.
        self.thread = self._place()

    def wait(self) -> Any:
        """What the coroutine gives.

        Raises:
            CallCancelled: It was cancelled from outside.
            BaseException: What it raised.
        """
        try:
            while True:
                try:
                    return self.future.result(None if self._begun else STUCK)
                except TimeoutError:
                    if self.future.done():
                        raise
                self._move()
        except asyncio.CancelledError:
            if self._why is None:
                raise
            raise CallCancelled(self._why) from None
        finally:
            if not self.future.done():  # KeyboardInterrupt came meanwhile.
                self.cancel("nobody waits for it any more")

    def cancel(self, why: str) -> None:
        """Cancel the coroutine; callable from any thread."""
        self._why = self._why or why
        if not self.thread.soon(self._cancel):
            self._settle(None, asyncio.CancelledError())

    def _place(self) -> LoopThread:
        """Queue the coroutine on the loop of its depth."""
        thread, context = self._loops.thread(self._depth), self._context.copy()
        others = tuple(loops for loops in context.get(_BLOCKED, ()) if loops is not self._loops)
        context.run(_BLOCKED.set, others + (self._loops,) * (self._depth + 1))
        if not thread.soon(self._start, thread, self._turn, context=context):
            msg = "the runtime is closed"
            raise RuntimeError(msg)
        return thread

    def _move(self) -> None:
        """Take the coroutine to the next loop, unless its own has begun with it."""
        with self._lock:
            if self._begun:
                return
            self._turn += 1
        self._depth += 1
        self.thread = self._place()

    def _start(self, thread: LoopThread, turn: int) -> None:
        """On the loop: start the task."""
        with self._lock:
            if turn != self._turn:
                return
            self._begun = True
        if self._why is not None:
            self._settle(None, asyncio.CancelledError())
            return
        self._task = thread.loop.create_task(self._run())
        # A task cancelled before its first step never runs, so never answers.
        self._task.add_done_callback(
            lambda task: self._settle(None, asyncio.CancelledError()) if task.cancelled() else None
        )

    async def _run(self) -> None:
        try:
            self._settle(await self._make(), None)
        except BaseException as error:
            # SystemExit and KeyboardInterrupt would end the loop for everybody: they go to whoever waits.
            self._settle(None, error)

    def _settle(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if self.future.done():
                return
            if error is None:
                self.future.set_result(value)
            else:
                self.future.set_exception(error)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
        elif not self._begun:
            self._settle(None, asyncio.CancelledError())


class Loops:
    """The loops of one runtime, made when they are first needed."""

    def __init__(self, name: str = "mibyan-loop") -> None:
        self._name = name
        self._lock = threading.Lock()
        self._threads: list[LoopThread] = []
        self._retired: list[LoopThread] = []
        self._closed = False

    def submit(self, make: Callable[[], Any]) -> Pending:
        """Await what `make` gives, on the loop of this context's depth and in a copy of this context.

        Raises:
            RuntimeError: The runtime is closed.
        """
        return Pending(self, make, sum(loops is self for loops in _BLOCKED.get()))

    def start(self, function: Callable[[asyncio.AbstractEventLoop], None]) -> LoopThread | None:
        """Call `function` with the first loop and on it, in a copy of this context.

        Returns:
            The loop; `None`: this context blocks it, or it is closed, and nothing is called.
        """
        if self in _BLOCKED.get():
            return None
        with suppress(RuntimeError):
            thread, context = self.thread(0), contextvars.copy_context()
            context.run(_BLOCKED.set, (*_BLOCKED.get(), self))
            if thread.thread is not threading.current_thread() and thread.soon(function, thread.loop, context=context):
                return thread
        return None

    def thread(self, depth: int) -> LoopThread:
        """The loop for callers that block `depth` loops.

        Raises:
            RuntimeError: The runtime is closed.
        """
        with self._lock:
            if self._closed:
                msg = "the runtime is closed"
                raise RuntimeError(msg)
            while len(self._threads) <= depth:
                self._threads.append(LoopThread(f"{self._name}-{len(self._threads)}"))
            if not self._threads[depth].thread.is_alive():
                self._threads[depth] = LoopThread(f"{self._name}-{depth}")
            return self._threads[depth]

    def retire(self, thread: LoopThread) -> None:
        """Give up a loop that a handler blocks: the next call gets a new one, what runs on the old one may end."""
        with self._lock:
            if self._closed or thread not in self._threads:
                return
            depth = self._threads.index(thread)
            self._threads[depth] = LoopThread(f"{self._name}-{depth}")
            self._retired = [*(old for old in self._retired if old.thread.is_alive()), thread]
        thread.retire()

    @property
    def lock(self) -> Any:
        """What is held while a loop is started or given up."""
        return self._lock

    def after_fork(self) -> None:
        """In a child process: the loops turn in the parent only."""
        self._lock = threading.Lock()
        for thread in (*self._threads, *self._retired):
            thread.abandon()
        self._threads, self._retired = [], []

    @property
    def size(self) -> int:
        """Loops alive."""
        with self._lock:
            return sum(thread.thread.is_alive() for thread in (*self._threads, *self._retired))

    def close(self, wait: float = 1.0) -> None:
        """End every loop; what runs on them is cancelled. Waits up to `wait` seconds."""
        import time

        with self._lock:
            self._closed = True
            threads, self._threads, self._retired = [*self._threads, *self._retired], [], []
        for thread in threads:
            thread.stop()
        until = time.monotonic() + wait
        for thread in threads:
            if thread.thread is not threading.current_thread():
                thread.thread.join(max(0.0, until - time.monotonic()))
