"""The quick way of a call whose every step is the usual one.

A tool that is called again gets its call compiled: one function in which everything that doesn't change from call to
call is a local name. It knows only the usual course of `Pipeline.steps`: the arguments are right as they are, every hook
answers `None`, the handler gives text or plain data without a secret in it. As soon as anything is otherwise it stops,
and the pipeline goes on with what has run so far (see `Begun`): so there is one meaning of a call, and nothing runs twice.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from mibyan.dispatch.arguments import Prepared
from mibyan.dispatch.perform import current_of
from mibyan.dispatch.quick.frame import NOTHING, Frame
from mibyan.dispatch.quick.hooks import Detour, LeftBehindError, asking, hook_calls, takes_args, telling
from mibyan.dispatch.quick.parts import args_reader, handler_call, is_usual, usual_text
from mibyan.dispatch.quick.replay import Begun, Piece
from mibyan.dispatch.steps import RUNNING
from mibyan.dispatch.values import Rendered
from mibyan.records import record
from mibyan.tools.current import CURRENT

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mibyan.dispatch.chains import ChainRunner
    from mibyan.dispatch.guard import Threads
    from mibyan.dispatch.handlers import HandlerSteps
    from mibyan.dispatch.plan import Plan
    from mibyan.dispatch.quick.awaited import Awaited
    from mibyan.dispatch.quick.frame import Ids
    from mibyan.dispatch.quick.hooks import Watch
    from mibyan.dispatch.session import Session
    from mibyan.hooks.table import HookChain, HookTable
    from mibyan.tools.current import Current
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.results import ToolResult
    from mibyan.tools.store import RegistryStore

    Args = dict[str, Any]

log = logging.getLogger("mibyan.dispatch")

#: Seconds after which an inline call, where nothing is enforced, is worth a warning.
LONG = 300.0


class TakenError(BaseException):
    """Somebody else goes on with the call: nobody asks for what becomes of it here."""


@record
class Surroundings:
    """What the compiled calls of one runtime have in common."""

    store: RegistryStore
    hooks: HookTable
    chains: ChainRunner
    handlers: HandlerSteps
    threads: Threads
    #: Goes on in the pipeline with an inline call.
    go_on: Callable[[Frame, Begun], ToolResult]
    #: Goes on in the pipeline with an awaited call that may take so many seconds.
    go_on_awaited: Callable[[Frame, Begun, float | None], Coroutine[Any, Any, ToolResult]]


class Express:
    """A compiled call of one tool in one session, for one state of the registry and the hooks.

    Args:
        entry: The tool.
        session: The conversation.
        pre: Its `pre_tool_call` hooks.
        post: Its `post_tool_call` hooks.
        functions: The foreign code of a call in its order: the pre hooks, the handler, the post hooks.
        parts: What is done in a call.
    """

    __slots__ = (
        "count", "entry", "functions", "is_inline", "parts", "post", "pre", "run", "run_awaited", "seconds", "session",
    )  # fmt: skip

    #: `run(raw, ids, watch)`: the call's text; what the pipeline made of it, when something was unusual; `None`: nothing
    #: has run, or whoever watches goes on.
    run: Callable[[Any, Ids, Watch | None], str | ToolResult | None]
    #: For an async tool, `await run_awaited(raw, ids, seconds)`: the same, on the caller's loop.
    run_awaited: Awaited | None

    def __init__(
        self, entry: ToolEntry, session: Session, pre: HookChain, post: HookChain, functions: list[Callable[..., Any]],
        parts: Parts,
    ) -> None:  # fmt: skip
        self.entry = entry
        self.session = session
        self.pre = pre
        self.post = post
        self.functions = functions
        self.parts = parts
        self.count = len(functions)
        #: Seconds that the tool may take, where it says so itself.
        self.seconds = None if entry.timeout is None or callable(entry.timeout) else float(entry.timeout)
        #: Whether a call without a time-out runs on the caller's thread.
        self.is_inline = self.seconds is None and not entry.is_async

    def done(self, frame: Frame) -> list[Piece]:
        """What has run of a call and taken its usual course."""
        pieces = [Piece(each) for each in self.functions[: frame.count]]
        if frame.text is not None:
            pieces[len(self.pre.plain)] = Piece(self.entry.handler, Rendered(frame.text), is_finished=True)  # type: ignore[arg-type]
        return pieces

    def begun_so_far(self, frame: Frame | None) -> Begun:
        """What has run of a call whose next piece is running; `None`: nothing has."""
        if frame is None:
            return Begun(self.entry, self.pre)
        # Observers that have begun go on as they are; before that those count that are there once the handler is through.
        post = None if frame.text is None else self.post
        return Begun(self.entry, self.pre, post, self.done(frame), self._prepared(frame))

    def _prepared(self, frame: Frame) -> Prepared:
        """The arguments as they were read; a handler that got them as they are may have changed them since."""
        parts, args = self.parts, frame.args
        bound = None if parts.bind is None else frame.given
        is_own = parts.keeps or parts.spread or bound is not None or frame.count < len(self.pre.plain)
        if not is_own:
            with suppress(BaseException):  # The caller's dict isn't what it was: what is left of them then.
                args = parts.read(frame.raw)
        return Prepared(args, bound)

    def unread(self, error: BaseException) -> Begun | None:
        """Arguments couldn't be read: the pipeline looks at them (`None`), unless it was because of an interrupt."""
        interrupted = issubclass(type(error), KeyboardInterrupt)
        return Begun(self.entry, self.pre, ended=error) if interrupted else None

    def begun(self, frame: Frame, error: BaseException) -> Begun:
        """What has run when something ended the quick way.

        Args:
            frame: The call.
            error: A `Detour` with what the piece that ran gave, or what was raised.
        """
        # Foreign exceptions are asked for nothing, not even for their class: they may lie about it.
        kind = type(error)
        interrupted, value = issubclass(kind, KeyboardInterrupt), error.value if kind is Detour else None  # type: ignore[attr-defined]
        begun, now = self.begun_so_far(frame), self.functions[frame.count :]
        if not now:
            if interrupted:
                raise error  # Everybody has seen the call's end.
            return begun
        if frame.value is not NOTHING and frame.text is None and not interrupted:
            # The handler is through; how its value reads is for the pipeline to say, unless that is known.
            is_finished = type(value) is Rendered
            piece = Piece(now[0], value if is_finished else frame.value, is_finished=is_finished)
        elif kind is Detour:
            piece = Piece(now[0], value)
        else:
            piece = Piece(now[0], error=error.why if kind is LeftBehindError else error)  # type: ignore[attr-defined]
        begun.pieces.append(piece)
        return begun


