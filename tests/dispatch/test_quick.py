"""The quick way of a call: it means what the pipeline means, and nothing runs twice."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mibyan
from mibyan import Ask, Block, Modify, Runtime, ToolCall
from mibyan.schema.arguments import ArgumentCheck
from mibyan.schema.fastread import compile_reader
from mibyan.schema.reading import parse_strict

from .conftest import compile_call

FLAT = {
    "type": "object",
    "properties": {
        "path": {"type": "string"}, "limit": {"type": "integer"}, "deep": {"type": "boolean"}, "x": {"type": "number"},
    },
    "required": ["path"],
}  # fmt: skip
TEXT = '{"path": "a", "limit": 2}'


def runs(rt: Runtime, name: str = "x", raw: Any = TEXT) -> Any:
    """What the compiled call alone makes of a call: text, a result of the pipeline, or `None`."""
    compiled = compile_call(rt, name)
    assert compiled is not None
    return compiled.run(raw, (None, None, None), None)


def echo(args: dict[str, Any]) -> dict[str, Any]:
    return {"got": args}


def test_dispatch_H5_a_usual_call_takes_the_quick_way(rt, add):
    add(echo, parameters=FLAT)
    assert runs(rt) == rt.call("x", TEXT) == '{"got": {"path": "a", "limit": 2}}'


def test_dispatch_H5_a_tool_that_is_called_again_is_compiled(rt, add):
    add(echo, parameters=FLAT)
    for _ in range(3):
        rt.call("x", TEXT)
    kept = rt._parts.sessions.find(None)._express["x"]
    assert kept.express is not None
    assert kept.calls == 2


def test_dispatch_H5_without_the_usual_there_is_no_quick_way(rt, add):
    """What the compiled call doesn't know keeps the tool in the pipeline."""
    unusual = {
        "checked": {"check_fn": lambda: True}, "asking": {"approval": lambda *_: None}, "limited": {"timeout": lambda _: 5.0},
        "cached": {"cache": True, "read_only": True}, "framed": {"untrusted_output": True},
        "dedicated": {"thread": "dedicated"}, "pooled": {"thread": "pool"},
    }  # fmt: skip
    for name, options in unusual.items():
        add(echo, name, FLAT, **options)
        assert compile_call(rt, name) is None, name


@pytest.mark.parametrize("raw", [
    '{"path": "a", "path": "b"}', '{"path": "a", "limit": true}', '{"path": "a", "x": NaN}', '{"path": "a", "x": 1e999}',
    '{"path": "a", "limit": "2"}', '{"path": "a", "limit": 2.0}', '{"path": "a"', '{"limit": 1}', '{"path": "a", "more": 1}',
    '{"path": "\\ud800"}', "[]", "null", "", None, b"{}", {"path": 1}, {"path": "a", "limit": True}, {"path": ["a"]}, 7,
    '{"path": "a", "limit": ' + "1" * 5000 + "}", '{"p\\u0061th": "a", "path": "b"}', '{"path": "a\\u003ab", "x": 1, "x": 2}',
])  # fmt: skip
def test_dispatch_A3_the_quick_way_lets_nothing_pass_that_is_not_right_as_it_is(rt, add, raw):
    ran = []
    add(lambda args: ran.append(args) or "ok", parameters=FLAT)
    assert runs(rt, raw=raw) is None
    assert not ran


