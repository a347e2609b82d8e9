"""What `rt.plan` tells, and that it changes nothing (dispatch.P1)."""

from __future__ import annotations

import json

import pytest

from mibyan import Ask, Block, Modify, ToolCall

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}


@pytest.fixture
def tools(add, tmp_path):
    """A reader, a writer, an undeclared tool, one that asks, one that is free."""

    def path(args):
        return [args.get("path", "a")]

    add("read", lambda args: 1 / 0, PATH, read_only=True, reads=path)
    add("write", lambda args: 1 / 0, PATH, writes=path)
    add("whatever", lambda args: 1 / 0)
    add("ask", lambda args: 1 / 0, PATH, parallel=True, approval=lambda args, context: Ask("Really?"))
    add("never", lambda args: 1 / 0, approval=lambda args, context: Block("not today"))
    add("broken", lambda args: 1 / 0, approval=lambda args, context: 1 / 0)
    add("free", lambda args: 1 / 0, read_only=True)


def test_dispatch_P1_explain_says_what_runs_together_what_waits_and_what_asks(rt, tools, tmp_path):
    """dispatch.P1: the plan in words."""
    calls = [
        ToolCall("read", {"path": "a"}, "call_1"), ToolCall("read", {"path": "./a"}), ToolCall("write", {"path": "a"}, "call_3"),
        ToolCall("free"), ToolCall("ask", {"path": "x"}), ToolCall("nope"), ToolCall("read", {"path": 1}), ToolCall("whatever"),
        ToolCall("read", {"path": "/elsewhere"}),
    ]  # fmt: skip
    plan = rt.plan(calls, session=rt.session(cwd=tmp_path), max_workers=4)
    assert plan.explain().splitlines() == [
        "9 calls in 4 steps, at most 4 at once:",
        "1. together:",
        "   1 read (call_1): reads a",
        "   2 read: reads a",
        "   4 free: touches nothing that others write",
        "   5 ask: touches nothing that others write",
        "2. alone:",
        "   3 write (call_3): writes a",
        "      waits for 1 read (call_1), 2 read: both touch a",
        "3. alone:",
        "   8 whatever: beside no other: it doesn't declare what it touches",
        "      waits for 3 write (call_3), 4 free, 5 ask: it runs beside no other",
        "4. alone:",
        "   9 read: reads /elsewhere",
        "      waits for 8 whatever: that one runs beside no other",
        "Answered without running:",
        "   6 nope: Unknown tool: nope",
        "   7 read: Invalid arguments for read: path: expected text, got integer 1",
        "Asks, before any call with effects starts:",
        "   5 ask: Really?",
    ]


def test_explain_says_what_is_not_known_before(rt, tools):
    """A path that an earlier call may bend makes the later ones wait, and the plan says why."""
    calls = [ToolCall("write", {"path": "d"}), ToolCall("read", {"path": "d/x"}), ToolCall("write", {"path": "b"})]
    assert (
        "      waits for 1 write: where the paths of 2 read lead isn't known before"
        in rt.plan(calls).explain().splitlines()
    )


def test_a_plan_is_data(rt, tools, tmp_path):
    """The plan as JSON, its steps, and what each call touches as absolute paths."""
    session = rt.session(cwd=tmp_path)
    plan = rt.plan(
        [ToolCall("write", {"path": "a"}, "x"), ToolCall("ask"), ToolCall("never"), ToolCall("broken")], session=session
    )
    data = json.loads(json.dumps(plan.to_dict()))
    assert data["waves"] == [[0, 1]]
    assert data["calls"][0] == {
        "index": 0, "id": "x", "name": "write", "kind": "named", "why": "", "effects": True, "reads": [],
        "writes": [f"{tmp_path}/a"], "waits": [], "asks": None,
    }  # fmt: skip
    assert [call["asks"] for call in data["calls"]] == [None, "Really?", None, None]
    assert [call["kind"] for call in data["calls"]] == ["named", "free", None, None]
    assert data["calls"][2]["why"] == "not today"


def test_planning_is_no_call(rt, tools):
    """No handler, no hook of a call, no question, no session's start: a plan is only looked at."""
    happened = []
    for hook in ("pre_tool_call", "post_tool_call", "on_session_start"):
        rt.add_hook(hook, lambda hook=hook: happened.append(hook))
    rt.approvals.notify(lambda request: happened.append("asked"))
    plan = rt.plan([ToolCall("ask"), ToolCall("write"), ToolCall("nope")])
    assert happened == []
    assert plan.hooks == ("pre_tool_call of the host",)
    assert plan.explain().splitlines()[-1] == "Hooks may block, ask or change arguments: pre_tool_call of the host."
    assert not rt._parts.sessions.find(None).started


def test_a_plan_knows_no_modification(rt, tools):
    """What a hook will change isn't known to a plan; `call_many` plans with what it leaves."""
    rt.add_hook("pre_tool_call", lambda: Modify({"path": "a"}))
    assert rt.plan([ToolCall("write", {"path": "a"}), ToolCall("write", {"path": "b"})]).waves == ((0, 1),)


def test_names_of_a_model_cannot_break_the_page(rt, tools):
    """Line breaks and control characters in names and ids are shown, not obeyed."""
    text = rt.plan([ToolCall("no\nsuch\x1b[31m", None, "a\nb")]).explain()
    assert "\x1b" not in text
    assert len(text.splitlines()) == 3


def test_tools_out_of_the_sessions_scope_are_refused_in_the_plan_too(rt, tools):
    """A plan tells what the session may not call, and what only the agent loop answers."""
    rt.registry.register("todo", "agent", {"parameters": PATH}, lambda args: "x", handled_by="agent")
    session = rt.session(enabled_toolsets=[])
    plan = rt.plan([ToolCall("read")], session=session)
    assert "isn't among this session's tools" in plan.calls[0].why
    assert "agent loop" in rt.plan([ToolCall("todo")]).calls[0].why
    told = rt.session(handlers={"todo": lambda args: "x"})
    assert rt.plan([ToolCall("todo")], session=told).calls[0].kind == "barrier"


def test_a_plan_after_the_end_is_told(rt, tools):
    """After `close()` there is nothing to plan, and that is said without a traceback."""
    rt.close()
    assert rt.plan([ToolCall("read")]).calls[0].kind is None
