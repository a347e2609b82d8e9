"""The types that need no library: JSON's own. Their schemas are pydantic's, word for word; a test compares them."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

if TYPE_CHECKING:
    from collections.abc import Callable

    Converter = Callable[[Any], Any]

#: Annotations whose values are JSON values as they are.
_SIMPLE: dict[Any, dict[str, Any]] = {
    str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"}, bool: {"type": "boolean"},
    NoneType: {"type": "null"}, Any: {}, list: {"items": {}, "type": "array"},
    dict: {"additionalProperties": True, "type": "object"},
}  # fmt: skip
_LITERALS = {str: "string", int: "integer", bool: "boolean"}

#: Type arguments inside one another; nobody writes more.
_MAX_DEPTH = 20


def is_plain(annotation: Any, depth: int = _MAX_DEPTH) -> bool:
    """Whether an annotation is made of JSON's types only: no value needs more than a look."""
    try:
        if annotation in _SIMPLE or annotation is None:
            return True
    except TypeError:  # not hashable: `Annotated` with a list, say
        return False
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return all(type(value) in _LITERALS for value in args)
    if origin is dict and args[0] is not str:
        return False
    return origin in _COMPOUND and depth > 0 and all(is_plain(arg, depth - 1) for arg in args)


_COMPOUND = (list, dict, Union, UnionType)


def plain_schema(annotation: Any) -> dict[str, Any]:
    """The JSON Schema of an annotation that `is_plain`, a fresh copy."""
    if annotation is None:
        annotation = NoneType
    if annotation in _SIMPLE:
        return {key: dict(value) if isinstance(value, dict) else value for key, value in _SIMPLE[annotation].items()}
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return _literal_schema(list(args))
    if origin is list:
        return {"items": plain_schema(args[0]), "type": "array"}
    if origin is dict:
        return {"additionalProperties": plain_schema(args[1]) or True, "type": "object"}
    return _union_schema([plain_schema(arg) for arg in sorted(args, key=lambda arg: arg is NoneType)])


def _union_schema(branches: list[dict[str, Any]]) -> dict[str, Any]:
    """Any of some schemas, each once; pydantic puts null last."""
    distinct: list[dict[str, Any]] = []
    for branch in branches:
        if branch not in distinct:
            distinct.append(branch)
    return {"anyOf": distinct} if len(distinct) > 1 else distinct[0]


def _literal_schema(values: list[Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {"const": values[0]} if len(values) == 1 else {"enum": values}
    kinds = {type(value) for value in values}
    if len(kinds) == 1:
        schema["type"] = _LITERALS[kinds.pop()]
    return schema


def converter(annotation: Any) -> Converter | None:
    """What makes a plain annotation's Python value of a JSON value: whole numbers become floats where floats are due.

    Returns:
        A function, or `None` if every JSON value is its own Python value.
    """
    if type(annotation) is type:
        return _to_float if annotation is float else None
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is list and (item := converter(args[0])) is not None:
        return lambda value: [item(each) for each in value] if isinstance(value, list) else value
    if origin is dict and (member := converter(args[1])) is not None:
        return lambda value: {k: member(v) for k, v in value.items()} if isinstance(value, dict) else value
    if origin in (Union, UnionType):
        others = [arg for arg in args if arg is not NoneType]
        # With `int | float` an integer is what it is.
        return converter(others[0]) if len(others) == 1 else None
    return None


def _to_float(value: Any) -> Any:
    try:
        return float(value) if type(value) is int else value
    except OverflowError:
        return value


def is_field(default: Any) -> bool:
    """Whether a default is pydantic's `Field(...)`, which has the real default within it."""
    return type(default).__module__ == "pydantic.fields" and hasattr(default, "is_required")
