"""Words of earlier drafts and of OpenAPI: registry.R1, D4, dispatch.A2, A3. Each draft's own validator is the judge."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from jsonschema_rs import Draft4Validator, Draft7Validator, Draft201909Validator

from mibyan.schema.arguments import ArgumentCheck
from mibyan.schema.coerce import coerce
from mibyan.schema.definition import normalise_schema
from mibyan.schema.drafts import is_modern, modern
from mibyan.schema.formats import FORMATS, render
from mibyan.schema.library import compile_schema
from mibyan.schema.portable import Inexpressible, portable
from mibyan.schema.validate import compile_validator

from .strategies import NAMES, VALUES

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NULL = {"type": "null"}
A = {"$ref": "#/$defs/A"}
DEFS = {"$defs": {"A": {"type": "string", "minLength": 2}, "N": {"type": "string", "nullable": True}}}


def top(properties=None, **more):
    return {"type": "object", "properties": {} if properties is None else properties, **more}


def told(schema):
    """Whether arguments fit what each format tells of a schema: by format."""
    return {format_: compile_schema(portable(schema, format_)).is_valid for format_ in FORMATS}


# One clear meaning -------------------------------------------------------------------------------------------------

#: A property's schema, values that fit, values that don't.
MEANINGS = {
    "an enum that may be null": ({"type": "string", "enum": ["a"], "nullable": True}, ["a", None], ["b", 1]),
    "an enum without a type that may be null": ({"enum": ["a", 1], "nullable": True}, ["a", 1, None], ["b"]),
    "a constant that may be null": ({"const": "a", "nullable": True}, ["a", None], ["b"]),
    "a reference that may be null": ({**A, "nullable": True}, ["ab", None], ["a", 1]),
    "a reference to what may be null": ({"$ref": "#/$defs/N"}, ["", None], [1]),
    "alternatives or null": ({"anyOf": [INTEGER, {"type": "boolean"}], "nullable": True}, [1, True, None], ["x"]),
    "exactly one or null": ({"oneOf": [INTEGER, A], "nullable": True}, [1, "ab", None], ["a", 1.5]),
    "one of which may be null, or null": ({"oneOf": [{"type": ["integer", "null"]}, A], "nullable": True}, [1, None], [1.5]),
    "all or null": ({"allOf": [A, {"maxLength": 3}], "nullable": True}, ["ab", None], ["abcd", 1]),
    "not, or null": ({"not": {"type": ["string", "null"]}, "nullable": True}, [1, None], ["a"]),
    "a type beside a reference, or null": ({"type": "string", **A, "nullable": True}, ["ab", None], ["a"]),
    "items that may be null": ({"type": "array", "items": {"enum": ["a"], "nullable": True}}, [["a", None]], [["b"], None]),
    "members that may be null": (
        {"type": "object", "additionalProperties": {**A, "nullable": True}}, [{"x": None, "y": "ab"}], [{"x": "a"}, None]),
    "a part that may be null": ({"anyOf": [{"oneOf": [INTEGER], "nullable": True}, {"const": "x"}]}, [1, None, "x"], ["y"]),
    "not nullable": ({"type": "string", "nullable": False}, ["a"], [None]),
    "more than": ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, [2], [1, 0]),
    "at least": ({"type": "integer", "minimum": 1, "exclusiveMinimum": False}, [1], [0]),
    "less than": ({"type": "number", "maximum": 1, "exclusiveMaximum": True}, [0.5], [1]),
    "a limit that isn't there isn't exclusive": ({"type": "integer", "exclusiveMaximum": False}, [1], ["x"]),
    "items one by one": ({"type": "array", "items": [INTEGER, STRING]}, [[1, "a", None], [1], []], [["x"], [1, 2]]),
    "no other items": ({"type": "array", "items": [INTEGER], "additionalItems": False}, [[1], []], [[1, 2]]),
    "others of a kind": ({"type": "array", "items": [INTEGER], "additionalItems": A}, [[1, "ab"], [1]], [[1, "a"], [1, 2]]),
    "additional to nothing": ({"type": "array", "items": INTEGER, "additionalItems": False}, [[1, 2]], [["x"]]),
    "no items one by one": ({"type": "array", "items": []}, [[], [1]], [1]),
    "names that depend": ({"type": "object", "dependencies": {"x": ["y"]}}, [{"x": 1, "y": 1}, {"y": 1}], [{"x": 1}]),
    "one name that depends": ({"type": "object", "dependencies": {"x": "y"}}, [{"x": 1, "y": 1}, {}], [{"x": 1}]),
    "schemas that depend": (
        {"type": "object", "dependencies": {"x": {"properties": {"y": INTEGER}}}}, [{"x": 1, "y": 1}, {"y": "a"}], [{"x": 1, "y": "a"}]),
    "more that depends": (
        {"type": "object", "dependencies": {"x": ["y"], "z": True}, "dependentRequired": {"x": ["z"]}, "dependentSchemas": {"z": {}}},
        [{"x": 1, "y": 1, "z": 1}], [{"x": 1, "y": 1}, {"x": 1, "z": 1}]),
    "divisible": ({"type": "integer", "divisibleBy": 3}, [3], [4]),
    "any type": ({"type": "any"}, [None, 1, "x", [], {}], []),
    "any type among others": ({"type": ["string", "any"], "description": "d"}, [None, 1, "x"], []),
    "members that are required": (
        {"type": "object", "properties": {"x": {"type": "integer", "required": True}, "y": {"required": False}}},
        [{"x": 1}, {"x": 1, "y": None}], [{}, {"x": "a"}]),
    "members that are required both ways": (
        {"type": "object", "properties": {"x": {"required": True}, "y": {"required": False}, "z": {}}, "required": ["y", "x"]},
        [{"x": 1, "y": 1}], [{"x": 1}, {"y": 1}]),
    "a member by reference that is required": (
        {"type": "object", "properties": {"x": {"$ref": "#/$defs/A", "required": True}}}, [{"x": "ab"}], [{}, {"x": "a"}]),
    "nothing there": (
        {"type": "object", "properties": {"x": {"type": "array", "items": None}}, "required": None, "additionalProperties": None,
         "description": None, "anyOf": None, "enum": None, "minProperties": None, "title": None}, [{}, {"x": [1]}], [{"x": 1}, 1]),
    "nothing there that would refuse": (
        {"not": None, "contains": None, "if": None, "then": False, "$ref": None, "propertyNames": None, "oneOf": [INTEGER, {"minimum": 0}],
         "allOf": None, "dependencies": None, "additionalItems": None, "unevaluatedItems": None, "nullable": None, "id": None},
        [-1, 0.5], [1]),
    "null where it is a value": ({"const": None, "default": None}, [None], [1]),
}  # fmt: skip


@pytest.mark.parametrize("case", MEANINGS)
def test_R1_D4_A3_old_words_mean_the_same_everywhere(case):
    """registry.R1, D4, dispatch.A3: registered as they are, told to every provider, coerced, validated alike."""
    schema, fit, unfit = MEANINGS[case]
    parameters = top({"a": schema}, **DEFS)
    registered = normalise_schema("x", {"parameters": parameters})["parameters"]
    assert json.dumps(registered) == json.dumps(parameters)
    check = ArgumentCheck(registered)
    assert check.problem is None
    for value in fit:
        assert check.check({"a": value}) == ({"a": value}, [], [])
        assert all(is_valid({"a": value}) for is_valid in told(registered).values())
    for value in unfit:
        assert check.validator.violations({"a": value})
        assert not told(registered)["mcp"]({"a": value})


@pytest.mark.parametrize("case", MEANINGS)
def test_D4_old_words_are_told_to_nobody(case):
    """registry.D4: what a provider gets is JSON Schema 2020-12, and stays as it is."""
    parameters = top({"a": MEANINGS[case][0]}, **DEFS)
    for format_ in FORMATS:
        found = portable(parameters, format_)
        assert is_modern(found)
        assert portable(found, format_) == found
    assert is_modern(modern(parameters))


IDENTIFIED = {
    "a name": {"properties": {"a": {"$ref": "#who"}}, "definitions": {"B": {"id": "#who", **INTEGER}}},
    "an address": {
        "id": "http://x.test/tool", "properties": {"a": {"$ref": "who"}}, "definitions": {"B": {"id": "who", **INTEGER}}},
    "its own address": {
        "id": "http://x.test/tool#", "properties": {"a": {"$ref": "http://x.test/tool#/definitions/B"}}, "definitions": {"B": INTEGER}},
    "a document within": {"properties": {"a": {"$schema": "http://json-schema.org/draft-04/schema#", "$id": "http://x.test/a",
                                               "$ref": "#/definitions/B", "definitions": {"B": INTEGER}}}},
    "an id that is no address": {"properties": {"a": {"id": 5, **INTEGER}}},
    "a place among items": {"properties": {"a": {"$ref": "#/properties/b/items/0"}, "b": {"items": [INTEGER]}}},
    "a place among dependencies": {
        "properties": {"a": {"$ref": "#/dependencies/b"}}, "dependencies": {"b": {**INTEGER, "description": "d" * 300}}},
}  # fmt: skip


@pytest.mark.parametrize("case", IDENTIFIED)
def test_R1_D4_addresses_of_earlier_drafts(case):
    """registry.R1, D4: `id` is what `$id` is, and references lead where they led."""
    schema = normalise_schema("x", {"parameters": {"type": "object", **IDENTIFIED[case]}})["parameters"]
    validator = compile_validator(schema)
    assert validator.problem is None
    for is_valid in (validator.ok, *told(schema).values()):
        assert is_valid({"a": 1})
        assert not is_valid({"a": "x"})


def test_R1_D4_recursion_of_2019_09():
    """registry.R1, D4: `$recursiveRef` is the whole schema."""
    schema = top({"next": {"$recursiveRef": "#"}, "n": INTEGER}, **{"$recursiveAnchor": True})
    for is_valid in (compile_validator(schema).ok, *told(schema).values()):
        assert is_valid({"next": {"next": {"n": 1}}})
        assert not is_valid({"next": {"next": {"n": "x"}}})


def test_A2_coercion_reads_old_words():
    """dispatch.A2: what is repaired, and what isn't, follows the meaning."""
    schema = top(
        {
            "a": {"type": "array", "items": [INTEGER], "additionalItems": {"type": "boolean"}},
            "b": {"allOf": [INTEGER], "nullable": True},
            "c": {"type": "integer", "required": True},
            "d": INTEGER,
            "e": {"type": "any"},
        }
    )
    found, _ = coerce({"a": ["1", "true"], "b": "null", "c": None, "d": None, "e": "1"}, schema)
    assert found == {"a": [1, True], "b": None, "c": None, "e": "1"}


