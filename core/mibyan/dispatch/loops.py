"""The runtime's own event loops: where async code runs for callers that have no loop, or that block theirs.

The first loop lives as long as the runtime, so cached async clients stay alive and background tasks go on between
calls. A handler on it that calls the sync API blocks it: what that call needs goes to the next loop, and so on by depth
of nesting; the depth travels in a context variable, also through worker threads.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import Future
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: How many of the runtime's loops are blocked by callers of this context.
_DEPTH: ContextVar[int] = ContextVar("mibyan_loop_depth", default=0)


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
        try:
            self.loop.call_soon_threadsafe(turned.set)
        except RuntimeError:
            return False
        return turned.wait(within)

    def stop(self) -> None:
        """Ask the loop to end."""
        try:
            self.loop.call_soon_threadsafe(self.loop.stop)
        except RuntimeError:
            return


class Pending:
    """A coroutine on its way on one of the runtime's loops."""

    def __init__(self, thread: LoopThread) -> None:
        self.thread = thread
        self.future: Future[Any] = Future()
        self._task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        """Cancel the coroutine; callable from any thread."""
        try:
            self.thread.loop.call_soon_threadsafe(self._cancel)
        except RuntimeError:
            return

    def start(self, make: Callable[[], Any]) -> None:
        """On the loop: start the task."""
        self._task = self.thread.loop.create_task(self._run(make))
        # A task cancelled before its first step never runs, so never answers.
        self._task.add_done_callback(
            lambda task: self._settle(None, asyncio.CancelledError()) if task.cancelled() else None
        )

    async def _run(self, make: Callable[[], Any]) -> None:
        try:
            self._settle(await make(), None)
        except BaseException as error:
            # SystemExit and KeyboardInterrupt would end the loop for everybody: they go to whoever waits.
            self._settle(None, error)

    def _settle(self, value: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(error)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


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
        depth = _DEPTH.get()
        pending = Pending(self._thread(depth))
        context = contextvars.copy_context()
        context.run(_DEPTH.set, depth + 1)
        pending.thread.loop.call_soon_threadsafe(pending.start, make, context=context)
        return pending

    def _thread(self, depth: int) -> LoopThread:
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
            for depth, held in enumerate(self._threads):
                if held is thread:
                    self._retired.append(thread)
                    self._threads[depth] = LoopThread(f"{self._name}-{depth}")

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
