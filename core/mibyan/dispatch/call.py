"""`Call`: one call on its way through the pipeline."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mibyan.dispatch.session import Session
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.results import ToolResult


@dataclass(slots=True, eq=False)
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
    #: Leaves the pipeline once the observers have seen the answer.
    leaving: BaseException | None = None
    #: Whether somebody gave up waiting for the handler.
    abandoned: bool = False
    #: The session's count of interrupts when the call began.
    interrupts: int = 0

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
        return self.abandoned or self.session.interrupts != self.interrupts

    def note(self, step: str, **facts: Any) -> None:
        """Add a step to the trace."""
        self.trace.append({"step": step, **facts})
