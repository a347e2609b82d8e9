"""`OwnTask`: who a coroutine that is driven by hand is, for `asyncio.current_task()`.

Time-outs and task groups cancel the task in which they are entered, and take that back later. If that were the task of
whoever awaits the call, nobody could tell their cancellation from a host's, and a tool could cancel its host.
"""

from __future__ import annotations

import asyncio
from asyncio import _enter_task, _leave_task, current_task
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.express_hooks import LeftBehindError
from mibyan.dispatch.steps import CallCancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator


class OwnTask:
    """What foreign code asks of a task; whoever drives the coroutine does the rest.

    Args:
        coroutine: It.
        loop: The loop in which it runs.
    """

    # Defaults of the class: most coroutines return at once, and nobody asks who they were.
    _cancels = 0
    _must_cancel = _is_done = False
    _name = "mibyan"
    _end: asyncio.Future[None] | None = None
    #: What it yielded: a future, or `None` (it only lets others run).
    waits: Any = None
    #: What it has returned.
    value: Any = None

    def __init__(self, coroutine: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> None:
        self._coroutine = coroutine
        self._loop = loop

    def step(self, error: BaseException | None = None) -> bool:
        """Let the coroutine go on up to where it waits; whether it has returned.

        Args:
            error: What is raised in it; `None`: nothing, unless somebody has cancelled it.

        Raises:
            LeftBehindError: It has returned, and was cancelled before it could hear of it.
            BaseException: What it raised.
        """
        loop, coroutine = self._loop, self._coroutine
        host = current_task(loop)
        if self._must_cancel:
            error, self._must_cancel = asyncio.CancelledError() if error is None else error, False
        self.waits = None
        _leave_task(loop, host)  # type: ignore[arg-type]
        _enter_task(loop, self)  # type: ignore[arg-type]
        try:
            self.waits = coroutine.send(None) if error is None else coroutine.throw(error)
        except StopIteration as stop:
            self.value = stop.value
        except BaseException:
            self._ended()
            raise
        else:
            return False
        finally:
            _leave_task(loop, self)  # type: ignore[arg-type]
            _enter_task(loop, host)  # type: ignore[arg-type]
        self._ended()
        if self._must_cancel:
            raise LeftBehindError(CallCancelled("its task was cancelled"))
        return True

    def _ended(self) -> None:
        self._is_done = True
        if self._end is not None and not self._end.done():
            self._end.set_result(None)

    # What a task is asked ----------------------------------------------------------------------------------------

    def cancel(self, msg: Any = None) -> bool:
        """As of `asyncio.Task`."""
        if self._is_done:
            return False
        self._cancels += 1
        if self.waits is None or not self.waits.cancel(msg=msg):
            self._must_cancel = True
        return True

    def cancelling(self) -> int:
        """As of `asyncio.Task`."""
        return self._cancels

    def uncancel(self) -> int:
        """As of `asyncio.Task`."""
        self._cancels = max(0, self._cancels - 1)
        return self._cancels

    def done(self) -> bool:
        """As of `asyncio.Task`."""
        return self._is_done

    def cancelled(self) -> bool:
        """As of `asyncio.Task`."""
        return False

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """As of `asyncio.Task`."""
        return self._loop

    def get_coro(self) -> Coroutine[Any, Any, Any]:
        """As of `asyncio.Task`."""
        return self._coroutine

    def get_name(self) -> str:
        """As of `asyncio.Task`."""
        return self._name

    def set_name(self, name: object) -> None:
        """As of `asyncio.Task`."""
        self._name = str(name)

    def add_done_callback(self, function: Callable[[Any], object], *, context: Any = None) -> None:
        """As of `asyncio.Task`."""
        self._ending().add_done_callback(lambda _: function(self), context=context)

    def __await__(self) -> Generator[Any, None, None]:
        return self._ending().__await__()

    @property
    def _fut_waiter(self) -> Any:
        """What anyio looks at, as it does in `asyncio.Task`."""
        return self.waits

    def _ending(self) -> asyncio.Future[None]:
        if self._end is None:
            self._end = self._loop.create_future()
            if self._is_done:
                self._end.set_result(None)
        return self._end