def compile_call(around: Surroundings, plan: Plan, session: Session, state: tuple[int, int]) -> Express | None:
    """The quick way of calls of a tool in a session, on one thread; `None`: there is none.

    It is for one state of the registry and of the hooks: when either changes it answers `None` for good.

    Args:
        around: What compiled calls have in common.
        plan: The tool's, as it is in that state.
        session: The conversation.
        state: The version of the registry and the generation of the hooks, read before anything else.
    """
    entry, hooks = plan.entry, around.hooks
    pre, post = hooks.ready("pre_tool_call"), hooks.ready("post_tool_call")
    if pre is None or post is None or hooks.ready("transform_tool_result") or not is_usual(plan, pre, post):
        return None
    if entry.is_async and (pre or post or entry.loop == "runtime"):
        return None
    parts = _parts(around, plan, session, pre, post, state)
    functions: list[Any] = [each.function for each in pre.plain]
    functions += [entry.handler, *(each.function for each in post.plain)]
    made = Express(entry, session, pre, post, functions, parts)
    made.run = _runner(around, session, made, parts, state)
    made.run_awaited = None
    if entry.is_async:
        from mibyan.dispatch.quick.awaited import awaited_runner

        made.run_awaited = awaited_runner(around, session, made, parts, state)
    return made


class Parts(NamedTuple):
    """What is done in a call, by the names that `run` has for it."""

    read: Callable[[Any], Args]
    bind: Callable[[Args], Args] | None
    copy: Callable[[Args], Args]
    ask: Callable[[Frame, Args, Watch | None], None] | None
    function: Callable[..., Any]
    spread: bool
    handle: Callable[[Args, Frame], Any] | None
    render: Callable[[Any], str]
    tell: Callable[[Frame, Args, str, Watch | None], None] | None
    #: Whether what the observers get must be copied before the handler runs.
    keeps: bool
    #: For whom the handler acts.
    owner: Current | None
    #: Whether anything in the call acts for somebody.
    acts: bool


def _parts(
    around: Surroundings, plan: Plan, session: Session, pre: HookChain, post: HookChain, state: tuple[int, int]
) -> Parts:
    entry, store = plan.entry, around.store
    read, bind, copy = args_reader(plan)
    before, after = (hook_calls(chain, entry, session, store, copy) for chain in (pre, post))
    owner = current_of(store, entry.owner)
    acts = owner is not None or any(call.who is not None for call in (*before, *after))
    return Parts(
        read, bind, copy, asking(before), *handler_call(plan, around.handlers, session), usual_text(plan, around, state[1]),
        telling(after, owner), takes_args(post), owner, acts,
    )  # fmt: skip


def _runner(  # noqa: PLR0915 - most of it is `run`
    around: Surroundings, session: Session, made: Express, parts: Parts, state: tuple[int, int]
) -> Callable[[Any, Ids, Watch | None], str | ToolResult | None]:
    """The one function of a call: each further one in it would be a tenth of the whole."""
    store, hooks, resting, go_on = around.store, around.hooks, around.chains.resting, around.go_on
    read, bind, copy, ask, function, spread, handle, render, tell, keeps, owner, acts = parts
    (version, generation), entry, current, running = state, made.entry, CURRENT, RUNNING

    def run(raw: Any, ids: Ids, watch: Watch | None) -> str | ToolResult | None:
        outer = running.get()
        if (store._version != version or hooks.generation != generation or session._closed or resting
            or (outer is not None and not outer.done) or current.get() is not None):  # fmt: skip
            return None
        frame, begun = Frame(entry, session, raw, ids, perf_counter()), None
        try:
            frame.args = args = read(raw)
            frame.given = given = args if bind is None else bind(args)
        except BaseException as error:
            begun = made.unread(error)
            return None if begun is None else go_on(frame, begun) if watch is None else watch.go_on(frame, begun)
        try:
            running.set(frame)
            if ask is not None:
                ask(frame, args, watch)
            if keeps:
                frame.args = args = copy(args)
            if watch is not None:
                watch.enter(frame)
            if acts:
                current.set(owner)
            value = handle(given, frame) if handle is not None else function(**given) if spread else function(given)
            frame.value = value
            text = render(value)
            frame.text, frame.count = text, frame.count + 1
            if tell is not None:
                tell(frame, args, text, watch)
            if watch is not None:
                watch.enter(frame)
        except TakenError:
            return None
        except BaseException as error:
            begun = made.begun(frame, error)
        finally:
            frame.done = True
            if acts:
                current.set(None)
            running.set(outer)
        if begun is not None:
            return go_on(frame, begun) if watch is None else watch.go_on(frame, begun)
        if watch is None and perf_counter() - frame.started > LONG:
            log.warning("Tool %r ran longer than %g s inline, where no deadline is enforced.", entry.name, LONG)
        return text

    return run
