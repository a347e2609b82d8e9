"""The hooks of a compiled call: each implementation with the words that it is called with."""

from __future__ import annotations

from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mibyan.dispatch.perform import current_of, is_awaitable
from mibyan.tools.current import CURRENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.dispatch.quick.frame import Frame
    from mibyan.dispatch.quick.replay import Begun
    from mibyan.dispatch.session import Session
    from mibyan.hooks.table import HookChain
    from mibyan.tools.current import Current
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.results import ToolResult
    from mibyan.tools.store import RegistryStore

    Args = dict[str, Any]


class Detour(Exception):  # noqa: N818 - not an error: the pipeline goes on
    """A value isn't what the usual course expects."""

    def __init__(self, value: Any = None) -> None:
        super().__init__()
        self.value = value


class LeftBehindError(BaseException):
    """The handler was left behind: nobody waits for it any more.

    Args:
        why: Why.
        host: What the host cancelled the call with, if that is why.
    """

    def __init__(self, why: BaseException, host: BaseException | None = None) -> None:
        super().__init__()
        self.why = why
        self.host = host


class Watch(Protocol):
    """Whoever can take a call away from the thread that runs it."""

    def enter(self, frame: Frame) -> None:
        """The next piece of a call may run; at last, that there is none.

        Raises:
            TakenError: The call was taken away.
        """

    def go_on(self, frame: Frame, begun: Begun) -> ToolResult | None:
        """Go on in the pipeline; `None`: whoever waits hears of it otherwise."""


class HookCall(NamedTuple):
    """One implementation of a hook and how it is called."""

    function: Callable[..., Any]
    who: Current | None
    #: `call(frame, args, text)`: it with its own arguments.
    call: Callable[[Frame, Args, str], Any]


#: What each argument of a hook is, in the call of an implementation.
_WORDS = {
    "tool_name": "tool_name", "toolset": "toolset", "session_id": "session_id", "status": "'ok'", "error_type": "None",
    "error_message": "None", "tool_call_id": "frame.ids[0]", "task_id": "frame.ids[1]", "user_task": "frame.ids[2]",
    "args": "copy(args)", "executed_args": "copy(args)", "result": "text", "duration_ms": "took(frame)",
}  # fmt: skip


@cache
def _caller(names: tuple[str, ...]) -> Callable[..., Callable[[Frame, Args, str], Any]]:
    """What makes a function that calls an implementation with the arguments that it names.

    Written out, as for a dataclass's `__init__`: gathering them in a dict takes thrice the time.
    """
    words = ", ".join(f"{name}={_WORDS[name]}" for name in names)
    source = f"lambda function, tool_name, toolset, session_id, copy, took: lambda frame, args, text: function({words})"
    return eval(source)  # type: ignore[no-any-return]  # noqa: S307 - of our own words only


def _took(frame: Frame) -> float:
    return round((perf_counter() - frame.started) * 1000, 3)


def hook_calls(
    chain: HookChain, entry: ToolEntry, session: Session, store: RegistryStore, copy: Callable[[Args], Args]
) -> list[HookCall]:
    """How the implementations of a chain are called for one tool in one session.

    Args:
        chain: The hooks.
        entry: The tool.
        session: The conversation.
        store: The runtime's, for which they act.
        copy: Copies the arguments of the call.
    """
    own = (entry.name, entry.toolset, session.id, copy, _took)
    return [
        HookCall(each.function, current_of(store, each.owner), _caller(each.names)(each.function, *own))
        for each in chain.plain
    ]


def takes_args(chain: HookChain) -> bool:
    """Whether an implementation is told of the arguments."""
    return any("args" in each.names or "executed_args" in each.names for each in chain.plain)


def asking(calls: list[HookCall]) -> Callable[[Frame, Args, Watch | None], None] | None:
    """What asks the `pre_tool_call` hooks, and raises `Detour` when one has an answer; `None`: there are none."""
    current = CURRENT
    plain: list[Any] = [tuple(call) for call in calls]  # unpacked more quickly than named ones

    def ask(frame: Frame, args: Args, watch: Watch | None) -> None:
        acting = None
        for _, who, call in plain:
            if watch is not None:
                watch.enter(frame)
            if who is not acting:
                current.set(acting := who)
            answer = call(frame, args, "")
            if answer is not None:
                raise Detour(answer)
            frame.count += 1

    return ask if calls else None


def telling(
    calls: list[HookCall], handlers_owner: Current | None
) -> Callable[[Frame, Args, str, Watch | None], None] | None:
    """What tells the `post_tool_call` hooks of a call that went well; `None`: there are none."""
    current = CURRENT
    plain: list[Any] = [tuple(call) for call in calls]

    def tell(frame: Frame, args: Args, text: str, watch: Watch | None) -> None:
        acting = handlers_owner
        for _, who, call in plain:
            if watch is not None:
                watch.enter(frame)
            if who is not acting:
                current.set(acting := who)
            answer = call(frame, args, text)
            if answer is not None and is_awaitable(answer):
                raise Detour(answer)
            frame.count += 1

    return tell if calls else None
