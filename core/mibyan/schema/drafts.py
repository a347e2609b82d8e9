"""Words of JSON Schema's earlier drafts and of OpenAPI 3.0, and what they are in 2020-12 (registry.R1, D4).

What a model is shown, what coercion reads and what is validated all go through here, so that they mean the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.schema.keywords import KEYWORDS, MAX_CONTAINERS
from mibyan.schema.parts import LIST_KEYWORDS, MEMBER_KEYWORDS, SCHEMA_KEYWORDS

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Keywords that 2020-12 doesn't have, though earlier drafts or OpenAPI have them.
OLD = frozenset((
    "$recursiveAnchor", "$recursiveRef", "additionalItems", "dependencies", "divisibleBy", "id", "nullable",
))  # fmt: skip
#: Keywords that had another form once.
REFORMED = frozenset(("exclusiveMaximum", "exclusiveMinimum", "items", "required", "type"))

#: What a serialiser writes for "there is none" says nothing; where null is a value (`const`, `default`), it stays.
_ABSENT_IF_NULL = frozenset(KEYWORDS) - {"type"}
_LIMITS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
#: What there is to look at under a keyword.
_ROLES = {
    **dict.fromkeys(_ABSENT_IF_NULL | REFORMED, "any"),
    **dict.fromkeys(SCHEMA_KEYWORDS, "schema"),
    **dict.fromkeys(LIST_KEYWORDS, "list"),
    **dict.fromkeys(MEMBER_KEYWORDS, "members"),
    **dict.fromkeys(("$id", "$schema"), "address"),
    **dict.fromkeys(OLD, "old"),
}


def modern(schema: Any) -> Any:
    """A schema in the words of 2020-12; the very same object if it is in them already, or can't be read."""
    try:
        if is_modern(schema):
            return schema
        from mibyan.schema.portable_rewrite import modernised

        return modernised(schema)
    except Exception:  # too large, or broken in a way that registering a tool would have refused
        return schema


def is_modern(schema: Any) -> bool:
    """Whether a schema and all within it are in the words of 2020-12, as far as Mibyan knows others."""
    nodes = [schema]
    for node in nodes:
        if not isinstance(node, dict):
            continue
        for key, part in node.items():
            role = _ROLES.get(key)
            if role is None:
                continue
            # An address within a schema makes a document of its own, with a draft of its own.
            if role == "old" or (part is None and key != "type") or (role == "address" and node is not schema):
                return False
            if key in REFORMED and is_old(key, part):
                return False
            if role == "schema":
                nodes.append(part)
            elif role == "list" and isinstance(part, list | tuple):
                nodes += part
            elif role == "members" and isinstance(part, dict):
                nodes += part.values()
        if len(nodes) > MAX_CONTAINERS:
            return True
    return True


def has_nulls(schema: Mapping[str, Any]) -> bool:
    """Whether null stands where a keyword's contents should."""
    return any(schema[key] is None for key in _ABSENT_IF_NULL & schema.keys())


def is_old(key: str, part: Any) -> bool:
    """Whether a keyword of `REFORMED` has its old form."""
    if key == "type":
        return part == "any" if isinstance(part, str) else isinstance(part, list | tuple) and "any" in part
    return isinstance(part, list | tuple) if key == "items" else isinstance(part, bool)


def modernise(schema: dict[str, Any], original: Mapping[str, Any]) -> None:
    """Say a schema's own keywords in the words of 2020-12; null is seen to elsewhere.

    Args:
        schema: Its parts are modern; it is changed.
        original: As it was before.
    """
    for key in [key for key, part in schema.items() if part is None and key in _ABSENT_IF_NULL]:
        del schema[key]
    if isinstance(schema.get("id", 0), str | None):  # drafts 3 and 4: `$id`
        del schema["id"]
    schema.pop("$recursiveAnchor", None)
    if is_old("type", schema.get("type")):  # draft 3: any type
        del schema["type"]
    _require(schema, original)
    _limit(schema)
    _give_items(schema)
    if "divisibleBy" in schema:
        schema.setdefault("multipleOf", schema.pop("divisibleBy"))
    if isinstance(schema.get("dependencies"), dict):
        _depend(schema, schema.pop("dependencies"))


def _require(schema: dict[str, Any], original: Mapping[str, Any]) -> None:
    """Draft 3: a property says itself that it is required."""
    if isinstance(schema.get("required"), bool):
        del schema["required"]
    properties = original.get("properties")
    members = properties.items() if isinstance(properties, dict) else ()
    names = [name for name, part in members if isinstance(part, dict) and part.get("required") is True]
    if names:
        schema["required"] = list(dict.fromkeys([*schema.get("required", ()), *names]))


def _limit(schema: dict[str, Any]) -> None:
    """Draft 4, OpenAPI 3.0: a limit is exclusive or not."""
    for exclusive, limit in _LIMITS:
        flag = schema.get(exclusive)
        if isinstance(flag, bool):
            del schema[exclusive]
            if flag and limit in schema:
                schema[exclusive] = schema.pop(limit)


def _give_items(schema: dict[str, Any]) -> None:
    """Up to 2019-09: the first items one by one, and then `additionalItems`, which says nothing otherwise."""
    rest = schema.pop("additionalItems", None)
    if isinstance(schema.get("items"), list):
        first = schema.pop("items")
        if first:
            schema["prefixItems"] = first
        if rest is not None:
            schema["items"] = rest


def _depend(schema: dict[str, Any], dependencies: Mapping[str, Any]) -> None:
    """Up to draft 7: names, a name (draft 3) or a schema, for objects that have a property."""
    names: dict[str, list[str]] = dict(schema.get("dependentRequired", {}))
    schemas: dict[str, Any] = dict(schema.get("dependentSchemas", {}))
    for name, part in dependencies.items():
        if isinstance(part, str | list | tuple):
            wanted = [part] if isinstance(part, str) else part
            names[name] = list(dict.fromkeys([*names.get(name, ()), *wanted]))
        else:
            schemas[name] = {"allOf": [schemas[name], part]} if name in schemas else part
    if names:
        schema["dependentRequired"] = names
    if schemas:
        schema["dependentSchemas"] = schemas
