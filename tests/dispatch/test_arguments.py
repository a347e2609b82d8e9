"""Arguments on their way to a handler (dispatch.A1 to A4)."""

from __future__ import annotations

import asyncio
import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mibyan
from mibyan.dispatch.arguments import ArgumentProblem, read_arguments
from mibyan.tools.results import ToolCall

from .conftest import make_runtime
from .hostile import EvilDict, check_well_formed, deep

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city"],
    "additionalProperties": False,
}
TEXT = '{"city": "Bern", "days": 2}'
GIVEN = {"city": "Bern", "days": 2}

READABLE = {
    "a dict": (GIVEN, GIVEN),
    "JSON text": (TEXT, GIVEN),
    "JSON text with blanks": (f" \n{TEXT}\t", GIVEN),
    "JSON text in JSON text": (json.dumps(TEXT), GIVEN),
    "JSON text in JSON text in JSON text": (json.dumps(json.dumps(TEXT)), GIVEN),
    "bytes": (TEXT.encode(), GIVEN),
    "None": (None, {}),
    "null": ("null", {}),
    "null in JSON text": ('"null"', {}),
    "empty text": ("", {}),
    "blank text": (" \t\n", {}),
    "blank in JSON text": ('"  "', {}),
    "an empty object": ("{}", {}),
    "the same key twice, the same value": ('{"a": 1, "a": 1}', {"a": 1}),
    "a large integer": ('{"a": 123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
}
UNREADABLE = {
    "an array": ([1], "not an array"),
    "JSON text of an array": ("[1]", "not an array"),
    "a number": (5, "not a number"),
    "JSON text of a number": ("5", "not a number"),
    "true": (True, "not a boolean"),
    "an object of Python": (object(), "not object"),
    "words": ("city Bern", "aren't valid JSON"),
    "Python's spelling": ("{'city': 'Bern'}", "aren't valid JSON"),
    "two objects": ('{"a": 1}{"b": 2}', "aren't valid JSON"),
    "NaN": ('{"a": NaN}', "NaN"),
    "an infinity": ('{"a": -Infinity}', "Infinity"),
    "a number beyond the floats": ('{"a": 1e999}', "too large"),
    "the same key twice, different values": ('{"a": 1, "a": 2}', "twice"),
    "a key that isn't text": ({1: 2}, "keys must be text"),
    "a key within that isn't text": ({"a": [{None: 2}]}, "keys must be text"),
    "text in too many layers": (json.dumps(json.dumps(json.dumps(json.dumps(TEXT)))), "not text"),
    "5,000 levels of text": ('{"a": ' + "[" * 5000 + "]" * 5000 + "}", "nested"),
    "5,000 levels": ({"a": deep(5000)}, "nested"),
    "an integer of 5,000 digits in text": ('{"a": ' + "9" * 5000 + "}", "4,300 digits"),
}
TRUNCATED = [
    '{"city": "Be',
    '{"city"',
    '{"city": ',
    '{"city": "Bern", "days": 2',
    "{",
    '{"a": [1, 2',
    '{"a": tru',
    '{"a": "\\',
]


@pytest.mark.parametrize("case", READABLE)
def test_dispatch_A1_what_can_be_read(face, add, case):
    """dispatch.A1: a dict, JSON text, JSON text in JSON text; None, null and blank are no arguments."""
    raw, expected = READABLE[case]
    got = []
    add(lambda args: got.append(args) or "ok")
    assert face(args=raw).text == "ok"
    assert got == [expected]


@pytest.mark.parametrize("case", UNREADABLE)
def test_dispatch_A1_anything_else_says_what_was_expected(face, add, seen, case):
    """dispatch.A1: junk is an error that says what was expected; the handler doesn't run."""
    raw, words = UNREADABLE[case]
    add(lambda args: pytest.fail("it ran"))
    result = face(args=raw)
    check_well_formed(result)
    assert (result.status, result.error_type) == ("error", "invalid_arguments")
    assert words in result.error
    assert [(told["args"], told["executed_args"]) for told in seen] == [({}, None)]


@pytest.mark.parametrize("raw", [*TRUNCATED, *map(json.dumps, TRUNCATED)])
def test_dispatch_A1_truncated_text_is_never_repaired(face, add, raw):
    """dispatch.A1: text that ends too early is `arguments_truncated`, isn't run, and tells the model to send less."""
    add(lambda args: pytest.fail("it ran"))
    result = face(args=raw)
    assert result.error_type == "arguments_truncated"
    assert "Send less" in result.error


@given(st.integers(0, len(TEXT) - 1))
def test_dispatch_A1_every_prefix_is_truncated(length):
    """dispatch.A1: whatever character a JSON object was cut at, it is told as truncated, or was blank."""
    text = TEXT[:length]
    if not text:
        assert read_arguments(text) == {}
        return
    with pytest.raises(ArgumentProblem) as problem:
        read_arguments(text)
    assert problem.value.truncated


def test_dispatch_A2_works_on_a_copy(face, add):
    """dispatch.A2: what a handler does to its arguments doesn't reach the caller's dict, at any depth."""
    given_args = {"a": {"b": [1]}}
    before = copy.deepcopy(given_args)

    def handler(args):
        args["a"]["b"].append(2)
        args["c"] = 3
        return "ok"

    add(handler)
    assert face(args=given_args).text == "ok"
    assert given_args == before


def test_dispatch_A2_repairs_are_in_the_trace(face, add, seen):
    """dispatch.A2: coercion runs before any hook, and each repair is in the call's trace."""
    hooked = []
    add(lambda args: args, parameters=CITY)
    face.rt.add_hook("pre_tool_call", lambda **values: hooked.append(values["args"]))
    result = face(args={"city": "Bern", "days": "2"})
    assert json.loads(result.text) == GIVEN
    assert hooked == [GIVEN]
    assert result.trace[0] == {"step": "repaired", "repairs": [{"path": "days", "how": "text to integer"}]}
    assert seen[0]["args"] == GIVEN


def test_dispatch_A3_every_violation_with_its_path(face, add, seen):
    """dispatch.A3: the error tells every violation with its path and what was expected; the handler doesn't run."""
    parameters = {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}},
                                                  "required": ["name"]}},
            "level": {"enum": ["low", "high"]},
            "days": {"type": "integer", "maximum": 14},
        },
        "required": ["city"],
        "additionalProperties": False,
    }  # fmt: skip
    add(lambda args: pytest.fail("it ran"), parameters=parameters)
    result = face(args={"items": [{"name": "a"}, {"name": 5}, {}], "level": "mid", "days": 15, "dayz": 1})
    check_well_formed(result)
    told = json.loads(result.text)
    paths = [violation["path"] for violation in told["violations"]]
    assert sorted(paths) == ["city", "days", "dayz", "items[1].name", "items[2].name", "level"]
    messages = {violation["path"]: violation["message"] for violation in told["violations"]}
    assert "text" in messages["items[1].name"]
    assert "low" in messages["level"]
    assert "14" in messages["days"]
    assert "did you mean" in messages["dayz"]
    assert all(path in result.error for path in paths)
    assert seen[0]["executed_args"] is None


