"""A tool's schema as it is registered: checked in its every part, and read-only (registry.R1, R2, R3)."""

from __future__ import annotations

from typing import Any

from mibyan.errors import ToolSchemaError
from mibyan.schema.frozen import FrozenDict
from mibyan.schema.keywords import Fault, Walk, not_a_property, shown, text
from mibyan.schema.usual import usual_schema
from mibyan.text import describe_exception, one_line

_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


def normalise_schema(name: str, schema: Any, description: str | None = None) -> FrozenDict:
    """The schema of the tool `name`, as a read-only copy: `{"name", "description", "parameters", ...}`.

    A `{"type": "function", "function": ...}` wrapper is unwrapped, missing `parameters` become an empty object
    schema, a missing `parameters.type` becomes `object`, and `name` wins over the schema's own. Other keys are kept.

    Args:
        name: The name that the tool is registered under.
        schema: The model-facing schema, a `dict` of JSON types with text keys.
        description: The text for people; it is checked, and never copied into the schema (seed 000).

    Raises:
        ToolSchemaError: Something in it isn't a schema, or isn't JSON; the message names the tool and the field.
    """
    try:
        if description is not None:
            text(None, description)
        return usual_schema(name, schema) or _normalised(name, schema)
    except Fault as fault:
        msg = f"tool {name!r}: {fault.where or 'schema'} {fault.reason}"
        raise ToolSchemaError(msg, hint=fault.hint) from None
    except Exception as error:  # no stack left, or a value's own methods
        msg = f"tool {name!r}: schema can't be read ({one_line(describe_exception(error))})"
        raise ToolSchemaError(msg) from error


def _normalised(name: str, schema: Any) -> FrozenDict:
    walk = Walk()
    found: dict[str, Any] = {"name": name, "description": None, "parameters": None}
    for key, value in _unwrapped(schema).items():
        try:
            if key == "parameters":
                found[key] = _parameters(walk, value)
            elif key == "description":
                found[key] = value if value is None else text(walk, value)
            elif key != "name":
                found[text(walk, key)] = walk.json(value)
        except Fault as fault:
            raise fault.within(key) from None
    if found["description"] is None:
        del found["description"]
    if found["parameters"] is None:
        found["parameters"] = walk.schema(_NO_PARAMETERS)
    return FrozenDict(found)


def _unwrapped(schema: Any) -> dict[Any, Any]:
    """The schema without the wrapper that OpenAI's API puts around it."""
    if isinstance(schema, dict) and "function" in schema and _is_text(schema.get("type"), "function"):
        schema = schema["function"]
    if not isinstance(schema, dict):
        raise Fault(f"is {shown(schema)}, expected a dict")
    return schema


def _is_text(value: Any, text: str) -> bool:
    """Whether a value is this very text; the value's own idea of equality isn't asked."""
    return isinstance(value, str) and str.__eq__(value, text)


def _parameters(walk: Walk, value: Any) -> FrozenDict:
    """The schema of the arguments, which are always an object."""
    if not isinstance(value, dict):
        raise Fault(f"is {shown(value)}, expected an object schema")
    kind = value.get("type", "object")
    if not _is_text(kind, "object"):
        raise Fault(f"is {shown(kind)}, expected 'object': arguments are always an object").within("type")
    schema: FrozenDict = walk.schema(value if "type" in value else {"type": "object", **value})
    if schema.get("required") is True:
        raise not_a_property()
    return schema
