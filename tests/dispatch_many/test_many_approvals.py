"""Approvals of a batch settle before any of its effects (dispatch.P1)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mibyan import Ask, Block, ToolCall


@pytest.fixture(params=["call_many", "acall_many"])
def many(request, rt) -> Callable[..., list[Any]]:
    def run(calls, **options):
        if request.param == "call_many":
            return rt.call_many(calls, **options)
        return asyncio.run(rt.acall_many(calls, **options))

    return run


@pytest.fixture
def tools(rt, add, events):
    """`write` has effects, `ask` has and asks, `look` only reads; each tells of its begin."""

    def handler(name):
        return lambda args: events.tell(name) or name

    add("write", handler("write"), parallel=True)
    add("named", handler("named"), writes=lambda args: ["a"])
    add("ask", handler("ask"), parallel=True, approval=lambda args, context: Ask(f"really {args.get('n', '')}?"))
    add("look", handler("look"), read_only=True)


def test_dispatch_P1_approvals_settle_before_any_effect(many, rt, tools, events):
    """dispatch.P1: every question is answered before the first handler with effects begins, wherever it stands."""

    def channel(request):
        events.tell(f"asked {request.reason}")
        rt.approvals.resolve(request.id, "deny" if "2" in request.reason else "once")

    rt.approvals.notify(channel)
    calls = [ToolCall("write"), ToolCall("named"), ToolCall("ask", {"n": 1}), ToolCall("write"), ToolCall("ask", {"n": 2}),
             ToolCall("ask", {"n": 3})]  # fmt: skip
    results = many(calls)
    assert [result.status for result in results] == ["ok", "ok", "ok", "ok", "denied", "ok"]
    assert events.all[:3] == ["asked really 1?", "asked really 2?", "asked really 3?"]
    assert sorted(events.all[3:]) == ["ask", "ask", "named", "write", "write"]


@pytest.mark.parametrize("position", [0, 1])
def test_reads_need_not_wait_for_approvals(many, rt, tools, events, position):
    """A call that only reads runs while a person is asked for another, before it or after it."""

    def channel(request):
        events.tell("asked")
        events.wait_for("look")
        rt.approvals.resolve(request.id, "once")

    rt.approvals.notify(channel)
    calls = [ToolCall("ask"), ToolCall("write")]
    calls.insert(position, ToolCall("look"))
    results = many(calls)
    assert [result.status for result in results] == ["ok"] * 3
    assert {"asked", "look"} == set(events.all[:2])


def test_questions_come_one_by_one(many, rt, tools):
    """A channel that blocks until it has its answer is never told of two questions at once, and of each in call order."""
    asked, inside = [], threading.Lock()

    def channel(request):
        assert inside.acquire(blocking=False)
        asked.append((request.reason, len(rt.approvals.pending())))
        rt.approvals.resolve(request.id, "once")
        inside.release()

    rt.approvals.notify(channel)
    results = many([ToolCall("ask", {"n": n}) for n in range(5)])
    assert [result.status for result in results] == ["ok"] * 5
    assert asked == [(f"really {n}?", 1) for n in range(5)]


def test_what_a_hook_asks_settles_first_too(many, rt, tools, events):
    """A hook's question counts like the tool's own."""
    rt.add_hook("pre_tool_call", lambda tool_name: Ask("sure?") if tool_name == "write" else None)
    rt.approvals.notify(lambda request: events.tell("asked") or rt.approvals.resolve(request.id, "once"))
    many([ToolCall("named"), ToolCall("write"), ToolCall("look"), ToolCall("write")])
    effects = [event for event in events.all if event != "look"]
    assert effects[:2] == ["asked", "asked"]
    assert sorted(effects[2:]) == ["named", "write", "write"]


def test_a_block_is_no_question(many, rt, tools, add):
    """A refused call lets the others run."""
    add("never", lambda args: "x", approval=lambda args, context: Block("no"))
    results = many([ToolCall("never"), ToolCall("write"), ToolCall("nope"), ToolCall("named")])
    assert [result.status for result in results] == ["blocked", "ok", "error", "ok"]


def test_waiting_for_a_person_takes_no_worker_and_no_time(many, rt, tools, events):
    """dispatch.B2: the batch's clock stands still while a person is asked, and the one worker serves the others."""
    patience = threading.Event()

    def channel(request):
        events.wait_for("look")
        patience.wait(0.5)  # Longer than the batch may take.
        rt.approvals.resolve(request.id, "once")

    rt.approvals.notify(channel)
    results = many([ToolCall("ask"), ToolCall("look"), ToolCall("write")], max_workers=1, timeout=0.4)
    assert [result.status for result in results] == ["ok"] * 3


def test_an_interrupt_ends_the_question(many, rt, tools, events):
    """A batch that is interrupted while a person is asked has its results at once, and runs nothing."""
    session = rt.session()
    rt.approvals.notify(lambda request: session.interrupt())
    results = many([ToolCall("ask"), ToolCall("ask"), ToolCall("write")], session=session)
    assert [result.status for result in results] == ["cancelled"] * 3
    assert events.all == []
    assert rt.approvals.pending() == []
