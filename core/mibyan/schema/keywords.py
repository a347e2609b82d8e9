"""The keywords of JSON Schema and what may stand in them; checking a schema makes its read-only copy.

They are those of 2020-12, and those of earlier drafts and of OpenAPI 3.0 that have one clear meaning in it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mibyan.schema.frozen import MAX_DEPTH, FrozenDict, FrozenList
from mibyan.schema.portable_parts import children

if TYPE_CHECKING:
    from collections.abc import Callable

#: The seven types (Validation, section 6.1.1).
TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))

#: Containers of one schema altogether: one that names itself twice at each level has no end.
MAX_CONTAINERS = 20_000

#: What people write for a type, and what they mean.
_MEANT = {
    "bool": "boolean", "dict": "object", "float": "number", "int": "integer", "list": "array", "none": "null",
    "str": "string", "text": "string", "tuple": "array",
}  # fmt: skip


class Fault(Exception):  # noqa: N818 - it never leaves the room
    """What is wrong with a schema.

    Args:
        reason: The rest of a sentence that begins with the field.
        hint: What to write instead.
    """

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        #: The field's path, innermost first: it is gathered on the way out, so a good schema pays nothing for it.
        self.path: list[str] = []

    def within(self, key: object) -> Fault:
        """The same fault, seen from the container that has the field under `key`."""
        self.path.append(f"[{key}]" if isinstance(key, int) else f".{shown(key) if not isinstance(key, str) else key}")
        return self

    @property
    def where(self) -> str:
        """The path from the outside in, such as `parameters.anyOf[0].type`; the middle of a long one is left out."""
        path = "".join(reversed(self.path)).removeprefix(".")
        return path if len(path) <= 200 else f"{path[:100]} … {path[-90:]}"


_NUMBERS = (int, float)
_LISTS = (list, tuple)
#: A copy is a `FrozenDict` from the start, so that what needs no change is copied at once.
_set = dict.__setitem__


class Walk:
    """One walk through one schema."""

    __slots__ = ("_depth", "_left", "_odd")

    def __init__(self) -> None:
        self._depth = MAX_DEPTH
        self._left = MAX_CONTAINERS
        #: Whether a form was seen that is all right beside some keywords only.
        self._odd = False

    def look_around(self) -> None:
        """Look, at the end of each schema, at what stands beside such forms."""
        self._odd = True

    def schema(self, value: Any) -> Any:
        """A read-only copy of a schema: a `FrozenDict` or a boolean.

        Raises:
            Fault: It isn't one.
        """
        if value is True or value is False:
            return value
        if not isinstance(value, dict):
            raise Fault(f"is {shown(value)}, expected a schema (an object)")
        self._enter()
        found = FrozenDict(value)
        key = None
        try:
            for key, part in value.items():
                if type(key) is not str:
                    self._depth += 1
                    return self.schema({text(self, name): each for name, each in value.items()})
                check = KEYWORDS.get(key, Walk.json)
                # Most parts are a type or a text: a call for each would be a third of the whole cost.
                if type(part) is str and part.isascii() and (check is text or (check is _type and part in TYPES)):
                    continue
                if part is None and check is not _type:
                    continue  # a serialiser's way to say that there is none; it is a value where any would do
                checked = check(self, part)
                if checked is not part:
                    _set(found, key, checked)
                if not key.isascii():
                    text(self, key)
        except Fault as fault:
            raise fault.within(key) from None
        if self._odd:
            _fit_together(found)
        self._depth += 1
        return found

    def json(self, value: Any) -> Any:
        """A read-only copy of a JSON value that isn't a schema (a default, say).

        Raises:
            Fault: It isn't JSON.
        """
        if value is None or value is True or value is False:
            return value
        if isinstance(value, str):
            return text(self, value)
        if isinstance(value, _NUMBERS):
            return number(self, value)
        if isinstance(value, dict):
            return self.members(value, Walk.json)
        if isinstance(value, _LISTS):
            return self.items(value, Walk.json)
        raise Fault(f"is {shown(value)}, which isn't a JSON value")

    def members(self, value: Any, check: Callable[[Walk, Any], Any]) -> FrozenDict:
        """An object whose every value is what `check` checks; its keys are names, not keywords.

        Raises:
            Fault: It isn't one.
        """
        if not isinstance(value, dict):
            raise Fault(f"is {shown(value)}, expected an object of names")
        self._enter()
        found = {}
        key = None
        try:
            for key, part in value.items():
                found[text(self, key)] = check(self, part)
        except Fault as fault:
            raise fault.within(key) from None
        self._depth += 1
        return FrozenDict(found)

    def items(self, value: Any, check: Callable[[Walk, Any], Any]) -> FrozenList:
        """An array whose every item is what `check` checks.

        Raises:
            Fault: It isn't one.
        """
        if not isinstance(value, _LISTS):
            raise Fault(f"is {shown(value)}, expected a list")
        self._enter()
        found: list[Any] = []
        try:
            for part in value:
                found.append(check(self, part))  # noqa: PERF401 - its length is the faulty item's index
        except Fault as fault:
            raise fault.within(len(found)) from None
        self._depth += 1
        return FrozenList(found)

    def _enter(self) -> None:
        self._depth -= 1
        self._left -= 1
        if self._depth < 0:
            raise Fault(f"is nested more than {MAX_DEPTH} levels deep")
        if self._left < 0:
            raise Fault(f"has more than {MAX_CONTAINERS} objects and lists")


def text(_walk: Walk | None, value: Any) -> str:
    """Text that can be sent.

    Raises:
        Fault: It isn't text, or has half a surrogate pair, which UTF-8 can't encode.
    """
    if type(value) is str and value.isascii():
        return value
    if not isinstance(value, str):
        raise Fault(f"is {shown(value)}, expected text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise Fault(f"has a lone surrogate at character {error.start}") from None
    return value if type(value) is str else str.__add__("", value)


def number(_walk: Walk, value: Any) -> int | float:
    """A number that JSON can say.

    Raises:
        Fault: It isn't one.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Fault(f"is {shown(value)}, expected a number")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Fault(f"is {shown(value)}, which JSON can't say")
        return float.__pos__(value)
    if value.bit_length() > 4096:
        raise Fault("is an integer too large to be sent")
    return int.__pos__(value)


