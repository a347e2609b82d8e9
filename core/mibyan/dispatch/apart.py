"""Running something on the runtime's threads for somebody who waits for it, but not for ever."""

from __future__ import annotations

import contextvars
import threading
import time
from typing import TYPE_CHECKING

from mibyan.dispatch.steps import RUNNING, Step, StepTimeout, enclosing

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.dispatch.runners import Runners


def run_apart(
    runners: Runners, label: str, job: Callable[[], None], moment: Callable[[], float], take_over: Callable[[], bool]
) -> bool:
    """Run `job` on one of the runtime's threads, in a copy of this context; see `mibyan.tools.check_pass.Apart`.

    What a job that is given up awaits is cancelled, and the loop that it blocks replaced, as with a step of a call. Where
    no thread can be had it runs here.
    """
    around = enclosing()
    apart = _Apart(Step(job, label=label, call=None if around is None else around.call), runners)
    if around is not None:
        around.attend(apart)
    try:
        ended = apart.wait(moment, take_over)
    finally:
        if around is not None:
            around.leave(apart)
    if ended is None:
        job()
    return ended is not False


class _Apart:
    """A job between the thread that runs it and the one that waits for it."""

    __slots__ = ("_bell", "_context", "_error", "_runners", "step")

    def __init__(self, step: Step, runners: Runners) -> None:
        self.step = step
        self._runners = runners
        self._error: BaseException | None = None
        self._context = contextvars.copy_context()
        self._bell = threading.Lock()
        self._bell.acquire()

    def work(self) -> Callable[[], None]:
        """On the worker; what it gives wakes whoever waits, once the thread is free for the next job."""
        self._context.run(self._run)
        self._runners.came_back(self.step)
        return self._bell.release

    def _run(self) -> None:
        RUNNING.set(self.step)
        try:
            self.step.function()
        except BaseException as error:
            self._error = error
        self.step.done = True

    def wait(self, moment: Callable[[], float], take_over: Callable[[], bool]) -> bool | None:
        """Begin, and wait: whether the job came to its end; `None`: no thread can be had for it.

        Raises:
            BaseException: What the job raised, or KeyboardInterrupt while waiting.
        """
        try:
            if not self._begin():
                return None
            patience = _LOOK
            while not self._bell.acquire(timeout=patience):
                if time.monotonic() >= moment() and take_over():
                    self._end(StepTimeout(self.step.label))
                    return False
                patience = min(max(0.0, moment() - time.monotonic()), _LOOK)
        except KeyboardInterrupt as interrupt:
            self._end(interrupt)
            raise
        if self._error is not None:
            raise self._error
        return True

    def _begin(self) -> bool:
        try:
            self._runners.run(self.work)
        except RuntimeError:
            return False
        return True

    def cancel(self, why: str) -> None:
        """The call around it is over: what the job awaits is cancelled."""
        self.step.end(StepTimeout(why))

    def _end(self, why: BaseException) -> None:
        self.step.end(why)
        self._runners.gave_up(self.step)


#: Seconds between two looks: while the job hasn't begun there is no moment yet.
_LOOK = 0.05
