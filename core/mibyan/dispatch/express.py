"""The quick way of a call whose every step is the usual one.

A tool that is called again gets its call compiled: one function in which everything that doesn't change from call to
call is a local name. It knows only the usual course of `Pipeline.steps`: the arguments are right as they are, every hook
answers `None`, the handler gives text or plain data without a secret in it. As soon as anything is otherwise it stops,
and the pipeline goes on with what has run so far (see `Begun`): so there is one meaning of a call, and nothing runs twice.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from mibyan.dispatch.express_parts import (
    Detour,
    args_reader,
    handler_call,
    hook_calls,
    is_usual,
    usual_text,
    with_ids,
)
from mibyan.dispatch.frame import NO_IDS, Frame
from mibyan.dispatch.perform import current_of, is_awaitable
from mibyan.dispatch.replay import Begun, Piece
from mibyan.dispatch.steps import RUNNING
from mibyan.tools.current import CURRENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.dispatch.chains import ChainRunner
    from mibyan.dispatch.frame import Ids
    from mibyan.dispatch.handlers import HandlerSteps
    from mibyan.dispatch.plan import Plan
    from mibyan.dispatch.session import Session
    from mibyan.hooks.table import HookChain, HookTable
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.results import ToolResult
    from mibyan.tools.store import RegistryStore

log = logging.getLogger("mibyan.dispatch")

#: Seconds after which an inline call, where nothing is enforced, is worth a warning.
LONG = 300.0

#: The handler has given nothing yet.
NOTHING: Any = object()


class Watch(Protocol):
    """Whoever can take a call away from the thread that runs it."""

    def begin(self, frame: Frame) -> None:
        """The call's frame; nothing of it has run yet."""

    def enter(self, count: int, value: Any) -> None:
        """So many pieces have run, and the next may.

        Raises:
            TakenError: The call was taken away.
        """

    def go_on(self, frame: Frame, begun: Begun) -> ToolResult | None:
        """Go on in the pipeline; `None`: whoever waits hears of it otherwise."""


class TakenError(BaseException):
    """Somebody else goes on with the call: nobody asks for what becomes of it here."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the compiled calls of one runtime have in common."""

    store: RegistryStore
    hooks: HookTable
    chains: ChainRunner
    handlers: HandlerSteps
    #: Goes on in the pipeline with an inline call.
    go_on: Callable[[Frame, Begun], ToolResult]


@dataclass(frozen=True, slots=True, eq=False)
class Express:
    """A compiled call of one tool in one session, for one state of the registry and the hooks."""

    #: `run(raw, ids, watch)`: the call's text; what the pipeline made of it, when something was unusual; `None`: nothing
    #: has run, or whoever watches goes on.
    run: Callable[[Any, Ids, Watch | None], str | ToolResult | None]
    entry: ToolEntry
    pre: HookChain
    post: HookChain
    #: The foreign code of a call in its order: the pre hooks, the handler, the post hooks.
    functions: list[Callable[..., Any]]

    def done(self, count: int, value: Any) -> list[Piece]:
        """What has run when `count` pieces have taken their usual course, and the handler, if among them, gave `value`."""
        handler_at = len(self.pre.plain)
        return [Piece(each, value if at == handler_at else None) for at, each in enumerate(self.functions[:count])]

    def begun(self, count: int, value: Any, error: BaseException) -> Begun:
        """What has run when `error` ended the quick way in the piece after `count` others.

        Args:
            count: Pieces that took their usual course.
            value: What the handler gave; `NOTHING`: nothing yet.
            error: A `Detour` with what the piece gave, or what was raised.
        """
        pieces, now = self.done(count, value), self.functions[count:]
        if not now:
            return Begun(self.entry, self.pre, self.post, pieces)
        if count == len(self.pre.plain) and value is not NOTHING and not isinstance(error, KeyboardInterrupt):
            # The handler is through; how its value reads is for the pipeline to say.
            pieces.append(Piece(now[0], value))
        elif isinstance(error, Detour):
            pieces.append(Piece(now[0], error.value))
        else:
            pieces.append(Piece(now[0], error=error))
        return Begun(self.entry, self.pre, self.post, pieces)