@pytest.mark.parametrize(("extra", "status"), [(False, "error"), (True, "ok"), (None, "ok")])
def test_dispatch_A3_unknown_keys_are_errors_only_where_the_schema_says_so(rt, add, extra, status):
    """dispatch.A3: unknown keys are refused only under `additionalProperties: false`."""
    parameters = {"type": "object", "properties": {"a": {}}}
    if extra is not None:
        parameters["additionalProperties"] = extra
    add(lambda args: args, parameters=parameters)
    assert rt.execute(ToolCall("x", {"b": 1})).status == status


@pytest.mark.parametrize("off", ["the tool", "the configuration"])
def test_dispatch_A3_validation_can_be_off(tmp_path, off):
    """dispatch.A3: with `validate=False` on the tool, or `dispatch.validate: off`, the arguments pass as they come."""
    config = {"dispatch": {"validate": False}} if off == "the configuration" else {}
    with make_runtime(tmp_path, **config) as rt:
        option = {"validate": False} if off == "the tool" else {}
        rt.registry.register("x", "t", {"description": "", "parameters": CITY}, lambda args: args, **option)
        assert rt.call("x", {"days": "2", "more": 1}) == '{"days": "2", "more": 1}'
        assert json.loads(rt.call("x", "[1]"))["error_type"] == "invalid_arguments"


