"""Arguments read and validated in one step, for the schemas that most tools have.

pydantic-core does in a third of a microsecond what the strict reader and the validator do in three. It is only believed
when it says yes, and only for schemas whose every keyword it has a word for: whatever else comes (a repair is due, a key
is unknown, a number isn't finite) raises, and the strict reader and `ArgumentCheck` look at it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mibyan.schema.library import ANNOTATIONS, MAX_INTEGER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Containers inside one another in a schema that is compiled.
_MAX_DEPTH = 12
_PLAIN = frozenset((str, int, float, bool, type(None)))
_CONTAINERS = ("list", "dict", "typed-dict")
_NUMBER_BOUNDS = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt"}


class FastReader(NamedTuple):
    """Reads and validates arguments in one step."""

    #: Gives the arguments, a fresh dict of plain JSON types; raises when they must be looked at closely.
    read: Callable[[Any], dict[str, Any]]
    #: Whether no value in them is a container.
    is_flat: bool


class Unusual(Exception):  # noqa: N818 - not an error: somebody else looks
    """It isn't for the fast reader to say."""


def compile_reader(schema: Mapping[str, Any]) -> FastReader | None:
    """What reads the arguments of a tool with this schema, `None` where the schema has something unusual.

    Args:
        schema: The JSON Schema of the arguments, an object.
    """
    from pydantic_core import SchemaValidator

    try:
        core = _object(schema, 0)
    except Unusual:
        return None
    validator = SchemaValidator({**core, "strict": True})
    from_text, from_python = validator.validate_json, validator.validate_python
    keys = _key_counter(core)
    flat = core["type"] == "typed-dict" and all(_is_flat(field["schema"]) for field in core["fields"].values())

    def read(raw: Any) -> dict[str, Any]:
        if type(raw) is str:
            args: dict[str, Any] = from_text(raw)
            # Each pair has a colon: as many keys as colons means that no key stood twice. An escaped one can't be counted.
            colons = raw.count(":")
            if colons != keys(args) and colons != _colons(args):
                raise Unusual
            if "\\" in raw and "\\u003" in raw:
                raise Unusual
            return args
        if type(raw) is not dict or not flat:
            raise Unusual
        for value in raw.values():
            if type(value) not in _PLAIN:
                raise Unusual
        return from_python(raw)  # type: ignore[no-any-return]

    return FastReader(read, flat)


def _key_counter(core: dict[str, Any]) -> Callable[[Any], int]:
    """What counts the keys in a value of a schema, in it and in its containers."""
    kind = core["type"]
    if kind == "nullable":
        inner = _key_counter(core["schema"])
        return lambda value: 0 if value is None else inner(value)
    if kind == "list":
        return _key_counter_of_several(core["items_schema"])
    if kind == "dict":
        values = _key_counter_of_several(core["values_schema"])
        return lambda value: len(value) + values(value.values())
    if kind != "typed-dict":
        return _none
    fields = [
        (name, _key_counter(field["schema"])) for name, field in core["fields"].items() if not _is_flat(field["schema"])
    ]
    if not fields:
        return len

    def count(value: Any) -> int:
        total = len(value)
        for name, counter in fields:
            if name in value:
                total += counter(value[name])
        return total

    return count


def _key_counter_of_several(core: dict[str, Any]) -> Callable[[Any], int]:
    if _is_flat(core):
        return _none
    inner = _key_counter(core)
    return lambda values: sum(map(inner, values))


def _none(value: Any) -> int:
    """There are no keys in it."""
    del value
    return 0


def _colons(container: Any) -> int:
    """The colons in the text of a container that has each of its keys once, those within keys left out."""
    count, items = 0, container
    if type(container) is dict:
        count, items = len(container), container.values()
    for item in items:
        kind = type(item)
        if kind is str:
            count += item.count(":")
        elif kind is dict or kind is list:
            count += _colons(item)
    return count


def _is_flat(core: dict[str, Any]) -> bool:
    """Whether no value of it is a container."""
    return _is_flat(core["schema"]) if core["type"] == "nullable" else core["type"] not in _CONTAINERS


def _core(schema: Any, depth: int) -> dict[str, Any]:
    """pydantic-core's schema for a part.

    Raises:
        Unusual: There is none that means exactly the same.
    """
    if type(schema) is not dict or depth > _MAX_DEPTH:
        raise Unusual
    said = {key: value for key, value in schema.items() if key not in ANNOTATIONS}
    if "anyOf" in said:
        return _optional(said, depth)
    kind = said.pop("type", None)
    if type(kind) is list and len(kind) == 2 and "null" in kind:
        if "enum" in said or "const" in said:
            raise Unusual
        (other,) = [each for each in kind if each != "null"] or [None]
        return {"type": "nullable", "schema": _core({**said, "type": other}, depth), "strict": True}
    if "enum" in said or "const" in said:
        return _literal(said, kind)
    make = _MAKERS.get(kind) if type(kind) is str else None
    if make is None:
        raise Unusual
    return make(said, depth)


