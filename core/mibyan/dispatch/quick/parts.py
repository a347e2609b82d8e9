"""What a compiled call is made of: how arguments are read, the handler called and its value rendered."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.arguments import copy_arguments, read_arguments
from mibyan.dispatch.perform import is_awaitable
from mibyan.dispatch.plan import CONTEXT_KEYS
from mibyan.dispatch.quick.hooks import Detour
from mibyan.dispatch.values import Rendered
from mibyan.dispatch.values import render as form_of
from mibyan.schema.fastread import Unusual
from mibyan.schema.jsontext import to_json
from mibyan.tools.function import ToolFunction

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.dispatch.handlers import HandlerSteps
    from mibyan.dispatch.plan import Plan
    from mibyan.dispatch.quick.compiled import Surroundings
    from mibyan.dispatch.quick.frame import Frame
    from mibyan.dispatch.session import Session
    from mibyan.hooks.table import HookChain, Implementation

    Args = dict[str, Any]

_DATA = frozenset((dict, list, int, float, bool, type(None)))


def is_usual(plan: Plan, pre: HookChain, post: HookChain) -> bool:
    """Whether nothing about a tool and its hooks is beyond the usual course."""
    entry = plan.entry
    return (
        entry.handler is not None and entry.activate is None and entry.handled_by is None and entry.thread == "caller"
        and entry.check_fn is None and not entry.requires and entry.approval is None and not callable(entry.timeout)
        and not entry.cache and not entry.untrusted_output and not pre.wrappers and not post.wrappers
        and not any(map(_is_async, (*pre.plain, *post.plain)))
    )  # fmt: skip


def _is_async(implementation: Implementation) -> bool:
    import inspect

    return inspect.iscoroutinefunction(implementation.function)


# Arguments -----------------------------------------------------------------------------------------------------------


def args_reader(plan: Plan) -> tuple[Callable[[Any], Args], Callable[[Args], Args] | None, Callable[[Args], Args]]:
    """What reads the arguments of a call, what binds them (`None`: they are bound as they are), what copies them.

    The first two raise where the pipeline has more to say.
    """
    bind = None if _spread(plan) is not None else plan.entry.bind
    if not plan.validates:
        return read_arguments, bind, copy_arguments
    fast = plan.fast_reader
    if fast is not None:
        return fast.read, bind, dict.copy if fast.is_flat else copy_arguments
    check = plan.arguments.check

    def read(raw: Any) -> Args:
        args, repairs, violations = check(read_arguments(raw))
        if repairs or violations:
            raise Unusual
        return args  # type: ignore[no-any-return]

    return read, bind, copy_arguments


# The handler ---------------------------------------------------------------------------------------------------------


def _spread(plan: Plan) -> Callable[..., Any] | None:
    """The function of a typed tool whose arguments are JSON values as they are."""
    made = getattr(plan.entry.handler, "__self__", None)
    return made.direct if type(made) is ToolFunction and plan.entry.bind is not None and plan.validates else None


def handler_call(
    plan: Plan, handlers: HandlerSteps, session: Session
) -> tuple[Callable[..., Any], bool, Callable[[Args, Frame], Any] | None]:
    """How the handler is called: `function(args)`, `function(**args)`, or `handle(args, frame)` if there is one."""
    entry, handler = plan.entry, plan.entry.handler
    assert handler is not None  # noqa: S101 - what has none isn't usual
    direct = _spread(plan)
    if direct is not None:
        return direct, True, None
    if entry.bind is not None:
        return handler, False, lambda args, frame: handler(args, handlers.context(frame.call(), entry))
    accepted = CONTEXT_KEYS if plan.context_keys is None else [key for key in plan.context_keys if key in CONTEXT_KEYS]
    if not accepted:
        return handler, False, None
    visible = session.tool_names
    names = None if visible is None else sorted(visible)

    def seen() -> list[str] | None:
        now = session.tool_names  # A hook may just have changed what there is.
        return names if names is None or now is None else names.copy() if now is visible else sorted(now)

    return handler, False, _caller(tuple(accepted))(handler, session, seen)


#: What each context key is, in the call of a handler.
_WORDS = {
    "session_id": "session.id", "session": "session", "enabled_tools": "seen()",
    "tool_call_id": "frame.ids[0]", "task_id": "frame.ids[1]", "user_task": "frame.ids[2]",
}  # fmt: skip


@cache
def _caller(keys: tuple[str, ...]) -> Callable[..., Callable[[Args, Frame], Any]]:
    """What makes a function that calls a handler with the context keys that it accepts; see `hooks`."""
    words = ", ".join(f"{key}={_WORDS[key]}" for key in keys)
    source = f"lambda handler, session, seen: lambda args, frame: handler(args, {words})"
    return eval(source)  # type: ignore[no-any-return]  # noqa: S307 - of our own words only


def usual_text(plan: Plan, around: Surroundings, generation: int) -> Callable[[Any], str]:
    """What makes a text of a handler's value, and raises where that isn't the whole answer.

    Args:
        plan: The tool's.
        around: What compiled calls have in common.
        generation: That of the hooks: what the handler has added or taken away is the pipeline's to see.
    """
    handlers, hooks = around.handlers, around.hooks
    most, settle = plan.max_result_chars, handlers.settler(plan)
    is_clean = handlers.sieve(plan.entry.requires_env)

    def settled(rendered: Rendered) -> str:
        rendered = settle(rendered)
        if rendered.content is not None or rendered.error is not None:
            raise Detour(rendered)
        return rendered.text

    def render(value: Any) -> str:
        if hooks.generation != generation:
            raise Detour
        kind = type(value)
        if kind is str:
            text: str = value
            if not text.isascii():
                text.encode()  # a lone surrogate raises
        elif kind in _DATA and not (kind is dict and "_multimodal" in value):
            text = to_json(value)
        elif is_awaitable(value):
            raise Detour
        else:
            return settled(form_of(value))
        if len(text) > most or '"error"' in text or not is_clean(text):
            return settled(Rendered(text, is_json=kind is not str))
        return text

    return render
