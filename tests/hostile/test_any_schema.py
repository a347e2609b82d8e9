"""Whatever a schema and the arguments are: a registration is refused in words, or each call has one well-formed answer."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mibyan import Runtime, ToolCall, ToolResult, ToolSchemaError
from mibyan.schema.formats import FORMATS
from mibyan.schema.jsontext import to_json
from mibyan.tools.results import ERROR_TYPES

from .world import SOON

TEXT = st.text(st.characters(exclude_categories=[]), max_size=8)  # Lone surrogates among it.
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(4000, 6000).map(lambda digits: 10**digits), st.floats(), TEXT,
    st.sampled_from(["1", "true", "null", "[1]", '{"a": 1}', "NaN", "1e400", "", " "]),
)  # fmt: skip
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT | st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip

KEYS = ["type", "properties", "required", "items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf", "not",
        "enum", "const", "$ref", "$defs", "definitions", "pattern", "format", "minimum", "maximum", "exclusiveMinimum",
        "multipleOf", "minLength", "maxLength", "minItems", "uniqueItems", "contains", "default", "nullable", "if", "then",
        "patternProperties", "propertyNames", "dependentRequired", "unevaluatedProperties", "$id", "$schema", "description",
        "$dynamicRef", "$anchor", "dependencies", "additionalItems", "divisibleBy", "id", "exclusiveMaximum", "$recursiveRef"]  # fmt: skip
TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null", "any", "", "Object"])
REFS = st.sampled_from(
    ["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/nothing", "other.json", "#a", "http://[", "//"]
)


def parts(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Something that looks like a schema: keywords with values that fit, or anything."""
    fitting = {
        "type": TYPES | st.lists(TYPES, max_size=3), "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        "required": st.lists(st.sampled_from("abcd"), max_size=2) | st.booleans() | st.none(),
        "items": inner | st.lists(inner, max_size=2), "additionalProperties": inner | st.booleans(),
        "anyOf": st.lists(inner, max_size=2), "oneOf": st.lists(inner, max_size=2), "allOf": st.lists(inner, max_size=2),
        "not": inner, "enum": st.lists(SCALARS, max_size=3), "const": JSON, "$ref": REFS,
        "$defs": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
        "pattern": st.sampled_from(["^a", "(", "(a+)+$", "[", r"\d", "\ud800"]), "format": st.sampled_from(["date", "uri", "x"]),
        "minimum": st.integers() | st.floats(), "multipleOf": st.sampled_from([0, 0.1, 3, -1]), "minLength": st.integers(-1, 3),
        "default": JSON, "nullable": st.booleans(), "exclusiveMinimum": st.integers() | st.booleans(), "additionalItems": inner,
        "dependencies": st.dictionaries(st.sampled_from("abc"), inner | st.lists(st.sampled_from("abc"), max_size=2), max_size=2),
        "id": REFS, "divisibleBy": st.sampled_from([0, 2, 0.5]), "$recursiveRef": REFS,
    }  # fmt: skip

    def fill(keys: list[str]) -> st.SearchStrategy[Any]:
        return st.fixed_dictionaries(
            {key: st.one_of(fitting.get(key, JSON), fitting.get(key, JSON), JSON) for key in keys}
        )

    return st.lists(st.sampled_from(KEYS), max_size=4, unique=True).flatmap(fill)


SCHEMAS = st.recursive(st.fixed_dictionaries({}, optional={"type": TYPES}) | JSON, parts, max_leaves=6)
PARAMETERS = st.one_of(
    SCHEMAS,
    st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("abc"), SCHEMAS, max_size=3)},
        optional={"required": st.lists(st.sampled_from("abc"), max_size=2), "additionalProperties": st.booleans(),
                  "$defs": st.dictionaries(st.sampled_from("ab"), SCHEMAS, max_size=2)},
    ),
)  # fmt: skip
ARGUMENTS = st.one_of(
    st.dictionaries(st.sampled_from("abcd") | TEXT, JSON, max_size=3),
    JSON,
    JSON.map(to_json),
    st.dictionaries(st.sampled_from("abc"), SCALARS, max_size=3).map(to_json),
    st.tuples(JSON.map(to_json), st.integers(0, 12)).map(lambda cut: cut[0][: cut[1]]),
)


