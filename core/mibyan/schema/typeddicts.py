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
    here they are resolved, and so known.

    Args:
        annotation: A type.
        local_names: Names of the scope in which it is used, for annotations that are text.
    """
    if sys.version_info >= (3, 12):
        return annotation
    try:
        return _Replacement(local_names).of(annotation)
    except Exception:  # pydantic will say what is wrong with it
        return annotation


class _Replacement:
    """One replacement of all TypedDicts in a type; each is made once, also where it contains itself."""

    def __init__(self, local_names: dict[str, Any]) -> None:
        self._local_names = local_names
        self._made: dict[Any, Any] = {}

    def of(self, annotation: Any) -> Any:
        if typing.is_typeddict(annotation):
            if type(annotation).__module__ != "typing":
                return annotation
            return self._made[annotation] if annotation in self._made else self._typeddict(annotation)
        origin, args = get_origin(annotation), get_args(annotation)
        if not args or origin is typing.Literal:
            return annotation
        if origin is Annotated:
            return Annotated[(self.of(args[0]), *args[1:])]
        new = tuple(self.of(arg) for arg in args)
        if all(one is other for one, other in zip(new, args, strict=True)):
            return annotation
        return _rebuilt(annotation, origin, new)

    def _typeddict(self, annotation: Any) -> Any:
        from typing_extensions import TypedDict

        make: Any = TypedDict  # called, not subclassed: the type checker expects literals
        made = self._made[annotation] = make(annotation.__name__, {})
        fields: dict[str, Any] = {}
        required = set()
        for name, hint in typing.get_type_hints(annotation, None, self._local_names, include_extras=True).items():
            fields[name] = self.of(get_args(hint)[0] if get_origin(hint) in _QUALIFIERS else hint)
            if _is_required(annotation, name, hint):
                required.add(name)
        made.__annotations__ = fields
        made.__required_keys__, made.__optional_keys__ = frozenset(required), frozenset(fields) - required
        made.__doc__, made.__module__ = annotation.__doc__, annotation.__module__
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
