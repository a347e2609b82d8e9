"""`OwnTask`: who a coroutine that is driven by hand is, for `asyncio.current_task()`.

Time-outs and task groups cancel the task in which they are entered, and take that back later. If that were the task of
whoever awaits the call, nobody could tell their cancellation from a host's, and a tool could cancel its host.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import current_task, get_running_loop, tasks
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.quick.hooks import LeftBehindError
from mibyan.dispatch.steps import CallCancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator


if sys.version_info >= (3, 12):
    #: `enter(loop, task)`: from now on that task runs in the loop. Leaving one and entering another takes twice the time.
    enter: Callable[[asyncio.AbstractEventLoop, Any], Any] = tasks._swap_current_task

    def where() -> tuple[asyncio.AbstractEventLoop, Any]:
        """The running loop and the task that runs in it."""
        loop = get_running_loop()
        return loop, current_task(loop)

else:
    _running: dict[asyncio.AbstractEventLoop, Any] = tasks._current_tasks  # type: ignore[attr-defined]
    enter = _running.__setitem__

    def where() -> tuple[asyncio.AbstractEventLoop, Any]:
        """The running loop and the task that runs in it."""
        try:
            # This code runs in a task: if there is one only, it is that. Asking for the loop asks the system for the process.
            (found,) = _running.items()
        except (ValueError, RuntimeError):  # Other threads have theirs, or one has begun just now.
            loop = get_running_loop()
            return loop, current_task(loop)
        return found


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
        enter(loop, self)
        try:
            self.waits = coroutine.send(None) if error is None else coroutine.throw(error)
        except StopIteration as stop:
            self._is_done, self.value = True, stop.value
        except BaseException:
            self._is_done = True
            raise
        else:
            return False
        finally:
            enter(loop, host)
            if self._is_done:
                self.tell()
        self.check()
        return True

    def heed(self) -> None:
        """Cancel the future that it has begun to wait for, if it was cancelled while it ran; as a task does."""
        if self._must_cancel and self.waits.cancel():
            self._must_cancel = False

    def tell(self) -> None:
        """Tell whoever waits for it that it has come to its end."""
        if self._end is not None and not self._end.done():
            self._end.set_result(None)

    def check(self) -> None:
        """Look whether it was cancelled before it could hear of it.

        Raises:
            LeftBehindError: It was.
        """
        if self._must_cancel:
            raise LeftBehindError(CallCancelled("its task was cancelled"))

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


def begin(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Let a coroutine take its first step, which is the whole of it for most.

    Returns:
        What it returns; its `OwnTask` if it waits.

    Raises:
        LeftBehindError: As for `OwnTask.step`.
        BaseException: What it raised.
    """
    loop, host = where()
    own = OwnTask(coroutine, loop)
    enter(loop, own)
    try:
        own.waits = coroutine.send(None)
    except StopIteration as stop:
        value = stop.value
    except BaseException:
        own._is_done = True
        own.tell()
        raise
    else:
        return own
    finally:
        enter(loop, host)
    own._is_done = True
    if own._end is not None or own._must_cancel:
        own.tell()
        own.check()
    return value
