"""Strict functions, as OpenAI's decoder takes them: registry.D4, dispatch.A2."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mibyan.schema.arguments import ArgumentCheck
from mibyan.schema.definition import normalise_schema
from mibyan.schema.formats import FORMATS, render
from mibyan.schema.library import compile_schema
from mibyan.schema.portable import Inexpressible, portable
from mibyan.schema.portable_strict import strict

from .strategies import HOSTILE_SCHEMAS, VALUES

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NULL = {"type": "null"}
OPENAI = ["openai", "openai-responses"]
NAMES = st.sampled_from(["a", "b", "c"])


def top(properties=None, **more):
    return {"type": "object", "properties": {} if properties is None else properties, **more}


def closed(properties, **more):
    """An object as a strict function has it."""
    return top(properties, required=list(properties), additionalProperties=False, **more)


PERSON = top({"name": STRING}, required=["name"])
DEFS = {"$defs": {"P": PERSON}}

#: A required property's schema, and how it comes out.
WORDS = [
    ({"type": "string", "description": "d", "title": "t", "default": "x", "examples": ["y"], "deprecated": True},
     {"type": "string", "description": "d", "title": "t"}),
    ({"type": "string", "format": "date-time", "pattern": "^a"}, {"type": "string", "format": "date-time", "pattern": "^a"}),
    ({"type": "string", "format": "uri", "pattern": "^(?!b)", "minLength": 1, "maxLength": 2}, STRING),
    ({"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 2}, {"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 2}),
    ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
    ({"type": "array", "items": STRING, "minItems": 1, "uniqueItems": True}, {"type": "array", "items": STRING, "minItems": 1}),
    ({"type": "array", "items": [STRING, INTEGER, STRING], "additionalItems": False},
     {"type": "array", "items": {"anyOf": [STRING, INTEGER]}, "maxItems": 3}),
    ({"type": "array", "items": [STRING, {"$ref": "#/$defs/P"}], "maxItems": 2},
     {"type": "array", "items": {"anyOf": [STRING, {"$ref": "#/$defs/P"}]}, "maxItems": 2}),
    ({"type": ["string", "null"], "properties": {"a": {}}, "required": ["a"], "items": {}, "minItems": 1}, {"type": ["string", "null"]}),
    ({"type": "array", "prefixItems": [STRING], "items": STRING}, {"type": "array", "items": STRING}),
    ({"enum": ["a", 1, None]}, {"enum": ["a", 1, None], "type": ["string", "integer", "null"]}),
    ({"const": True}, {"const": True, "type": "boolean"}),
    ({"properties": {"a": STRING}, "required": ["a"]}, closed({"a": STRING})),
    ({"type": "object", "additionalProperties": False}, closed({})),
    (top({"a": STRING}, required=["a"], minProperties=1, dependentRequired={"a": ["b"]}), closed({"a": STRING})),
    ({"oneOf": [STRING, INTEGER], "description": "d"}, {"description": "d", "anyOf": [STRING, INTEGER]}),
    ({"anyOf": [STRING, False], "type": "string", "not": {"const": "x"}}, {"anyOf": [STRING]}),
    ({"allOf": [{"$ref": "#/$defs/P"}], "description": "d", "default": {}}, {"$ref": "#/$defs/P"}),
    ({"allOf": [STRING, {"pattern": "^a"}, {"type": "string"}], "description": "d"}, {"type": "string", "pattern": "^a", "description": "d"}),
    ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    ({"type": "string", "if": {"const": "a"}, "then": False}, STRING),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "expected"), WORDS, ids=lambda value: json.dumps(value)[:50])
def test_D4_what_a_strict_function_has(schema, expected):
    """registry.D4: closed objects, types, no rule that it can't have."""
    found = strict(top({"p": schema}, required=["p"], **DEFS))
    assert found["properties"] == {"p": expected}
    assert found["required"] == ["p"]
    assert found["additionalProperties"] is False
    assert found.get("$defs", {"P": closed({"name": STRING})}) == {"P": closed({"name": STRING})}