def test_A3_what_is_wrong_is_told_in_the_same_words():
    """dispatch.A3: suggestions and descriptions come from the schema that was validated."""
    schema = top({"o": top({"name": {"type": "string", "required": True, "description": "Who"}}, additionalProperties=False)},
                 nullable=False)  # fmt: skip
    told_ = [str(violation) for violation in compile_validator(schema).violations({"o": {"nam": 1}})]
    assert told_ == ["o.nam: unknown key; did you mean 'name'?", "o.name: is required (text; Who)"]


@pytest.mark.parametrize("format_", FORMATS)
def test_R1_D4_a_go_servers_nulls(format_):
    """registry.R1, D4: "None is not of type 'array'" (opencode-ai/opencode#278): `required: null` reaches no provider."""
    schema = normalise_schema("x", {"parameters": top({"a": {"type": "string", "description": None}}, required=None)})
    assert schema["parameters"]["required"] is None
    found = render(schema, format_)
    assert "null" not in json.dumps(found)
    assert top({"a": STRING}) in [*found.values(), found.get("function", {}).get("parameters")]


def test_D4_what_is_modern_is_not_touched():
    """registry.D4: a schema in today's words is the very same object afterwards."""
    schema = top(
        {"nullable": A, "items": {"default": {"nullable": True}, "enum": [{"id": "x"}]}, "n": {"exclusiveMinimum": 1}},
        required=["items"], **{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:x", "$defs": {"A": STRING}},
    )  # fmt: skip
    assert modern(schema) is schema


@pytest.mark.parametrize("schema", [None, 3, [], "x", {"properties": {"a": 5}}, {"type": "object", "allOf": [[]]}])
def test_D4_what_is_no_schema_stays(schema):
    """dispatch.A4: whatever there is instead of a schema, nothing raises."""
    assert modern(schema) is schema
    nested = {"nullable": True}
    for _ in range(5000):
        nested = {"not": nested}
    assert modern(nested) is nested


# Any schema --------------------------------------------------------------------------------------------------------

THOROUGH = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
LEAVES = [
    st.builds(lambda kind: {"type": kind}, TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True)),
    st.builds(lambda values: {"enum": values}, st.lists(VALUES, min_size=1, max_size=2, unique_by=json.dumps)),
    st.builds(lambda low, flag: {"minimum": low, "exclusiveMinimum": flag}, st.integers(-1, 1), st.booleans()),
    st.builds(lambda high, flag: {"maximum": high, "exclusiveMaximum": flag}, st.integers(-1, 1), st.booleans()),
]
MODERN_LEAVES = [*LEAVES[:2], st.builds(lambda low: {"exclusiveMinimum": low}, st.integers(-1, 1)),
                 st.builds(lambda value: {"const": value}, VALUES), st.booleans()]  # fmt: skip


