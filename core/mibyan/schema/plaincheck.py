"""`plain_check`: whether arguments are clearly right for one of the plainest schemas, told without the library.

Importing it and compiling takes a hundred times as long as a first call may. A yes is the library's yes and means that
nothing needs a repair; whatever isn't plain (a keyword, a type, a value) is a no, which says nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mibyan.schema.library import MAX_INTEGER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Test = Callable[[Any], bool]

#: Keywords that say nothing about a value.
_TELLING: Final = frozenset(("description", "title", "default", "examples"))
_OBJECT: Final = _TELLING | {"type", "properties", "required", "additionalProperties"}
#: The keywords that are understood, by type.
_UNDERSTOOD: Final = {
    "string": _TELLING | {"type", "enum", "minLength", "maxLength"},
    "integer": _TELLING | {"type", "minimum", "maximum"},
    "number": _TELLING | {"type", "minimum", "maximum"},
    "boolean": _TELLING | {"type"},
}


def plain_check(schema: Any) -> Callable[[Any], bool] | None:
    """What tells whether arguments are clearly right; `None` for a schema that isn't plain.

    Args:
        schema: The JSON Schema of the arguments.
    """
    try:
        return _compiled(schema)
    except Exception:  # an object of the host's that won't be compared, say: such a schema isn't JSON, let alone plain
        return None


def _compiled(schema: Any) -> Callable[[Any], bool] | None:
    if type(schema) is not dict or schema.get("type") != "object" or not schema.keys() <= _OBJECT:
        return None
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if (
        type(properties) is not dict
        or type(required) is not list
        or type(schema.get("additionalProperties", True)) is not bool
    ):
        return None
    if not all(type(name) is str for name in required):
        return None
    tests = {name: _test(part) for name, part in properties.items()}
    if not all(tests.values()):
        return None
    return _Check({name: test for name, test in tests.items() if test is not None}, frozenset(required))


class _Check:
    """Tests by the names of the properties, and which must be there."""

    def __init__(self, tests: Mapping[str, Test], required: frozenset[str]) -> None:
        self._tests = tests
        self._required = required

    def __call__(self, args: Any) -> bool:
        if type(args) is not dict or not self._required <= args.keys() or not args.keys() <= self._tests.keys():
            return False
        return all(self._tests[name](value) for name, value in args.items())


def _test(schema: Any) -> Test | None:
    """The test of one property's value; `None` where its schema isn't plain."""
    kind = schema.get("type") if type(schema) is dict else None
    if type(kind) is not str or kind not in _UNDERSTOOD or not schema.keys() <= _UNDERSTOOD[kind]:
        return None
    limits = [schema.get(name) for name in ("minimum", "maximum", "minLength", "maxLength")]
    if not all(limit is None or (type(limit) is int and abs(limit) < MAX_INTEGER) for limit in limits):
        return None
    if any(
        name in schema and schema[name] is None for name in ("minimum", "maximum", "minLength", "maxLength", "enum")
    ):
        return None
    if kind == "boolean":
        return lambda value: type(value) is bool
    return _text_test(schema) if kind == "string" else _number_test(schema, floats=kind == "number")


def _text_test(schema: Mapping[str, Any]) -> Test | None:
    words = schema.get("enum")
    if words is not None and (type(words) is not list or not words or not all(type(word) is str for word in words)):
        return None
    least, most = schema.get("minLength", 0), schema.get("maxLength", MAX_INTEGER)
    if least < 0 or most < 0:
        return None
    return lambda value: (
        type(value) is str and least <= len(value) <= most and value.isascii() and (words is None or value in words)
    )


def _number_test(schema: Mapping[str, Any], *, floats: bool) -> Test:
    least, most = schema.get("minimum", -MAX_INTEGER), schema.get("maximum", MAX_INTEGER)

    def test(value: Any) -> bool:
        if type(value) is int:
            return bool(least <= value <= most and -MAX_INTEGER < value < MAX_INTEGER)
        # A whole float might have to become an integer, and neither infinity nor NaN has a rest.
        return floats and type(value) is float and value % 1.0 > 0 and bool(least <= value <= most)

    return test
