"""Where the schemas are within a schema: a property may be called `type` or `$ref`, a default may look like a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: Keywords that hold a schema, a list of schemas, an object of schemas by name (2020-12 and the drafts before it).
#: Before 2020-12 `items` may be a list of them; among `dependencies` there may be lists of names.
SCHEMA_KEYWORDS = frozenset((
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
))  # fmt: skip
LIST_KEYWORDS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
MEMBER_KEYWORDS = frozenset((
    "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties",
))  # fmt: skip


def rewrite(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A copy of a schema in which `change` has been at every schema, from the inside out.

    Args:
        schema: A schema; what isn't one where one should be is left as it is, and so is every value that isn't a
            schema (a default, an enum).
        change: Gets a schema whose parts are done already, a copy of its own, and returns what to put in its place.
    """
    if not isinstance(schema, dict):
        return schema
    copy = dict(schema)
    for key, part in schema.items():
        if key in SCHEMA_KEYWORDS:
            copy[key] = rewrite(part, change)
        elif key in LIST_KEYWORDS and isinstance(part, list | tuple):
            copy[key] = [rewrite(item, change) for item in part]
        elif key in MEMBER_KEYWORDS and isinstance(part, dict):
            copy[key] = {name: rewrite(item, change) for name, item in part.items()}
    return change(copy)


def pointer(path: tuple[str | int, ...]) -> str:
    """A path as a JSON pointer in a URI's fragment (RFC 6901, section 6): `#/properties/days`."""
    from urllib.parse import quote

    return "#" + "".join("/" + quote(str(part).replace("~", "~0").replace("/", "~1"), safe="~") for part in path)
