"""Validation of a model's arguments: dispatch.A3 and A4."""

from __future__ import annotations

import copy
import subprocess
import sys

import jsonschema_rs
import pytest
from hypothesis import given

from mibyan.schema.frozen import freeze
from mibyan.schema.validate import compile_validator

from .strategies import HOSTILE_SCHEMAS, HOSTILE_VALUES, SCHEMAS, VALUES, cycle, deep

PLACE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "name": {"type": "string", "description": "Name of\nthe place"}},
    "required": ["name"],
    "additionalProperties": False,
}
SQUARE = {"type": "object", "properties": {"k": {"const": "sq"}, "size": {"type": "number"}}, "required": ["k", "size"]}
SWITCH = {"type": "object", "properties": {"k": {"const": "sw"}, "on": {"type": "boolean"}}, "required": ["k"]}
FORECAST = {
    "type": "object",
    "$defs": {"place": PLACE},
    "properties": {
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "place": {"$ref": "#/$defs/place"},
        "maybe": {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "null"}]},
        "unit": {"enum": ["c", "f"]},
        "only": {"const": 1},
        "code": {"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^[A-Z]+$"},
        "when": {"type": "string", "format": "date"},
        "step": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 9, "multipleOf": 0.5},
        "list": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2, "uniqueItems": True},
        "shape": {"oneOf": [SQUARE, SWITCH]},
        "both": {"oneOf": [{"type": "integer"}, {"type": "number"}]},
        "forms": {"anyOf": [{"type": "string", "maxLength": 1}, {"type": "string", "pattern": "^x"}, {"type": "null"}]},
        "map": {"type": "object", "minProperties": 1, "maxProperties": 1, "propertyNames": {"pattern": "^a"}},
        "never": False,
        "nothing": {"not": {"type": "null"}},
        "kinds": {"type": ["integer", "string", "null"]},
    },
    "additionalProperties": False,
}

TOLD = [
    ({"days": "tomorrow"}, ['days: expected integer, got text "tomorrow"']),
    ({"days": True}, ["days: expected integer, got true"]),
    ({"days": 0}, ["days: expected at least 1, got integer 0"]),
    ({"days": 15.5}, ["days: expected at most 14, got number 15.5", "days: expected integer, got number 15.5"]),
    ({"day": 1}, ["day: unknown key; did you mean 'days'?"]),
    ({"place": {"nam": "x", "zzz": 1}}, [
        "place.nam: unknown key; did you mean 'name'?", "place.name: is required (text; Name of the place)",
        'place.zzz: unknown key; the known ones are "value", "name"']),
    ({"maybe": {"value": "x", "name": 5}}, [
        "maybe.name: expected text, got integer 5", 'maybe.value: expected integer, got text "x"']),
    ({"maybe": 3}, ["maybe: expected object or null, got integer 3"]),
    ({"unit": "k"}, ['unit: expected one of "c", "f", got text "k"']),
    ({"only": 2}, ["only: expected 1, got integer 2"]),
    ({"code": "abcd"}, ["code: expected at most 3 characters, got 4", 'code: expected text that matches ^[A-Z]+$, got text "abcd"']),
    ({"code": "A"}, ["code: expected at least 2 characters, got 1"]),
    ({"when": "soon"}, ['when: expected a date such as 2024-12-31, got text "soon"']),
    ({"step": 0}, ["step: expected more than 0, got integer 0"]),
    ({"step": 9.25}, ["step: expected a multiple of 0.5, got number 9.25", "step: expected less than 9, got number 9.25"]),
    ({"list": []}, ["list: expected at least 1 item, got 0"]),
    ({"list": [1, 1, "x"]}, ["list: expected at most 2 items, got 3", "list: expected items that are all different",
                             'list[2]: expected integer, got text "x"']),
    ({"shape": {"k": "sq"}}, ["shape.size: is required (number)"]),
    ({"shape": {"k": "sw", "on": 1}}, ["shape.on: expected boolean, got integer 1"]),
    ({"shape": {"k": "x"}}, ['shape: expected k "sq" or k "sw", got an object']),
    ({"shape": []}, ["shape: expected object, got a list"]),
    ({"both": 1}, ["both: fits more than one of the allowed forms"]),
    ({"forms": "abc"}, [
        'forms: fits none of the allowed forms: (1) forms: expected at most 1 character, got 3 | (2) forms: expected text that matches ^x, got text "abc"']),
    ({"map": {}}, ["map: expected at least 1 key, got 0"]),
    ({"map": {"b": 1}}, None),
    ({"never": 1}, ["never: nothing is allowed here"]),
    ({"nothing": None}, ["nothing: null is excluded"]),
    ({"kinds": []}, ["kinds: expected integer or text or null, got a list"]),
    ([], ["expected object, got a list"]),
    (None, ["expected object, got null"]),
    ({"days": "\ud800"}, ['days: expected integer, got text "\ufffd"']),
    ({1: 2}, None), ({"days": object}, None),
]  # fmt: skip


@pytest.mark.parametrize(("value", "told"), TOLD, ids=lambda value: ascii(value)[:50])
def test_A3_every_violation_is_told_with_its_path(value, told):
    """dispatch.A3: every violation with its path and what was expected; unknown keys with a suggestion."""
    validator = compile_validator(FORECAST)
    assert validator.problem is None
    found = [str(violation) for violation in validator.violations(value)]
    assert (found == told) if told is not None else len(found) == 1
    assert not validator.ok(value)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"days": 3, "maybe": None, "place": {"name": "x"}},
        {"days": 3.0},
        {"forms": "y", "shape": {"k": "sw"}},
        {"code": "\ud800A"},
    ],
    ids=ascii,
)
def test_A3_what_is_valid_has_no_violation(value):
    """dispatch.A3: a valid value passes; a lone surrogate is one character of text."""
    validator = compile_validator(
        {**FORECAST, "properties": {**FORECAST["properties"], "code": {"type": "string", "maxLength": 2}}}
    )
    assert validator.ok(value)
    assert validator.violations(value) == []