NAMES = ("path", "limit", "deep", "x", "more")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from(["1", "true", ":", '"']),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=2), max_leaves=4,
)  # fmt: skip
PARTS = st.recursive(
    st.sampled_from([
        {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"},
        {"type": ["string", "null"]}, {"type": "integer", "minimum": -3, "exclusiveMaximum": 9}, {"enum": ["a", "1"]},
        {"type": "number", "maximum": 1}, {"type": "string", "minLength": 1, "maxLength": 2}, {"const": "true"},
        {"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"type": "string", "description": "d", "default": 3},
    ]),
    lambda inner: st.builds(lambda part: {"type": "array", "items": part, "minItems": 1}, inner)
    | st.builds(lambda part: {"type": "object", "additionalProperties": part}, inner)
    | st.builds(lambda a, b: {"type": "object", "properties": {"path": a, "x": b}, "required": ["x"]}, inner, inner),
    max_leaves=4,
)  # fmt: skip


@given(
    st.dictionaries(st.sampled_from(NAMES), PARTS, max_size=4), st.booleans(), st.dictionaries(st.sampled_from(NAMES), VALUES),
    st.booleans(),
)  # fmt: skip
def test_dispatch_A2_the_fast_reader_says_yes_only_where_the_check_does(properties, closed, args, as_text):
    """Whatever it reads is what the strict reader and the validator make of the same, without a repair."""
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": not closed}
    reader = compile_reader(schema)
    assert reader is not None
    raw = json.dumps(args) if as_text else args
    try:
        found = reader.read(raw)
    except Exception:
        return
    expected, repairs, violations = ArgumentCheck(schema).check(parse_strict(raw) if as_text else args)
    assert (repairs, violations) == ([], [])
    assert len(found) == len(expected)
    assert repr(found) == repr({key: expected[key] for key in found})
    assert found is not raw


def test_dispatch_A2_the_fast_reader_has_something_to_say():
    """The property above isn't empty: what is right is read."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "number"}}, "b": {"type": "string"}},
    }
    reader = compile_reader(schema)
    assert reader is not None
    assert repr(reader.read('{"a": [1, 2.5], "b": "x: {y}"}')) == "{'a': [1, 2.5], 'b': 'x: {y}'}"


@pytest.mark.parametrize("part", [
    {}, {"type": "array"}, {"type": "string", "pattern": "a"}, {"$ref": "#/$defs/x"}, {"type": "integer", "multipleOf": 2},
    {"enum": [1]}, {"type": "number", "minimum": 0.5}, {"type": "string", "nullable": True}, {"oneOf": [{"type": "string"}]},
    {"type": ["string", "integer"]}, {"type": "string", "format": "date"}, {"type": "object"}, True,
])  # fmt: skip
def test_dispatch_A3_a_keyword_without_a_word_keeps_the_schema_with_the_validator(part):
    assert compile_reader({"type": "object", "properties": {"a": part}}) is None


# What isn't usual on the way goes on in the pipeline ------------------------------------------------------------------


class Times:
    """Counts its calls, and answers what it is told to."""

    def __init__(self, answer: Any = None) -> None:
        self.answer, self.count = answer, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer(*args) if callable(self.answer) else self.answer


ANSWERS: dict[str, Any] = {
    "nothing": None, "block": Block("no"), "modify": Modify({"path": "b"}), "wrong": Modify({"path": 1}), "ask": Ask("sure?"),
    "nonsense": 5, "raises": ValueError("x"), "exits": SystemExit(3),
}  # fmt: skip
VALUES_OF_HANDLERS: dict[str, Any] = {
    "text": "hello", "data": {"a": [1, {"b": None}]}, "error": {"error": "bad"}, "error text": '{"error": "bad"}',
    "raises": KeyError("k"), "exits": SystemExit(1), "bytes": b"\x00", "set": {1}, "surrogate": "\ud800", "nan": float("nan"),
    "parts": {"_multimodal": True, "content": [{"type": "text", "text": "t"}]}, "secret": "ghp_" + "a" * 36,
    "keys": {1: 2, "1": 3}, "stops": StopIteration(1), "long": "x" * 200_000, "deep": {"a": json.loads("[" * 150 + "]" * 150)},
}  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("value", VALUES_OF_HANDLERS)
def test_dispatch_H1_the_quick_way_and_the_pipeline_give_one_answer(tmp_path, answer, value):
    """Whatever a hook answers and a handler gives, nothing runs twice, and the answer is the pipeline's."""
    told: dict[str, Any] = {}
    for way in ("pipeline", "quick"):
        with Runtime(home=tmp_path / way, config={"dispatch": {"validate": True}}) as rt:
            rt._parts._loaded = True
            first, hook, handler, last = Times(), Times(ANSWERS[answer]), Times(VALUES_OF_HANDLERS[value]), []
            rt.add_hook("pre_tool_call", lambda tool_name, args, first=first: first(tool_name))
            rt.add_hook("pre_tool_call", lambda args, hook=hook: hook())
            rt.add_hook("post_tool_call", lambda last=last, **all_: last.append(all_))
            rt.registry.register("x", "t", {"description": "d", "parameters": FLAT}, lambda args, h=handler: h())
            if way == "quick":
                assert compile_call(rt, "x") is not None
            result = rt.execute(ToolCall("x", TEXT, "id"), task_id="t").to_dict()
            counts = (first.count, hook.count, handler.count, len(last))
            for each in (result, *last):
                each.pop("duration_ms")
            for step in result["trace"]:
                step.pop("request", None)
            result["text"] = result["text"].replace(str(tmp_path / way), "HOME")
            last[0]["result"] = last[0]["result"].replace(str(tmp_path / way), "HOME")
            if value != "long":
                told[way] = (result, last, counts)
            else:
                told[way] = (len(result["text"]), counts)
    assert told["quick"] == told["pipeline"]


def test_dispatch_H3_an_observer_that_fails_is_told_of_once_and_the_others_run(rt, add, caplog):
    add(echo, parameters=FLAT)
    after = Times()
    rt.add_hook("post_tool_call", Times(ValueError("broken")).__call__)
    rt.add_hook("post_tool_call", lambda result: after())
    for _ in range(4):
        assert rt.call("x", TEXT) == '{"got": {"path": "a", "limit": 2}}'
    assert after.count == 4
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_dispatch_C4_an_interrupt_leaves_after_the_observers(rt, add, seen):
    add(Times(KeyboardInterrupt()), parameters=FLAT)
    with pytest.raises(KeyboardInterrupt):
        runs(rt)
    assert [told["status"] for told in seen] == ["cancelled"]


@pytest.mark.parametrize("change", ["handler", "hook", "session", "runtime"])
def test_dispatch_H5_what_changes_counts_from_the_next_call_on(rt, add, change):
    add(echo, parameters=FLAT)
    for _ in range(3):
        assert "got" in rt.call("x", TEXT)
    match change:
        case "handler":
            add(lambda args: "new", parameters=FLAT)
        case "hook":
            rt.add_hook("pre_tool_call", lambda: Block("new"))
        case "session":
            rt._parts.sessions.find(None).close()
            add(lambda args: "new", parameters=FLAT)
        case "runtime":
            rt.close()
    assert "got" not in rt.call("x", TEXT)


def test_dispatch_H5_a_change_within_the_call_does_not_run_it_twice(rt, add):
    """A hook that takes the tool away, and answers something unusual: the handler that was asked for has its one run."""
    handler = Times(b"\x00")
    add(lambda args: handler(), parameters=FLAT)

    def replace(args: dict[str, Any]) -> Any:
        rt.registry.deregister("x")
        return Modify({"path": "z"})

    rt.add_hook("pre_tool_call", replace)
    assert compile_call(rt, "x") is not None
    assert rt.execute(ToolCall("x", TEXT)).status == "ok"
    assert handler.count == 1


def test_dispatch_C6_the_arguments_of_a_handler_are_its_own(rt, add):
    """What it does to them reaches neither the observers nor the caller."""

    def handler(args: dict[str, Any]) -> str:
        args.clear()
        return "ok"

    seen = []
    add(handler, parameters=FLAT)
    rt.add_hook("pre_tool_call", lambda args: args.clear())
    rt.add_hook("post_tool_call", lambda args, executed_args: seen.append((args, executed_args)))
    raw = {"path": "a"}
    assert compile_call(rt, "x") is not None
    assert rt.call("x", raw) == "ok"
    assert raw == {"path": "a"}
    assert seen == [({"path": "a"}, {"path": "a"})]


def test_dispatch_C9_secrets_of_the_environment_do_not_leave(rt, add, monkeypatch):
    add(lambda args: os.environ.get("PLANTED_KEY", ""), parameters=FLAT, requires_env=["PLANTED_KEY"])
    compile_call(rt, "x")
    for secret in ("first-secret", "other-secret"):
        monkeypatch.setenv("PLANTED_KEY", secret)
        assert rt.call("x", TEXT) == "[redacted]"


def test_dispatch_B1_a_call_within_a_call_knows_where_it_stands(rt, add):
    """A handler on the quick way that calls another tool: the inner one is in the same session, and counts as within it."""
    session = rt.session()
    add(lambda args: rt.call("inner", "{}", session=session), "outer", FLAT)
    add(lambda args, session_id, task_id: [session_id, task_id], "inner")
    rt.call("inner", "{}", session=session)
    assert compile_call(rt, "outer", session) is not None
    assert json.loads(rt.call("outer", TEXT, session=session)) == [session.id, None]


def test_registry_R6_a_quick_handler_acts_for_its_owner_and_nobody_after_it(rt, add):
    from mibyan.tools.current import CURRENT

    add(lambda args: str(CURRENT.get()), parameters=FLAT)
    assert runs(rt) == "None"
    assert CURRENT.get() is None


def test_dispatch_B4_threads_share_a_compiled_call(rt, add):
    add(lambda args: args["path"], parameters=FLAT)
    compile_call(rt, "x")
    wrong = []

    def work(number: int) -> None:
        for index in range(300):
            text = f"{number}-{index}"
            if rt.call("x", {"path": text}) != text:
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_dispatch_H5_typed_tools_of_every_kind(rt):
    """Defaults, conversions, a context, rich types: the compiled call gives what the first one gave."""

    @mibyan.tool(toolset="t")
    def plain(a: str, n: int = 3) -> dict[str, Any]:
        """Plain."""
        return {"a": a, "n": n}

    @mibyan.tool(toolset="t")
    def converted(x: float) -> str:
        """Converted."""
        return repr(x)

    @mibyan.tool(toolset="t")
    def contextual(ctx: mibyan.ToolContext, a: str) -> dict[str, Any]:
        """With a context."""
        return {"a": a, "task": ctx.task_id, "id": ctx.tool_call_id, "cancelled": ctx.cancelled}

    calls = {plain: '{"a": "x"}', converted: '{"x": 2}', contextual: '{"a": "y"}'}
    for tool in calls:
        rt.registry.add(tool)
    for tool, raw in calls.items():
        first = rt.call(tool.name, raw, task_id="t", tool_call_id="c")
        assert compile_call(rt, tool.name) is not None
        assert rt.call(tool.name, raw, task_id="t", tool_call_id="c") == first
