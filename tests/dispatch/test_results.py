"""What a handler gives and raises, and what the model gets of it (dispatch.C4, C6)."""

from __future__ import annotations

import json

import pytest

from mibyan import ToolError, tool_error, tool_result
from mibyan.tools.results import ToolCall, ToolResult

from .hostile import EXCEPTIONS, VALUES, check_well_formed


@pytest.mark.parametrize("value", VALUES)
def test_dispatch_C6_every_value_is_text_for_the_model(face, kind, add, seen, value):
    """dispatch.C6: text passes, the rest is JSON or content parts; what can't be said degrades, and nothing fails."""
    make, text = VALUES[value]
    add(kind(lambda args, **_: make()))
    result = face()
    check_well_formed(result)
    assert (result.status, result.error) == ("ok", None)
    if text is not None:
        assert result.text == text
    assert [(told["status"], told["result"]) for told in seen] == [("ok", result.text)]


@pytest.mark.parametrize("error", EXCEPTIONS)
def test_dispatch_C4_every_exception_is_a_result(face, kind, add, seen, error):
    """dispatch.C4: whatever a handler raises becomes an error result, and the observers see it once."""
    make, text = EXCEPTIONS[error]

    def handler(args, **_):
        raise make()

    add(kind(handler))
    result = face()
    check_well_formed(result)
    assert result.status == "error"
    assert text in result.error
    if text:
        assert result.error_type == "tool_exception"
        assert result.error.startswith("Tool execution failed: ")
    assert [(told["status"], told["result"]) for told in seen] == [("error", result.text)]


@pytest.mark.parametrize("value", ["bytes", "image", "multimodal"])
def test_dispatch_C6_bytes_and_images_are_content_parts(rt, add, value):
    """dispatch.C6: content parts are there as such, and render as `{"content": [...]}`."""
    make, text = VALUES[value]
    add(lambda args: make())
    result = rt.execute(ToolCall("x"))
    assert list(result.content) == json.loads(text)["content"]
    assert result.data == json.loads(result.text)


def test_dispatch_C6_a_handlers_own_json_has_its_data(rt, add):
    """A JSON text is there as data in a structured result, whoever wrote it."""
    add(lambda args: '{"a": [1]}')
    assert rt.execute(ToolCall("x")).data == {"a": [1]}


@pytest.mark.parametrize(
    ("text", "error", "error_type", "status"),
    [
        ('{"error": "no such file"}', "no such file", "tool_exception", "error"),
        ('{"error": {"code": 4}}', '{"code": 4}', "tool_exception", "error"),
        ('{"error": "late", "error_type": "timeout"}', "late", "timeout", "timeout"),
        ('{"error": "x", "error_type": "made up"}', "x", "tool_exception", "error"),
        ('{"error": null, "a": 1}', None, None, "ok"),
        ('{"error": ""}', None, None, "ok"),
        ('{"result": {"error": "inside"}}', None, None, "ok"),
        ('{"error": "torn', None, None, "ok"),
    ],
)
@pytest.mark.parametrize("untrusted", [False, True])
def test_an_answer_that_says_it_is_an_error_is_one(rt, add, text, error, error_type, status, untrusted):
    """A JSON object with a true `error` is an error result, framed or not; its text stays as the handler wrote it."""
    add(lambda args: text, untrusted_output=untrusted)
    result = rt.execute(ToolCall("x"))
    assert (result.status, result.error, result.error_type) == (status, error, error_type)
    assert text in result.text


def test_tool_result_and_tool_error_build_answers(face, add):
    """dispatch.C6: `tool_result` and `tool_error` give the JSON text of an answer and of an error."""
    add(lambda args: tool_result({"a": 1}, b=2), "good")
    add(lambda args: tool_error("no", code=3), "bad")
    assert face("good").text == '{"a": 1, "b": 2}'
    bad = face("bad")
    assert (bad.text, bad.status, bad.error) == ('{"error": "no", "code": 3}', "error", "no")


def test_a_nested_results_status_counts(rt, add):
    """A handler that returns the result of another call returns its failure too."""
    add(lambda args: rt.execute(ToolCall("missing")))
    result = rt.execute(ToolCall("x"))
    assert (result.status, result.error_type) == ("error", "unknown_tool")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ToolError("no"), {"error": "no", "error_type": "tool_exception"}),
        (ToolError("no", hint="try y", retryable=True, data={"n": 1}),
         {"error": "no", "error_type": "tool_exception", "hint": "try y", "retryable": True, "data": {"n": 1}}),
        (ToolError("no", data={"error_type": "limit"}), {"error": "no", "error_type": "limit"}),
        (ToolError("no", data={"error_type": "mine"}),
         {"error": "no", "error_type": "tool_exception", "data": {"error_type": "mine"}}),
        (ToolError("no", data={1, 2}), {"error": "no", "error_type": "tool_exception", "data": [1, 2]}),
        (ToolError("no", data=float("nan")), {"error": "no", "error_type": "tool_exception"}),
        (ToolError(""), {"error": "Tool execution failed: ToolError", "error_type": "tool_exception"}),
        (ToolError(5), {"error": "Tool execution failed: ToolError: 5", "error_type": "tool_exception"}),
        (ToolError("no", hint=5), {"error": "no", "error_type": "tool_exception"}),
    ],
)  # fmt: skip
def test_dispatch_C0_a_tools_author_says_more(face, kind, add, error, expected):
    """dispatch.C0: a `ToolError`'s own words, hint, retryability and data are the answer; odd parts degrade."""

    def handler(args, **_):
        raise error

    add(kind(handler))
    result = face()
    check_well_formed(result)
    assert json.loads(result.text) == expected


def test_a_result_says_which_call_it_answers(face, add):
    """A `ToolResult` has the call's id, the tool's own name, a duration in milliseconds and a trace."""
    add(lambda args: "ok", "web_search")
    result = face("WebSearch", call_id="call_7")
    assert (result.id, result.name) == ("call_7", "web_search")
    assert result.duration_ms >= 0
    assert {"step": "renamed", "asked": "WebSearch", "name": "web_search"} in result.trace
    assert set(result.to_dict()) == set(ToolResult.__dataclass_fields__)