OPTIONAL = [
    (STRING, {"type": ["string", "null"]}),
    ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
    ({"type": "string", "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
    ({"const": "a"}, {"anyOf": [{"const": "a", "type": "string"}, NULL]}),
    ({"$ref": "#/$defs/P"}, {"anyOf": [{"$ref": "#/$defs/P"}, NULL]}),
    ({"anyOf": [STRING, INTEGER], "description": "d"}, {"description": "d", "anyOf": [STRING, INTEGER, NULL]}),
    ({"anyOf": [STRING, NULL], "default": None}, {"anyOf": [STRING, NULL]}),
    (top({"a": STRING}), {**closed({"a": {"type": ["string", "null"]}}), "type": ["object", "null"]}),
    ({"type": "array", "items": top({"a": INTEGER})}, {"type": ["array", "null"], "items": closed({"a": {"type": ["integer", "null"]}})}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "expected"), OPTIONAL, ids=lambda value: json.dumps(value)[:50])
def test_D4_A2_what_is_optional_may_be_null(schema, expected):
    """registry.D4, dispatch.A2: an optional property is required and may be null, which means that it is left out."""
    parameters = top({"p": schema}, **DEFS)
    found = strict(parameters)
    assert found["properties"] == {"p": expected}
    assert found["required"] == ["p"]
    arguments, _, violations = ArgumentCheck(parameters).check({"p": None})
    assert violations == []
    assert arguments == ({"p": None} if "null" in json.dumps(schema) else {})


def chain(levels):
    schema = STRING
    for _ in range(levels):
        schema = top({"a": schema})
    return schema


WITHOUT = [
    (top({"p": {}}), "its property 'p' may be anything"),
    (top({"p": {"type": "array"}}), "an item of its property 'p' may be anything"),
    (top({"p": {"type": "array", "prefixItems": [STRING]}}), "an item of its property 'p' may be anything"),
    (top({"p": {"type": "object"}}), "its property 'p' may have any keys"),
    (top({"p": top({"a": STRING}, additionalProperties=True)}), "its property 'p' may have any keys"),
    (top({"p": {"type": "object", "additionalProperties": INTEGER}}), "its property 'p' may have any keys"),
    (top(additionalProperties=True), "its arguments may have any keys"),
    (top({"p": top({"a": STRING}, patternProperties={"^x": STRING})}), "its property 'p' may have any keys"),
    (top({"p": top({"a": STRING}, required=["b"])}), "its property 'p' must have 'b', and nothing says what that is"),
    (top({"p": {"not": {}}}), "its property 'p' can be nothing at all"),
    (top({"p": {"anyOf": [False]}}), "its property 'p' can be nothing at all"),
    (top({"p": {"anyOf": [STRING, {}]}}), "its property 'p' may be anything"),
    (top({"p": {"anyOf": [STRING], "oneOf": [STRING]}}), "its property 'p' has alternatives of two kinds at once"),
    (top({"p": {"anyOf": [top(), PERSON], "properties": {"b": STRING}}}), "its property 'p' has alternatives beside"),
    (top({"p": {"allOf": [PERSON, top({"b": STRING})]}}), "its property 'p' has to fit several schemas at once"),
    (top({"p": {"allOf": [STRING, INTEGER]}}), "its property 'p' has to fit several schemas at once"),
    (top({"p": {"enum": [[1]]}}), "its property 'p' has objects or lists among its listed values"),
    (top({"p": {"$ref": "#/$defs/nowhere"}}), "its property 'p' may be anything"),
    (top({"p": {"$ref": "#/$defs/P"}}, **{"$defs": {"P": {"type": "object"}}}), "its definition 'P' may have any keys"),
    (top(anyOf=[{"required": ["a"]}]), "its arguments have alternatives as a whole"),
    ({"type": "object", "$ref": "#/$defs/X", "$defs": {"X": {"allOf": [{"oneOf": [PERSON, top()]}]}}}, "its arguments have alternatives as a whole"),
    (chain(11), "its property 'a' is nested more than 10 levels deep"),
    (top({f"p{n}": STRING for n in range(5001)}), "it has 5001 properties, and 5000 are allowed"),
    (top({"p": {"enum": list(range(1001))}}), "it has 1001 listed values, and 1000 are allowed"),
    (top({"p": {"enum": ["x" * 60 + str(n) for n in range(251)]}}), "its property 'p' lists values of"),
    (top({"p" * 120_001: STRING}), "it has 120001 characters in names and listed values, and 120000 are allowed"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "reason"), WITHOUT, ids=lambda value: str(value)[:50])
@pytest.mark.parametrize("format_", OPENAI)
def test_D4_what_no_strict_function_takes(schema, reason, format_):
    """registry.D4: then the function isn't strict, which is said, and the request isn't spoilt."""
    told = []
    found = render(normalise_schema("x", {"parameters": schema, "strict": True}), format_, note=told.append)
    assert [each[: len(reason)] for each in told] == [reason]
    assert not told[0].endswith(".")
    function = found.get("function", found)
    assert function["strict"] is False
    assert function["parameters"] == portable(schema, format_)


def test_D4_ten_levels_are_enough():
    """registry.D4: the deepest that a strict function may be is strict, and recursion has no levels."""
    assert strict(chain(10))
    node = top({"next": {"$ref": "#/$defs/N"}, "v": STRING}, required=["v"])
    found = strict(top({"n": {"$ref": "#/$defs/N"}}, required=["n"], **{"$defs": {"N": node}}))
    assert found == closed(
        {"n": {"$ref": "#/$defs/N"}},
        **{"$defs": {"N": closed({"next": {"anyOf": [{"$ref": "#/$defs/N"}, NULL]}, "v": STRING})}},
    )


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("wish", [True, False, None, "yes", 1])
def test_D4_strict_is_for_openai_and_a_boolean(format_, wish):
    """registry.D1, D4: nobody else knows the key; what isn't true or false isn't sent; without it there is none."""
    found = render(normalise_schema("x", {"parameters": top({"a": STRING}), "strict": wish}), format_)
    function = found.get("function", found)
    if format_ in OPENAI and isinstance(wish, bool):
        assert function["strict"] is wish
        assert function["parameters"] == (closed({"a": {"type": ["string", "null"]}}) if wish else top({"a": STRING}))
    else:
        assert "strict" not in json.dumps(found)


def test_D4_strict_survives_either_wrapper():
    """registry.R1, D4: `strict` stands beside the parameters, within `function` or without it, and is kept."""
    for schema in (
        {"type": "function", "function": {"parameters": top(), "strict": True}},
        {"type": "function", "name": "x", "parameters": top(), "strict": True},
    ):
        found = normalise_schema("x", schema)
        assert found["strict"] is True
        assert render(found, "openai") == {
            "type": "function",
            "function": {"name": "x", "parameters": closed({}), "strict": True},
        }


def _echo(args):
    return json.dumps(args)


def test_D4_the_report_says_that_a_tool_is_not_strict(tmp_path, caplog):
    """registry.D4: one record and one warning, with the reason; the tool is shown, and called as before."""
    from mibyan import Runtime

    schema = {"parameters": top({"p": {"type": "object"}}), "strict": True}
    with Runtime(home=tmp_path) as rt:
        rt.registry.register("loose", "t", schema, _echo)
        rt.registry.register("tight", "t", {"parameters": top({"p": STRING}), "strict": True}, _echo)
        for _ in range(2):
            shown = {each["function"]["name"]: each["function"] for each in rt.definitions()}
        assert shown["loose"]["strict"] is False
        assert shown["tight"]["strict"] is True
        told = "Tool 'loose' isn't strict in the format 'openai': its property 'p' may have any keys. Its arguments are validated here."
        assert [each.reason for each in rt.report().about("tool:loose") if each.problem] == [told]
        assert caplog.messages.count(told) == 1
        assert json.loads(rt.call("tight", {"p": None})) == {}
        assert rt.registry.get_schema("tight")["parameters"] == schema["parameters"] | {"properties": {"p": STRING}}


# Any schema --------------------------------------------------------------------------------------------------------

THOROUGH = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
_LEAVES = st.one_of(
    st.builds(
        lambda kinds: {"type": kinds},
        st.lists(st.sampled_from(["string", "integer", "boolean", "null"]), min_size=1, max_size=2, unique=True),
    ),
    st.builds(lambda values: {"enum": values}, st.lists(st.sampled_from(["a", "b", 1, 2.5, None]), min_size=1, max_size=2, unique=True)),
    st.builds(lambda value: {"const": value}, st.sampled_from(["a", 1, None])),
    st.builds(lambda low: {"type": "integer", "minimum": low, "default": 3}, st.integers(-1, 1)),
    st.sampled_from([{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/y", "description": "d"}]),
)  # fmt: skip


def _objects(inner):
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, min_size=1, max_size=3)},
        optional={"additionalProperties": st.just(False), "nullable": st.booleans()},
    ).flatmap(lambda schema: st.sets(st.sampled_from(sorted(schema["properties"]))).map(lambda names: {**schema, "required": sorted(names)}))  # fmt: skip


_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        _objects(inner),
        st.builds(lambda items: {"type": "array", "items": items, "maxItems": 2}, inner),
        st.builds(lambda branches: {"anyOf": branches}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda part: {"allOf": [part], "description": "d"}, inner),
    ),
    max_leaves=6,
)
PARAMETERS = st.builds(
    lambda root, x, y: {**root, "nullable": False, "$defs": {"x": x, "y": y}},
    _objects(_TREES),
    _TREES,
    _objects(_TREES),
)


