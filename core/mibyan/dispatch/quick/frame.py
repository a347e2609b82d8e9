"""`Frame`: a call on the quick way, as the code that runs in it sees it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.steps import Step

if TYPE_CHECKING:
    from mibyan.dispatch.call import Call
    from mibyan.dispatch.session import Session
    from mibyan.tools.entry import ToolEntry

    #: A call's id, its task's and what its user asked for.
    Ids = tuple[str | None, str | None, str | None]

#: The ids of a call that was made without any.
NO_IDS: Ids = (None, None, None)

#: The handler has given nothing yet.
NOTHING: Any = object()

#: Two threads may ask for the call at once.
_MAKING = threading.Lock()


def after_fork() -> None:
    """In a child process: nobody else asks."""
    global _MAKING  # noqa: PLW0603 - as the lock is the process's
    _MAKING = threading.Lock()


class Frame:
    """Little enough to be made for every call; the `Call` and the `Step` are made of it when somebody asks.

    Args:
        entry: The tool.
        session: The conversation.
        raw: The arguments as they came.
        ids: The call's, the task's, and the user's words.
        started: Moment of `time.perf_counter()`.
    """

    __slots__ = (
        "_step", "args", "count", "done", "entry", "given", "ids", "interrupts", "raw", "session", "started", "text", "value",
    )  # fmt: skip

    def __init__(self, entry: ToolEntry, session: Session, raw: Any, ids: Ids, started: float) -> None:
        self.entry = entry
        self.session = session
        self.raw = raw
        self.ids = ids
        self.started = started
        #: The arguments as they were read, and what the handler gets of them.
        self.args: Any = None
        self.given: Any = None
        self.interrupts = session._interrupts
        #: Whether the call is over: what outlives it is in no call any more.
        self.done = False
        #: Pieces of foreign code that have taken their usual course.
        self.count = 0
        #: What the handler gave.
        self.value: Any = NOTHING
        #: The answer, once it is known.
        self.text: str | None = None
        self._step: Step | None = None

    def step(self) -> Step:
        """The step that stands for all code of the call."""
        with _MAKING:
            step = self._step
            if step is None:
                call = self._call()
                step = call.step = Step(
                    _nothing, owner=self.entry.owner, label=f"the handler of {call.name}", call=call
                )
                self._step = step
        step.done = self.done
        return step

    def call(self) -> Call:
        """The call."""
        call = self.step().call
        assert call is not None  # noqa: S101 - `step` gives it one
        return call

    def _call(self) -> Call:
        from mibyan.dispatch.call import Call

        made = Call(self.entry.name, self.raw, self.session, *self.ids)
        made.entry, made.started, made.interrupts = self.entry, self.started, self.interrupts
        return made


def _nothing() -> None:
    """What a step does that runs already."""
