"""The defaults that a schema of settings gives: what a plugin has when nobody has written anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


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


def with_defaults(schema: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a plugin gets as its settings: what was written, and below it the defaults of their schema.

    Args:
        schema: The `config_schema`.
        given: What the operator wrote.
    """
    return _merged(defaults_of(schema), given)


def _merged(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**defaults, **given}
    for name, default in defaults.items():
        value = merged[name]
        if isinstance(default, dict) and isinstance(value, dict):
            merged[name] = _merged(default, value)
    return merged
