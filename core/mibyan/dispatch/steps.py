"""What the pipeline asks its driver for: to run a piece of somebody's code.

The pipeline is a generator. It yields a `Step` wherever code that isn't Mibyan's own must run (a check, a hook, an
approval, a handler) and is given the `Outcome`. While such code runs the generator stands still, so whoever waits for
the call can take it over: that is how a hook or handler that hangs is abandoned and the call still answered.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from mibyan.tools.owner import Owner


@dataclass(slots=True, eq=False)
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
    #: Whether the time counts towards the call's deadline (a person's doesn't).
    counts: bool = True
    #: Whether it goes on when the call's deadline has passed (observers).
    late: bool = False
    #: Whether calling `function` gives an awaitable.
    is_async: bool = False
    #: Run on the answer, with it: makes the result's form of a handler's value.
    finish: Callable[[Any], Any] | None = None
    #: Where it runs in a guarded call: `pool`, or the name of a tool with a thread of its own.
    thread: str = "pool"
    #: Whether an async function runs on the runtime's loop in any case.
    on_runtime_loop: bool = False


@dataclass(slots=True, eq=False)
class Outcome:
    """What became of a step: a value, or the exception it ended with."""

    value: Any = None
    error: BaseException | None = None


class StepTimeout(Exception):  # noqa: N818 - a state of the call, not somebody's mistake
    """A step's own limit passed (a hook that hangs)."""


class DeadlinePassed(Exception):  # noqa: N818 - likewise
    """The call's deadline passed."""


class CallCancelled(BaseException):
    """The call was cancelled from outside: the session was interrupted, the runtime closed, the host's task ended."""


#: What is sent in is the `Outcome` of the step (`None` starts the generator).
Steps: TypeAlias = Generator[Step, Any, Any]
