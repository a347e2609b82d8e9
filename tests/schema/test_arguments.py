"""Coercion and validation in one step: dispatch.A2 to A4."""

from __future__ import annotations

import pytest
from hypothesis import given

from mibyan.schema.arguments import ArgumentCheck
from mibyan.schema.coerce import coerce
from mibyan.schema.validate import compile_validator

from .strategies import HOSTILE_SCHEMAS, HOSTILE_VALUES, SCHEMAS, VALUES, Raising

FORECAST = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "maximum": 14},
        "at": {"type": "array", "items": {"type": "number"}},
    },
    "required": ["city"],
}


@pytest.mark.parametrize(
    ("args", "found", "repaired", "told"),
    [
        ({"city": "x"}, {"city": "x"}, [], []),
        ({"city": "x", "at": [1, 2.5]}, {"city": "x", "at": [1, 2.5]}, [], []),
        ({"city": "x", "days": 3.0}, {"city": "x", "days": 3}, ["days"], []),
        ({"city": "x", "days": "3", "at": "1.5"}, {"city": "x", "days": 3, "at": [1.5]}, ["days", "at", "at[0]"], []),
        ({"days": "15"}, {"days": 15}, ["days"], ["city", "days"]),
        ({"city": "\ud800"}, {"city": "\ud800"}, [], []),
        ({"city": "x", "days": None}, {"city": "x"}, ["days"], []),
        (None, None, [], [""]),
    ],
    ids=ascii,
)
def test_A2_A3_one_step(args, found, repaired, told):
    """dispatch.A2, A3: what was sent is repaired first, then validated; both are told."""
    value, repairs, violations = ArgumentCheck(FORECAST).check(args)
    assert repr(value) == repr(found)
    assert [repair.path for repair in repairs] == repaired
    assert [violation.path for violation in violations] == told


def test_A2_a_schema_that_cannot_be_compiled_still_coerces():
    """dispatch.A4: where nothing can be validated, what can be repaired is."""
    check = ArgumentCheck({"properties": {"a": {"type": "integer"}, "b": {"pattern": "("}}})
    assert check.problem
    assert check.check({"a": "5"})[0] == {"a": 5}


@pytest.mark.parametrize(
    "schema", ["\ud800", "x\udfff", "true", '{"type": "integer"}', "", 1, None, [], b"{}"], ids=ascii
)
def test_A4_what_is_no_schema_is_told_and_judges_nothing(schema):
    """dispatch.A4: text isn't taken for JSON text; half a surrogate pair as a whole schema ended the process."""
    check = ArgumentCheck(schema)
    assert "an object or a boolean" in str(check.problem)
    assert check.check({"a": "5"}) == ({"a": "5"}, [], [])


@pytest.mark.parametrize("place", ["type", "properties", "required", "additionalProperties", "one", "minimum", "enum"])
def test_A4_what_can_t_be_compared_is_judged_all_the_same(place):
    """dispatch.A4: a host's object in a schema may raise at every look."""
    one = {"type": "integer", "minimum": Raising()} if place == "minimum" else {"type": "string", "enum": [Raising()]}
    one = Raising() if place == "one" else one
    parts = {"type": "object", "properties": {"a": one}, "required": [], "additionalProperties": True}
    check = ArgumentCheck({**parts, place: Raising()} if place in parts else parts)
    assert check.problem
    assert check.check({"a": "b"}) == ({"a": "b"}, [], [])


@given(SCHEMAS, VALUES)
def test_A2_A3_the_quick_way_is_the_long_way(schema, value):
    """dispatch.A2, A3: one step gives what coercing and then validating give."""
    found, repairs = coerce(value, schema)
    assert repr(ArgumentCheck(schema).check(value)) == repr(
        (found, repairs, compile_validator(schema).violations(found))
    )


@given(HOSTILE_SCHEMAS, HOSTILE_VALUES)
def test_A4_total(schema, value):
    """dispatch.A4: whatever the schema, whatever the value, there is an answer."""
    _, repairs, violations = ArgumentCheck(schema).check(value)
    assert isinstance(repairs, list)
    assert isinstance(violations, list)
