"""How a batch ends that doesn't end by itself: deadlines, interrupts, a closed runtime, a cancelled host (dispatch.P3)."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from mibyan import ToolCall

from .conftest import SOON, Events


@pytest.fixture(params=["call_many", "acall_many"])
def many(request, rt) -> Callable[..., list[Any]]:
    def run(calls, **options):
        if request.param == "call_many":
            return rt.call_many(calls, **options)
        return asyncio.run(rt.acall_many(calls, **options))

    return run


@pytest.fixture
def tools(rt, add, events, never):
    """`stuck` never ends by itself and writes `a`; `quick` only reads; `after` writes `a` too, `other` writes `b`."""

    def stuck(args):
        events.tell("stuck")
        never.wait()

    async def astuck(args):
        events.tell("stuck")
        await asyncio.Event().wait()

    add("stuck", stuck, writes=lambda args: ["a"])
    add("astuck", astuck, writes=lambda args: ["a"])
    add("quick", lambda args: events.tell("quick") or "x", read_only=True)
    add("after", lambda args: events.tell("after") or "x", writes=lambda args: ["a"])
    add("other", lambda args: events.tell("other") or "x", writes=lambda args: ["b"])


@pytest.fixture
def seen(rt) -> Events:
    """What `post_tool_call` was told of each call."""
    told = Events()
    rt.add_hook("post_tool_call", lambda tool_name, status: told.tell((tool_name, status)))
    return told


def check_seen(seen: Events, *expected: tuple[str, str]) -> None:
    """Each call was told once; an observer may come after the answer, which doesn't wait for it beyond a deadline."""
    seen.wait_for_some(len(expected))
    assert sorted(seen.all) == sorted(expected)


def statuses(results):
    return [result.status for result in results]


# Deadlines -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stuck", "astuck"])
def test_dispatch_P3_a_batch_has_a_deadline(many, tools, seen, name):
    """dispatch.P3: when its seconds are over, what runs and what waits is answered `timeout`; the rest has its results."""
    began = time.monotonic()
    results = many([ToolCall(name), ToolCall("quick"), ToolCall("after"), ToolCall("other")], timeout=0.5)
    took = time.monotonic() - began
    assert statuses(results) == ["timeout", "ok", "timeout", "ok"]
    assert "0.5 s" in results[0].error
    assert "0.5 s" in results[2].error
    assert 0.5 <= took < SOON
    check_seen(seen, (name, "timeout"), ("quick", "ok"), ("after", "timeout"), ("other", "ok"))


@pytest.mark.parametrize("name", ["stuck", "astuck"])
def test_dispatch_P3_one_stuck_tool_holds_back_what_it_conflicts_with_only(many, rt, tools, events, never, add, name):
    """dispatch.P3: the others end meanwhile; what waits for the stuck one runs after its deadline."""
    handler = rt.registry.get_entry(name).handler
    add("limited", handler, writes=lambda args: ["a"], timeout=0.5)
    rt.add_hook("post_tool_call", lambda tool_name: events.tell(f"{tool_name} over"))
    results = many([ToolCall("limited"), ToolCall("after"), *[ToolCall("quick"), ToolCall("other")] * 10])
    assert statuses(results) == ["timeout", *["ok"] * 21]
    told = events.all
    assert told.index("limited over") > max(index for index, event in enumerate(told) if event == "other over")
    assert told.index("limited over") < told.index("after")


def test_fifty_stuck_calls_do_not_delay_the_next(many, rt, tools, add, never):
    """Issue 3: abandoned handlers hold no worker: the batch goes on, and so does the next."""
    add("limited", lambda args: never.wait(), parallel=True, timeout=0.1)
    results = many([*[ToolCall("limited")] * 50, ToolCall("quick")], max_workers=50)
    assert statuses(results) == [*["timeout"] * 50, "ok"]
    assert statuses(many([ToolCall("quick")])) == ["ok"]
    assert rt._parts.dispatcher.stuck > 0


def test_dispatch_P3_a_calls_deadline_begins_when_it_begins(rt, tools, add):
    """dispatch.P3: the time for which a call waits for others isn't its own."""
    from mibyan import ToolContext, tool

    @tool(toolset="t", timeout=60.0, writes=lambda args: ["a"])
    def left(ctx: ToolContext) -> list[float]:
        """Say how much time is left."""
        return [ctx.remaining]

    rt.registry.add(left)
    add("limited", rt.registry.get_entry("stuck").handler, writes=lambda args: ["a"], timeout=1.5)
    stuck, result = rt.call_many([ToolCall("limited"), ToolCall("left")])
    assert stuck.status == "timeout"
    assert 60.0 - 1.5 < result.data[0] <= 60.0
    assert result.duration_ms < 1500


# Interrupts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stuck", "astuck"])
def test_dispatch_P3_an_interrupt_cancels_and_skips(many, rt, tools, seen, events, name):
    """dispatch.P3: `session.interrupt()` cancels what runs and skips the rest, each with its result; later calls run."""
    session = rt.session()

    def interrupt():
        events.wait_for("stuck", "other")
        session.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    results = many([ToolCall(name), ToolCall("after"), ToolCall("other"), ToolCall("after")], session=session)
    thread.join()
    assert statuses(results) == ["cancelled", "cancelled", "ok", "cancelled"]
    assert all("interrupted" in result.error for result in results if not result.ok)
    assert "after" not in events.all
    check_seen(seen, (name, "cancelled"), ("after", "cancelled"), ("other", "ok"), ("after", "cancelled"))
    assert statuses(many([ToolCall("after")], session=session)) == ["ok"]