def made(schema, definitions, draw, depth=0):
    """A value that a strict function's decoder could give."""
    assume(depth < 20)  # nothing finite fits some schemas
    if "$ref" in schema:
        return made(definitions[schema["$ref"].rpartition("/")[2]], definitions, draw, depth + 1)
    if "anyOf" in schema:
        branches = schema["anyOf"]
        return made(branches[-1 if depth > 6 else draw(st.integers(0, len(branches) - 1))], definitions, draw, depth)
    if "enum" in schema or "const" in schema:
        return draw(st.sampled_from(schema.get("enum", [schema.get("const")])))
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    kind = kinds[-1] if depth > 6 else draw(st.sampled_from(kinds))
    if kind == "object":
        return {name: made(part, definitions, draw, depth + 1) for name, part in schema["properties"].items()}
    if kind == "array":
        return [
            made(schema["items"], definitions, draw, depth + 1)
            for _ in range(0 if depth > 6 else draw(st.integers(0, 2)))
        ]
    scalars = {
        "string": st.sampled_from(["", "a", "1"]),
        "integer": st.integers(1, 3),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return draw(scalars[kind])


def complaints(schema, way=()):
    """What the API would complain about."""
    if "$ref" in schema:
        if schema.keys() != {"$ref"}:
            yield f"{way}: $ref cannot have keywords {schema.keys()}"
        return
    if "anyOf" not in schema and "type" not in schema:
        yield f"{way}: schema must have a 'type' key"
    odd = schema.keys() & {
        "allOf", "oneOf", "not", "if", "default", "minLength", "prefixItems", "uniqueItems", "patternProperties", "nullable",
    }  # fmt: skip
    if odd:
        yield f"{way}: {odd} is not permitted"
    if "properties" in schema or "object" in schema.get("type", ()):
        if schema.get("additionalProperties") is not False or schema.get("required") != list(schema["properties"]):
            yield f"{way}: isn't closed, or doesn't require all"
        for name, part in schema["properties"].items():
            yield from complaints(part, (*way, name))
    if "array" in schema.get("type", ()):
        yield from complaints(schema["items"], (*way, "items"))
    for index, part in enumerate(schema.get("anyOf", ())):
        yield from complaints(part, (*way, index))
    for name, part in schema.get("$defs", {}).items():
        yield from complaints(part, (*way, name))


def tried(parameters):
    try:
        return strict(parameters)
    except Inexpressible:
        return None


@given(PARAMETERS, st.data())
@THOROUGH
def test_D4_A2_what_a_strict_function_gives_is_taken(parameters, data):
    """registry.D4, dispatch.A2: whatever its decoder can give, coercion and validation against the original take."""
    found = tried(normalise_schema("x", {"parameters": parameters})["parameters"])
    assume(found is not None)
    assert not list(complaints(found))
    arguments = made(found, found.get("$defs", {}), data.draw)
    assume(compile_schema(found).is_valid(arguments))  # not so for `minimum` and recursion cut short
    _, _, violations = ArgumentCheck(parameters).check(arguments)
    assert violations == []


def filled(value, schema, definitions):
    """A value with null for what was left out, where that is possible, as a strict function would give it."""
    if "$ref" in schema:
        return filled(value, definitions[schema["$ref"].rpartition("/")[2]], definitions)
    for branch in schema.get("anyOf", ()):
        inner = filled(value, branch, definitions)
        if compile_schema({**branch, "$defs": definitions}).is_valid(inner):
            return inner
    if isinstance(value, dict):
        return {name: filled(value.get(name), part, definitions) for name, part in schema.get("properties", {}).items()}
    if isinstance(value, list) and "items" in schema:
        return [filled(each, schema["items"], definitions) for each in value]
    return value


@given(PARAMETERS, st.lists(st.dictionaries(NAMES, VALUES, max_size=3), min_size=1, max_size=4))
@THOROUGH
def test_D4_a_strict_function_can_say_whatever_is_described(parameters, arguments):
    """registry.D4: what the original takes can be said, with null for what is left out, but for undescribed keys."""
    found, original = tried(parameters), ArgumentCheck(parameters).validator
    assume(found is not None)
    checked = compile_schema(found)
    for each in arguments:
        if original.ok(each):
            assert checked.is_valid(filled(each, found, found.get("$defs", {})))


@given(HOSTILE_SCHEMAS)
def test_D4_strict_is_total(schema):
    """registry.D4: whatever is registered with `strict`, it is expressed or it is said why not."""
    try:
        registered = normalise_schema(
            "x", {"parameters": {"type": "object", "properties": {"p": schema}}, "strict": True}
        )
    except ValueError:
        return
    for format_ in OPENAI:
        told = []
        try:
            found = render(registered, format_, note=told.append)
        except Inexpressible:
            continue
        function = found.get("function", found)
        assert function["strict"] is not bool(told)
        json.dumps(found)
