"""A tool's schema as it is registered: registry.R1 and R2."""

from __future__ import annotations

import copy
import json
import time

import pytest
from hypothesis import given

from mibyan.errors import ToolSchemaError
from mibyan.schema.definition import normalise_schema
from mibyan.schema.frozen import FrozenDict, FrozenList

from .strategies import HOSTILE_SCHEMAS, SCHEMAS, cycle, deep

EMPTY = {"type": "object", "properties": {}}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def all_frozen(value) -> bool:
    """Whether every container in a value is read-only."""
    if isinstance(value, dict):
        return type(value) is FrozenDict and all(map(all_frozen, value.values()))
    if isinstance(value, list):
        return type(value) is FrozenList and all(map(all_frozen, value))
    return True


@pytest.mark.parametrize(
    ("schema", "normalised"),
    [
        ({}, {"name": "x", "parameters": EMPTY}),
        ({"description": "D"}, {"name": "x", "description": "D", "parameters": EMPTY}),
        ({"description": None}, {"name": "x", "parameters": EMPTY}),
        ({"name": "other", "parameters": CITY}, {"name": "x", "parameters": CITY}),
        ({"name": None}, {"name": "x", "parameters": EMPTY}),
        ({"type": "function", "function": {"name": "y", "parameters": CITY}}, {"name": "x", "parameters": CITY}),
        ({"parameters": {}}, {"name": "x", "parameters": {"type": "object"}}),
        ({"parameters": {"properties": {}}}, {"name": "x", "parameters": EMPTY}),
        ({"parameters": CITY, "strict": True}, {"name": "x", "parameters": CITY, "strict": True}),
        ({"parameters": {"type": "object", "required": ("a",)}}, {"name": "x", "parameters": {"type": "object", "required": ["a"]}}),
    ],
    ids=str,
)  # fmt: skip
def test_R1_R2_what_is_accepted(schema, normalised):
    """registry.R1: wrappers are unwrapped, missing parameters are an empty object; R2: the given name wins."""
    before = copy.deepcopy(schema)
    found = normalise_schema("x", schema)
    assert found == normalised
    assert json.dumps(found) == json.dumps(normalised)
    assert all_frozen(found)
    assert schema == before


def test_R2_the_description_for_people_is_not_copied():
    """registry.R2: `description=` doesn't describe the tool to the model."""
    assert "description" not in normalise_schema("x", {"parameters": CITY}, "for people")


def test_R3_the_schema_is_a_copy():
    """registry.R3: changing the schema afterwards changes nothing."""
    schema = {"parameters": copy.deepcopy(CITY)}
    found = normalise_schema("x", schema)
    schema["parameters"]["properties"]["city"]["type"] = "integer"
    schema["parameters"]["required"].clear()
    assert found["parameters"] == CITY


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "object", "properties": {"type": {"type": "string"}, "$ref": {}, "enum": True, "items": False}},
        {"type": "object", "properties": {}, "default": {"type": "whole", "required": True}, "examples": "any"},
        {"type": "object", "properties": {"a": {"enum": [], "const": {"type": 5}}}},
        {"type": "object", "$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}, "x-vendor": [1, {"type": None}]},
        {"type": "object", "properties": {"a": {"type": ["integer", "null"], "minimum": -1.5, "maxLength": 3.0, "nullable": True}}},
        {"type": "object", "dependentRequired": {"a": ["b"]}, "dependentSchemas": {"a": {"required": ["c"]}}, "required": []},
        {"type": "object", "anyOf": [{"required": ["a"]}, True], "not": {}, "if": {}, "then": {}, "else": {}},
    ],
)  # fmt: skip
def test_R1_values_are_not_schemas(parameters):
    """registry.R1: names of properties, defaults, enums and unknown keywords aren't looked at as schemas."""
    assert normalise_schema("x", {"parameters": parameters})["parameters"] == parameters


def params(**keywords):
    return {"parameters": {"type": "object", **keywords}}


def prop(schema):
    return params(properties={"a": schema})