def _optional(said: dict[str, Any], depth: int) -> dict[str, Any]:
    branches = said.pop("anyOf")
    if said or type(branches) is not list or len(branches) != 2 or {"type": "null"} not in branches:
        raise Unusual
    other = branches[branches[0] == {"type": "null"}]
    return {"type": "nullable", "schema": _core(other, depth), "strict": True}


def _literal(said: dict[str, Any], kind: Any) -> dict[str, Any]:
    values = said.pop("enum", None)
    if "const" in said:
        if values is not None:
            raise Unusual
        values = [said.pop("const")]
    if said or kind not in (None, "string") or type(values) is not list or not values:
        raise Unusual
    if not all(type(value) is str for value in values):
        raise Unusual
    return {"type": "literal", "expected": values}


def _string(said: dict[str, Any], depth: int) -> dict[str, Any]:
    del depth
    core = {"type": "str", "strict": True, **_sizes(said, "minLength", "maxLength")}
    return _whole(core, said)


def _sizes(said: dict[str, Any], least: str, most: str) -> dict[str, int]:
    found = {}
    for keyword, word in ((least, "min_length"), (most, "max_length")):
        if keyword in said:
            size = said.pop(keyword)
            if type(size) is not int or not 0 <= size < 1 << 31:
                raise Unusual
            found[word] = size
    return found


def _bounds(said: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for keyword, word in _NUMBER_BOUNDS.items():
        if keyword in said:
            bound = said.pop(keyword)
            if type(bound) is not int or not -1 << 53 < bound < 1 << 53:
                raise Unusual
            found[word] = bound
    return found


def _integer(said: dict[str, Any], depth: int) -> dict[str, Any]:
    del depth
    # Integers too large for the library that judges otherwise are its guard's to refuse.
    limits = {"lt": MAX_INTEGER, "gt": -MAX_INTEGER, **_bounds(said)}
    return _whole({"type": "int", "strict": True, **limits}, said)


def _number(said: dict[str, Any], depth: int) -> dict[str, Any]:
    del depth
    bounds = _bounds(said)
    whole = {"type": "int", "strict": True, "lt": MAX_INTEGER, "gt": -MAX_INTEGER, **bounds}
    broken = {"type": "float", "strict": True, "allow_inf_nan": False, **bounds}
    # An integer stays one.
    return _whole({"type": "union", "choices": [whole, broken], "mode": "left_to_right"}, said)


def _boolean(said: dict[str, Any], depth: int) -> dict[str, Any]:
    del depth
    return _whole({"type": "bool", "strict": True}, said)


def _array(said: dict[str, Any], depth: int) -> dict[str, Any]:
    if "items" not in said:
        raise Unusual
    items = _core(said.pop("items"), depth + 1)
    return _whole({"type": "list", "strict": True, "items_schema": items, **_sizes(said, "minItems", "maxItems")}, said)


def _object(schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
    said = {key: value for key, value in schema.items() if key not in ANNOTATIONS and key != "type"}
    rest = said.pop("additionalProperties", True)
    properties, required = said.pop("properties", None), said.pop("required", [])
    if properties is None or (not properties and rest is not False and type(rest) is dict):
        if type(rest) is not dict or required:
            raise Unusual
        values = _core(rest, depth + 1)
        return _whole(
            {"type": "dict", "strict": True, "keys_schema": {"type": "str", "strict": True}, "values_schema": values},
            said,
        )
    if type(properties) is not dict or type(required) is not list or not set(required) <= properties.keys():
        raise Unusual
    fields = {}
    for name, part in properties.items():
        core = _core(part, depth + 1)
        fields[name] = {"type": "typed-dict-field", "schema": core, "required": name in required}
    # Further keys may be fine; but nothing is known of their values.
    return _whole({"type": "typed-dict", "fields": fields, "extra_behavior": "forbid", "strict": True}, said)


def _whole(core: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """`core`, if it says all that was said.

    Raises:
        Unusual: Something is left over.
    """
    if said:
        raise Unusual
    return core


_MAKERS: dict[str, Callable[[dict[str, Any], int], dict[str, Any]]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": lambda said, _: _whole({"type": "none"}, said),
    "array": _array,
    "object": _object,
}