def _count(walk: Walk, value: Any) -> int | float:
    found = number(walk, value)
    if found < 0 or found != int(found):
        raise Fault(f"is {shown(value)}, expected a whole number from 0")
    return found


def _positive(walk: Walk, value: Any) -> int | float:
    found = number(walk, value)
    if found <= 0:
        raise Fault(f"is {shown(value)}, expected a number above 0")
    return found


def _flag(_walk: Walk, value: Any) -> bool:
    if not isinstance(value, bool):
        raise Fault(f"is {shown(value)}, expected true or false")
    return value


def _type(walk: Walk, value: Any) -> Any:
    if type(value) is str and value in TYPES:
        return value
    if isinstance(value, list | tuple):
        return _distinct(walk.items(value, _one_type))
    return _one_type(walk, value)


def _one_type(_walk: Walk, value: Any) -> str:
    if isinstance(value, str):
        plain = str.__add__("", value)
        if plain in TYPES or plain == "any":  # drafts up to 3 have a name for all of them
            return plain
        meant = _MEANT.get(value.lower(), value.lower())
        hint = f"Write {meant!r}." if meant in TYPES else None
        raise Fault(f"is {shown(value)}, expected one of {', '.join(sorted(TYPES))}", hint)
    hint = "The type of null is 'null', in quotation marks." if value is None else None
    raise Fault(f"is {shown(value)}, expected a type's name or a list of them", hint)


def _distinct(found: FrozenList, *, least: int = 1) -> FrozenList:
    if len(found) < least:
        raise Fault("is empty")
    if len(set(found)) != len(found):
        raise Fault("names something twice")
    return found


def _required(walk: Walk, value: Any) -> Any:
    if isinstance(value, bool):  # draft 3
        walk.look_around()
        return value
    return _names(walk, value)


