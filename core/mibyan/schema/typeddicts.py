"""`typing.TypedDict` before Python 3.12, which pydantic refuses: the same types in `typing_extensions`' words."""

from __future__ import annotations

import functools
import operator
import sys
import typing
from types import GenericAlias, UnionType
from typing import Annotated, Any, Union, get_args, get_origin


def acceptable(annotation: Any, local_names: dict[str, Any]) -> Any:
    """An annotation with each `typing.TypedDict` in it replaced by one that pydantic takes.

    The original doesn't always know which of its keys are required when annotations are text (pydantic's reason);
    here they are resolved, and so known. One that contains itself is left as it is.

    Args:
        annotation: A type.
        local_names: Names of the scope in which it is used, for annotations that are text.
    """
    if sys.version_info >= (3, 12):
        return annotation
    try:
        return _Replacement(local_names).of(annotation, ())
    except Exception:  # pydantic will say what is wrong with it
        return annotation


class _Replacement:
    """One replacement; `outer` are the TypedDicts around the type at hand."""

    def __init__(self, local_names: dict[str, Any]) -> None:
        self._local_names = local_names

    def of(self, annotation: Any, outer: tuple[Any, ...]) -> Any:
        if typing.is_typeddict(annotation):
            if type(annotation).__module__ != "typing" or annotation in outer:
                return annotation
            return self._typeddict(annotation, (*outer, annotation))
        origin, args = get_origin(annotation), get_args(annotation)
        if not args or origin is typing.Literal:
            return annotation
        if origin is Annotated:
            return Annotated[(self.of(args[0], outer), *args[1:])]
        new = tuple(self.of(arg, outer) for arg in args)
        if all(one is other for one, other in zip(new, args, strict=True)):
            return annotation
        return _rebuilt(annotation, origin, new)

    def _typeddict(self, annotation: Any, outer: tuple[Any, ...]) -> Any:
        from typing import NotRequired, Required

        from typing_extensions import TypedDict

        make: Any = TypedDict  # called, not subclassed: the type checker expects literals
        fields: dict[str, Any] = {}
        for name, hint in typing.get_type_hints(annotation, None, self._local_names, include_extras=True).items():
            inner = get_args(hint)[0] if get_origin(hint) in _QUALIFIERS else hint
            wrapper: Any = Required if _is_required(annotation, name, hint) else NotRequired
            fields[name] = wrapper[self.of(inner, outer)]
        made: Any = make(annotation.__name__, fields)
        made.__doc__ = annotation.__doc__
        return made


_QUALIFIERS = (typing.Required, typing.NotRequired)


def _rebuilt(annotation: Any, origin: Any, args: tuple[Any, ...]) -> Any:
    """The same generic type with other arguments."""
    if origin in (Union, UnionType):
        return functools.reduce(operator.or_, args)
    return annotation.copy_with(args) if hasattr(annotation, "copy_with") else GenericAlias(origin, args)


def _is_required(annotation: Any, name: str, hint: Any) -> bool:
    """Whether a key is required: as its own annotation says, else as the class does."""
    if get_origin(hint) in _QUALIFIERS:
        return get_origin(hint) is typing.Required
    return name in annotation.__required_keys__
