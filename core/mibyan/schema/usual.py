"""The schema that most tools have, copied at a glance: a description, and properties of simple types.

Whatever is less usual is left to the walk (`mibyan.schema.keywords`), which also says what is wrong with it. Of what
is usual it is known from then on that no provider wants it in other words (`mibyan.schema.portable`).
"""

from __future__ import annotations

from typing import Any

from mibyan.schema.frozen import FrozenDict, FrozenList, UsualParameters
from mibyan.schema.keywords import TYPES

#: More properties than this are counted by the walk.
_MANY = 1000
#: An array says what its items are.
_TYPES = TYPES - {"array"}
_TEXTS = frozenset(("default", "description", "format", "pattern", "title"))
_NUMBERS = frozenset(("default", "maximum", "minimum"))
_FLAGS = frozenset((bool, type(None)))
#: A copy is read-only from the start; its parts are put in their places.
_set = dict.__setitem__


def usual_schema(name: str, schema: Any) -> FrozenDict | None:
    """The read-only copy of a schema of the usual form, as the walk would make it; `None`: it isn't of that form."""
    if type(schema) is not dict or len(schema) != 2 + ("name" in schema):
        return None
    description = schema.get("description")
    if type(description) is not str or not description.isascii():
        return None
    parameters = _parameters(schema.get("parameters"))
    if parameters is None:
        return None
    return FrozenDict({"name": name, "description": description, "parameters": parameters})


def _parameters(value: Any) -> UsualParameters | None:
    if type(value) is not dict:
        return None
    found = UsualParameters(value)
    for key, part in found.items():
        if type(key) is not str:
            return None
        if key == "type":
            if type(part) is not str or part != "object":
                return None
            continue
        if key == "additionalProperties" and (part is True or part is False):
            continue
        copied = _properties(part) if key == "properties" else _names(part) if key == "required" else None
        if copied is None:
            return None
        _set(found, key, copied)
    return found if "type" in found and "properties" in found else None


def _properties(value: Any) -> FrozenDict | None:
    if type(value) is not dict or len(value) > _MANY:
        return None
    found = FrozenDict(value)
    for name, part in found.items():
        copied = _leaf(part)
        if copied is None or type(name) is not str or not name.isascii():
            return None
        _set(found, name, copied)
    return found


def _leaf(value: Any, *, inner: bool = True) -> FrozenDict | None:
    """A schema that has no parts, or with `inner` only `items` that have none."""
    if type(value) is not dict:
        return None
    found = FrozenDict(value)
    for key, part in found.items():
        if type(key) is not str:
            return None
        kind = type(part)
        if kind is str:
            if key == "type":
                if part not in _TYPES and (part != "array" or "items" not in found):
                    return None
            elif key not in _TEXTS or not part.isascii():
                return None
        elif kind is int:
            if key not in _NUMBERS or part.bit_length() > 63:
                return None
        elif key != "default" or kind not in _FLAGS:
            copied = _names(part) if key == "enum" else _leaf(part, inner=False) if inner and key == "items" else None
            if copied is None:
                return None
            _set(found, key, copied)
    return found


def _names(value: Any) -> FrozenList | None:
    """A list of texts, each once."""
    if type(value) is not list:
        return None
    found = FrozenList(value)
    for name in found:
        if type(name) is not str or not name.isascii():
            return None
    return found if len(found) < 2 or len(set(found)) == len(found) else None
