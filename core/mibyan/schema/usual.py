"""The schema that most tools have, copied at a glance: a description, and properties of types with little beside them.

Whatever is less usual is left to the walk (`mibyan.schema.keywords`), which also says what is wrong with it. Of what
is usual it is known from then on that no provider wants it in other words (`mibyan.schema.portable`).
"""

from __future__ import annotations

from typing import Any

from mibyan.schema.frozen import FrozenDict, FrozenList, UsualParameters
from mibyan.schema.keywords import TYPES

#: Properties and items of one schema altogether; where there are more the walk counts.
_MANY = 90
#: An array says what its items are.
_TYPES = TYPES - {"array"}
_TEXTS = frozenset(("default", "description", "format", "pattern", "title"))
_NUMBERS = frozenset(("default", "maximum", "minimum"))
_COUNTS = frozenset(("maxItems", "maxLength", "minItems", "minLength", *_NUMBERS))
_FLAGS = frozenset((bool, type(None)))
#: What is beyond is for the walk to weigh.
_LARGE = 1 << 63
#: A copy is read-only from the start; its parts are put in their places.
_set = dict.__setitem__


def usual_schema(name: str, schema: Any) -> FrozenDict | None:
    """The read-only copy of a schema of the usual form, as the walk would make it; `None`: it isn't of that form."""
    if type(schema) is not dict or len(schema) != 2 + ("name" in schema):
        return None
    description, parameters = schema.get("description"), schema.get("parameters")
    if type(description) is not str or not description.isascii() or type(parameters) is not dict:
        return None
    found = UsualParameters(parameters)
    if not _Glance().completes(found) or found.get("type") != "object" or "properties" not in found:
        return None
    return FrozenDict({"name": name, "description": description, "parameters": found})


class _Glance:
    """One look at one schema."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _MANY

    def completes(self, found: FrozenDict) -> bool:
        """Put copies of its parts into the copy of a schema; whether it is of the usual form."""
        for key, part in found.items():
            if type(key) is not str:
                return False
            kind = type(part)
            if kind is str:
                if key == "type":
                    if part not in _TYPES and (part != "array" or "items" not in found):
                        return False
                elif key not in _TEXTS or not part.isascii():
                    return False
            elif kind is int:
                if not (0 <= part < _LARGE and key in _COUNTS) and not (-_LARGE < part < 0 and key in _NUMBERS):
                    return False
            elif kind in _FLAGS:
                if key != "default" and (key != "additionalProperties" or part is None):
                    return False
            else:
                copied = self._copied(found, key, part)
                if copied is None:
                    return False
                _set(found, key, copied)
        return True

    def _copied(self, schema: FrozenDict, key: str, part: Any) -> FrozenDict | FrozenList | None:
        """The copy of a keyword's contents."""
        if key == "properties":
            return self._properties(part)
        if key == "required":
            names, properties = _names(part), schema.get("properties")
            if names is None or not isinstance(properties, dict):
                return None
            for name in names:
                if name not in properties:
                    return None
            return names
        if key == "enum":
            return _names(part)
        if key == "items":
            return self._part(part)
        if key == "anyOf" and type(part) is list and part and type(schema) is not UsualParameters:
            branches = [self._part(branch) for branch in part[:_MANY]]
            return None if None in branches or len(branches) < len(part) else FrozenList(branches)
        return None

    def _part(self, value: Any) -> FrozenDict | None:
        if type(value) is not dict or not self._left:
            return None
        self._left -= 1
        found = FrozenDict(value)
        return found if self.completes(found) else None

    def _properties(self, value: Any) -> FrozenDict | None:
        if type(value) is not dict or len(value) > self._left:
            return None
        self._left -= len(value)
        found = FrozenDict(value)
        for name, part in found.items():
            if type(part) is not dict or type(name) is not str or not name.isascii():
                return None
            copied = FrozenDict(part)
            if not self.completes(copied):
                return None
            _set(found, name, copied)
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
