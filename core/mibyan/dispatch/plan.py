"""`Plan`: all that a call of one tool needs and that doesn't change from call to call."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from mibyan.once import once
from mibyan.records import record
from mibyan.schema.frozen import thaw

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

    from mibyan.schema.arguments import ArgumentCheck
    from mibyan.schema.fastread import FastReader
    from mibyan.tools.entry import ToolEntry

#: `inspect.CO_VARKEYWORDS`.
_VAR_KEYWORDS: Final = 0x08

#: What a handler may get beside its arguments.
CONTEXT_KEYS = ("task_id", "session_id", "tool_call_id", "user_task", "enabled_tools", "session")


@record(eq=False, slots=False)
class Plan:
    """A tool's entry with what was made of its schema and its handler's signature, each on first use."""

    entry: ToolEntry
    #: Whether arguments are coerced and validated.
    validates: bool
    #: Characters of a result.
    max_result_chars: int

    @once
    def arguments(self) -> ArgumentCheck:
        """What repairs arguments and validates them."""
        from mibyan.schema.arguments import ArgumentCheck

        return ArgumentCheck(thaw(self.entry.schema["parameters"]))

    @once
    def fast_reader(self) -> FastReader | None:
        """What reads and validates arguments in one step; `None` where the schema is none of the common ones."""
        from mibyan.schema.fastread import compile_reader

        return compile_reader(thaw(self.entry.schema["parameters"]))

    @once
    def context_keys(self) -> tuple[str, ...] | None:
        """The context keys that the handler accepts; `None`: any (it has `**kwargs`)."""
        return accepted_keywords(self.entry.handler)


def accepted_keywords(function: Callable[..., Any] | None) -> tuple[str, ...] | None:
    """Those of a handler's parameters beyond the first that can be given by keyword; `None`: any keyword."""
    if type(function) is FunctionType and not vars(function) and function.__code__.co_argcount:
        return _keywords_of(function.__code__)
    import inspect

    try:
        parameters = list(inspect.signature(function).parameters.values())  # type: ignore[arg-type]
    except Exception:  # A handler may say what it likes of itself.
        return ()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return tuple(p.name for p in parameters[1:] if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))


def _keywords_of(code: CodeType) -> tuple[str, ...] | None:
    """The same of a function that is no more than it looks, for which `inspect` needn't be imported."""
    if code.co_flags & _VAR_KEYWORDS:
        return None
    positional, names = code.co_argcount, code.co_varnames
    first = max(1, code.co_posonlyargcount)
    return (*names[first:positional], *names[positional : positional + code.co_kwonlyargcount])