def _names(walk: Walk, value: Any) -> FrozenList:
    return _distinct(walk.items(value, text), least=0)


def _item_schema(walk: Walk, value: Any) -> Any:
    if isinstance(value, list | tuple):
        walk.look_around()
        return walk.items(value, Walk.schema)
    return walk.schema(value)


def _exclusive(walk: Walk, value: Any) -> Any:
    if isinstance(value, bool):
        walk.look_around()
        return value
    return number(walk, value)


def _fit_together(schema: FrozenDict) -> None:
    """Forms of earlier drafts, and what they need or can't have beside them.

    Raises:
        Fault: It isn't clear what is meant.
    """
    for key, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if schema.get(key) is True and schema.get(limit) is None:
            raise Fault(f"is true, and there is no {limit!r}", f"Write the limit itself: {key!r}: 0.").within(key)
    for step, part in children(schema):
        if isinstance(part, dict) and part.get("required") is True and step[0] != "properties":
            fault = not_a_property()
            for way in reversed(step):
                fault.within(way)
            raise fault
    if isinstance(schema.get("items"), list) and schema.get("prefixItems") is not None:
        hint = "A list of schemas, one an item, is `prefixItems`; `items` is the schema of the others (2020-12)."
        raise Fault("is a list beside 'prefixItems'", hint).within("items")


def not_a_property() -> Fault:
    """What is wrong with a schema that says it is required, and isn't a property."""
    hint = 'Only a property can say so of itself; an object lists the names: "required": ["…"].'
    return Fault("is true, expected a list of names", hint).within("required")


def _dependency(walk: Walk, value: Any) -> Any:
    if isinstance(value, str):  # draft 3
        return text(walk, value)
    return _names(walk, value) if isinstance(value, list | tuple) else walk.schema(value)


def _schema_list(walk: Walk, value: Any) -> FrozenList:
    found = walk.items(value, Walk.schema)
    if not found:
        raise Fault("is empty, expected at least one schema")
    return found


def _schema_members(walk: Walk, value: Any) -> FrozenDict:
    return walk.members(value, Walk.schema)


def _dependencies(walk: Walk, value: Any) -> FrozenDict:
    return walk.members(value, _dependency)


def _name_members(walk: Walk, value: Any) -> FrozenDict:
    return walk.members(value, _names)


def _values(walk: Walk, value: Any) -> FrozenList:
    return walk.items(value, Walk.json)


def shown(value: object) -> str:
    """A value in an error message: short, on one line, whatever it is."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    try:
        spelled = repr(value) if isinstance(value, str | int | float) else type(value).__name__
    except Exception:
        spelled = "a value"
    article = "" if isinstance(value, str | int | float) else "an " if spelled[:1].lower() in "aeiou" else "a "
    return article + (spelled if len(spelled) <= 80 else spelled[:79] + "…")


#: Keywords whose contents have a form; what stands under any other key is a JSON value.
KEYWORDS: dict[str, Callable[[Walk, Any], Any]] = {
    "type": _type,
    **dict.fromkeys(("description", "title", "format", "pattern", "$ref", "$anchor", "$id", "$schema", "$comment",
                     "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "contentEncoding", "contentMediaType"), text),
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"), _schema_members),
    **dict.fromkeys(("additionalItems", "additionalProperties", "propertyNames", "unevaluatedProperties", "unevaluatedItems",
                     "contains", "contentSchema", "not", "if", "then", "else"), Walk.schema),
    **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), _schema_list),
    "items": _item_schema,
    "required": _required,
    "dependencies": _dependencies,
    "dependentRequired": _name_members,
    "enum": _values,
    **dict.fromkeys(("minimum", "maximum"), number),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), _exclusive),
    **dict.fromkeys(("divisibleBy", "multipleOf"), _positive),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
                     "minContains", "maxContains"), _count),
    **dict.fromkeys(("uniqueItems", "nullable", "deprecated", "readOnly", "writeOnly"), _flag),
}  # fmt: skip
