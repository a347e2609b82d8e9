"""Parameters for OpenAI's strict functions, whose arguments are decoded to fit and never checked afterwards.

What may stand in them: developers.openai.com/api/docs/guides/structured-outputs, "Supported schemas". Every object is
closed and requires all its properties. So an optional property takes null too, which coercion reads as "left out"
(dispatch.A2); a rule about values that strict functions can't have is left to validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.schema.drafts import modern
from mibyan.schema.portable import Inexpressible, portable
from mibyan.schema.portable_nodes import with_null
from mibyan.schema.portable_parts import named
from mibyan.schema.readings import same
from mibyan.schema.shape import kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEPT = frozenset((
    "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "exclusiveMaximum", "exclusiveMinimum", "format",
    "items", "maxItems", "maximum", "minItems", "minimum", "multipleOf", "pattern", "properties", "required", "title", "type",
))  # fmt: skip
_FORMATS = frozenset(("date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"))
_STRUCTURES = frozenset((
    "$ref", "additionalProperties", "anyOf", "items", "oneOf", "patternProperties", "prefixItems", "properties", "required",
))  # fmt: skip
_ABOUT_OBJECTS = frozenset(("additionalProperties", "properties", "required"))
_ABOUT_LISTS = frozenset(("items", "maxItems", "minItems"))
#: What a schema says about values that it doesn't take: by whether it takes objects and lists.
_ABOUT_OTHERS = {
    (False, False): _ABOUT_OBJECTS | _ABOUT_LISTS, (False, True): _ABOUT_OBJECTS, (True, False): _ABOUT_LISTS,
    (True, True): frozenset[str](),
}  # fmt: skip
_WORDS = frozenset(("description", "title"))

#: Of one function.
_MAX_PROPERTIES = 5_000
_MAX_LEVELS = 10
_MAX_VALUES = 1_000
_MAX_CHARACTERS = 120_000
#: Of one `enum` with more than so many texts.
_MANY_TEXTS = 250
_MAX_TEXTS = 15_000


def strict(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's parameters as a strict function has them.

    Args:
        parameters: A schema, as it was registered; it isn't changed.

    Raises:
        Inexpressible: A strict function can't take what they take; the message is the reason, without a full stop.
    """
    if _is_choice(modern(parameters), 0):
        raise Inexpressible("its arguments have alternatives as a whole")
    root = portable(parameters, "openai")
    walk = _Walk()
    found = walk.schema({key: part for key, part in root.items() if key != "$defs"}, "its arguments", 0)
    if "$defs" in root:
        found["$defs"] = {name: walk.definition(name, part) for name, part in root["$defs"].items()}
    walk.check()
    return found


def _is_choice(root: Any, depth: int, definitions: Any = None) -> bool:
    """Whether several kinds of objects fit as a whole: put together, null could stand in one for what it doesn't have."""
    if not isinstance(root, dict) or depth > _MAX_LEVELS or "anyOf" in root or "oneOf" in root:
        return True
    definitions = root.get("$defs", {}) if definitions is None else definitions
    target = [definitions.get(named(root))] if "$ref" in root else []
    return any(_is_choice(part, depth + 1, definitions) for part in [*target, *root.get("allOf", ())])


