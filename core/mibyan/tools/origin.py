"""Where a tool comes from: `file:line` of the function behind a handler."""

from __future__ import annotations

from functools import partial
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mibyan.tools.entry import ToolEntry

#: What a class is made of, asked past its metaclass.
_MRO: Any = type.__dict__["__mro__"].__get__
_DICT: Any = type.__dict__["__dict__"].__get__
#: Wrappers that are looked through at most.
_DEPTH = 16


def place_of(entry: ToolEntry) -> str | None:
    """`file:line` of a tool, its manifest's path if its code isn't imported, `None` if that can't be told."""
    return entry.origin or place_of_code(entry.handler)


def place_of_code(handler: Any) -> str | None:
    """`file:line` of the function behind a handler, be it a method, a partial, decorated, or an object that can be called.

    Nothing of the handler's own is run.
    """
    for _ in range(_DEPTH):
        inner = _inner(handler)
        if inner is None:
            break
        handler = inner
    function = handler if type(handler) is FunctionType else _call_of(type(handler))
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}" if function is not None else None


def _inner(handler: Any) -> Any:
    """What a method, a partial or a wrapper stands for; `None` if it is none."""
    kind = type(handler)
    if kind is MethodType:
        return handler.__func__
    if kind is partial:
        return handler.func
    return handler.__dict__.get("__wrapped__") if kind is FunctionType else None


def _call_of(kind: type) -> FunctionType | None:
    """The function that is run when an object of that class is called; a metaclass has no say in it."""
    for base in _MRO(kind):
        found = _DICT(base).get("__call__")
        if found is not None:
            return found if type(found) is FunctionType else None
    return None
