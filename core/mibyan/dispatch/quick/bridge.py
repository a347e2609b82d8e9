"""`Bridge`: a compiled call of an async tool, from sync code onto the runtime's loop and back."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.loops import STUCK

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mibyan.dispatch.loops import LoopThread


class Bridge:
    """One call.

    Args:
        make: Makes the coroutine; it is called on the loop.
    """

    __slots__ = ("_bell", "_given_up", "_lock", "_make", "_task", "error", "made")

    def __init__(self, make: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._bell = threading.Lock()
        self._bell.acquire()
        self._given_up = False
        self._task: asyncio.Task[None] | None = None
        #: What the coroutine gave, and what it raised.
        self.made: Any = None
        self.error: BaseException | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """On the loop: start."""
        with self._lock:
            if not self._given_up:
                self._task = asyncio.Task(self._run(), loop=loop)

    async def _run(self) -> None:
        try:
            self.made = await self._make()
        except BaseException as error:
            # SystemExit and KeyboardInterrupt would end the loop for everybody: they go to whoever waits.
            self.error = error
        finally:
            self._bell.release()

    def wait(self, thread: LoopThread) -> bool:
        """Wait for the end; false: it never began, as something blocks the loop, and never will.

        Raises:
            KeyboardInterrupt: It came meanwhile; the coroutine is cancelled.
        """
        try:
            while not self._bell.acquire(timeout=STUCK):
                with self._lock:
                    if self._task is None:
                        self._given_up = True
                        return False
                if self._task.done() and self._bell.locked():
                    self.error = self.error or asyncio.CancelledError()  # It was cancelled before its first step.
                    break
        except KeyboardInterrupt:
            with self._lock:
                self._given_up = True
            if self._task is not None:
                thread.soon(self._task.cancel)
            raise
        return True
