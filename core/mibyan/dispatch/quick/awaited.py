"""The quick way of awaited calls of async tools: on the caller's loop, within the caller's task (see `compiled`, `owntask`)."""

from __future__ import annotations

from time import perf_counter
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.quick.frame import Frame
from mibyan.dispatch.quick.hooks import LeftBehindError
from mibyan.dispatch.quick.owntask import OwnTask, begin
from mibyan.dispatch.steps import RUNNING, Step
from mibyan.tools.current import CURRENT

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mibyan.dispatch.quick.compiled import Express, Parts, Surroundings
    from mibyan.dispatch.quick.frame import Ids
    from mibyan.dispatch.session import Session
    from mibyan.tools.results import ToolResult

    #: Runs an awaited call within so many seconds; its text, what the pipeline made of it, or `None`: nothing has run.
    Awaited = Callable[[Any, Ids, float | None], Coroutine[Any, Any, str | ToolResult | None]]


def awaited_runner(
    around: Surroundings, session: Session, made: Express, parts: Parts, state: tuple[int, int]
) -> Awaited:
    """The one function of an awaited call, for a tool that no hook looks at."""
    store, hooks = around.store, around.hooks
    (version, generation), entry, current, running = state, made.entry, CURRENT, RUNNING
    read, bind, function, spread, handle, render = (
        parts.read, parts.bind, parts.function, parts.spread, parts.handle, parts.render,
    )  # fmt: skip
    owner = parts.owner

    async def run(raw: Any, ids: Ids, seconds: float | None) -> str | ToolResult | None:
        outer = running.get()
        if (store._version != version or hooks.generation != generation or session._closed
            or (outer is not None and not outer.done) or current.get() is not None):  # fmt: skip
            return None
        frame, begun, host = Frame(entry, session, raw, ids, perf_counter()), None, None
        try:
            frame.args = args = read(raw)
            frame.given = given = args if bind is None else bind(args)
        except BaseException as error:
            begun = made.unread(error)
            return None if begun is None else await around.go_on_awaited(frame, begun, seconds)
        try:
            running.set(frame)
            if owner is not None:
                current.set(owner)
            value = handle(given, frame) if handle is not None else function(**given) if spread else function(given)
            if type(value) is CoroutineType:
                value = begin(value)
                if type(value) is OwnTask:
                    value = await _waited(around, frame, value, seconds)
            frame.value = value
            text = render(value)
        except BaseException as error:
            begun = made.begun(frame, error)
            host = error.host if type(error) is LeftBehindError else None
        finally:
            frame.done = True
            if owner is not None:
                current.set(None)
            running.set(outer)
        if begun is None:
            return text
        result = await around.go_on_awaited(frame, begun, seconds)
        if host is not None:
            raise host
        return result

    return run


async def _waited(around: Surroundings, frame: Frame, own: OwnTask, seconds: float | None) -> Any:
    """What a coroutine returns that has something to wait for.

    Raises:
        LeftBehindError: It was left behind.
    """
    from mibyan.dispatch.quick.driven import HandDriven

    def left(behind: bool) -> None:  # noqa: FBT001 - see `HandDriven`
        step: Step = frame.step()
        if behind:
            frame.call().abandoned = True
            around.threads.gave_up(step)
        else:
            step.done = True
            around.threads.came_back(step)

    driven = HandDriven(own, None if seconds is None else seconds - (perf_counter() - frame.started), left)
    frame.session.attend(driven)
    if frame.session.interrupts != frame.interrupts:
        # It came during the first step.
        driven.cancel("the session was interrupted")
    try:
        return await driven.finish()
    finally:
        frame.session.leave(driven)
