"""`assert_portable`: whether every provider can be told a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.errors import MibyanError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mibyan.runtime import Runtime

__tracebackhide__ = True  # a failing test shows its own lines

#: What the formats call a tool's parameters.
_PARAMETERS = ("parameters", "input_schema", "parametersJsonSchema", "inputSchema")


def assert_portable(definitions: Any, formats: Iterable[str] | None = None) -> None:
    """See that tools can be told to every provider as they are meant.

    A tool that a provider can't take is left out there, with a record in the report; this makes it a failing test.

    Args:
        definitions: A plugin under test, a runtime (all tools that are registered), or any number of definitions: as
            `Runtime.definitions()` gives them, as they are registered (`{"name", "description", "parameters"}`), or
            functions that `@mibyan.tool` decorated.
        formats: The formats that count; `None`: all (`openai`, `openai-responses`, `anthropic`, `gemini`, `mcp`).

    Raises:
        AssertionError: A tool can't be expressed in a format, isn't strict there although it says so, or has no
            description; the message names each.
        TypeError: What was given has no definitions in it.

    Examples:
        >>> import mibyan
        >>> from mibyan.testing import assert_portable
        >>> @mibyan.tool(toolset="weather")
        ... def forecast(city: str, days: int = 3) -> dict:
        ...     '''Weather forecast for a city.'''
        ...     return {}
        >>> assert_portable(forecast)
        >>> assert_portable([{"name": "nameless", "parameters": {"type": "object", "properties": {}}}])
        Traceback (most recent call last):
        ...
        AssertionError: These tools aren't portable:
          nameless: it has no description, by which a model would choose it
    """
    found = [f"  {name}: {problem}" for name, schema in _schemas(definitions) for problem in _problems(schema, formats)]
    if found:
        raise AssertionError("\n".join(["These tools aren't portable:", *dict.fromkeys(found)]))


def _problems(schema: Mapping[str, Any] | MibyanError, formats: Iterable[str] | None) -> Iterator[str]:
    from mibyan.schema.formats import FORMATS, expressed

    if isinstance(schema, MibyanError):
        yield schema.message
        return
    if not str(schema.get("description") or "").strip():
        yield "it has no description, by which a model would choose it"
    for format_ in FORMATS if formats is None else formats:
        relaxed: list[str] = []
        _, reason = expressed(schema, format_, note=relaxed.append)
        if reason is not None:
            yield f"the format {format_!r} can't express it: {reason}"
        yield from (f"it isn't strict in the format {format_!r}: {why}" for why in relaxed)


def _schemas(definitions: Any) -> Iterator[tuple[str, Mapping[str, Any] | MibyanError]]:
    """Names and schemas as the registry has them, whatever they come in; an error where there can't be one."""
    from mibyan.runtime import Runtime
    from mibyan.testing.loaded import LoadedPlugin
    from mibyan.tools.function import ToolFunction

    if isinstance(definitions, Runtime):
        yield from _registered(definitions, definitions.registry.get_all_tool_names())
    elif isinstance(definitions, LoadedPlugin):
        yield from _registered(definitions.runtime, definitions.tools)
    elif isinstance(definitions, ToolFunction):
        yield definitions.name, _read(lambda: definitions.schema)
    elif isinstance(definitions, dict):
        yield _schema_of(definitions)
    elif isinstance(definitions, list | tuple):
        for one in definitions:
            yield from _schemas(one)
    else:
        msg = f"assert_portable takes definitions, a plugin as `load_plugin` gives it, or a runtime, not {type(definitions).__name__}."
        raise TypeError(msg)


def _registered(runtime: Runtime, names: Iterable[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    entries = (runtime.registry.get_entry(name) for name in names)
    yield from ((entry.name, entry.schema) for entry in entries if entry is not None)


def _schema_of(definition: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | MibyanError]:
    from mibyan.schema.definition import normalise_schema
    from mibyan.tools.registration import check_name

    plain = definition.get("function", definition)
    name = plain.get("name") if isinstance(plain, dict) else None
    if not isinstance(name, str):
        msg = f"a definition has a name; this one has the keys {', '.join(map(str, definition))}."
        raise TypeError(msg)
    told = {key: plain[key] for key in ("description", "strict") if key in plain}
    parameters = next((plain[key] for key in _PARAMETERS if key in plain), None)
    schema = told if parameters is None else {**told, "parameters": parameters}
    return name, _read(lambda: normalise_schema(check_name(name), schema))


def _read(schema: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any] | MibyanError:
    try:
        return schema()
    except MibyanError as error:
        return error
