"""A coroutine driven by hand within the task that awaits it: no task of its own, and yet it can be left behind.

A task costs more than most tools do. So the coroutine takes its first step at once; only when it waits for something are
a timer and a bell needed. Whatever it waits for rings the bell, and so does whoever ends the call: the coroutine is then
given to a task of its own, which cancels it, and the caller goes on without it.
"""

from __future__ import annotations

import asyncio
from types import coroutine as generator_coroutine
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.guard import LATE
from mibyan.dispatch.quick.hooks import LeftBehindError
from mibyan.dispatch.steps import CallCancelled, DeadlinePassed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from mibyan.dispatch.quick.owntask import OwnTask


@generator_coroutine
def _yielded(value: Any) -> Generator[Any, Any, None]:
    """Let the task see what a coroutine yields."""
    yield value


class HandDriven:
    """A coroutine that has taken its first step and waits.

    Args:
        own: It, as its own code sees it.
        seconds: Seconds that it may take; `None`: as long as it likes.
        left: Called with `True` when it is left behind, with `False` when it has come to its end after that.
    """

    def __init__(self, own: OwnTask, seconds: float | None, left: Callable[[bool], None]) -> None:
        self._own = own
        self._left = left
        self._loop = own.get_loop()
        self._bell: asyncio.Future[None] | None = None
        self._why: BaseException | None = None
        self._host: asyncio.CancelledError | None = None
        self._grace: asyncio.TimerHandle | None = None
        self._timer = None if seconds is None else self._loop.call_later(seconds, self._end, DeadlinePassed(""))

    def cancel(self, why: str) -> None:
        """End it from outside, from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._end, CallCancelled(why))
        except RuntimeError:
            return

    def _end(self, why: BaseException) -> None:
        self._why = self._why or why
        self._ring()

    def _ring(self, _: Any = None) -> None:
        if self._bell is not None and not self._bell.done():
            self._bell.set_result(None)

    async def finish(self) -> Any:
        """Drive it to its end; what it returns.

        Raises:
            LeftBehindError: Its time was over, or the call was cancelled.
            BaseException: What it raised.
        """
        try:
            while True:
                error = await self._wait()
                if self._why is not None:
                    self._leave_behind()
                    raise LeftBehindError(self._why, self._host)
                if error is not None and self._asks_to_stop(error):
                    continue
                try:
                    has_returned = self._own.step(error)
                except KeyboardInterrupt:
                    raise
                except BaseException:
                    if self._host is None:
                        raise
                    has_returned = True
                if has_returned:
                    return self._returned(self._own.value)
        finally:
            for timer in (self._timer, self._grace):
                if timer is not None:
                    timer.cancel()

    def _returned(self, value: Any) -> Any:
        if self._host is not None:
            raise LeftBehindError(CallCancelled("the host cancelled it"), self._host)
        return value

    async def _wait(self) -> BaseException | None:
        """Wait for what it waits for, or for the end; what is to be raised in it then."""
        waits = self._own.waits
        try:
            if waits is None:
                await _yielded(None)
                return None
            wrong = self._wrong(waits)
            if wrong is not None:
                return wrong
            self._own.heed()
            self._bell = self._loop.create_future()
            waits._asyncio_future_blocking = False
            waits.add_done_callback(self._ring)
            try:
                await self._bell
            finally:
                waits.remove_done_callback(self._ring)
        except asyncio.CancelledError as cancelled:
            return cancelled
        return None

    def _wrong(self, waits: Any) -> BaseException | None:
        """What a task says of a coroutine that yields something else than a future of its loop."""
        if getattr(waits, "_asyncio_future_blocking", None) is None:
            return RuntimeError(f"Task got bad yield: {type(waits).__name__}")
        if waits.get_loop() is not self._loop:
            return RuntimeError("the coroutine waits for a future of another loop")
        return None

    def _asks_to_stop(self, error: BaseException) -> bool:
        """Somebody cancels the task: what it waits for is cancelled, as a task does; false where that isn't possible."""
        if not isinstance(error, asyncio.CancelledError):
            return False
        self._host = self._host or error
        if self._grace is None:
            self._grace = self._loop.call_later(LATE, self._end, CallCancelled("the host cancelled it"))
        waits = self._own.waits
        return waits is not None and bool(waits.cancel())

    def _leave_behind(self) -> None:
        self._left(True)  # noqa: FBT003 - private
        rest = self._loop.create_task(self._cancelled())
        rest.add_done_callback(lambda task: task.cancelled() or task.exception())
        _RESTS.add(rest)
        rest.add_done_callback(_RESTS.discard)

    async def _cancelled(self) -> None:
        """What is left of it: cancelled, in a task that nobody waits for."""
        error: BaseException | None = None
        own = self._own
        try:
            if own.waits is None or not own.waits.cancel():
                error = asyncio.CancelledError()
            while True:
                if error is None:
                    try:
                        if own.waits is not None:
                            own.waits._asyncio_future_blocking = True
                        await _yielded(own.waits)
                    except BaseException as raised:
                        error = raised
                if own.step(error):
                    return
                error = None
        except BaseException:  # It has come to its end, one way or the other: SystemExit mustn't end the loop.
            own.get_coro().close()
        finally:
            self._left(False)  # noqa: FBT003 - private


#: The loop itself holds tasks weakly.
_RESTS: set[asyncio.Task[None]] = set()
