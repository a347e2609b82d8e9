"""What the pipeline asks its driver for: to run a piece of somebody's code.

The pipeline is a generator. It yields a `Step` wherever code that isn't Mibyan's own must run (a check, a hook, an
approval, a handler) and is given the `Outcome`. While such code runs the generator stands still, so whoever waits for
the call can take it over: that is how a hook or handler that hangs is abandoned and the call still answered.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mibyan.records import field, record

if TYPE_CHECKING:
    from mibyan.dispatch.call import Call
    from mibyan.dispatch.quick.frame import Frame
    from mibyan.tools.owner import Owner


class Cancellable(Protocol):
    """Something under way: a call, or a coroutine that is waited for."""

    def cancel(self, why: str) -> None:
        """End it, from any thread; a call's observers still run."""


@record(frozen=False, eq=False)
class Step:
    """A piece of code to run."""

    #: `function(*args, **kwargs)`; an awaitable it gives is awaited.
    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    #: Whose code it is; the facade means this owner while it runs.
    owner: Owner | None = None
    #: What it is, for people.
    label: str = ""
    #: Seconds it may take by itself; `None`: until the call's deadline.
    limit: float | None = None
    #: Whether a person is waited for: the clock of the call, and of those around it, stands still meanwhile.
    person: bool = False
    #: Whether it goes on when the call's deadline has passed (observers).
    late: bool = False
    #: Whether calling `function` gives an awaitable.
    is_async: bool = False
    #: Run on the answer, with it: reads or renders it. What foreign code gave is touched nowhere else.
    finish: Callable[[Any], Any] | None = None
    #: Run on the exception, with it: what `Outcome.told` is; its type and message if left out.
    explain: Callable[[BaseException], Any] | None = None
    #: Where it runs in a guarded call: `pool`, or the name of a tool with a thread of its own.
    thread: str = "pool"
    #: Whether an async function runs on the runtime's loop in any case.
    on_runtime_loop: bool = False
    #: The call it belongs to, told by the driver.
    call: Call | None = None
    #: Why nobody waits for it any more, once that is so.
    over: BaseException | None = None
    #: Whether it came to its end.
    done: bool = False
    #: Whether it holds the clocks of its call.
    holding: bool = False
    #: What it waits for: coroutines, and calls made within it.
    nested: set[Cancellable] | None = None

    def attend(self, child: Cancellable) -> None:
        """Let the end of this step reach `child`."""
        if self.nested is None:
            self.nested = set()
        self.nested.add(child)
        if self.over is not None:
            child.cancel(str(self.over))

    def leave(self, child: Cancellable) -> None:
        """`child` is over."""
        if self.nested is not None:
            self.nested.discard(child)

    def end(self, why: BaseException) -> None:
        """Give the step up: what it waits for is cancelled, and no call made within it starts any more."""
        self.over = why
        if self.call is not None:
            self.call.release(self)
        for child in tuple(self.nested or ()):
            child.cancel(str(why) or "the call it belongs to is over")


@record(frozen=False, eq=False)
class Outcome:
    """What became of a step: a value, or how it ended."""

    value: Any = None
    #: One of `ENDINGS`, `StepTimeout`, `NonsenseError` or `StepFailed`: never an exception of foreign code.
    error: BaseException | None = None
    #: What foreign code's exception says: `Type: message`, or what the step's `explain` made of it.
    told: Any = None


class StepTimeout(Exception):  # noqa: N818 - a state of the call, not somebody's mistake
    """A step's own limit passed (a hook that hangs)."""


class DeadlinePassed(Exception):  # noqa: N818 - likewise
    """The call's deadline passed."""


class CallCancelled(BaseException):
    """The call was cancelled from outside: the session was interrupted, the runtime closed, the host's task ended."""


class StepFailed(Exception):  # noqa: N818 - likewise
    """Foreign code raised; the text says what. Its exception itself is touched no more: it may lie about what it is."""


class NonsenseError(Exception):
    """An implementation's answer can't be read."""


#: How a call ends that doesn't end by itself.
ENDINGS = (KeyboardInterrupt, CallCancelled, DeadlinePassed)

#: What is sent in is the `Outcome` of the step (`None` starts the generator).
Steps: TypeAlias = Generator[Step, Any, Any]

#: The step that runs in this context. A thread or a task that outlives the step carries it on: look at `done`.
RUNNING: ContextVar[Step | Frame | None] = ContextVar("mibyan_running", default=None)


def running_step() -> Step | None:
    """The step that runs in this context; see `RUNNING`."""
    held = RUNNING.get()
    return held if held is None or isinstance(held, Step) else held.step()


def enclosing() -> Step | None:
    """The step within which this code runs; `None` outside of every call, and in what outlived its call."""
    step = running_step()
    if step is None or step.call is None or (step.done and step.over is None):
        return None
    return step
