"""Annotations of a function's parameters: what they are, also as text, also of types from an enclosing function."""

from __future__ import annotations

import re
import typing
from functools import lru_cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NAMES: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "list": list,
    "dict": dict,
    "None": None,
}
#: Text that is made of these names only means the same everywhere, unless a scope gives them another meaning.
_ONLY_NAMES = re.compile(rf"(?:\b(?:{'|'.join(_NAMES)})\b|[\[\], |])+")


@lru_cache(maxsize=512)
def _everywhere(text: str) -> Any:
    """What an annotation means that has only `_NAMES` in it."""
    return eval(text, {"__builtins__": {}}, _NAMES) if text not in _NAMES else _NAMES[text]  # noqa: S307 - see the pattern


class Scope:
    """The names that a function's annotations can mean.

    Args:
        function: The function.
        local_names: Names of the scope in which it is defined.
        fallback: Names for which nothing else is found: imports that only a type checker sees.
    """

    def __init__(
        self, function: Callable[..., Any], local_names: Mapping[str, Any] | None, fallback: Mapping[str, Any]
    ) -> None:
        self._function = function
        self._local_names = local_names
        self._globals: Mapping[str, Any] = getattr(function, "__globals__", {})
        self._fallback = fallback
        self._usual: bool | None = None

    def resolve(self, annotation: Any) -> Any:
        """The type that an annotation means.

        Raises:
            Exception: A name in it isn't defined, or it isn't an expression; which exception is Python's choice.
        """
        if type(annotation) is type:
            return annotation
        if not isinstance(annotation, str):
            return self._evaluated(annotation) if _has_text(annotation) else annotation
        if _ONLY_NAMES.fullmatch(annotation) and self._is_usual():
            return _everywhere(annotation)
        return self._evaluated(annotation)

    def _is_usual(self) -> bool:
        """Whether the names that mean the same everywhere do so here; a module may have thousands of names."""
        if self._usual is None:
            local_names = self._local_names or ()
            self._usual = not any(name in self._globals or name in local_names for name in _NAMES)
        return self._usual

    def _evaluated(self, annotation: Any) -> Any:
        def holder() -> None: ...

        holder.__annotations__ = {"it": annotation}
        hints = typing.get_type_hints(holder, self.global_names(), self.local_names(), include_extras=True)
        return hints["it"]

    def global_names(self) -> dict[str, Any]:
        """The names of the function's module, and for what is missing there the fallback."""
        return {**self._fallback, **self._globals}

    def local_names(self) -> dict[str, Any]:
        """The enclosing function's names: as it was when it defined this one, and what this one refers to itself."""
        names = dict(self._local_names or {})
        code, cells = getattr(self._function, "__code__", None), getattr(self._function, "__closure__", None)
        for name, cell in zip(code.co_freevars if code else (), cells or (), strict=False):
            try:
                names[name] = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
        return names


def _has_text(annotation: Any, depth: int = 8) -> bool:
    """Whether there is text somewhere in an annotation's arguments."""
    args = get_args(annotation)
    if get_origin(annotation) is typing.Literal:
        return False
    return depth > 0 and any(isinstance(arg, str | typing.ForwardRef) or _has_text(arg, depth - 1) for arg in args)


def means(annotation: Any, wanted: type | None) -> bool:
    """Whether an annotation is `wanted`, by identity; `Optional` and `Annotated` of it are."""
    if annotation is wanted:
        return wanted is not None
    if type(annotation) is type:
        return False
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return means(args[0], wanted)
    if origin in (Union, UnionType):
        return any(means(arg, wanted) for arg in args) and all(means(arg, wanted) or arg is type(None) for arg in args)
    return False