def compile_call(around: Surroundings, plan: Plan, session: Session) -> Express | None:  # noqa: PLR0915 - see `run`
    """The quick way of calls of a tool in a session, on one thread; `None`: there is none.

    It is for one state of the registry and of the hooks: when either changes it answers `None` for good.
    """
    entry, store, hooks, resting, go_on = plan.entry, around.store, around.hooks, around.chains.resting, around.go_on
    version, generation = store._version, hooks.generation
    pre, post = hooks.ready("pre_tool_call"), hooks.ready("post_tool_call")
    if pre is None or post is None or hooks.ready("transform_tool_result") or not is_usual(plan, pre, post):
        return None
    before, after = hook_calls(pre, entry, session, store), hook_calls(post, entry, session, store)
    keeps_args = any(call.takes_args or call.takes_executed for call in after)
    # Plain tuples are unpacked more quickly.
    asks: list[Any] = [tuple(call) for call in before]
    tells: list[Any] = [tuple(call) for call in after]
    read, bind, copy = args_reader(plan)
    function, spread, handle = handler_call(plan, around.handlers, session)
    owner, render = current_of(store, entry.owner), usual_text(plan, around.handlers)
    current, running = CURRENT, RUNNING

    def run(raw: Any, ids: Ids, watch: Watch | None) -> str | ToolResult | None:  # noqa: PLR0912, PLR0915 - each function in it would be a tenth of the whole
        if store._version != version or hooks.generation != generation or session._closed or resting:
            return None
        outer = running.get()
        if (outer is not None and not outer.done) or current.get() is not None:
            return None
        started = perf_counter()
        try:
            args = read(raw)
            given = args if bind is None else bind(args)
        except Exception:
            return None
        frame = Frame(entry, session, raw, ids, started)
        running.set(frame)
        acting, value, count, begun = None, NOTHING, 0, None
        try:
            if watch is not None:
                watch.begin(frame)
            for ask, who, fixed, takes_args, _, _, _ in asks:
                if watch is not None:
                    watch.enter(count, value)
                if who is not acting:
                    current.set(acting := who)
                words = fixed.copy() if ids is NO_IDS else with_ids(fixed, ids)
                if takes_args:
                    words["args"] = copy(args)
                answer = ask(**words)
                if answer is not None:
                    raise Detour(answer)
                count += 1
            if keeps_args:
                args = copy(args)
            if watch is not None:
                watch.enter(count, value)
            if owner is not acting:
                current.set(acting := owner)
            value = handle(given, frame) if handle is not None else function(**given) if spread else function(given)
            text = render(value)
            count += 1
            for tell, who, fixed, takes_args, takes_executed, takes_result, takes_duration in tells:
                if watch is not None:
                    watch.enter(count, value)
                if who is not acting:
                    current.set(acting := who)
                words = fixed.copy() if ids is NO_IDS else with_ids(fixed, ids)
                if takes_args:
                    words["args"] = copy(args)
                if takes_executed:
                    words["executed_args"] = copy(args)
                if takes_result:
                    words["result"] = text
                if takes_duration:
                    words["duration_ms"] = round((perf_counter() - started) * 1000, 3)
                answer = tell(**words)
                if answer is not None and is_awaitable(answer):
                    raise Detour(answer)
                count += 1
            if watch is not None:
                watch.enter(count, value)
        except TakenError:
            return None
        except BaseException as error:
            begun = made.begun(count, value, error)
        finally:
            frame.done = True
            running.set(outer)
            if acting is not None:
                current.set(None)
        if begun is not None:
            return go_on(frame, begun) if watch is None else watch.go_on(frame, begun)
        if watch is None and perf_counter() - started > LONG:
            log.warning("Tool %r ran longer than %g s inline, where no deadline is enforced.", entry.name, LONG)
        return text

    functions = [*(call.function for call in before), function_of(entry), *(call.function for call in after)]
    made = Express(run, entry, pre, post, functions)
    return made


def function_of(entry: ToolEntry) -> Callable[..., Any]:
    """The handler, as the pipeline's step calls it."""
    assert entry.handler is not None  # noqa: S101 - what has none isn't usual
    return entry.handler
