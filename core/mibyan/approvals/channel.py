"""`ApprovalQueue`: the channel of a host that takes questions when it is ready for them, from a thread or an event loop."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from mibyan.approvals.broker import Approvals
    from mibyan.approvals.requests import ApprovalRequest


class ApprovalQueue:
    """Questions that wait to be taken, oldest first; `Approvals.queue()` makes it the channel of a runtime.

    Take them with `get()`, or `for request in queue`, on a thread; with `await queue.aget()`, or `async for`, in an event
    loop, which isn't held meanwhile. Answer with `resolve`. A question that isn't open any more isn't given out. Closing
    it denies what is waiting and ends the loops; it is a context manager, also an async one, that closes it.
    """

    def __init__(self, approvals: Approvals) -> None:
        self._approvals = approvals
        self._changed = threading.Condition()
        self._requests: deque[ApprovalRequest] = deque()
        #: Rings of event loops that wait.
        self._bells: set[tuple[Any, Any]] = set()
        self._closed = False

    def put(self, request: ApprovalRequest) -> None:
        """For the broker: a question has come."""
        with self._changed:
            self._requests.append(request)
            self._ring()

    def resolve(self, request_id: str, answer: str, *, glob: str | None = None) -> bool:
        """Answer a question; see `Approvals.resolve`."""
        return self._approvals.resolve(request_id, answer, glob=glob)

    def get(self, timeout: float | None = None) -> ApprovalRequest | None:
        """The next question; this thread waits for it.

        Args:
            timeout: Seconds to wait; `None`: as long as it takes.

        Returns:
            `None`: there was none in time, or the queue is closed.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._changed:
                found = self._next()
                left = None if until is None else until - time.monotonic()
                if found is None and not self._closed and (left is None or left > 0):
                    self._changed.wait(left)
                    continue
            if found is None or self._approvals.is_open(found.id):
                return found

    async def aget(self, timeout: float | None = None) -> ApprovalRequest | None:  # noqa: ASYNC109 - as `get` has it
        """The next question, without holding the running event loop; arguments and result as for `get`."""
        import asyncio

        until = None if timeout is None else time.monotonic() + timeout
        loop = asyncio.get_running_loop()
        while True:
            bell = loop.create_future()
            with self._changed:
                found = self._next()
                left = None if until is None else until - time.monotonic()
                waits = found is None and not self._closed and (left is None or left > 0)
                if waits:
                    self._bells.add((loop, bell))
            if not waits:
                if found is None or self._approvals.is_open(found.id):
                    return found
                continue
            try:
                await asyncio.wait((bell,), timeout=left)
            finally:
                with self._changed:
                    self._bells.discard((loop, bell))

    def close(self) -> None:
        """Take the channel away: what is waiting is denied."""
        if not self._closed:
            self._approvals.leave(self)
            self.end()

    def end(self) -> None:
        """For the broker: nothing comes any more."""
        with self._changed:
            self._closed = True
            self._requests.clear()
            self._ring()

    @property
    def closed(self) -> bool:
        """Whether nothing comes any more."""
        return self._closed

    def _next(self) -> ApprovalRequest | None:
        return self._requests.popleft() if self._requests else None

    def _ring(self) -> None:
        self._changed.notify_all()
        for loop, bell in self._bells:
            try:
                loop.call_soon_threadsafe(_set, bell)
            except RuntimeError:  # its loop is closed
                continue
        self._bells.clear()

    def __iter__(self) -> Iterator[ApprovalRequest]:
        while (request := self.get()) is not None:
            yield request

    async def __aiter__(self) -> AsyncIterator[ApprovalRequest]:
        while (request := await self.aget()) is not None:
            yield request

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()


def _set(bell: Any) -> None:
    if not bell.done():
        bell.set_result(None)
