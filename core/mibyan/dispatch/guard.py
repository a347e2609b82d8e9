"""`Guard`: one guarded call, driven by a thread and watched by whoever waits for it.

The pipeline's generator goes to a worker thread once; the worker runs its steps one after the other. The one who waits
looks when a limit passes: it then takes the generator over (the worker's turn is void from that moment) and lets it go
on with the news that the step was given up. So a call always has one answer and never goes on to its next step twice.
"""

from __future__ import annotations

import contextvars
import threading
import time
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.steps import CallCancelled, DeadlinePassed, Outcome, Step, StepTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.dispatch.call import Call
    from mibyan.dispatch.loops import LoopThread, Pending
    from mibyan.dispatch.perform import Performer
    from mibyan.dispatch.steps import Steps

#: Seconds that observers get once the answer is known and the deadline has passed.
LATE = 0.03


def due(step: Step | None, started: float, call: Call) -> float:
    """The moment at which a step is given up; infinity: never."""
    if step is None:
        return float("inf") if call.deadline is None else call.deadline
    moment = float("inf") if step.limit is None else started + step.limit
    if step.counts and not step.late and call.deadline is not None:
        moment = min(moment, call.deadline)
    return moment


class Guard:
    """The pipeline of one call between the thread that drives it and the one that waits.

    Args:
        steps: The pipeline's generator; it returns the result.
        call: The call it belongs to.
        performer: Runs steps.
        submit: Runs a job on one of the runtime's threads; the second argument names a thread of its own.
        on_blocked_loop: Told of a runtime loop that a given-up handler still blocks.
    """

    def __init__(
        self,
        steps: Steps,
        call: Call,
        performer: Performer,
        submit: Callable[[Callable[[], None], str], None],
        on_blocked_loop: Callable[[LoopThread], None],
    ) -> None:
        self.call = call
        self.value: Any = None
        self.error: BaseException | None = None
        self.finished = False
        #: Wakes whoever waits; replaced by an async waiter.
        self.poke: Callable[[], None] = self._release
        self._steps = steps
        self._performer = performer
        self._submit = submit
        self._on_blocked_loop = on_blocked_loop
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._bell = threading.Lock()
        self._bell.acquire()
        self._epoch = 0
        self._step: Step | None = None
        self._since = 0.0
        self._wake = float("inf")
        self._pending: Pending | None = None

    # The worker's side -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin: the first step decides which thread drives."""
        first = self._advance(0, None)
        if first is not None:
            self._hand_over(0, first)

    def _hand_over(self, epoch: int, step: Step) -> None:
        try:
            self._submit(lambda: self._context.copy().run(self._drive, epoch, step), step.thread)
        except RuntimeError:  # The runtime was closed meanwhile.
            self.cancel("the runtime is closed")

    def _drive(self, epoch: int, step: Step | None) -> None:
        while step is not None:
            thread = step.thread
            step = self._advance(epoch, self._performer.perform(step, self._keep_pending))
            if step is not None and step.thread != thread:
                self._hand_over(epoch, step)
                return

    def _keep_pending(self, pending: Pending) -> None:
        self._pending = pending

    def _advance(self, epoch: int, outcome: Outcome | None) -> Step | None:
        """Let the generator go on; its next step, or `None` when it is at its end or somebody else's turn."""
        with self._lock:
            if epoch != self._epoch or self.finished:
                return None
            self._settle_clock()
            try:
                step = self._steps.send(outcome)
            except StopIteration as stop:
                self._finish(stop.value, None)
                return None
            except BaseException as error:
                self._finish(None, error)
                return None
            self._step, self._since, self._pending = step, time.monotonic(), None
            earlier = self._next_wake() < self._wake
        if earlier:
            self.poke()
        return step

    def _settle_clock(self) -> None:
        """The time a person took doesn't count."""
        if self._step is not None and not self._step.counts and self.call.deadline is not None:
            self.call.deadline += time.monotonic() - self._since

    def _finish(self, value: Any, error: BaseException | None) -> None:
        self.value, self.error, self.finished, self._step = value, error, True, None
        self.poke()

    # The waiter's side -------------------------------------------------------------------------------------------

    def _next_wake(self) -> float:
        moment = due(self._step, self._since, self.call)
        if self.call.answer is not None and self.call.deadline is not None:
            moment = min(moment, self.call.deadline + LATE)
        return moment

    def patience(self) -> float:
        """Seconds until there is something to look at; at most an hour."""
        # Until the moment is known, every step of the worker's rings the bell: none that is due earlier is missed.
        self._wake = float("inf")
        self._wake = self._next_wake()
        return min(max(0.0, self._wake - time.monotonic()), 3600.0)

    def look(self) -> bool:
        """Give up what is overdue; whether there is an answer now."""
        if self.finished:
            return True
        now = time.monotonic()
        call = self.call
        if call.answer is not None and call.deadline is not None and now >= call.deadline + LATE:
            # The observers may go on; the answer doesn't wait for them.
            return True
        step, since = self._step, self._since
        if step is None or now < due(step, since, call):
            return False
        own = step.limit is not None and now >= since + step.limit
        self.give_up(step, StepTimeout(step.label) if own else DeadlinePassed(step.label))
        return self.finished

    def give_up(self, step: Step | None, why: BaseException) -> bool:
        """Take the generator over from a step that is still running; false when it just ended by itself."""
        with self._lock:
            if self.finished or (step is not None and step is not self._step):
                return False
            self._epoch += 1
            epoch, pending = self._epoch, self._pending
            self.call.abandoned = self._step is not None
        if pending is not None:
            pending.cancel()
        following = self._advance(epoch, Outcome(error=why))
        if following is not None:
            self._hand_over(epoch, following)
        if pending is not None and not pending.thread.answers(LATE):
            self._on_blocked_loop(pending.thread)
        return True

    def cancel(self, why: str) -> None:
        """End the call from outside; its observers still run."""
        if self.call.answer is None:
            self.give_up(None, CallCancelled(why))

    def wait(self) -> Any:
        """Wait for the answer on this thread.

        Raises:
            KeyboardInterrupt: It came while waiting; the observers have seen the call's end.
        """
        try:
            while not self.look():
                self._bell.acquire(timeout=self.patience())
        except KeyboardInterrupt as interrupt:
            self.give_up(None, interrupt)
            until = time.monotonic() + 1.0
            while not self.finished and time.monotonic() < until:
                self._bell.acquire(timeout=0.05)
            raise
        return self.outcome()

    def outcome(self) -> Any:
        """The result, once `look()` said there is one.

        Raises:
            BaseException: What leaves the pipeline.
        """
        if self.error is not None:
            raise self.error
        return self.value if self.finished else self.call.answer

    def _release(self) -> None:
        try:
            self._bell.release()
        except RuntimeError:
            return
