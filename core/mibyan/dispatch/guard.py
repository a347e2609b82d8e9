"""`Guard`: one guarded call, driven by a thread and watched by whoever waits for it.

The pipeline's generator goes to a worker thread once; the worker runs its steps one after the other. The one who waits
looks when a limit passes: it then takes the generator over (the worker's turn is void from that moment) and lets it go
on with the news that the step was given up. So a call always has one answer and never goes on to its next step twice.
If the generator itself doesn't stand still (no thread could be had, a schema that takes for ever), it is left alone and
the call is answered without it.
"""

from __future__ import annotations

import contextvars
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

from mibyan.dispatch.steps import CallCancelled, DeadlinePassed, Outcome, Step, StepTimeout
from mibyan.tools.current import acting

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.dispatch.call import Call
    from mibyan.dispatch.perform import Performer
    from mibyan.dispatch.pipeline import Pipeline
    from mibyan.dispatch.steps import Steps
    from mibyan.dispatch.threads import Job

#: Seconds that observers get once the answer is known and the deadline has passed.
LATE = 0.03
#: Seconds that observers get when whoever waited was interrupted or cancelled.
FAREWELL = 1.0
#: Seconds between two looks while a person is being waited for, somewhere within the call.
_HELD_LOOK = 0.05


class Threads(Protocol):
    """The threads of a runtime."""

    @property
    def run(self) -> Callable[[Job], None]:
        """`submit` on a thread that serves every tool."""

    def submit(self, job: Job, thread: str = "pool") -> None:
        """Run a job on one of them; RuntimeError when none can be had."""

    def gave_up(self, step: Step) -> None:
        """Nobody waits for this step any more, but it may still run."""

    def came_back(self, step: Step) -> None:
        """A step that was given up has ended."""


def due(step: Step | None, started: float, call: Call) -> float:
    """The moment at which a step is given up; infinity: never. Without a step: at which the call is."""
    moment = float("inf") if step is None or step.limit is None else started + step.limit
    if call.deadline is None or (step is not None and (step.late or step.person)):
        return moment
    return min(moment, time.monotonic() + _HELD_LOOK if call.held else call.deadline)


def overdue(step: Step | None, started: float, call: Call) -> BaseException | None:
    """Why a step is to be given up now; `None`: it may go on."""
    now = time.monotonic()
    if now < due(step, started, call):
        return None
    label = "" if step is None else step.label
    if step is not None and step.limit is not None and now >= started + step.limit:
        return StepTimeout(label)
    return DeadlinePassed(label)


