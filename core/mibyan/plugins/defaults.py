"""The defaults that a schema of settings gives: what a plugin has when nobody has written anything."""

from __future__ import annotations

from typing import Any


def defaults_of(schema: Any) -> dict[str, Any]:
    """The values of those properties of an object's schema that have a default, or whose own properties have.

    Args:
        schema: A `config_schema`; anything else gives nothing.
    """
    properties = schema.get("properties") if isinstance(schema, dict) else None
    found: dict[str, Any] = {}
    for name, part in properties.items() if isinstance(properties, dict) else ():
        if isinstance(part, dict) and "default" in part:
            found[name] = part["default"]
        elif inner := defaults_of(part):
            found[name] = inner
    return found
