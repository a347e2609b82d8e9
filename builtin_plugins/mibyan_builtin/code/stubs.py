"""`mibyan_tools`, the module that scripts import: a function for each tool, made of the tools' definitions."""

from __future__ import annotations

import keyword
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEADER = '''"""The tools of this session, as functions."""

from __future__ import annotations

from mibyan_tools_client import ToolError, call_tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal


class _Left:
    """Stands for an argument that isn't given."""

    def __repr__(self) -> str:
        return "..."


_LEFT_OUT: Any = _Left()


def _call(name: str, arguments: dict[str, Any], more: dict[str, Any]) -> Any:
    given = {key: value for key, value in arguments.items() if value is not _LEFT_OUT}
    return call_tool(name, {**given, **more})
'''

_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
#: Names in the module that no tool may have.
_TAKEN = frozenset(("ToolError", "call_tool", "Any", "Literal", "TYPE_CHECKING", "annotations"))
#: Unions and literals with more parts are just `Any`.
_MOST = 12


def module(definitions: Mapping[str, Mapping[str, Any]]) -> str:
    """The module's source.

    Args:
        definitions: Each tool's `{"name", "description", "parameters"}` by its name.
    """
    functions: dict[str, str] = {}
    for name, definition in sorted(definitions.items()):
        made = function_name(name)
        while made in functions:
            made += "_"
        functions[made] = _function(made, name, definition)
    names = sorted({"ToolError", "call_tool", *functions})
    return "\n\n".join([_HEADER, *functions.values()]) + f"\n\n__all__ = {names!r}\n"


def function_name(tool: str) -> str:
    """What a tool's function is called: its name, with what a Python name can't have replaced by `_`."""
    name = "".join(char if char.isascii() and (char.isalnum() or char == "_") else "_" for char in tool)
    if name[:1].isdigit() or name.startswith("_"):
        name = f"tool_{name}"
    return f"{name}_" if keyword.iskeyword(name) or name in _TAKEN else name


def _function(made: str, tool: str, definition: Mapping[str, Any]) -> str:
    """One function. What the definition says is data: only names that are names, and literals, get into the source."""
    parameters = definition.get("parameters") or {}
    properties = parameters.get("properties") or {}
    required = [name for name in parameters.get("required") or () if name in properties]
    usable = [name for name in properties if _is_parameter(name)]
    ordered = [name for name in usable if name in required] + [name for name in usable if name not in required]
    signature = [_parameter(name, properties[name], required=name in required) for name in ordered]
    open_ended = parameters.get("additionalProperties", True) is not False or len(usable) < len(properties)
    if open_ended:
        signature.append("**more: Any")
    passed = ", ".join(f"{name!r}: {name}" for name in ordered)
    return (
        f"def {made}({', '.join(signature)}) -> Any:\n"
        f"    {_docstring(definition.get('description'), properties)!r}\n"
        f"    return _call({tool!r}, {{{passed}}}, {'more' if open_ended else '{}'})\n"
    )


def _is_parameter(name: str) -> bool:
    """Whether a property can be a parameter (one that begins with `_` could be a name of the module's own)."""
    plain = name.isascii() and name.isidentifier() and not name.startswith("_")
    return plain and not keyword.iskeyword(name) and name != "more"


def _parameter(name: str, schema: Any, *, required: bool) -> str:
    kind = _annotation(schema)
    if required:
        return f"{name}: {kind}"
    default = schema.get("default", ...) if isinstance(schema, dict) else ...
    plain = default is None or isinstance(default, bool | int | str)
    return f"{name}: {kind} = {_plain(default) if plain else '_LEFT_OUT'}"


def _plain(value: Any) -> str:
    return repr(value if value is None or isinstance(value, bool | int) else str(value))


def _annotation(schema: Any) -> str:
    """The Python type of a schema's values, as far as that is simple."""
    if not isinstance(schema, dict):
        return "Any"
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return _union(_annotation(option) for option in options)
    values = schema.get("enum")
    if values and len(values) <= _MOST and all(isinstance(value, str) for value in values):
        return f"Literal[{', '.join(_plain(value) for value in values)}]"
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union(_annotation({**schema, "type": each}) for each in kind)
    if kind == "array":
        return f"list[{_annotation(schema.get('items'))}]"
    return "dict[str, Any]" if kind == "object" else _TYPES.get(str(kind), "Any")


def _union(kinds: Any) -> str:
    found = list(dict.fromkeys(kinds))
    return "Any" if "Any" in found or len(found) > _MOST else " | ".join(found)


def _docstring(description: Any, properties: Mapping[str, Any]) -> str:
    told = [str(description or "").strip()]
    lines = [
        f"    {name}: {str(schema['description']).strip()}"
        for name, schema in properties.items()
        if isinstance(schema, dict) and schema.get("description")
    ]
    if lines:
        told.append("Args:\n" + "\n".join(lines))
    told.append("Raises:\n    ToolError: It didn't go well.")
    return "\n\n".join(part for part in told if part)
