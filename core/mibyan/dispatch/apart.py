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
    apart = _Apart(Step(job, label=label, call=None if around is None else around.call))
    context = contextvars.copy_context()

    def work() -> None:
        context.run(apart.work)
        runners.came_back(apart.step)

    try:
        runners.submit(work)
    except RuntimeError:
        job()
        return True
    if around is not None:
        around.attend(apart)
    try:
        return apart.wait(runners, moment, take_over)
    finally:
        if around is not None:
            around.leave(apart)


class _Apart:
    """A job between the thread that runs it and the one that waits for it."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self._error: BaseException | None = None
        self._bell = threading.Semaphore(0)

    def work(self) -> None:
        """On the worker."""
        RUNNING.set(self.step)
        try:
            self.step.function()
        except BaseException as error:
            self._error = error
        finally:
            self.step.done = True
            self._bell.release()

    def wait(self, runners: Runners, moment: Callable[[], float], take_over: Callable[[], bool]) -> bool:
        """Whether the job came to its end.

        Raises:
            BaseException: What the job raised, or KeyboardInterrupt while waiting.
        """
        try:
            while not self._bell.acquire(timeout=min(max(0.0, moment() - time.monotonic()), _LOOK)):
                if time.monotonic() >= moment() and take_over():
                    self._end(runners, StepTimeout(self.step.label))
                    return False
        except KeyboardInterrupt as interrupt:
            self._end(runners, interrupt)
            raise
        if self._error is not None:
            raise self._error
        return True

    def cancel(self, why: str) -> None:
        """The call around it is over: what the job awaits is cancelled."""
        self.step.end(StepTimeout(why))

    def _end(self, runners: Runners, why: BaseException) -> None:
        self.step.end(why)
        runners.gave_up(self.step)


#: Seconds between two looks: while the job hasn't begun there is no moment yet.
_LOOK = 0.05