def test_dispatch_A3_a_tools_own_validate_counts_before_the_configurations(tmp_path):
    """`validate=True` on a tool validates though the configuration says off."""
    with make_runtime(tmp_path, dispatch={"validate": False}) as rt:
        rt.registry.register("x", "t", {"description": "", "parameters": CITY}, lambda args: args, validate=True)
        assert json.loads(rt.call("x", {}))["error_type"] == "invalid_arguments"


def test_dispatch_A3_a_flood_of_violations_is_counted(rt, add):
    """Beyond a hundred, violations are counted: the answer stays readable however many keys a model makes up."""
    add(lambda args: args, parameters=CITY)
    answer = json.loads(rt.call("x", {"city": "Bern", **{f"key{number}": 1 for number in range(5000)}}))
    assert len(answer["violations"]) == 101
    assert answer["violations"][-1]["message"] == "and 4900 more violations"
    assert len(json.dumps(answer)) < 20_000


def test_dispatch_A3_comes_before_any_question(face, add):
    """dispatch.A3: invalid arguments are refused before a person is asked and before a hook is."""
    add(lambda args: "ok", parameters=CITY, approval=lambda args, context: pytest.fail("asked"))
    face.rt.add_hook("pre_tool_call", lambda: pytest.fail("hooked"))
    assert face(args={}).error_type == "invalid_arguments"


def test_a_typed_functions_arguments_are_bound(face):
    """A typed function gets Python values; what its types refuse is told like any violation."""

    @mibyan.tool(toolset="t", name="x")
    def add_days(start: str, days: int = 3, *, tags: list[str] | None = None) -> dict:
        """Add."""
        return {"start": start, "days": days, "tags": tags}

    face.rt.registry.add(add_days)
    assert face(args={"start": "a", "days": "4", "tags": "b"}).data == {"start": "a", "days": 4, "tags": ["b"]}
    assert face(args={"start": "a"}).data == {"start": "a", "days": 3, "tags": None}
    refused = face(args={"days": 1, "more": 2})
    assert (refused.error_type, "start" in refused.error, "more" in refused.error) == ("invalid_arguments", True, True)


SCHEMAS = {
    "recursive": {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}},
                  "$defs": {"n": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/n"}]}}},
    "a reference to nothing": {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}},
    "a reference elsewhere": {"type": "object", "properties": {"a": {"$ref": "https://example.org/x.json"}}},
    "a pattern that isn't one": {"type": "object", "properties": {"a": {"type": "string", "pattern": "(["}}},
    "a slow pattern": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
    "contradictory": {"type": "object", "properties": {"a": {"allOf": [{"type": "string"}, {"type": "integer"}]}}},
    "many branches": {"type": "object", "properties": {"a": {"oneOf": [{"type": "integer"}, {"type": "string"},
                                                                        {"type": "array"}, {"type": "null"}]}}},
    "typed": {"type": "object", "properties": {"a": {"type": "integer"}}},
}  # fmt: skip
ARGUMENTS = {
    "a surrogate": "\ud800", "a large integer": 10**5000, "NaN": float("nan"), "deep": deep(150), "an object": object(),
    "bytes": b"\xff", "an evil dict": EvilDict(a=1), "words": "a" * 40 + "!", "digits": "٣", "a set": {1},
}  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("value", ARGUMENTS)
def test_dispatch_A4_nothing_raises_out_of_the_pipeline(rt, add, schema, value):
    """dispatch.A4: whatever the schema and the value, there is one well-formed answer."""
    add(lambda args: "ok", parameters=SCHEMAS[schema])
    for result in (
        rt.execute(ToolCall("x", {"a": ARGUMENTS[value]})),
        asyncio.run(rt.aexecute(ToolCall("x", {"a": ARGUMENTS[value]}))),
    ):
        check_well_formed(result)
        assert result.error_type in {None, "invalid_arguments", "internal"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=JSON | st.text() | st.binary())
def test_dispatch_A4_any_arguments(rt, raw):
    """dispatch.A4: any JSON value, any text, any bytes: one well-formed answer, and what ran got an object."""
    rt.registry.register("x", "t", {"description": "", "parameters": CITY}, lambda args: json.dumps(sorted(args)))
    for name, args in (("x", raw), ("x", {"city": raw, "days": raw})):
        check_well_formed(rt.execute(ToolCall(name, args)))
