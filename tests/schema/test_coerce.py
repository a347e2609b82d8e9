"""Coercion of a model's arguments: dispatch.A2 and A4."""

from __future__ import annotations

import copy
import json
from decimal import Decimal

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.schema.coerce import coerce, prepare
from mibyan.schema.frozen import freeze
from mibyan.schema.readings import same

from .strategies import HOSTILE_SCHEMAS, HOSTILE_VALUES, SCALARS, SCHEMAS, VALUES, deep

INT, NUM, STR, BOOL, NULL = ({"type": kind} for kind in ("integer", "number", "string", "boolean", "null"))
AUTO = {"type": "string", "enum": ["auto", "off"]}


def arr(items, **more):
    return {"type": "array", "items": items, **more}


def obj(_required=(), /, **properties):
    return {"type": "object", "properties": properties, "required": list(_required)}


def any_of(*branches):
    return {"anyOf": list(branches)}


TREE = {
    "$ref": "#/$defs/T",
    "$defs": {"T": obj(v=INT, kids=arr({"$ref": "#/$defs/T"}), next=any_of({"$ref": "#/$defs/T"}, NULL))},
}
SHAPES = {
    "oneOf": [
        {**obj(["kind", "size"], kind={"const": "square"}, size=NUM)},
        {**obj(["kind", "on"], kind={"const": "switch"}, on=BOOL)},
    ]
}

REPAIRED = [
    # numeric text, booleans, null
    (INT, "5", 5), (INT, " ٣\n", 3), (INT, "1e3", 1000), (INT, "1.0", 1), (NUM, "2.50", 2.5), (NUM, "7", 7),
    (BOOL, " TRUE ", True), (BOOL, "false", False),
    ({"type": ["integer", "null"]}, "null", None), (any_of(INT, NULL), "null", None), (NULL, "null", None),
    ({"type": "integer", "nullable": True}, "null", None), ({"enum": ["a", None]}, "null", None),
    # a whole float where only an integer is allowed
    (INT, 2.0, 2), (INT, 1e300, int(1e300)), (any_of(INT, STR), 2.0, 2), ({"type": ["string", "integer"]}, -3.0, -3),
    ({"type": "integer", "enum": [1, 2]}, 2.0, 2),
    # containers as text, at every depth
    (arr(INT), '["1", 2.0]', [1, 2]), (obj(o=obj(x=INT)), '{"o": "{\\"x\\": \\"3\\"}"}', {"o": {"x": 3}}),
    (any_of(obj(a=INT), NULL), '{"a": "1"}', {"a": 1}),
    # a bare value where a list is wanted
    (arr(INT), 5, [5]), (arr(INT), "5", [5]), (arr(STR), "a", ["a"]), (arr(arr(INT)), "5", [[5]]), (arr({}), "5", ["5"]),
    (arr(obj(a=INT)), {"a": "1"}, [{"a": 1}]), (arr(obj(a=INT)), '{"a": "1"}', [{"a": 1}]), (arr(AUTO), "off", ["off"]),
    (arr(STR), "[1, 2]", ["[1, 2]"]), ({"type": "array", "prefixItems": [INT]}, "5", [5]), (any_of(arr(STR), NULL), "a", ["a"]),
    # through $ref, unions, allOf, the other ways to name a member
    (TREE, {"v": "1", "kids": '[{"v": "2", "next": {"v": "3", "next": "null"}}]'},
     {"v": 1, "kids": [{"v": 2, "next": {"v": 3, "next": None}}]}),
    (SHAPES, {"kind": "square", "size": "5"}, {"kind": "square", "size": 5}),
    (SHAPES, '{"kind": "switch", "on": "true"}', {"kind": "switch", "on": True}),
    (any_of(AUTO, INT), "5", 5), (any_of(INT, NUM), "5", 5), (any_of(arr(STR), INT), "5", 5), (any_of(INT, BOOL), "true", True),
    (any_of(arr(arr(INT)), arr(INT)), "[1, 2]", [1, 2]), ({"allOf": [INT]}, "5", 5),
    ({"type": "object", "additionalProperties": INT}, {"z": "5"}, {"z": 5}),
    ({"type": "object", "patternProperties": {"^n": INT}}, {"n1": "5", "m": "5"}, {"n1": 5, "m": "5"}),
    ({"type": "array", "prefixItems": [INT, BOOL], "items": STR}, ["1", "true", "1"], [1, True, "1"]),
    ({"properties": {"a/b %": INT}, "$defs": {"x": {"$ref": "#/properties/a~1b%20%25"}}, "items": {"$ref": "#/$defs/x"}}, ["5"], [5]),
    # enums of other types
    ({"enum": [1, 2]}, "2", 2), ({"enum": [True]}, "True", True), ({"const": 1.5}, "1.5", 1.5),
    # null for an optional parameter means its default
    (obj(a=INT, b=INT), {"a": None, "b": "1"}, {"b": 1}), (obj(a=obj(b=STR)), {"a": {"b": None}}, {"a": {}}),
    (obj(a=any_of(INT, STR)), {"a": None}, {}), (obj(a=AUTO), {"a": None}, {}),
]  # fmt: skip