def test_A3_unknown_keys_are_errors_only_where_the_schema_says_so():
    """dispatch.A3: without `additionalProperties: false` any key is fine."""
    assert compile_validator({"type": "object", "properties": {"a": {}}}).ok({"b": 1})


def test_A3_nothing_known_is_nothing_listed():
    """dispatch.A3: a closed object without properties says that no key is allowed."""
    (violation,) = compile_validator({"type": "object", "additionalProperties": False}).violations({"b": 1})
    assert str(violation) == "b: unknown key; none is allowed here"


def test_A3_long_values_and_lists_are_cut():
    """dispatch.A3: a sentence stays readable, whatever was sent and whatever is allowed."""
    validator = compile_validator({"enum": [f"option-{i}" for i in range(500)]})
    (violation,) = validator.violations("x" * 100_000)
    assert len(str(violation)) < 600
    assert "(500 in all)" in violation.message
    many = compile_validator({"items": {"type": "integer"}}).violations(["x"] * 10_000)
    assert 100 <= len(many) <= 1000


def test_A3_openapi_nullable_is_a_type():
    """dispatch.A2: what coercion lets be null validation lets be null."""
    validator = compile_validator({"type": "object", "properties": {"a": {"type": "integer", "nullable": True}}})
    assert validator.ok({"a": None})
    assert not validator.ok({"a": "x"})


@pytest.mark.parametrize(
    "extra",
    [
        {"examples": "not a list"},
        {"title": 5},
        {"$id": "urn:x:y"},
        {"default": {"type": "whole"}},
        {"$comment": []},
        {"deprecated": "yes"},
    ],
    ids=str,
)
def test_A3_annotations_do_not_matter(extra):
    """dispatch.A3: what says nothing about validity can't break the validation."""
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/i"}},
        "$defs": {"i": {"type": "integer", **extra}},
        **extra,
    }
    validator = compile_validator(schema)
    assert validator.problem is None
    assert validator.ok({"a": 1})
    assert not validator.ok({"a": "x"})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "whole"},
        {"pattern": "("},
        {"$ref": "#/nowhere"},
        {"$ref": "http://127.0.0.1:9/x"},
        3,
        None,
        {"properties": 5},
    ],
    ids=str,
)
def test_A4_a_schema_that_cannot_be_compiled_validates_nothing_and_says_so(schema):
    """dispatch.A4: everything passes, nothing is fetched, and `problem` tells why."""
    validator = compile_validator(schema)
    assert validator.problem
    assert validator.ok({"a": 1})
    assert validator.violations({"a": 1}) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda: 10**5000,
        lambda: [-(10**5000)],
        lambda: {"days": 10**5000},
        lambda: deep(300),
        lambda: deep(100_000),
        cycle,
    ],
)
def test_A4_values_beyond_the_library(make):
    """dispatch.A4: what the library would wrongly pass, or die of, is one violation."""
    tree = {
        "$ref": "#/$defs/t",
        "$defs": {"t": {"maximum": 5, "items": {"$ref": "#/$defs/t"}, "additionalProperties": {"$ref": "#/$defs/t"}}},
    }
    validator = compile_validator(tree)
    value = make()
    (violation,) = validator.violations(value)
    assert "nested too deeply" in violation.message
    assert not validator.ok(value)


def test_A4_large_integers_are_compared():
    """dispatch.A4: up to 4,300 digits limits hold exactly."""
    validator = compile_validator({"maximum": 10**300})
    assert validator.ok(10**300)
    assert not validator.ok(10**300 + 1)
    assert not validator.ok(int("9" * 4300))


@given(SCHEMAS, VALUES)
def test_A3_the_librarys_judgement_is_ours(schema, value):
    """dispatch.A3: ok and violations say what JSON Schema 2020-12 says; schema and value stay as they were."""
    before = repr(value), copy.deepcopy(schema)
    validator = compile_validator(freeze(schema))
    assert validator.problem is None
    expected = jsonschema_rs.validator_for(schema).is_valid(value)
    assert validator.ok(value) is expected
    assert (validator.violations(value) == []) is expected
    assert (repr(value), schema) == before


@given(HOSTILE_SCHEMAS, HOSTILE_VALUES)
def test_A4_total(schema, value):
    """dispatch.A4: whatever the schema, whatever the value, there is an answer."""
    validator = compile_validator(schema)
    assert validator.ok(value) is (validator.violations(value) == [])


@given(SCHEMAS, HOSTILE_VALUES)
def test_A4_total_for_valid_schemas(schema, value):
    """dispatch.A4: also where the schema is looked at closely; the sentences can be encoded."""
    for violation in compile_validator(schema).violations(value):
        str(violation).encode()


def test_A3_the_order_is_the_same_in_every_process():
    """dispatch.A3: another hash seed changes neither the violations nor their order."""
    program = (
        "from mibyan.schema.validate import compile_validator as c;"
        "print(c({'properties': {k: {'type': 'integer'} for k in 'abc'}, 'required': ['x', 'y'], 'additionalProperties': False})"
        ".violations({'c': '', 'a': '', 'q': 1, 'p': 2}))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(texts) == 1
