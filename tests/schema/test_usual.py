"""Schemas of the usual form, copied at a glance: the copy is what the walk would have made (registry.R1, R3)."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.errors import ToolSchemaError
from mibyan.schema.definition import _normalised, normalise_schema
from mibyan.schema.formats import FORMATS
from mibyan.schema.frozen import FrozenDict, FrozenList, UsualParameters, freeze
from mibyan.schema.keywords import MAX_CONTAINERS, Fault
from mibyan.schema.portable import Inexpressible, portable
from mibyan.schema.usual import usual_schema

from .strategies import HOSTILE_SCHEMAS, SCHEMAS

LEAF = {"type": "integer", "description": "How many.", "default": 100}
USUAL = {
    "name": "other",
    "description": "Does it.",
    "parameters": {
        "type": "object",
        "properties": {
            "b": LEAF,
            "a": {"type": "string", "enum": ["x", "y"]},
            "c": {"type": "array", "items": LEAF},
            "d": {
                "type": "array",
                "items": {"type": "object", "properties": {"e": LEAF}, "required": ["e"]},
                "maxItems": 5,
            },
            "f": {"anyOf": [{"type": "integer", "minimum": -1}, {"type": "null"}], "description": "Perhaps."},
        },
        "required": ["b"],
        "additionalProperties": False,
    },
}


class Text(str):
    """Text of a kind of its own."""

    __slots__ = ()


#: What may stand where a text, a type, a default or a name is expected, and what may not.
ODD = st.sampled_from([
    "object", "string", "a", "é", "\ud800", Text("type"), Text("object"), Text("\ud800"), 0, 1, True, False, None, 1.5,
    float("nan"), 2**63, -(2**80), 2**5000, [], ["a"], ["a", "a"], ("a",), {}, {"type": "string"}, {1: 2}, object(), b"a",
])  # fmt: skip
NAMES = st.sampled_from(
    ["type", "description", "default", "title", "enum", "items", "minimum", "a", "é", "\ud800", Text("type"), 1]
)
PROPERTIES = st.dictionaries(
    NAMES, st.dictionaries(NAMES, ODD | st.dictionaries(NAMES, ODD), max_size=3) | ODD, max_size=3
)
NEARLY = st.fixed_dictionaries(
    {"description": st.just("d") | ODD, "parameters": st.fixed_dictionaries(
        {"type": st.just("object") | ODD, "properties": PROPERTIES | ODD},
        optional={"required": st.lists(NAMES, max_size=3) | ODD, "additionalProperties": st.booleans() | ODD,
                  "title": ODD, "$defs": PROPERTIES},
    )}, optional={"name": ODD, "strict": ODD},
)  # fmt: skip
NODES = st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "null", "object"])},
        optional={"description": st.just("d"), "default": ODD, "enum": st.lists(NAMES, max_size=2), "title": st.just("t"),
                  "minimum": st.integers(), "maxLength": st.integers(-1, 2**64)},
    ),
    lambda inner: st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional={"minItems": st.just(1)})
    | st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2)},
        optional={"required": st.lists(st.sampled_from("abc"), max_size=2), "additionalProperties": st.booleans() | inner},
    )
    | st.fixed_dictionaries({"anyOf": st.lists(inner, max_size=2)}, optional={"description": st.just("d")}),
    max_leaves=5,
)  # fmt: skip
NESTED = st.fixed_dictionaries({"description": st.just("d"), "parameters": st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("abc"), NODES, max_size=2)},
    optional={"required": st.lists(st.sampled_from("ab"), max_size=2), "anyOf": st.lists(NODES, max_size=1)},
)})  # fmt: skip


def plain(value) -> bool:
    """Whether a value is made of read-only containers and exact scalars."""
    if type(value) in {FrozenDict, UsualParameters}:
        return all(type(key) is str and plain(part) for key, part in value.items())
    if type(value) is FrozenList:
        return all(map(plain, value))
    return value is None or type(value) in {str, int, float, bool}


@given(NEARLY | NESTED | HOSTILE_SCHEMAS | st.builds(lambda tree: {"description": "d", "parameters": tree}, SCHEMAS))
def test_registry_R1_the_glance_sees_what_the_walk_sees(schema):
    """registry.R1: what is copied at a glance is what the walk makes of it; what the walk refuses isn't."""
    try:
        found = usual_schema("x", schema)
    except RecursionError:
        return
    try:
        walked = _normalised("x", schema)
    except (Fault, Exception):
        assert found is None
        return
    assert found is None or (json.dumps(found) == json.dumps(walked) and plain(found))


def test_registry_R1_the_usual_form():
    """The form that most tools have is copied at a glance: names and order are kept, nothing is shared."""
    found = usual_schema("x", USUAL)
    assert found is not None
    assert json.dumps(found) == json.dumps({**USUAL, "name": "x"})
    assert found == normalise_schema("x", USUAL)
    assert found["parameters"]["properties"]["b"] is not LEAF
    with pytest.raises(TypeError, match="read-only"):
        found["parameters"]["properties"]["b"]["type"] = "string"
    assert plain(found)


def test_a_schema_without_end_is_the_walks():
    """However deep or wide a schema is, the glance ends; one that contains itself is refused."""
    endless = {"type": "array"}
    endless["items"] = endless
    wide = {"anyOf": []}
    wide["anyOf"] += [wide] * 5
    for part in (endless, wide):
        assert (
            usual_schema("x", {"description": "d", "parameters": {"type": "object", "properties": {"a": part}}}) is None
        )
        with pytest.raises(ToolSchemaError):
            normalise_schema("x", {"description": "d", "parameters": {"type": "object", "properties": {"a": part}}})


def test_registry_R1_many_properties_are_counted():
    """However many properties there are, the walk's limits hold."""
    many = {f"p{number}": {"type": "string"} for number in range(MAX_CONTAINERS + 1)}
    with pytest.raises(Exception, match=f"more than {MAX_CONTAINERS}"):
        normalise_schema("x", {"description": "d", "parameters": {"type": "object", "properties": many}})
    nested = {"type": "object", "properties": {"a": {"type": "object", "properties": many}}}
    with pytest.raises(Exception, match=f"more than {MAX_CONTAINERS}"):
        normalise_schema("x", {"description": "d", "parameters": nested})


@given(NEARLY | NESTED)
def test_registry_D4_the_usual_form_is_everybodys(schema):
    """registry.D4: no provider wants the usual parameters in other words, whoever looks closely."""
    found = usual_schema("x", schema)
    if found is None:
        return
    walked = _normalised("x", schema)
    for format_ in FORMATS:
        assert told(found["parameters"], format_) == told(walked["parameters"], format_)


def told(parameters, format_) -> str:
    """Parameters in the words of a format, or why there are none."""
    try:
        return json.dumps(portable(parameters, format_))
    except Inexpressible as why:
        return f"left out: {why}"


def test_the_usual_form_is_read_only_and_plain_elsewhere():
    """registry.R3: what is kept can't be changed; pickle and deepcopy give what they give of other schemas."""
    found = usual_schema("x", USUAL)
    assert found is not None
    parameters = found["parameters"]
    assert type(parameters) is UsualParameters
    with pytest.raises(TypeError, match="read-only"):
        parameters["type"] = "array"
    assert type(pickle.loads(pickle.dumps(parameters))) is FrozenDict
    assert type(copy.deepcopy(parameters)["properties"]) is dict
    assert freeze(found) is found
    assert freeze({"a": parameters})["a"] is parameters