class _Walk:
    """One walk through one function's parameters; it counts what is limited."""

    def __init__(self) -> None:
        self._properties = self._values = self._characters = 0

    def definition(self, name: str, schema: Any) -> dict[str, Any]:
        """What stands under a name in `$defs`."""
        self._characters += len(name)
        return self.schema(schema, f"its definition {name!r}", 1)

    def check(self) -> None:
        """Look at what was counted.

        Raises:
            Inexpressible: It is too much.
        """
        for found, limit, what in (
            (self._properties, _MAX_PROPERTIES, "properties"),
            (self._values, _MAX_VALUES, "listed values"),
            (self._characters, _MAX_CHARACTERS, "characters in names and listed values"),
        ):
            if found > limit:
                raise Inexpressible(f"it has {found} {what}, and {limit} are allowed")

    def schema(self, schema: Any, where: str, level: int) -> dict[str, Any]:
        """A schema within a strict function.

        Args:
            schema: It is portable.
            where: What it is about, for the reason.
            level: Objects around it; the arguments are the first.

        Raises:
            Inexpressible: There is none for it.
        """
        if schema.get("not") == {}:
            raise Inexpressible(f"{where} can be nothing at all")
        schema = _joined(schema, where)
        if "$ref" in schema:
            return {"$ref": schema["$ref"]}
        found = {key: part for key, part in schema.items() if key in _KEPT and _is_told(key, part)}
        if "anyOf" in found:
            return self._union(found, where, level)
        kinds = _kinds(found, where)
        for key in _ABOUT_OTHERS[("object" in kinds, "array" in kinds)] & found.keys():
            del found[key]
        if "object" in kinds:
            self._object(found, schema, where, level)
        if "array" in kinds:
            found |= self._array(schema, where, level)
        self._count(found, where)
        return found

    def _union(self, schema: dict[str, Any], where: str, level: int) -> dict[str, Any]:
        if "properties" in schema or "items" in schema:
            raise Inexpressible(f"{where} has alternatives beside what all of them have")
        about = {key: part for key, part in schema.items() if key in _WORDS}
        possible = [branch for branch in schema["anyOf"] if branch.get("not") != {}]
        if not possible:
            raise Inexpressible(f"{where} can be nothing at all")
        branches = [self.schema(branch, where, level) for branch in possible]
        return {**about, "anyOf": branches}

    def _object(self, found: dict[str, Any], schema: dict[str, Any], where: str, level: int) -> None:
        if level >= _MAX_LEVELS:
            raise Inexpressible(f"{where} is nested more than {_MAX_LEVELS} levels deep")
        properties = schema.get("properties") or {}
        closed = schema.get("additionalProperties") is False or schema.get("unevaluatedProperties") is False
        if "patternProperties" in schema or not (
            closed or ("additionalProperties" not in schema and (properties or not level))
        ):
            raise Inexpressible(f"{where} may have any keys")
        required = schema.get("required", ())
        missing = [name for name in required if name not in properties]
        if missing:
            raise Inexpressible(f"{where} must have {missing[0]!r:.80}, and nothing says what that is")
        self._properties += len(properties)
        self._characters += sum(map(len, properties))
        found["properties"] = {
            name: self._property(part, name, level, optional=name not in required) for name, part in properties.items()
        }
        found["required"] = list(properties)
        found["additionalProperties"] = False

    def _property(self, schema: Any, name: str, level: int, *, optional: bool) -> dict[str, Any]:
        found = self.schema(schema, f"its property {name!r:.80}", level + 1)
        return with_null(found, apart=False) if optional else found

    def _array(self, schema: dict[str, Any], where: str, level: int) -> dict[str, Any]:
        """The items of a list; if they are described one by one, each may be what one of them may be."""
        first, rest = schema.get("prefixItems") or [], schema.get("items")
        if not first:
            return {"items": self.schema(rest, f"an item of {where}", level)}
        ends = rest == {"not": {}} or schema.get("maxItems", len(first) + 1) <= len(first)
        forms: list[dict[str, Any]] = []
        for part in first if ends else [*first, rest]:
            form = self.schema(part, f"an item of {where}", level)
            if form not in forms:
                forms.append(form)
        limit = {"maxItems": min(len(first), schema.get("maxItems", len(first)))} if ends else {}
        return {"items": forms[0] if len(forms) == 1 else {"anyOf": forms}, **limit}

    def _count(self, schema: dict[str, Any], where: str) -> None:
        values = schema.get("enum", [schema["const"]] if "const" in schema else [])
        texts = [value for value in values if isinstance(value, str)]
        size = sum(map(len, texts))
        self._values += len(values)
        self._characters += size
        if len(texts) > _MANY_TEXTS and size > _MAX_TEXTS:
            raise Inexpressible(f"{where} lists values of {size} characters, and {_MAX_TEXTS} are allowed")


def _is_told(key: str, part: Any) -> bool:
    """Whether a strict function may have a rule; what it says otherwise is for validation."""
    if key == "format":
        return part in _FORMATS
    return key != "pattern" or not any(group in part for group in ("(?=", "(?!", "(?<"))


def _joined(schema: dict[str, Any], where: str) -> dict[str, Any]:
    """A schema with what its `allOf` says, and `anyOf` for `oneOf`.

    Raises:
        Inexpressible: Two of its parts speak of one thing.
    """
    if "oneOf" in schema:
        if "anyOf" in schema:
            raise Inexpressible(f"{where} has alternatives of two kinds at once")
        schema = {"anyOf" if key == "oneOf" else key: part for key, part in schema.items()}
    if "allOf" not in schema:
        return schema
    own = {key: part for key, part in schema.items() if key != "allOf"}
    joined: dict[str, Any] = {}
    for part in (*(_joined(part, where) for part in schema["allOf"]), own):
        disputed = [key for key in part.keys() & joined.keys() & _KEPT - _WORDS if not same(part[key], joined[key])]
        if disputed or not (_STRUCTURES.isdisjoint(part) or _STRUCTURES.isdisjoint(joined)):
            raise Inexpressible(f"{where} has to fit several schemas at once")
        joined |= part
    return joined


def _kinds(schema: dict[str, Any], where: str) -> list[str]:
    """The types of a schema, which are given to it where what it says leaves no doubt.

    Raises:
        Inexpressible: It says nothing of them.
    """
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if values is not None and any(isinstance(value, dict | list) for value in values):
        raise Inexpressible(f"{where} has objects or lists among its listed values")
    kind = schema.get("type")
    if kind is None and values:
        kinds = list(dict.fromkeys(map(kind_of, values)))
    elif kind is None:
        kinds = ["object"] if "properties" in schema else ["array"] if "items" in schema else []
    else:
        kinds = [kind] if isinstance(kind, str) else list(kind)
    if not kinds:
        raise Inexpressible(f"{where} may be anything")
    if kind is None:
        schema["type"] = kinds[0] if len(kinds) == 1 else kinds
    return kinds
