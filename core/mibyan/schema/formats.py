"""A tool's definition in the words of each provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.schema.portable import portable
from mibyan.text import suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def render(schema: Mapping[str, Any], format: str, *, annotations: Mapping[str, bool] | None = None) -> dict[str, Any]:  # noqa: A002 - the public surface calls it so
    """One tool as a provider wants it told; its parts are shared with `schema`, not copied.

    Its parameters are portable (`mibyan.schema.portable`): as they are, where the provider takes them so.

    Args:
        schema: A normalised schema: `{"name", "parameters"}` and perhaps `"description"` and more.
        format: One of `FORMATS`.
        annotations: MCP's hints (2025-06-18, server/tools); only `mcp` tells them.

    Returns:
        `openai` `{"type": "function", "function": {"name", "description", "parameters"}}`; `openai-responses` `{"type", "name", "description",
        "parameters"}`; `anthropic` `{"name", "description", "input_schema"}`; `gemini` `{"name", "description",
        "parametersJsonSchema"}`; `mcp` `{"name", "description", "inputSchema", "annotations"}`. A description is
        there where the schema has one.

    Raises:
        ValueError: The format isn't known.
        Inexpressible: The provider has no words for the parameters; the message says why.
    """
    try:
        renderer = _RENDERERS[format]
    except (KeyError, TypeError):
        meant = suggest(format, FORMATS) if isinstance(format, str) else None
        hint = f"did you mean {meant!r}?" if meant else f"there are {', '.join(FORMATS)}."
        msg = f"Unknown format {format!r}; {hint}"
        raise ValueError(msg) from None
    return renderer(schema, annotations or {})


def _openai(schema: Mapping[str, Any], _annotations: Mapping[str, bool]) -> dict[str, Any]:
    # Providers refuse requests with keys they don't know.
    known = schema if schema.keys() <= _OPENAI_KEYS else {k: v for k, v in schema.items() if k in _OPENAI_KEYS}
    parameters = portable(schema["parameters"], "openai")
    if parameters is not schema["parameters"]:
        known = {**known, "parameters": parameters}
    return {"type": "function", "function": known}


def _openai_responses(schema: Mapping[str, Any], _annotations: Mapping[str, bool]) -> dict[str, Any]:
    return {"type": "function", **_named(schema), "parameters": portable(schema["parameters"], "openai-responses")}


def _anthropic(schema: Mapping[str, Any], _annotations: Mapping[str, bool]) -> dict[str, Any]:
    return {**_named(schema), "input_schema": portable(schema["parameters"], "anthropic")}


def _gemini(schema: Mapping[str, Any], _annotations: Mapping[str, bool]) -> dict[str, Any]:
    return {**_named(schema), "parametersJsonSchema": portable(schema["parameters"], "gemini")}


def _mcp(schema: Mapping[str, Any], annotations: Mapping[str, bool]) -> dict[str, Any]:
    return {**_named(schema), "inputSchema": portable(schema["parameters"], "mcp"), "annotations": dict(annotations)}


def _named(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What all formats have: the name, and the description if there is one."""
    named = {"name": schema["name"]}
    if "description" in schema:
        named["description"] = schema["description"]
    return named


_OPENAI_KEYS = frozenset(("name", "description", "parameters", "strict"))

_RENDERERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, bool]], dict[str, Any]]] = {
    "openai": _openai,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "mcp": _mcp,
}

#: The formats that definitions can have; the first is the default everywhere.
FORMATS: tuple[str, ...] = tuple(_RENDERERS)
