"""A tool's definition in the words of each provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mibyan.schema.frozen import freeze
from mibyan.schema.portable import Inexpressible, portable
from mibyan.text import suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mibyan.schema.frozen import FrozenDict

    #: Takes a reason.
    Note: TypeAlias = Callable[[str], object] | None


def render(
    schema: Mapping[str, Any],
    format: str,  # noqa: A002 - the public surface calls it so
    *,
    annotations: Mapping[str, bool] | None = None,
    note: Callable[[str], object] | None = None,
) -> dict[str, Any]:
    """One tool as a provider wants it told; its parts are shared with `schema`, not copied.

    Its parameters are portable (`mibyan.schema.portable`): as they are, where the provider takes them so.

    With `strict: true` in the schema OpenAI's formats have the parameters of a strict function
    (`mibyan.schema.portable_strict`); where there are none, the usual ones, and `strict: false`.

    Args:
        schema: A normalised schema: `{"name", "parameters"}` and perhaps `"description"` and more.
        format: One of `FORMATS`.
        annotations: MCP's hints (2025-06-18, server/tools); only `mcp` tells them.
        note: Is told why a strict function isn't one, in words without a full stop.

    Returns:
        `openai` `{"type": "function", "function": {"name", "description", "parameters"}}`; `openai-responses` `{"type", "name", "description",
        "parameters"}` (both with `"strict"` where the schema has it); `anthropic` `{"name", "description", "input_schema"}`; `gemini` `{"name", "description",
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
    return renderer(schema, annotations or {}, note)


def expressed(
    schema: Mapping[str, Any],
    format: str,  # noqa: A002 - likewise
    *,
    annotations: Mapping[str, bool] | None = None,
    note: Callable[[str], object] | None = None,
) -> tuple[FrozenDict | None, str | None]:
    """The same for a schema that may be anybody's: read-only, or `None` and the reason why there is none.

    Raises:
        KeyboardInterrupt: It came meanwhile; nothing else leaves.
    """
    try:
        definition = render(schema, format, annotations=annotations, note=note)
        frozen: FrozenDict | None = None if definition is None else freeze(definition)
    except KeyboardInterrupt:
        raise
    except Inexpressible as why:
        return None, str(why)
    except BaseException as error:
        from mibyan.text import describe_exception, one_line

        return None, one_line(describe_exception(error))
    return frozen, "the format has no words for its schema" if frozen is None else None


def _openai(schema: Mapping[str, Any], _annotations: Mapping[str, bool], note: Note) -> dict[str, Any]:
    # Providers refuse requests with keys they don't know.
    known = schema if schema.keys() <= _OPENAI_KEYS else {k: v for k, v in schema.items() if k in _OPENAI_KEYS}
    if "strict" in known:
        return {"type": "function", "function": {**_named(schema), **_function(schema, "openai", note)}}
    parameters = portable(schema["parameters"], "openai")
    if parameters is not schema["parameters"]:
        known = {**known, "parameters": parameters}
    return {"type": "function", "function": known}


def _openai_responses(schema: Mapping[str, Any], _annotations: Mapping[str, bool], note: Note) -> dict[str, Any]:
    return {"type": "function", **_named(schema), **_function(schema, "openai-responses", note)}


def _function(schema: Mapping[str, Any], format_: str, note: Note) -> dict[str, Any]:
    """The parameters of an OpenAI function, and whether it is strict if the schema says something about that."""
    wish = schema.get("strict")
    if wish is True:
        from mibyan.schema.portable_strict import strict

        try:
            return {"parameters": strict(schema["parameters"]), "strict": True}
        except Inexpressible as why:
            wish = False
            if note is not None:
                note(str(why))
    parameters = portable(schema["parameters"], format_)
    return {"parameters": parameters, "strict": False} if wish is False else {"parameters": parameters}


def _anthropic(schema: Mapping[str, Any], _annotations: Mapping[str, bool], _note: Note) -> dict[str, Any]:
    return {**_named(schema), "input_schema": portable(schema["parameters"], "anthropic")}


def _gemini(schema: Mapping[str, Any], _annotations: Mapping[str, bool], _note: Note) -> dict[str, Any]:
    return {**_named(schema), "parametersJsonSchema": portable(schema["parameters"], "gemini")}


def _mcp(schema: Mapping[str, Any], annotations: Mapping[str, bool], _note: Note) -> dict[str, Any]:
    return {**_named(schema), "inputSchema": portable(schema["parameters"], "mcp"), "annotations": dict(annotations)}


def _named(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What all formats have: the name, and the description if there is one."""
    named = {"name": schema["name"]}
    if "description" in schema:
        named["description"] = schema["description"]
    return named


_OPENAI_KEYS = frozenset(("name", "description", "parameters", "strict"))

_RENDERERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, bool], Note], dict[str, Any]]] = {
    "openai": _openai,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "mcp": _mcp,
}

#: The formats that definitions can have; the first is the default everywhere.
FORMATS: tuple[str, ...] = tuple(_RENDERERS)
