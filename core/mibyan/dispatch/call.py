"""`Call`: one call on its way through the pipeline."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.steps import CallCancelled, DeadlinePassed
from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.dispatch.many_gates import Gates
    from mibyan.dispatch.quick.replay import Begun
    from mibyan.dispatch.session import Session
    from mibyan.dispatch.steps import Step
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.results import ToolResult

#: Clocks are stopped and started in threads of their own.
_CLOCKS = threading.Lock()


def after_fork() -> None:
    """In a child process: nobody else is at the clocks."""
    global _CLOCKS  # noqa: PLW0603 - as the lock is the process's
    _CLOCKS = threading.Lock()


@record(frozen=False, eq=False)
class Call:
    """What was asked, what is known of it so far, and its answer."""

    #: The name as it was asked for.
    asked: str
    #: The arguments as they came.
    raw: Any
    session: Session
    id: str | None = None
    task_id: str | None = None
    user_task: str | None = None
    #: Seconds: the call's own time-out.
    timeout: float | None = None
    #: Whether somebody waits who can abandon it.
    guarded: bool = False
    #: Whether the answer's parts are wanted, not its text alone.
    structured: bool = False
    #: Other keywords of `handle_function_call`, for handlers that accept them.
    extra: dict[str, Any] = field(default_factory=dict)
    entry: ToolEntry | None = None
    #: The arguments as the model gave them, coerced.
    args: dict[str, Any] = field(default_factory=dict)
    #: What the handler got; `None`: it didn't run.
    executed_args: dict[str, Any] | None = None
    trace: list[dict[str, Any]] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)
    #: Moment of `time.monotonic()`; `None`: nothing is enforced.
    deadline: float | None = None
    #: Set once the answer is known; observers may still be running.
    answer: ToolResult | None = None
    #: Moment of `time.monotonic()` at which it was.
    answered: float = 0.0
    #: Leaves the pipeline once the observers have seen the answer.
    leaving: BaseException | None = None
    #: Whether somebody gave up waiting for the handler.
    abandoned: bool = False
    #: The session's count of interrupts when the call began.
    interrupts: int = 0
    #: The step of another call within which this one was made, if any: its deadline counts here too.
    parent: Step | None = None
    #: The step that runs now.
    step: Step | None = None
    #: How many persons are waited for, by this call and by calls within it.
    held: int = 0
    held_since: float = 0.0
    #: Seconds for which persons were waited for before.
    held_before: float = 0.0
    #: Where it stands still, as one of several calls that were planned together.
    gates: Gates | None = None
    #: The moment at which those end; its own deadline is no later.
    latest: float | None = None
    #: What is settled of it, where it began on the quick way.
    begun: Begun | None = None

    @property
    def name(self) -> str:
        """The tool's own name where it is known, else the name that was asked for."""
        return self.asked if self.entry is None else self.entry.name

    @property
    def duration_ms(self) -> float:
        """Milliseconds since the call began."""
        return round((time.perf_counter() - self.started) * 1000, 3)

    def is_cancelled(self) -> bool:
        """Whether nobody waits for the handler any more."""
        if self.abandoned or self.session.interrupts != self.interrupts:
            return True
        around = self.parent
        return around is not None and (
            around.over is not None or (around.call is not None and around.call.is_cancelled())
        )

    def note(self, step: str, **facts: Any) -> None:
        """Add a step to the trace."""
        self.trace.append({"step": step, **facts})

    def cancel(self, why: str) -> None:
        """End what the call waits for: the step around it was given up."""
        if self.step is not None:
            self.step.end(CallCancelled(why))

    # Time --------------------------------------------------------------------------------------------------------

    def enter(self, around: Step) -> None:
        """Stand under the deadline of the call within which this one is made."""
        self.parent = around
        limit = None if around.call is None or around.late else around.call.deadline
        if limit is not None and (self.deadline is None or limit < self.deadline):
            self.deadline = limit

    def cap(self) -> bool:
        """Let the deadline be no later than that of what the call belongs to; whether that of its batch counts now."""
        if self.parent is not None:
            self.enter(self.parent)
        if self.latest is None or (self.deadline is not None and self.deadline <= self.latest):
            return False
        self.deadline = self.latest
        return True

    def stood(self, seconds: float) -> None:
        """Take away time in which the call stood still: it is neither the tool's nor the deadline's."""
        self.started += seconds
        if self.deadline is not None:
            self.deadline += seconds

    @property
    def held_seconds(self) -> float:
        """Seconds for which persons were waited for so far."""
        return self.held_before + (time.monotonic() - self.held_since if self.held else 0.0)

    def ending(self) -> BaseException | None:
        """Why a call made within another may not go on; `None`: it may."""
        around = self.parent
        if around is None or around.call is None:
            return None
        if around.over is not None:
            return CallCancelled("the call it belongs to is over")
        limit = around.call.deadline
        if limit is not None and not around.late and not around.call.held and time.monotonic() >= limit:
            return DeadlinePassed(f"the call of {around.call.name} around it")
        return around.call.ending()

    def hold(self, step: Step) -> None:
        """A step waits for a person: the time until `release` doesn't count, for the calls around it either."""
        with _CLOCKS:
            step.holding = True
            for call in self._lineage():
                if call.held == 0:
                    call.held_since = time.monotonic()
                call.held += 1

    def release(self, step: Step) -> None:
        """The person has answered, or isn't waited for any more."""
        with _CLOCKS:
            if not step.holding:
                return
            step.holding = False
            for call in self._lineage():
                if call.held == 1:
                    seconds = time.monotonic() - call.held_since
                    call.held_before += seconds
                    call.deadline = None if call.deadline is None else call.deadline + seconds
                call.held -= 1

    def _lineage(self) -> Iterator[Call]:
        call: Call | None = self
        while call is not None:
            yield call
            call = None if call.parent is None else call.parent.call