UNTOUCHED = [
    # what is valid as it stands
    (STR, "5"), (any_of(STR, INT), "5"), ({"type": ["string", "integer"]}, "5"), (any_of(STR, NULL), "null"), ({}, "5"),
    (NUM, 2.0), (any_of(INT, NUM), 2.0), ({"enum": [1, 2]}, 2.0), ({"enum": ["1", 1]}, "1"), (any_of(arr(INT), STR), "[1]"),
    (obj(a={}), {"a": None}), (obj(a={"type": ["integer", "null"]}), {"a": None}), (obj(a=any_of(INT, NULL)), {"a": None}),
    # text that isn't what is wanted
    (INT, "1.5"), (INT, "five"), (INT, "1_000"), (NUM, "NaN"), (NUM, "inf"), (BOOL, "yes"), (BOOL, "1"), (NULL, "None"),
    (arr(INT), "[1,"), (arr(INT), "x"), (obj(a=INT), "{'a': 1}"), (obj(a=INT), "[1]"), (INT, "null"),
    # a number never becomes text, a boolean is no number, a float with a fraction no integer
    (STR, 5), (arr(STR), [5]), (AUTO, 5), (INT, True), (BOOL, 1), (BOOL, 0.0), (INT, 2.5), (INT, 1e400),
    # text stays text where text is allowed, although this one is refused
    ({"type": ["string", "integer"], "minLength": 3}, "5"), (any_of({"type": "string", "pattern": "^a"}, INT), "5"),
    # an enum is never left
    ({"type": "integer", "enum": [1, 2]}, "3"), ({"enum": ["1", "2"]}, 1), (AUTO, "Auto"), (AUTO, '"auto"'), (arr(AUTO), "on"),
    ({"type": "string", "enum": ["1"]}, "2"), ({"type": "boolean", "const": True}, "false"),
    # more than one way
    (any_of(arr(INT), arr(STR)), "5"), (any_of(obj(["a"], a=INT), obj(["a"], a=BOOL), arr(INT)), {"a": "x"}),
    ({"oneOf": [INT, NUM]}, "5"),
    # null for what is required, or for what nobody declared
    (obj(["a"], a=INT), {"a": None}), ({"type": "object", "additionalProperties": INT}, {"a": None}), (arr(INT), None), (INT, None),
    # schemas that say nothing, or nonsense
    ({"$ref": "#"}, "5"), ({"$ref": "#/nowhere"}, "5"), ({"$ref": "http://127.0.0.1:9/x"}, "5"), (True, "5"), (None, "5"), ("integer", "5"),
    ({"type": "whole"}, "5"), ({"properties": [INT]}, {"a": "5"}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "expected"), REPAIRED, ids=str)
def test_A2_what_fails_is_repaired(schema, value, expected):
    """dispatch.A2: each kind of repair, also inside objects, lists and unions; the result is valid."""
    found, repairs = coerce(value, schema)
    assert repr(found) == repr(expected)
    assert repairs
    assert jsonschema_rs.is_valid(
        {k: v for k, v in schema.items() if k != "nullable"} if found is not None else True, found
    )