def trees(leaves, refs=(), more=None):
    """Schemas of tuples and dependencies, with what else there may be."""
    leaves = [*leaves, *([st.sampled_from(refs).map(lambda ref: {"$ref": ref})] * (2 if refs else 0))]

    def grown(inner):
        several = st.lists(inner, min_size=1, max_size=2)
        members = st.dictionaries(NAMES, inner, max_size=2)
        names = st.lists(NAMES, min_size=1, max_size=2, unique=True)
        dependencies = {"dependencies": st.dictionaries(NAMES, inner | names, max_size=2)}
        return st.fixed_dictionaries(
            {},
            optional={
                "items": inner | several, "additionalItems": inner | st.booleans(), "properties": members, "required": names,
                "additionalProperties": inner | st.booleans(),
                "anyOf": several, "oneOf": several, "allOf": several, "not": inner, "maxItems": st.integers(0, 2),
                **(more(inner) if more else dependencies),
            },
        )  # fmt: skip

    return st.recursive(st.one_of(leaves), grown, max_leaves=5)


def documents(make):
    """Schemas of arguments: a tree for each of two arguments, and two that they refer to."""
    return st.builds(
        lambda a, b, x, y, more: {
            "type": "object",
            "properties": {"a": a, "b": b},
            **more,
            "definitions": {"x": x, "y": y},
        },
        *[make("#", "#/definitions/x", "#/definitions/y")] * 2, make("#", "#/definitions/y"), make("#"),
        st.fixed_dictionaries({}, optional={"required": st.lists(NAMES, min_size=1, max_size=2, unique=True),
                                            "additionalProperties": st.booleans(),
                                            "dependencies": st.dictionaries(NAMES, st.lists(NAMES, min_size=1, max_size=1), max_size=1)}),
    )  # fmt: skip


