"""`@mibyan.tool`: a typed function as a tool, its context, and the builders of results."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import FrozenInstanceError

import pytest

import mibyan
from mibyan import Runtime, ToolCall, ToolContext, ToolResult, ToolSchemaError, tool_error, tool_result


@pytest.fixture
def rt(tmp_path):
    runtime = Runtime(home=tmp_path)
    runtime._parts._loaded = True
    yield runtime
    runtime.close()


def test_a_decorated_function_stays_a_function():
    """It is called as before, keeps its name and its docstring, and knows what it takes to register it."""

    @mibyan.tool(toolset="weather", emoji="🌦", read_only=True)
    def forecast(city: str, days: int = 3) -> str:
        """Weather forecast."""
        return f"{city} {days}"

    assert forecast("Bern", days=2) == "Bern 2"
    assert (forecast.__name__, forecast.__doc__, forecast.name) == ("forecast", "Weather forecast.", "forecast")
    assert (forecast.toolset, forecast.options) == ("weather", {"emoji": "🌦", "read_only": True})
    assert forecast.schema["parameters"]["required"] == ["city"]


def test_without_parentheses_the_toolset_is_the_modules():
    """`@tool` alone: the toolset is the module's last name."""

    @mibyan.tool
    def plain() -> str:
        """Plain."""
        return "ok"

    assert (plain.name, plain.toolset) == ("plain", __name__.rpartition(".")[2])


def test_name_and_description_can_be_given(rt):
    """`name` and `description` stand before what the function says."""

    @mibyan.tool(toolset="t", name="other", description="mine")
    def function() -> str:
        """Its own."""
        return "ok"

    rt.registry.add(function)
    assert rt.registry.get_schema("other")["description"] == "mine"
    assert rt.call("other") == "ok"


@pytest.mark.parametrize("target", [5, "x", None.__class__.__name__])
def test_what_isnt_a_function(target):
    """`@tool` takes a function."""
    with pytest.raises(TypeError, match="takes a function"):
        mibyan.tool(toolset="t")(target)


@pytest.mark.parametrize("given", [5, print, lambda: None])
def test_add_takes_what_the_decorator_made(rt, given):
    """`registry.add` takes a decorated function."""
    with pytest.raises(TypeError, match=r"decorated with @mibyan\.tool"):
        rt.registry.add(given)


def star(*args):
    """Takes anything."""


def star_star(**kwargs):
    """Takes anything."""


@pytest.mark.parametrize("function", [star, star_star])
def test_a_signature_that_has_no_schema(rt, function):
    """A signature that can't be a tool's is refused with a sentence when it is registered; nothing is."""
    with pytest.raises(ToolSchemaError, match=function.__name__):
        rt.registry.add(mibyan.tool(toolset="t")(function))
    assert rt.registry.get_entry(function.__name__) is None


def test_an_option_that_there_is_not(rt):
    """An unknown keyword is told when the tool is registered, with what was meant."""

    def function() -> None:
        """Do nothing."""

    with pytest.raises(TypeError, match="did you mean 'read_only'"):
        rt.registry.add(mibyan.tool(toolset="t", readonly=True)(function))


@pytest.mark.parametrize("form", ["sync", "async"])
def test_the_context_is_filled_by_its_annotation(rt, form):
    """One parameter annotated `ToolContext` gets the call's context; it isn't in the schema, and no name is magic."""
    seen = []

    @mibyan.tool(toolset="t", name="x")
    def function(city: str, ctx: ToolContext, task_id: str = "mine") -> str:
        seen.append(ctx)
        return task_id

    @mibyan.tool(toolset="t", name="x")
    async def coroutine(city: str, ctx: ToolContext, task_id: str = "mine") -> str:
        await asyncio.sleep(0)
        seen.append(ctx)
        return task_id

    rt.registry.add(function if form == "sync" else coroutine)
    assert set(rt.registry.get_schema("x")["parameters"]["properties"]) == {"city", "task_id"}
    session = rt.session("s1", enabled_toolsets=["t"])
    assert rt.execute(ToolCall("x", {"city": "Bern"}, "c1"), session, task_id="t1", user_task="go").text == "mine"
    (ctx,) = seen
    assert (ctx.session, ctx.session_id, ctx.task_id, ctx.tool_call_id, ctx.user_task) == (
        session,
        "s1",
        "t1",
        "c1",
        "go",
    )
    assert (ctx.tool_name, ctx.plugin_id, ctx.enabled_tools, ctx.cancelled) == ("x", None, ("x",), False)
    assert (ctx.deadline, ctx.remaining) == (None, None)
    assert ctx.settings is rt.config


def test_a_context_is_frozen_and_names_its_logger():
    """The context is a frozen record; `remaining` is seconds, never below 0; the logger is the plugin's."""
    ctx = ToolContext("x", plugin_id="p", deadline=time.monotonic() - 5)
    assert ctx.remaining == 0.0
    assert ctx.logger is logging.getLogger("mibyan.plugins.p")
    assert ToolContext("x").logger is logging.getLogger("mibyan.tools.x")
    with pytest.raises(FrozenInstanceError):
        ctx.task_id = "t"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (tool_result, None),
        (lambda: tool_result({"a": 1}), {"a": 1}),
        (lambda: tool_result(a=1), {"a": 1}),
        (lambda: tool_result({"a": 1}, b=2), {"a": 1, "b": 2}),
        (lambda: tool_result({"a": 1}, a=2), {"a": 2}),
        (lambda: tool_result([1], b=2), {"result": [1], "b": 2}),
        (lambda: tool_result(float("nan")), None),
        (lambda: tool_error("no"), {"error": "no"}),
        (lambda: tool_error("no", code=3), {"error": "no", "code": 3}),
        (lambda: tool_error(ValueError("x")), {"error": "x"}),
    ],
)
def test_dispatch_C6_the_builders(made, expected):
    """dispatch.C6: `tool_result` and `tool_error` give JSON text; what JSON can't say degrades."""
    assert json.loads(made()) == expected


class Mute:
    def __str__(self):
        raise SystemExit(3)

    __repr__ = __str__


def test_dispatch_C6_an_error_whose_text_cant_be_had():
    """dispatch.C6: `tool_error` never fails over its message."""
    assert "error" in json.loads(tool_error(Mute()))


def test_a_result_is_a_record():
    """`ToolResult` is frozen; `ok` is its status; `to_dict` has every field as JSON."""
    result = ToolResult("c1", "x", "ok", "text", content=({"type": "text", "text": "t"},))
    assert result.ok
    assert json.loads(json.dumps(result.to_dict()))["content"] == [{"type": "text", "text": "t"}]
    with pytest.raises(FrozenInstanceError):
        result.status = "error"