@pytest.mark.parametrize(("schema", "value"), UNTOUCHED, ids=str)
def test_A2_everything_else_stays(schema, value):
    """dispatch.A2: what is valid, ambiguous, or no exact spelling of what is wanted is given back itself."""
    found, repairs = coerce(value, schema)
    assert found is value
    assert repairs == []


def test_A2_huge_numbers():
    """dispatch.A2: exact up to what Python converts; beyond that text stays text."""
    assert coerce("9" * 4300, INT)[0] == int("9" * 4300)
    assert coerce("9" * 5000, INT)[0] == "9" * 5000
    assert coerce("1e400", NUM)[0] == 10**400


def test_A2_repairs_are_told():
    """dispatch.A2: each repair has its path, what was there, what is there now, and how."""
    schema = obj(days=INT, items=arr(obj(name=STR, n=INT)), on=BOOL, gone=INT)
    value = {"days": "3", "items": '[{"n": 2.0}]', "on": "True", "gone": None}
    _, repairs = coerce(value, schema)
    assert [(r.path, r.before, r.after, r.how) for r in repairs] == [
        ("days", "3", 3, "text to integer"),
        ("items", '[{"n": 2.0}]', [{"n": 2.0}], "text to array"),
        ("items[0].n", 2.0, 2, "number to integer"),
        ("on", "True", True, "text to boolean"),
        ("gone", None, None, "null to the default"),
    ]


def test_A2_a_violation_stays_where_it_is():
    """dispatch.A2: text is read although a part of it is wrong, so that the error is told at that part."""
    assert coerce({"a": '{"n": "x"}'}, obj(a=obj(n=INT)))[0] == {"a": {"n": "x"}}
    assert coerce("99", {"type": "integer", "maximum": 14})[0] == 99


def test_A2_depth_beyond_the_bound_is_left_alone():
    """dispatch.A4: a recursive schema follows a value some dozens of levels; what is deeper stays."""
    schema = {"type": ["array", "object", "integer"], "items": {"$ref": "#"}, "additionalProperties": {"$ref": "#"}}
    assert coerce(deep(40, "5"), schema)[0] == deep(40, 5)
    far = deep(3000, "5")
    assert coerce(far, schema)[0] is far


def test_A4_unions_that_multiply_end():
    """dispatch.A4: a value that fits none of two branches at each of many levels is given up in no time."""
    branch = obj(["a"], a={"$ref": "#"})
    value: object = "x"
    for _ in range(30):
        value = {"a": value}
    assert coerce(value, any_of(branch, {**branch, "title": "again"}, INT)) == (value, [])


@given(SCHEMAS, VALUES)
def test_A2_idempotent(schema, value):
    """dispatch.A2: coercing what was coerced changes nothing."""
    coercer = prepare(schema)
    once, _ = coercer.apply(value)
    twice, repairs = coercer.apply(once)
    assert repr(twice) == repr(once)
    assert repairs == []


def has_whole_float(value) -> bool:
    """Whether a value has a float that could count as failing: 2.0 where only an integer is allowed."""
    if isinstance(value, dict | list):
        return any(map(has_whole_float, value.values() if isinstance(value, dict) else value))
    return isinstance(value, float) and value.is_integer()


@given(SCHEMAS, st.lists(VALUES, min_size=10, max_size=10))
def test_A2_valid_values_are_unchanged(schema, values):
    """dispatch.A2: a value that is valid as it stands (no whole float in it) is given back itself."""
    validator, coercer = jsonschema_rs.validator_for(schema), prepare(schema)
    for value in [value for value in values if validator.is_valid(value) and not has_whole_float(value)]:
        found, repairs = coercer.apply(value)
        assert found is value
        assert repairs == []


@given(SCHEMAS, VALUES)
def test_A2_nothing_gets_worse(schema, value):
    """dispatch.A2: what was valid is still valid after its whole floats became integers."""
    validator = jsonschema_rs.validator_for(schema)
    if validator.is_valid(value):
        assert validator.is_valid(coerce(value, schema)[0])