def test_dispatch_P3_a_keyboard_interrupt_settles_first(rt, tools, events, seen):
    """dispatch.P3: Ctrl-C while waiting leaves with a result for each call, after the observers have seen them."""

    def interrupt():
        events.wait_for("stuck", "other")
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt) as caught:
        rt.call_many([ToolCall("stuck", {}, "1"), ToolCall("after", {}, "2"), ToolCall("other", {}, "3")])
    results = caught.value.results
    assert [(result.id, result.status) for result in results] == [("1", "cancelled"), ("2", "cancelled"), ("3", "ok")]
    check_seen(seen, ("after", "cancelled"), ("other", "ok"), ("stuck", "cancelled"))


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("where", ["handler", "hook", "reads"])
def test_dispatch_P3_a_keyboard_interrupt_of_a_tool_counts_too(many, rt, tools, add, seen, asynchronous, where):
    """dispatch.P3: wherever it is raised, the rest is skipped and it leaves with `.results`."""

    def interrupt(*args, **_):
        raise KeyboardInterrupt

    async def ainterrupt(*args, **_):
        raise KeyboardInterrupt

    raising = ainterrupt if asynchronous else interrupt
    handler = raising if where == "handler" else lambda args: "x"
    add("rude", handler, reads=interrupt if where == "reads" else lambda args: ["a"])
    if where == "hook":
        rt.add_hook("pre_tool_call", lambda tool_name: raising() if tool_name == "rude" else None)
    with pytest.raises(KeyboardInterrupt) as caught:
        many([ToolCall("rude"), ToolCall("after"), ToolCall("nope")])
    assert statuses(caught.value.results)[:2] == ["cancelled", "cancelled"]
    seen.wait_for(("rude", "cancelled"))


def test_closing_the_runtime_ends_a_batch(many, rt, tools, events):
    """dispatch.B5: `close()` meanwhile cancels what runs and what waits; afterwards a batch is answered at once."""

    def close():
        events.wait_for("stuck")
        rt.close()

    thread = threading.Thread(target=close)
    thread.start()
    results = many([ToolCall("stuck", {}, "1"), ToolCall("after", {}, "2")])
    thread.join()
    assert [(result.id, result.status) for result in results] == [("1", "cancelled"), ("2", "cancelled")]
    again = many([ToolCall("quick", {}, "1"), ToolCall("quick", {}, "2")])
    assert [(result.id, result.status) for result in again] == [("1", "cancelled"), ("2", "cancelled")]
    assert "closed" in again[0].error


def test_a_closed_session_is_told(many, rt, tools):
    """A batch in a closed session is answered without a call being made."""
    session = rt.session()
    session.close()
    assert statuses(many([ToolCall("quick")] * 2, session=session)) == ["cancelled"] * 2


@pytest.mark.parametrize("name", ["stuck", "astuck"])
def test_the_end_of_the_call_around_it_ends_a_batch(rt, tools, add, events, never, name):
    """A handler that is abandoned takes the batch with it that it waits for."""

    def outer(args):
        results = rt.call_many([ToolCall(name), ToolCall("after")])
        events.tell([result.ok for result in results])
        never.wait()

    add("outer", outer, timeout=0.5)
    assert rt.execute(ToolCall("outer")).status == "timeout"
    events.wait_for([False, False])
    assert "after" not in events.all


# The host's own end --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stuck", "astuck"])
def test_issue_3_a_hosts_timeout_ends_a_batch(rt, tools, seen, name):
    """Issue 3: `asyncio.timeout` around `acall_many` works; the observers have seen each call's end."""

    async def main():
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(SOON) as limit:

            def over(tool_name):
                if tool_name == "quick":  # The host has enough once that is known.
                    loop.call_soon_threadsafe(limit.reschedule, loop.time())

            rt.add_hook("post_tool_call", over)
            await rt.acall_many([ToolCall(name), ToolCall("after"), ToolCall("quick")])

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    check_seen(seen, (name, "cancelled"), ("after", "cancelled"), ("quick", "ok"))
    assert statuses(rt.call_many([ToolCall("after")])) == ["ok"]


def test_a_cancelled_batch_in_its_policy_ends_too(rt, tools, never, seen, events):
    """A host that gives up while a hook hangs has its loop back."""
    rt.add_hook("pre_tool_call", lambda: events.tell("hook") or never.wait())

    async def main():
        batch = asyncio.create_task(rt.acall_many([ToolCall("quick"), ToolCall("after")]))
        await asyncio.to_thread(events.wait_for, "hook")
        batch.cancel()
        await batch

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    check_seen(seen, ("after", "cancelled"), ("quick", "cancelled"))


def test_a_batch_leaves_nothing_behind(many, rt, tools):
    """dispatch.B4: hundreds of batches later there are as many threads as before, and no call is attended to."""
    many([ToolCall("quick"), ToolCall("after"), ToolCall("other")] * 3)
    before = rt._parts.dispatcher.threads
    for _ in range(100):
        many([ToolCall("quick"), ToolCall("after"), ToolCall("other")])
    assert rt._parts.dispatcher.threads <= max(before, 10)
    assert not rt._parts.dispatcher._active
    assert not rt._parts.sessions.find(None)._guards