DRAFT_4 = documents(lambda *refs: trees(LEAVES, refs))
DRAFT_7 = documents(
    lambda *refs: trees(
        MODERN_LEAVES,
        refs,
        lambda inner: {
            "if": inner,
            "then": inner,
            "else": inner,
            "dependencies": st.dictionaries(NAMES, inner, max_size=1),
        },
    )
)
DRAFT_2019 = documents(
    lambda *refs: trees(
        MODERN_LEAVES,
        refs,
        lambda inner: {"unevaluatedProperties": inner, "minContains": st.just(0), "contains": inner},
    )
)
ARGUMENTS = st.lists(st.dictionaries(NAMES, VALUES, max_size=3), min_size=1, max_size=5)


def judged(schema, arguments, judge):
    """Validation, and what is told, accept exactly what a judge accepts; no less in Gemini's part of the language."""
    registered = normalise_schema("x", {"parameters": schema})["parameters"]
    check = ArgumentCheck(registered)
    assert check.problem is None
    text = json.dumps(schema)
    is_sayable = '"$ref"' not in text and '"required"' not in text
    shown = {}
    for format_ in FORMATS:
        try:
            shown[format_] = compile_schema(portable(registered, format_))
        except Inexpressible:
            continue
    for each in arguments:
        expected = judge(each)
        assert check.validator.ok(each) is expected
        if expected:
            assert check.check(each)[2] == []
        for format_, found in shown.items():
            is_valid = found.is_valid(each)
            assert is_valid is expected or (is_valid and format_ == "gemini" and not is_sayable)