@given(SCHEMAS, VALUES)
def test_A2_the_value_is_not_mutated(schema, value):
    """dispatch.A2: coercion works on a copy, and leaves the schema alone too."""
    before, schema_before = repr(value), copy.deepcopy(schema)
    coerce(value, schema)
    assert repr(value) == before
    assert schema == schema_before


def means(after, before) -> bool:
    """Whether a coerced value is another spelling of a value: nothing added, nothing lost but nulls of members."""
    if isinstance(before, dict) and isinstance(after, dict):
        kept = {key: value for key, value in before.items() if key in after}
        return after.keys() <= before.keys() and all(before[k] is None for k in before.keys() - kept.keys()) and all(
            means(after[key], value) for key, value in kept.items())  # fmt: skip
    both = isinstance(before, list) and isinstance(after, list)
    if both and len(before) == len(after) and all(map(means, after, before)):
        return True
    if isinstance(after, list) and len(after) == 1 and means(after[0], before):
        return True
    return _means_scalar(after, before)


def _means_scalar(after, before) -> bool:
    if isinstance(before, float) and type(after) is int:
        return after == before
    if not isinstance(before, str) or isinstance(after, str):
        return repr(after) == repr(before)
    if isinstance(after, dict | list):
        return means(after, json.loads(before))
    if after is None or isinstance(after, bool):
        return json.dumps(after) == before.strip().lower()
    return Decimal(repr(after)) == Decimal(before.strip().replace("−", "-"))


@given(SCHEMAS, VALUES)
def test_A2_lossless(schema, value):
    """dispatch.A2: the result means what the value meant; a number never becomes text."""
    found, _ = coerce(value, schema)
    assert means(found, value)


@given(SCHEMAS, VALUES)
def test_A2_repairs_are_complete(schema, value):
    """dispatch.A2: no repair means no change, and the other way round."""
    found, repairs = coerce(value, schema)
    assert bool(repairs) == (repr(found) != repr(value))


@given(st.lists(SCALARS, min_size=1, max_size=4), SCALARS, st.none() | st.sampled_from(["string", "integer", "number"]))
def test_A2_an_enum_is_never_left(options, value, kind):
    """dispatch.A2: a value in an enum stays it; one that isn't becomes a member or stays what it is."""
    schema = {"enum": options} if kind is None else {"enum": options, "type": kind}
    found, repairs = coerce(value, schema)
    assert any(same(found, option) for option in options) or found is value
    if kind is None and any(same(value, option) for option in options):
        assert found is value
    assert bool(repairs) == (found is not value)


@given(
    st.text() | st.sampled_from(["5", "true", "null", "[1]", "{}"]),
    st.lists(st.sampled_from(["integer", "null", "boolean", "array", "object"])),
)
def test_A2_text_stays_text_where_text_is_allowed(text, kinds):
    """dispatch.A2: beside any other types, as a list of types and as branches."""
    for schema in ({"type": ["string", *kinds]}, any_of(*({"type": kind} for kind in kinds), STR)):
        assert coerce(text, schema) == (text, [])


@given(SCHEMAS, VALUES)
def test_A2_a_frozen_schema_is_as_good(schema, value):
    """registry.R3: the registry's read-only schemas and values give the same."""
    assert repr(coerce(freeze(value), freeze(schema))[0]) == repr(coerce(value, schema)[0])


@given(HOSTILE_SCHEMAS, HOSTILE_VALUES)
def test_A4_total(schema, value):
    """dispatch.A4: whatever the schema, whatever the value, there is an answer."""
    found, repairs = prepare(schema).apply(value)
    assert isinstance(repairs, list)
    assert found is value or repairs


@given(SCHEMAS, HOSTILE_VALUES)
def test_A4_total_for_valid_schemas(schema, value):
    """dispatch.A4: also where the schema is looked at closely."""
    found, repairs = prepare(schema).apply(value)
    assert found is value or repairs