class Guard:
    """The pipeline of one call between the thread that drives it and the one that waits.

    Args:
        call: The call.
        steps: The pipeline's generator for it; it returns the result.
        pipeline: Answers the call when the generator can't.
        performer: Runs steps.
        threads: Where it runs them.
    """

    def __init__(self, call: Call, steps: Steps, pipeline: Pipeline, performer: Performer, threads: Threads) -> None:
        self.call = call
        self.value: Any = None
        self.error: BaseException | None = None
        self.finished = False
        #: Wakes whoever waits; replaced by an async waiter.
        self.poke: Callable[[], None] = self._release
        self._steps = steps
        self._pipeline = pipeline
        self._performer = performer
        self._threads = threads
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._lost = threading.Lock()
        self._bell = threading.Lock()
        self._bell.acquire()
        self._epoch = 0
        #: The step that runs; `None` before the first one, and while the generator itself does.
        self._step: Step | None = None
        self._since = 0.0
        self._wake = float("inf")

    # The worker's side -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin."""
        self._hand_over(0, None)

    def resume(self, step: Step) -> None:
        """Go on with a generator that somebody else began, at the step it asks for."""
        self.call.step, self._step, self._since = step, step, time.monotonic()
        self._hand_over(0, step)

    def adopt(self, count: int, since: float) -> Step | None:
        """Go through `count` steps that have run elsewhere; the step that runs elsewhere since then is this one's now."""
        step = self._advance(0, None)
        for _ in range(count):
            if step is not None:
                step = self._advance(0, self._performer.perform(step))
        self._since = since
        return step

    def _hand_over(self, epoch: int, step: Step | None) -> None:
        thread = "pool" if step is None else step.thread
        try:
            self._threads.submit(lambda: self._context.copy().run(self._drive, epoch, step), thread)
        except RuntimeError as error:  # The runtime was closed meanwhile, or the system gives no thread.
            if self.call.answer is not None:
                self._finish(self.call.answer, None)
            else:
                self.give_up(step, CallCancelled(str(error)))

    def _drive(self, epoch: int, step: Step | None) -> None:
        thread = "pool" if step is None else step.thread
        step = step or self._advance(epoch, None)
        while step is not None:
            if step.thread != thread:
                self._hand_over(epoch, step)
                return
            if step.over is None:
                outcome = self._performer.perform(step)
            if step.over is not None:
                self._threads.came_back(step)
                return
            step = self._advance(epoch, outcome)

    def _advance(self, epoch: int, outcome: Outcome | None) -> Step | None:
        """Let the generator go on; its next step, or `None` when it is at its end or somebody else's turn."""
        with self._lock:
            if epoch != self._epoch or self.finished:
                return None
            self._step = None
            try:
                with acting(None):
                    step: Step = self._steps.send(outcome)
            except StopIteration as stop:
                self._end(epoch, stop.value, None)
                return None
            except BaseException as error:
                self._end(epoch, None, error)
                return None
            if epoch != self._epoch:
                return None
            step.call, self.call.step = self.call, step
            self._step, self._since = step, time.monotonic()
            earlier = self._next_wake() < self._wake
        if earlier:
            self.poke()
        return step

    def _end(self, epoch: int, value: Any, error: BaseException | None) -> None:
        if epoch == self._epoch:
            self._finish(value, error)

    def _finish(self, value: Any, error: BaseException | None) -> None:
        if not self.finished:
            self.value, self.error, self.finished, self._step = value, error, True, None
        self.poke()

    # The waiter's side -------------------------------------------------------------------------------------------

    def wait(self, begin: Callable[[], None]) -> Any:
        """Begin, and wait for the answer on this thread.

        Args:
            begin: Hands the call over; an interrupt that comes meanwhile ends the call like any other.

        Raises:
            KeyboardInterrupt: It came while waiting; the observers have seen the call's end.
        """
        try:
            begin()
            while not self.look():
                self._bell.acquire(timeout=self.patience())
        except KeyboardInterrupt as interrupt:
            self.give_up(None, interrupt)
            self.farewell()
            raise
        finally:
            self.leave()
        return self.outcome()

    def farewell(self) -> None:
        """Let the observers of a call that was interrupted finish, for a second at most."""
        until = time.monotonic() + FAREWELL
        while not self.finished and time.monotonic() < until:
            self._bell.acquire(timeout=0.05)

    def look(self) -> bool:
        """Give up what is overdue; whether there is an answer now."""
        if not self.finished:
            self._drop_overdue()
        return self.finished or time.monotonic() >= self._last_moment()

    def patience(self) -> float:
        """Seconds until there is something to look at; at most an hour."""
        # Until the moment is known, every step of the worker's rings the bell: none that is due earlier is missed.
        self._wake = float("inf")
        self._wake = min(self._next_wake(), self._last_moment())
        return min(max(0.0, self._wake - time.monotonic()), 3600.0)

    def leave(self) -> None:
        """Nobody waits any more: observers that still run are watched by another thread."""
        if self.finished:
            return
        self.poke = self._release
        try:
            self._threads.submit(self._watch)
        except RuntimeError:
            return

    def outcome(self) -> Any:
        """The result, once `look()` said there is one.

        Raises:
            BaseException: What leaves the pipeline.
        """
        if self.error is not None:
            raise self.error
        return self.value if self.finished else self.call.answer

    def _next_wake(self) -> float:
        return due(self._step, self._since, self.call)

    def _last_moment(self) -> float:
        """When the answer stops waiting for its observers; infinity: it isn't known yet, or nothing is enforced."""
        call = self.call
        if call.answer is None or call.deadline is None:
            return float("inf")
        return max(call.deadline, call.answered) + LATE

    def _watch(self) -> None:
        while not self.finished:
            self._drop_overdue()
            self._wake = float("inf")
            self._wake = self._next_wake()
            self._bell.acquire(timeout=min(max(0.0, self._wake - time.monotonic()), 3600.0))

    def _drop_overdue(self) -> None:
        step = self._step
        why = overdue(step, self._since, self.call)
        if why is not None:
            self.give_up(step, why)

    # Giving up ---------------------------------------------------------------------------------------------------

    def cancel(self, why: str) -> None:
        """End the call from outside; its observers still run."""
        if self.call.answer is None:
            self.give_up(None, CallCancelled(why))

    def give_up(self, step: Step | None, why: BaseException) -> bool:
        """Take the generator over from a step that is still running (`None`: from any); false when it just ended."""
        if not self._lock.acquire(timeout=LATE):
            return self._lose(why)
        try:
            given_up = self._step
            if self.finished or (step is not None and step is not given_up):
                return False
            self._epoch += 1
            epoch = self._epoch
            if not isinstance(why, StepTimeout):
                self.call.abandoned = True
        finally:
            self._lock.release()
        if given_up is None:
            return self._lose(why)
        given_up.end(why)
        self._threads.gave_up(given_up)
        following = self._advance(epoch, Outcome(error=why))
        if following is not None:
            self._hand_over(epoch, following)
        return True

    def _lose(self, why: BaseException) -> bool:
        """Answer without the generator, which hasn't begun or doesn't stand still; once."""
        if self.finished or not self._lost.acquire(blocking=False):
            return False
        self._epoch += 1
        self.call.abandoned = True
        answer = self._pipeline.given_up(self.call, why)
        observers = self._pipeline.observers(self.call, answer)
        Guard(self.call, observers, self._pipeline, self._performer, self._threads).start()
        self._finish(answer, None)
        return True

    def _release(self) -> None:
        try:
            self._bell.release()
        except RuntimeError:
            return