def compiled(kind, schema):
    try:
        return kind(copy.deepcopy(schema)).is_valid
    except Exception:
        return None


@given(DRAFT_4, ARGUMENTS)
@THOROUGH
def test_D4_draft_4_is_understood(schema, arguments):
    """registry.R1, D4: validation and definitions mean what draft 4 means, in that draft's own validator's judgement."""
    judge = compiled(Draft4Validator, schema)
    assume(judge is not None)
    judged(schema, arguments, lambda value: judge(whole(value)))


def whole(value):
    """A value in which whole floats are integers, which they weren't in draft 4."""
    if isinstance(value, list):
        return [whole(each) for each in value]
    if isinstance(value, dict):
        return {key: whole(each) for key, each in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


@given(DRAFT_7, ARGUMENTS)
@THOROUGH
def test_D4_draft_7_is_understood(schema, arguments):
    """registry.R1, D4: validation and definitions mean what draft 7 means, in that draft's own validator's judgement."""
    judge = compiled(Draft7Validator, schema)
    assume(judge is not None)
    judged(schema, arguments, judge)


@given(DRAFT_2019, ARGUMENTS)
@THOROUGH
def test_D4_2019_09_is_understood(schema, arguments):
    """registry.R1, D4: validation and definitions mean what 2019-09 means, in that draft's own validator's judgement."""
    schema.pop("dependencies", None)  # two other keywords, in 2019-09
    judge = compiled(Draft201909Validator, schema)
    assume(judge is not None)
    judged(schema, arguments, judge)


def nullable(make):
    """Schemas that may be null, in every kind of place."""
    return st.builds(
        lambda schema, flag: {**schema, "nullable": flag} if isinstance(schema, dict) else schema, make, st.booleans()
    )


def explicit(schema):
    """A schema in which null is an alternative, wherever it is nullable."""
    if isinstance(schema, list):
        return [explicit(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        key: value if key in {"enum", "const", "required", "type"} else
        {name: explicit(each) for name, each in value.items()} if key in {"properties", "definitions"} else explicit(value)
        for key, value in schema.items()
        if key != "nullable"
    }  # fmt: skip
    return {"anyOf": [found, NULL]} if schema.get("nullable") is True else found


def _nullable_trees(*refs):
    leaves = [*LEAVES[:2], *MODERN_LEAVES[-2:], *([st.sampled_from(refs).map(lambda ref: {"$ref": ref})] * 2)]

    def grown(inner):
        several = st.lists(inner, min_size=1, max_size=2)
        return nullable(st.fixed_dictionaries({}, optional={
            "type": st.sampled_from(["string", "object", ["array", "integer"]]), "items": inner, "anyOf": several, "oneOf": several,
            "allOf": several, "properties": st.dictionaries(NAMES, inner, max_size=2), "not": inner, "if": inner, "then": inner}))  # fmt: skip

    return nullable(st.recursive(nullable(st.one_of(leaves)), grown, max_leaves=5))


@given(documents(_nullable_trees), ARGUMENTS)
@THOROUGH
@example(
    {"type": "object", "properties": {"a": {"allOf": [{"properties": {"b": INTEGER}}], "nullable": True},
                                      "b": {"$ref": "#/properties/a/allOf/0/properties/b"}}, "definitions": {}},
    [{"a": None}, {"b": 1}, {"b": "x"}, {"b": None}, {"a": {"b": "x"}}])  # fmt: skip
def test_D4_A3_null_is_one_more_alternative(schema, arguments):
    """registry.D4, dispatch.A3: what is nullable may be null, in validation as in what is told, beside any keyword."""
    schema.pop("dependencies", None)
    spelled = explicit(schema)
    if "allOf/0" in json.dumps(schema):
        spelled["properties"]["b"] = {"$ref": "#/properties/a/anyOf/0/allOf/0/properties/b"}
    judged(schema, arguments, compile_schema(spelled).is_valid)
