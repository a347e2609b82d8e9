"""`ToolContext.nested_calls`: calls that a tool makes of others, from its own threads (dispatch.B2, H1)."""

from __future__ import annotations

import contextvars
import threading

import pytest

from mibyan import MibyanError, Runtime, ToolCall, ToolContext, tool

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
NOTHING = {"description": "d", "parameters": {"type": "object", "properties": {}}}


@pytest.fixture
def runtime(tmp_path):
    with Runtime(home=tmp_path) as runtime:
        yield runtime


def in_thread(function):
    """What a function gives on a thread of its own."""
    box = []
    thread = threading.Thread(target=lambda: box.append(function()))
    thread.start()
    thread.join(30)
    return box[0]


def add(runtime: Runtime, function) -> None:
    """Register a tool `outer` that does something with its nested calls."""

    @tool(name="outer", toolset="t", description="d")
    def outer(ctx: ToolContext) -> dict:
        with ctx.nested_calls() as calls:
            return function(calls)

    runtime.registry.add(outer)


def test_B2_they_belong_to_the_call_around_them(runtime: Runtime) -> None:
    """The same session, task and context variables, on whichever thread; out of scope is out of scope."""
    seen = []
    runtime.registry.register(
        "inner", "t", NOTHING, lambda args, session_id, task_id: seen.append((session_id, task_id, WHO.get())) or {}
    )
    runtime.registry.register("other", "u", NOTHING, lambda args: {})
    add(runtime, lambda calls: in_thread(lambda: {
        "inner": calls.execute(ToolCall("inner")).status, "other": calls.execute(ToolCall("other")).error_type,
        "shown": [d["function"]["name"] for d in calls.definitions()]}))  # fmt: skip
    session = runtime.session("s", enabled_toolsets=["t"])
    WHO.set("me")
    answer = runtime.execute(ToolCall("outer"), session, task_id="k").data
    assert answer == {"inner": "ok", "other": "tool_not_in_session", "shown": ["inner", "outer"]}
    assert seen == [("s", "k", "me")]


def test_B2_they_stand_under_its_deadline(runtime: Runtime) -> None:
    """A nested call that would take longer is answered when the time of the call around it is over."""
    over = threading.Event()
    runtime.registry.register("slow", "t", NOTHING, lambda args: {"done": over.wait(30)})
    statuses = []
    ended = threading.Event()

    def ask(calls):
        statuses.append(calls.execute(ToolCall("slow")).status)
        ended.set()
        over.wait(30)  # it has no answer of its own in time
        return {}

    add(runtime, ask)
    assert runtime.execute(ToolCall("outer"), timeout=0.3).status == "timeout"
    assert ended.wait(20)
    over.set()
    assert statuses[0] in {"timeout", "cancelled"}


def test_B2_closing_ends_them(runtime: Runtime) -> None:
    """What still runs is cancelled, and nothing begins any more."""
    inside, over = threading.Event(), threading.Event()

    def slow(args):
        inside.set()
        return {"over": over.wait(30)}

    runtime.registry.register("slow", "t", NOTHING, slow)
    runtime.registry.register("quick", "t", NOTHING, lambda args: {})
    statuses = []

    def close(calls):
        thread = threading.Thread(target=lambda: statuses.append(calls.execute(ToolCall("slow")).status))
        thread.start()
        assert inside.wait(20)
        calls.close()
        calls.close()
        thread.join(20)
        return {"late": calls.execute(ToolCall("quick")).status}

    add(runtime, close)
    assert runtime.execute(ToolCall("outer")).data == {"late": "cancelled"}
    over.set()
    assert statuses == ["cancelled"]


def test_B2_waiting_for_a_person_is_told(runtime: Runtime) -> None:
    """`held` grows while a nested call waits for an answer, and by nothing else."""
    from mibyan import Ask

    asked, answer = threading.Event(), threading.Event()

    def channel(request):
        asked.set()
        answer.wait(20)
        runtime.approvals.resolve(request.id, "once")

    runtime.approvals.notify(channel)
    runtime.registry.register("inner", "t", NOTHING, lambda args: {}, approval=lambda args, context: Ask("may I?"))

    def watch(calls):
        before = calls.held
        thread = threading.Thread(target=lambda: calls.execute(ToolCall("inner")))
        thread.start()
        assert asked.wait(20)
        while not calls.held > before:
            threading.Event().wait(0.01)
        answer.set()
        thread.join(20)
        return {"before": before, "steady": calls.held == calls.held}

    add(runtime, watch)
    assert runtime.execute(ToolCall("outer")).data == {"before": 0.0, "steady": True}


def test_they_need_a_runtime() -> None:
    """One clear error."""
    with pytest.raises(MibyanError, match="needs a runtime"):
        ToolContext("t").nested_calls()
