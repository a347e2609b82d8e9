"""A tool as it is shown to people and told as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.errors import MibyanError
from mibyan.tools.origin import place_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mibyan.tools.entry import ToolEntry

#: What MCP's hints and the tool's other flags are called for people.
_HINTS = {"read_only": "read-only", "destructive": "destructive", "idempotent": "idempotent",
          "interactive": "interactive", "untrusted_output": "untrusted output"}  # fmt: skip


def describe(entry: ToolEntry, reason: str | None) -> dict[str, Any]:
    """A tool as a JSON object, without its schema.

    Args:
        entry: The tool.
        reason: Why it isn't available; `None`: it is.
    """
    return {
        "name": entry.name, "toolset": entry.toolset, "description": _description(entry), "emoji": entry.emoji,
        "aliases": list(entry.aliases), "plugin": entry.plugin_id, "source": entry.owner.source or None,
        "origin": place_of(entry), "available": reason is None, "reason": reason,
        "requires_env": list(entry.requires_env), "hints": [word for flag, word in _HINTS.items() if getattr(entry, flag)],
        "handled_by": entry.handled_by,
    }  # fmt: skip


def summary(entry: ToolEntry) -> str:
    """The first paragraph of its description."""
    return (entry.description or _description(entry)).strip().split("\n\n")[0]


def parameters(entry: ToolEntry) -> list[list[str]]:
    """A row for each parameter: name, type, whether it is required, description."""
    schema = _schema(entry).get("parameters", {})
    required = schema.get("required", ())
    return [
        [name, _type(spec), "yes" if name in required else "", _text(spec.get("description", ""))]
        for name, spec in schema.get("properties", {}).items()
        if isinstance(spec, dict)
    ]


def _schema(entry: ToolEntry) -> Mapping[str, Any]:
    """The schema as the model sees it; a typed function's is made on first use, and that may fail."""
    try:
        return entry.schema
    except MibyanError:
        return {}


def _description(entry: ToolEntry) -> str:
    return _text(_schema(entry).get("description") or entry.description)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _type(spec: Mapping[str, Any]) -> str:
    """What a parameter may be, in a few words."""
    if "enum" in spec or "const" in spec:
        return " | ".join(
            repr(value) if isinstance(value, str) else str(value) for value in spec.get("enum", [spec.get("const")])
        )
    for key in ("anyOf", "oneOf"):
        if isinstance(spec.get(key), list):
            return " | ".join(dict.fromkeys(_type(part) for part in spec[key] if isinstance(part, dict)))
    kind = spec.get("type", "any")
    words = [str(one) for one in kind] if isinstance(kind, list) else [str(kind)]
    items = spec.get("items")
    if words == ["array"] and isinstance(items, dict):
        return f"array of {_type(items)}"
    return " | ".join(words)
