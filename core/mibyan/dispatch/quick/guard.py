"""`QuickGuard`: a compiled call between the thread that runs it and the one that waits.

It is handed over once, hooks and handler together. Who waits looks at it when a limit passes. If a piece of foreign code
is overdue then, or the call is ended from outside, it is taken away from its thread, and a `Guard` goes on in the pipeline
with what has run and the news of the piece that was given up.
"""

from __future__ import annotations

import contextvars
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.guard import LATE
from mibyan.dispatch.quick.compiled import TakenError
from mibyan.dispatch.quick.frame import Frame
from mibyan.dispatch.steps import CallCancelled, DeadlinePassed, StepTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.dispatch.guard import Guard, Threads
    from mibyan.dispatch.quick.compiled import Express
    from mibyan.dispatch.quick.frame import Ids
    from mibyan.dispatch.quick.replay import Begun
    from mibyan.dispatch.steps import Step
    from mibyan.tools.results import ToolResult

#: Seconds between two looks at a call that is watched for long.
_LONGEST = 3600.0


class QuickGuard:
    """One guarded call.

    Args:
        express: The compiled call.
        raw: The arguments as they came.
        ids: The call's, the task's, and the user's words.
        seconds: Seconds until it is answered without the tool; `None`: nothing is enforced.
        hook_timeout: Seconds that a hook may take.
        guard: Makes the guard that goes on in the pipeline: `guard(frame, begun, seconds, deadline)`.
        threads: Where it runs.
    """

    __slots__ = (
        "_bell", "_context", "_express", "_finished", "_frame", "_guard", "_hook_timeout", "_ids", "_left", "_lock", "_raw",
        "_running", "_seconds", "_since", "_taken", "_threads", "deadline", "first_look", "is_over", "made", "successor", "wake",
    )  # fmt: skip

    def __init__(
        self, express: Express, raw: Any, ids: Ids, seconds: float | None, hook_timeout: float,
        guard: Callable[[Frame, Begun, float | None, float | None], Guard], threads: Threads,
    ) -> None:  # fmt: skip
        self._express = express
        self._raw = raw
        self._ids = ids
        self._seconds = seconds
        self._hook_timeout = hook_timeout
        self._guard = guard
        self._threads = threads
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.first_look = min(_LONGEST if seconds is None else seconds, hook_timeout)
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._bell = threading.Lock()
        self._bell.acquire()
        #: The call, once a piece of it runs, and the moment at which that one began.
        self._frame: Frame | None = None
        self._since = 0.0
        #: Whether the call came to its end on the thread, was taken away from it, and whether the thread is done then.
        self._finished = self._taken = self._left = False
        #: The step of the piece that was given up.
        self._running: Step | None = None
        #: Whether there is nothing more to wait for here.
        self.is_over = False
        #: The call's text; `None`: nothing has run, or it goes on elsewhere.
        self.made: str | None = None
        #: What goes on with it in the pipeline.
        self.successor: Guard | None = None
        #: Wakes whoever waits; replaced by an async waiter.
        self.wake: Callable[[], None] = self._bell.release

    # The worker's side -------------------------------------------------------------------------------------------

    def work(self) -> Callable[[], None]:
        """Run the call; what wakes whoever waits for it."""
        made = self._context.run(self._express.run, self._raw, self._ids, self)
        if type(made) is str:
            # The last `enter` let it end: nobody can take it away any more.
            self.made, self.is_over = made, True
            return self.wake
        with self._lock:
            if not self._taken:
                self._finished = self.is_over = True
                return self.wake
            self._left = True
            running = self._running
        if running is not None:
            self._came_back(running)
        return _nothing

    def _came_back(self, running: Step) -> None:
        running.done = True
        self._threads.came_back(running)

    def start(self) -> None:
        """Hand it over."""
        try:
            self._threads.run(self.work)
        except RuntimeError:  # The runtime was closed meanwhile, or the system gives no thread: nothing has run.
            self._finished = self.is_over = True
            self.wake()

    def leave(self) -> None:
        """Nobody waits any more: observers that still run are watched by another thread."""
        if self.is_over or self._frame is None:
            return
        with suppress(RuntimeError):
            self._threads.submit(self._watch)

    def enter(self, frame: Frame) -> None:
        """See `Watch`."""
        with self._lock:
            if self._taken:
                raise TakenError
            self._frame = frame
            count = self._express.count
            if count > 1:  # Only hooks have a limit of their own.
                self._since = time.monotonic()
            self._finished = frame.count == count

    def go_on(self, frame: Frame, begun: Begun) -> None:
        """See `Watch`: whoever waits hears of the pipeline's guard, which is under way then."""
        with self._lock:
            if self._taken:
                return
            self._finished = True
            self.successor = self._context.copy().run(self._guard, frame, begun, self._seconds, self.deadline)
        self.successor.start()

    # The waiter's side -------------------------------------------------------------------------------------------

    def wait(self) -> str | ToolResult | None:
        """Begin, and wait for the answer on this thread; `None`: nothing has run.

        Raises:
            KeyboardInterrupt: It came while waiting; the observers have seen the call's end.
        """
        try:
            self.start()
            if not self._bell.acquire(timeout=self.first_look):
                while not self.look() and not self._bell.acquire(timeout=self.patience()):
                    pass
        except KeyboardInterrupt as interrupt:
            self._end(interrupt)
            if self.successor is not None:
                self.successor.farewell()
            raise
        if self.successor is not None:
            return self.successor.wait(_nothing)  # type: ignore[no-any-return]
        return self.made if self.is_over else self.outcome()

    def outcome(self) -> str | None:
        """The text, once there is one; `None`: nothing has run."""
        if self.is_over:
            return self.made
        # Its observers are still at it.
        assert self._frame is not None  # noqa: S101 - as it is answered
        return self._frame.text

    def patience(self) -> float:
        """Seconds until there is something to look at."""
        return min(max(0.0, min(self._due(), self._last_moment()) - time.monotonic()), _LONGEST)

    def look(self) -> bool:
        """Give up what is overdue; whether there is nothing more to wait for here."""
        if self._finished:
            return self.is_over
        now = time.monotonic()
        if now >= self._due():
            self._end(StepTimeout("") if self._hook_hangs(now) else DeadlinePassed(""))
            return self.is_over
        return now >= self._last_moment()

    def _watch(self) -> None:
        """Give up observers that hang, where nobody waits any more."""
        while not self.is_over:
            self._bell.acquire(timeout=self.patience() or LATE)
            if not self._finished and self._hook_hangs(time.monotonic()):
                self._end(StepTimeout(""))
        if self.successor is not None:
            self.successor.leave()

    @property
    def _is_answered(self) -> bool:
        return self._frame is not None and self._frame.text is not None

    def _hook_due(self) -> float:
        frame = self._frame
        if frame is None or frame.count == len(self._express.pre.plain):
            return float("inf")
        return self._since + self._hook_timeout

    def _hook_hangs(self, now: float) -> bool:
        return now >= self._hook_due()

    def _due(self) -> float:
        """The moment at which the piece that runs is given up; infinity: never."""
        if self.deadline is None or self._is_answered:
            return self._hook_due()
        return min(self._hook_due(), self.deadline)

    def _last_moment(self) -> float:
        """When the answer stops waiting for its observers; infinity: it isn't known yet, or nothing is enforced."""
        return self.deadline + LATE if self.deadline is not None and self._is_answered else float("inf")

    # Taking it away ----------------------------------------------------------------------------------------------

    def cancel(self, why: str) -> None:
        """End the call from outside; its observers still run."""
        if self.successor is None and not self._is_answered:
            self._end(CallCancelled(why))
            self.wake()
        elif self.successor is not None:
            self.successor.cancel(why)

    def _end(self, why: BaseException) -> None:
        """Take the call away from its thread and let the pipeline go on with the news."""
        with self._lock:
            if self._taken or self._finished:
                return
            self._taken = True
            frame, since, express = self._frame, self._since, self._express
            begun = express.begun_so_far(frame)
            if frame is None:
                frame = Frame(express.entry, express.session, self._raw, self._ids, time.perf_counter())
        guard = self._context.copy().run(self._guard, frame, begun, self._seconds, self.deadline)
        running = None if self._frame is None else guard.adopt(len(begun.pieces), since)
        guard.give_up(running, why)
        self.successor, self.is_over = guard, True
        with self._lock:
            self._running, left = running, self._left
        if left and running is not None:
            self._came_back(running)


def _nothing() -> None:
    """There is nothing to begin, or nobody to wake."""
