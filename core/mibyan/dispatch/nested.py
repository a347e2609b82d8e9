"""`NestedCalls`: the calls that a tool makes of other tools while it runs, from whichever of its threads."""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING, Any, Self

from mibyan.dispatch.steps import RUNNING, CallCancelled, Step, enclosing
from mibyan.errors import MibyanError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from mibyan.dispatch.call import Call
    from mibyan.dispatch.session import Session
    from mibyan.tools.results import ToolCall, ToolResult


class NestedCalls:
    """Calls of other tools within a tool's own call; `ToolContext.nested_calls()` makes it, in the handler's thread.

    They go through the whole pipeline, in the session, task and context of the call around them, and end with it. It is
    a context manager: leaving it ends those that still run.

    Args:
        run: Runs a call on the runtime's threads and answers at its deadline at the latest.
        make: Makes a call ready for that, of the call as the model makes it, in a session.
        define: The definitions of the tools that a session may see now.

    Raises:
        MibyanError: No call runs here.
    """

    def __init__(
        self,
        run: Callable[[Call], ToolResult],
        make: Callable[..., Call],
        define: Callable[[Session], list[dict[str, Any]]],
    ) -> None:
        around = enclosing()
        if around is None or around.call is None:
            raise MibyanError("nested_calls() is for a tool's handler while it runs.", hint="Call it in the handler.")
        self._run = run
        self._make = make
        self._define = define
        self._around = around
        self._outer = around.call
        self._held_before = self._outer.held_seconds
        self._context = contextvars.copy_context()
        #: Stands for the code that makes the calls, so that they can be ended without the handler.
        self._within = Step(_nothing, owner=around.owner, label=around.label, call=self._outer)
        around.attend(self)

    def execute(self, call: ToolCall, *, timeout: float | None = None) -> ToolResult:
        """Run a call to its end, on any thread; several may run at once.

        Args:
            call: The call.
            timeout: Seconds; the deadline of the call around it counts in any case.

        Returns:
            Its one result; of status `cancelled` once these calls are over.
        """
        return self._context.copy().run(self._execute, call, timeout)

    def definitions(self) -> list[dict[str, Any]]:
        """The definitions of the tools that the session may see now, as `Runtime.definitions(session=...)` gives them."""
        return self._context.copy().run(self._define, self._outer.session)

    @property
    def held(self) -> float:
        """Seconds for which persons were waited for since this was made: they count for no deadline."""
        return self._outer.held_seconds - self._held_before

    def close(self) -> None:
        """End the calls that still run, and run no more. Closing twice is fine."""
        self.cancel("the call it belongs to is over")
        self._around.leave(self)

    def cancel(self, why: str) -> None:
        """End them, from any thread; the reason is told in their results."""
        if self._within.over is None:
            self._within.end(CallCancelled(why))

    def _execute(self, call: ToolCall, timeout: float | None) -> ToolResult:
        RUNNING.set(self._within)  # in a context of its own
        outer = self._outer
        made = self._make(call.name, call.arguments, outer.session, outer.task_id, call.id, outer.user_task, timeout)
        made.structured = True
        return self._run(made)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _nothing() -> None:
    """What the step does that stands for them: it runs elsewhere."""