REFUSED = [
    (None, "schema is null, expected a dict"),
    ([], "schema is a list, expected a dict"),
    ("x", "schema is 'x', expected a dict"),
    ({"type": "function", "function": None}, "schema is null"),
    ({"description": 3}, "description is 3, expected text"),
    ({"parameters": None}, "parameters is null, expected an object schema"),
    ({"parameters": []}, "parameters is a list"),
    ({"parameters": True}, "parameters is true"),
    ({"parameters": {"type": "string"}}, "parameters.type is 'string', expected 'object'"),
    ({"parameters": {"type": ["object", "null"]}}, "parameters.type is a list"),
    (prop({"type": "int"}), "parameters.properties.a.type is 'int'"),
    (prop({"type": []}), "parameters.properties.a.type is empty"),
    (prop({"type": ["null", "null"]}), "twice"),
    (prop({"type": 5}), "expected a type's name"),
    (prop([]), "parameters.properties.a is a list, expected a schema"),
    (prop(None), "parameters.properties.a is null"),
    (params(properties=[]), "parameters.properties is a list, expected an object of names"),
    (params(properties={1: {}}), "parameters.properties[1] is 1, expected text"),
    (params(required=True), "parameters.required is true, expected a list of names"),
    (prop({"items": {"required": True}}), "parameters.properties.a.items.required is true, expected a list of names"),
    (prop({"type": None}), "parameters.properties.a.type is null, expected a type's name"),
    (prop({"type": ["string", {"type": "null"}]}), "parameters.properties.a.type[1] is a dict"),
    (params(required="a"), "parameters.required is 'a', expected a list"),
    (params(required=["a", "a"]), "names something twice"),
    (params(required=[1]), "parameters.required[0] is 1"),
    (prop({"items": [{"type": "x"}]}), "parameters.properties.a.items[0].type is 'x'"),
    (prop({"items": [{}], "prefixItems": [{}]}), "parameters.properties.a.items is a list beside 'prefixItems'"),
    (prop({"prefixItems": [{}], "items": []}), "parameters.properties.a.items is a list beside 'prefixItems'"),
    (prop({"additionalItems": "no"}), "parameters.properties.a.additionalItems is 'no', expected a schema"),
    (prop({"dependencies": {"a": 1}}), "parameters.properties.a.dependencies.a is 1, expected a schema"),
    (prop({"dependencies": {"a": ["b", "b"]}}), "dependencies.a names something twice"),
    (prop({"dependencies": ["a"]}), "parameters.properties.a.dependencies is a list, expected an object of names"),
    (prop({"divisibleBy": 0}), "parameters.properties.a.divisibleBy is 0, expected a number above 0"),
    (prop({"enum": "x"}), "parameters.properties.a.enum is 'x', expected a list"),
    (prop({"anyOf": []}), "parameters.properties.a.anyOf is empty, expected at least one schema"),
    (prop({"anyOf": {}}), "parameters.properties.a.anyOf is a dict"),
    (prop({"oneOf": [{}, {"type": "all"}]}), "parameters.properties.a.oneOf[1].type is 'all'"),
    (prop({"minLength": -1}), "expected a whole number from 0"),
    (prop({"minItems": 1.5}), "expected a whole number from 0"),
    (prop({"minimum": "1"}), "parameters.properties.a.minimum is '1', expected a number"),
    (prop({"exclusiveMinimum": True}), "parameters.properties.a.exclusiveMinimum is true, and there is no 'minimum'"),
    (prop({"exclusiveMaximum": True, "minimum": 1, "maximum": None}), "exclusiveMaximum is true, and there is no 'maximum'"),
    (prop({"exclusiveMinimum": "yes"}), "expected a number"),
    (prop({"multipleOf": 0}), "expected a number above 0"),
    (prop({"uniqueItems": 1}), "expected true or false"),
    (prop({"pattern": 5}), "expected text"),
    (prop({"$ref": {}}), "parameters.properties.a.$ref is a dict"),
    (params(additionalProperties="no"), "parameters.additionalProperties is 'no', expected a schema"),
    (prop({"default": {1}}), "parameters.properties.a.default is a set, which isn't a JSON value"),
    (prop({"default": float("nan")}), "default is nan, which JSON can't say"),
    (prop({"default": b""}), "which isn't a JSON value"),
    (prop({"default": {1: 2}}), "default[1] is 1, expected text"),
    (prop({"enum": [object()]}), "enum[0] is an object, which isn't a JSON value"),
    (prop({"description": "\ud800"}), "has a lone surrogate at character 0"),
    (params(properties={"\udc00": {}}), "has a lone surrogate"),
    ({"extra": ...}, "extra is an ellipsis"),
    ({5: 1}, "expected text"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "says"), REFUSED, ids=lambda value: str(value).encode("ascii", "replace").decode()[:50]
)
def test_R1_what_is_refused(schema, says):
    """registry.R1: what isn't a schema is refused with the tool's name, the field, and what was expected."""
    with pytest.raises(ToolSchemaError) as caught:
        normalise_schema("weather", schema)
    assert str(caught.value).startswith("tool 'weather': ")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        (prop({"type": "int"}), "Write 'integer'."),
        (prop({"type": "String"}), "Write 'string'."),
        (prop({"items": [{}], "prefixItems": [{}]}), "the schema of the others"),
        (params(required=True), "lists the names"),
        (prop({"exclusiveMinimum": True}), "'exclusiveMinimum': 0"),
        (prop({"type": None}), "in quotation marks"),
    ],
)
def test_R1_common_slips_are_told_apart(schema, hint):
    """registry.R1: where it can be known what was meant, the error says what to write."""
    with pytest.raises(ToolSchemaError) as caught:
        normalise_schema("x", schema)
    assert hint in caught.value.hint


@pytest.mark.parametrize("make", [lambda: {"not": deep(200)}, cycle, lambda: deep(5000), lambda: 10**5000])
def test_R1_endless_and_huge_values(make):
    """registry.R1: cycles, great depth and integers that JSON can't carry are refused, with a short path."""
    with pytest.raises(ToolSchemaError) as caught:
        normalise_schema("x", prop({"default": make()}))
    assert len(str(caught.value)) < 400


def test_R1_a_schema_that_multiplies_is_refused_in_time():
    """registry.R1: one that names the same part twice on each of forty levels has no end; the check has."""
    schema: dict = {}
    for _ in range(40):
        schema = {"properties": {"a": schema, "b": schema}}
    begin = time.monotonic()
    with pytest.raises(ToolSchemaError, match="more than 20000 objects"):
        normalise_schema("x", {"parameters": schema})
    assert time.monotonic() - begin < 5


@given(SCHEMAS)
def test_R1_valid_schemas_are_accepted_unchanged(schema):
    """registry.R1: a valid JSON Schema under a property comes out as it went in, read-only."""
    parameters = normalise_schema("x", prop(schema))["parameters"]
    assert parameters == prop(schema)["parameters"]
    assert all_frozen(parameters)


@given(HOSTILE_SCHEMAS)
def test_R1_total(schema):
    """registry.R1: whatever is given is accepted as JSON or is a ToolSchemaError."""
    for given_ in (schema, {"parameters": schema}, prop(schema)):
        try:
            json.dumps(normalise_schema("x", given_), allow_nan=False).encode()
        except ToolSchemaError as error:
            assert "tool 'x'" in str(error)  # noqa: PT017 - either outcome is right