@pytest.fixture(scope="module")
def rt() -> Iterator[Runtime]:
    """One runtime for all examples: what one leaves behind is the next one's problem."""
    with tempfile.TemporaryDirectory() as folder, Runtime(home=Path(folder) / "home") as runtime:
        runtime._parts._loaded = True
        yield runtime


def check(result: ToolResult) -> None:
    """One well-formed answer."""
    assert result.status in {"ok", "error"}
    assert result.error_type is None or result.error_type in ERROR_TYPES
    assert result.error_type not in {"internal", "tool_exception", "unknown_tool"}, result
    result.text.encode()
    if result.status == "ok":
        assert result.text == "ran"
    else:
        assert json.loads(result.text)["error"] == result.error
    json.dumps(result.to_dict(), allow_nan=False, ensure_ascii=False).encode()


def names_it(error: Exception, tool: str) -> None:
    """The error says which tool it is about."""
    assert f"tool {tool!r}" in str(error)


EXAMPLES = settings(deadline=None, suppress_health_check=list(HealthCheck))


@EXAMPLES
@given(parameters=PARAMETERS, several=st.lists(ARGUMENTS, min_size=1, max_size=3))
def test_any_schema_any_arguments(rt: Runtime, parameters: Any, several: list[Any]) -> None:
    """registry.R1, dispatch.A1 to A4: refused in words with nothing changed, or every call has exactly one answer."""
    ran: list[Any] = []
    generation = rt.registry.generation
    try:
        entry = rt.registry.register(
            "x",
            "t",
            {"description": "d", "parameters": parameters, "strict": True},
            lambda args: ran.append(args) or "ran",
        )
    except (ToolSchemaError, TypeError, ValueError) as error:
        names_it(error, "x")
        assert rt.registry.generation == generation
        return
    assert entry is not None
    for arguments in several:
        for seconds in (None, SOON):
            before = len(ran)
            result = rt.execute(ToolCall("x", arguments), timeout=seconds)
            check(result)
            assert len(ran) - before == (result.status == "ok")
    for format_ in FORMATS:
        json.dumps(rt.definitions(format=format_))
    assert rt.registry.deregister("x")


@EXAMPLES
@given(schema=st.one_of(JSON, SCHEMAS, st.fixed_dictionaries({}, optional={"parameters": SCHEMAS, "description": JSON,
                                                                          "name": JSON, "type": JSON, "function": SCHEMAS,
                                                                          "strict": st.booleans() | JSON})))  # fmt: skip
def test_any_schema_as_a_whole(rt: Runtime, schema: Any) -> None:
    """registry.R1: whatever is given as a schema, it is taken or refused in words; what is taken can be sent."""
    try:
        rt.registry.register("y", "t", schema, lambda args: "ran")
    except (ToolSchemaError, TypeError, ValueError) as error:
        names_it(error, "y")
        assert rt.registry.get_entry("y") is None
        return
    found = rt.registry.get_schema("y")
    assert found["name"] == "y"
    assert found["parameters"]["type"] == "object"
    check(rt.execute(ToolCall("y", {})))
    for format_ in FORMATS:
        json.dumps(rt.definitions(format=format_))
    assert rt.registry.deregister("y")


@EXAMPLES
@given(
    name=st.one_of(TEXT, JSON), toolset=st.one_of(TEXT, JSON), handler=st.one_of(st.just(len), JSON),
    options=st.dictionaries(
        st.sampled_from(["aliases", "timeout", "check_ttl", "check_grace", "max_result_size_chars", "thread", "loop", "validate",
                         "parallel", "read_only", "handled_by", "requires_env", "emoji", "description", "override", "is_async",
                         "check_fn", "reads", "approval", "cache"]),
        JSON, max_size=3,
    ),
)  # fmt: skip
def test_any_registration(rt: Runtime, name: Any, toolset: Any, handler: Any, options: dict[str, Any]) -> None:
    """registry.R1: arguments of any type are taken, or refused with the registry as it was."""
    generation, before = rt.registry.generation, rt.registry.snapshot
    try:
        entry = rt.registry.register(name, toolset, {"description": "d"}, handler, **options)
    except (ToolSchemaError, TypeError, ValueError):
        assert rt.registry.generation == generation
        assert rt.registry.snapshot is before
        return
    assert entry is None or rt.registry.deregister(name)
