"""Deadlines: what a call takes at most, and what becomes of what it leaves behind (dispatch.B2)."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from dataclasses import replace

import pytest

import mibyan
from mibyan import Ask, ToolContext
from mibyan.dispatch import dispatcher, pipeline
from mibyan.tools.owner import Owner
from mibyan.tools.results import ToolCall

from .conftest import SOON, compile_call, make_runtime
from .hostile import check_well_formed

SHORT = 0.1
#: Long enough for a handler to have begun, also on a busy machine.
BEGUN = 1.0
#: Seconds past a deadline after which something surely waited for what hangs; the measure itself is printed.
SLACK = 1.0

#: The faces that enforce a time-out.
ENFORCED = {
    "inline": lambda rt, call, **options: rt.execute(call, **options),
    "quick": lambda rt, call, **options: _quick(rt, call, options),
    "quick awaited": lambda rt, call, **options: asyncio.run(_quick_awaited(rt, call, options)),
    "awaited": lambda rt, call, **options: asyncio.run(rt.aexecute(call, **options)),
    "in a loop": lambda rt, call, **options: asyncio.run(_sync_in_loop(rt, call, options)),
    "many": lambda rt, call, timeout=None, **options: rt.call_many([call], timeout=timeout, **options)[0],
}


def _quick(rt, call, options):
    compile_call(rt, call.name, options.get("session"))
    return rt.execute(call, **options)


async def _quick_awaited(rt, call, options):
    compile_call(rt, call.name, options.get("session"))
    return await rt.aexecute(call, **options)


async def _sync_in_loop(rt, call, options):
    return rt.execute(call, **options)


@pytest.fixture(params=["inline", "quick", "awaited", "quick awaited", "in a loop"])
def run(request, rt):
    """Runs a call on a face and says how long it took, in seconds."""

    def measured(name="x", args=None, **options):
        started = time.monotonic()
        result = ENFORCED[request.param](rt, ToolCall(name, args), **options)
        seconds = time.monotonic() - started
        print(f"{request.param}: {seconds:.4f} s")
        check_well_formed(result)
        return result, seconds

    return measured


@pytest.fixture
def release():
    """What hangs, hangs on this."""
    event = threading.Event()
    yield event
    event.set()


def in_time(seconds, deadline=SHORT):
    return deadline - 0.005 <= seconds < deadline + SLACK


class SlowText:
    def __init__(self, event):
        self.event = event

    def __repr__(self):
        self.event.wait(SOON)
        return "slow"

    __str__ = __repr__


class SlowError(Exception):
    def __init__(self, event):
        self.event = event

    def __str__(self):
        self.event.wait(SOON)
        return "slow"


def hang_sync(event):
    def handler(args, **_):
        event.wait(SOON)

    return handler


def hang_async(event):
    async def handler(args, **_):
        await asyncio.sleep(SOON)

    return handler


def hang_later(event):
    def handler(args, **_):
        return asyncio.sleep(SOON)

    return handler


def raise_slowly(event):
    def handler(args, **_):
        raise SlowError(event)

    return handler


async def later(event):
    """Wait for a thread's event without holding the loop."""
    await asyncio.to_thread(event.wait, SOON)


#: Where a call can hang: what registers such a tool.
HANGS = {
    "a sync handler": lambda rt, add, event: add(hang_sync(event)),
    "an async handler": lambda rt, add, event: add(hang_async(event)),
    "an awaitable of a sync handler": lambda rt, add, event: add(hang_later(event)),
    "an async handler on the runtime's loop": lambda rt, add, event: add(hang_async(event), loop="runtime"),
    "a handler with a thread of its own": lambda rt, add, event: add(hang_sync(event), thread="dedicated"),
    "a check": lambda rt, add, event: add(print, check_fn=lambda: event.wait(SOON)),
    "an async check": lambda rt, add, event: add(print, check_fn=lambda: later(event)),
    "the result's text": lambda rt, add, event: add(lambda args: SlowText(event)),
    "the exception's text": lambda rt, add, event: add(raise_slowly(event)),
    "the tool's own approval": lambda rt, add, event: add(print, approval=lambda args, context: event.wait(SOON)),
    "a pre_tool_call hook": lambda rt, add, event: (
        add(print), rt.hooks.register(Owner("p", "plugin", "user"), {"pre_tool_call": lambda: event.wait(SOON) and None})),
    "an async hook": lambda rt, add, event: (
        add(print), rt.hooks.register(Owner("p", "plugin", "user"), {"pre_tool_call": lambda: later(event)})),
    "a transformation": lambda rt, add, event: (
        add(lambda args: "ok"),
        rt.hooks.register(Owner("p", "plugin", "user"), {"transform_tool_result": lambda: event.wait(SOON) and None})),
    "an observer": lambda rt, add, event: (
        add(lambda args: "ok"),
        rt.hooks.register(Owner("p", "plugin", "user"), {"post_tool_call": lambda: event.wait(SOON)})),
    "the first session hook": lambda rt, add, event: (
        add(lambda args: "ok"),
        rt.hooks.register(Owner("p", "plugin", "user"), {"on_session_start": lambda: event.wait(SOON)})),
    "the import of a plugin with hooks": lambda rt, add, event: (
        add(lambda args: "ok"),
        rt.hooks.announce(Owner("p", "plugin", "user"), ["pre_tool_call"], lambda: event.wait(SOON))),
}  # fmt: skip


@pytest.mark.parametrize("where", HANGS)
def test_dispatch_B2_the_deadline_holds_wherever_it_hangs(run, rt, add, release, where):
    """dispatch.B2: a guarded call is answered at its deadline, whatever hangs in it; the next call works."""
    HANGS[where](rt, add, release)
    result, seconds = run(timeout=SHORT)
    assert seconds < SHORT + SLACK
    if where in {"a transformation", "an observer"}:
        assert result.text == "ok"
    else:
        assert (result.status, result.error_type) == ("timeout", "timeout")
        assert in_time(seconds)
        assert "0.1 s" in result.error
    add(lambda args: "next", "other")
    release.set()
    result, seconds = run("other", timeout=SOON)
    assert (result.text, seconds < SLACK) == ("next", True)


@pytest.mark.parametrize(
    "where", ["a sync handler", "an async handler", "a handler with a thread of its own", "a check"]
)
def test_dispatch_B2_the_same_tool_works_the_next_time(run, rt, add, where):
    """dispatch.B2: a tool, a check or a thread of its own that hung once doesn't hold up its next call."""
    first = threading.Event()
    release = threading.Event()

    def work(*_, **__):
        if not first.is_set():
            first.set()
            release.wait(SOON)
        return "ok"

    async def work_async(args):
        if not first.is_set():
            first.set()
            await asyncio.sleep(SOON)
        return "ok"

    handler = work_async if where == "an async handler" else work
    options = {"a handler with a thread of its own": {"thread": "dedicated"}}.get(where, {})
    if where == "a check":
        add(lambda args: "ok", check_fn=lambda: bool(work()))
    else:
        add(handler, **options)
    try:
        assert run(timeout=BEGUN)[0].status == "timeout"
        result, seconds = run(timeout=SOON)
        assert (result.text, seconds < SLACK) == ("ok", True)
    finally:
        release.set()


def test_dispatch_B2_what_blocks_the_runtimes_loop(rt, add, release):
    """dispatch.B2, B4: an async handler that blocks the runtime's loop costs its own call only; the loop is replaced."""

    async def blocking(args):
        release.wait(SOON)

    async def fine(args):
        await asyncio.sleep(0)
        return "ok"

    add(blocking, "blocks")
    add(fine)
    started = time.monotonic()
    assert rt.execute(ToolCall("blocks"), timeout=SHORT).status == "timeout"
    assert in_time(time.monotonic() - started)
    started = time.monotonic()
    assert rt.execute(ToolCall("x"), timeout=SOON).text == "ok"
    assert time.monotonic() - started < SLACK
    assert asyncio.run(rt.aexecute(ToolCall("x"))).text == "ok"


#: Who sets the time-out: options of the tool, of the call, of the configuration.
SETTERS = {
    "the call": ({}, {"timeout": SHORT}, {}),
    "the tool": ({"timeout": SHORT}, {}, {}),
    "the tool, by its arguments": ({"timeout": lambda args: args["seconds"]}, {}, {}),
    "the configuration": ({}, {}, {"dispatch": {"timeout": 1}}),
    "the call before the tool": ({"timeout": SOON}, {"timeout": SHORT}, {}),
    "the tool before the configuration": ({"timeout": SHORT}, {}, {"dispatch": {"timeout": 60}}),
    "the call before the configuration": ({}, {"timeout": SHORT}, {"dispatch": {"timeout": 60}}),
    "the tool, longer than the configuration": ({"timeout": 1.3}, {}, {"dispatch": {"timeout": 1}}),
}
EXPECTED = {"the configuration": 1.0, "the tool, longer than the configuration": 1.3}


@pytest.mark.parametrize("who", SETTERS)
@pytest.mark.parametrize("face", ["inline", "awaited"])
@pytest.mark.parametrize("name", ["slow_tool", "SlowTool"])
def test_dispatch_B2_whose_timeout_counts(tmp_path, release, face, who, name):
    """dispatch.B2: the call's, else the tool's (seconds or a callable of its arguments), else the configuration's."""
    tool, call, config = SETTERS[who]
    with make_runtime(tmp_path, **config) as rt:
        rt.registry.register("slow_tool", "t", {"description": ""}, hang_sync(release), **tool)
        started = time.monotonic()
        result = ENFORCED[face](rt, ToolCall(name, {"seconds": SHORT}), **call)
        seconds = time.monotonic() - started
        release.set()
    assert (result.status, in_time(seconds, EXPECTED.get(who, SHORT))) == ("timeout", True)


def test_dispatch_B2_a_lazy_tools_own_timeout_counts_from_its_first_call(rt, add, release):
    """dispatch.B2: a tool whose code, with its time-out, is imported by the call itself is guarded from there on."""
    host = add(hang_sync(release), timeout=SHORT)
    lazy = replace(host, handler=None, activate=lambda: rt._parts.store.replace(host), timeout=None)
    rt._parts.store.replace(lazy)
    started = time.monotonic()
    result = rt.execute(ToolCall("x"))
    assert (result.status, in_time(time.monotonic() - started)) == ("timeout", True)
    assert {"step": "activated", "plugin": "host"} in result.trace


@pytest.mark.parametrize("setting", ["timeout", "hook_timeout"])
def test_dispatch_B2_a_timeout_in_the_configuration_guards_every_face(tmp_path, setting):
    """dispatch.B2: once config.yaml sets `dispatch.timeout` or `dispatch.hook_timeout`, inline calls are guarded too."""
    threads = []
    with make_runtime(tmp_path, dispatch={setting: 60}) as rt:
        rt.registry.register("x", "t", {"description": ""}, lambda args: threads.append(threading.current_thread()))
        rt.call("x")
    assert threads != [threading.current_thread()]


def test_dispatch_B2_inline_runs_on_the_callers_thread(rt, add):
    """dispatch.B2: without a time-out anywhere, handlers, hooks and checks of an inline call run on the caller's thread."""
    threads = []

    def note(*_, **__):
        threads.append(threading.current_thread())

    add(note, check_fn=lambda: note() or True)
    for hook in ("pre_tool_call", "post_tool_call", "on_session_start"):
        rt.add_hook(hook, lambda **_: note())
    rt.registry.dispatch("x", {})
    assert threads == [threading.current_thread()] * 5


def test_dispatch_B2_a_long_inline_call_is_warned_about(rt, add, monkeypatch, caplog):
    """dispatch.B2: where nothing is enforced a WARNING names a tool that ran past 300 s."""
    add(lambda args: "ok", "long_one")
    assert dispatcher.LONG == 300
    monkeypatch.setattr(dispatcher, "LONG", -1.0)
    with caplog.at_level(logging.WARNING):
        rt.call("long_one")
    assert "long_one" in caplog.text


def test_dispatch_B2_what_was_given_up_goes_no_further(rt, add, seen, release):
    """dispatch.B2: once it is answered a call never goes on to its next step."""
    reached, came_back = [], threading.Event()

    def hook():
        release.wait(SOON)
        came_back.set()

    add(lambda args: reached.append("handler"))
    rt.add_hook("pre_tool_call", hook)
    rt.add_hook("transform_tool_result", lambda: reached.append("transform"))
    result = rt.execute(ToolCall("x"), timeout=BEGUN)
    assert (result.status, result.error) == (
        "timeout",
        "x timed out after 1 s (pre_tool_call of the host was still running).",
    )
    release.set()
    assert came_back.wait(SOON)
    _settled(rt)
    assert reached == []
    assert [told["status"] for told in seen] == ["timeout"]
    assert seen[0]["executed_args"] is None


def _settled(rt):
    """Wait until what was given up has come back."""
    until = time.monotonic() + SOON
    while rt._parts.dispatcher.stuck and time.monotonic() < until:
        threading.Event().wait(0.005)
    assert rt._parts.dispatcher.stuck == 0


@pytest.mark.parametrize("face", ["inline", "awaited"])
@pytest.mark.parametrize("form", ["sync", "async"])
def test_dispatch_B2_the_abandoned_are_counted(rt, add, release, face, form):
    """dispatch.B2: sync code is abandoned and counted until it comes back; async code is cancelled."""
    cancelled = threading.Event()

    async def handler(args):
        try:
            await asyncio.sleep(SOON)
        finally:
            cancelled.set()

    add(hang_sync(release) if form == "sync" else handler)
    assert ENFORCED[face](rt, ToolCall("x"), timeout=BEGUN).status == "timeout"
    if form == "sync":
        assert rt._parts.dispatcher.stuck == 1
        release.set()
    else:
        assert cancelled.wait(SOON)
    _settled(rt)


def test_dispatch_B2_the_tool_can_see_that_nobody_waits(rt, release):
    """`ToolContext.cancelled` turns true at the deadline; `deadline` and `remaining` say when that is."""
    seen, over = [], threading.Event()

    @mibyan.tool(toolset="t", name="x")
    def polite(ctx: ToolContext) -> str:
        seen.append((ctx.cancelled, 0 < ctx.remaining <= BEGUN))
        release.wait(SOON)
        seen.append((ctx.cancelled, ctx.remaining))
        over.set()
        return "late"

    rt.registry.add(polite)
    assert rt.execute(ToolCall("x"), timeout=BEGUN).status == "timeout"
    release.set()
    assert over.wait(SOON)
    assert seen == [(False, True), (True, 0.0)]


def test_dispatch_H2_a_hook_that_was_given_up_doesnt_cancel_the_call(tmp_path, release):
    """A tool that runs after an observer of `pre_tool_call` hung isn't told that nobody waits for it."""
    with make_runtime(tmp_path, dispatch={"hook_timeout": 0.05}) as rt:
        seen = []

        @mibyan.tool(toolset="t", name="x")
        def tool(ctx: ToolContext) -> str:
            seen.append(ctx.cancelled)
            return "ok"

        rt.registry.add(tool)
        rt.hooks.register(Owner("p", "plugin", "user"), {"pre_tool_call": lambda: release.wait(SOON)}, observer=True)
        assert rt.call("x") == "ok"
        release.set()
    assert seen == [False]


def test_dispatch_B2_every_observer_sees_a_late_answer(tmp_path, release):
    """dispatch.H1: observers go on when the answer has left: one that hangs is left behind, the next ones are told."""
    told = threading.Event()
    with make_runtime(tmp_path, dispatch={"hook_timeout": 1}) as rt:
        rt.registry.register("x", "t", {"description": ""}, lambda args: "ok")
        rt.hooks.register(Owner("p", "plugin", "user"), {"post_tool_call": lambda: release.wait(SOON)})
        rt.add_hook("post_tool_call", lambda result: told.set() if result == "ok" else None)
        assert rt.execute(ToolCall("x"), timeout=SHORT).text == "ok"
        assert not told.is_set()
        assert told.wait(SOON)
        release.set()


@pytest.mark.parametrize("face", ["inline", "awaited"])
@pytest.mark.parametrize("form", ["sync", "async"])
def test_dispatch_B2_waiting_for_a_person_never_counts(rt, add, face, form):
    """dispatch.B2: the time until a person answers doesn't count towards the deadline; what follows does."""
    threads = []

    def channel(request):
        answer = threading.Timer(8 * SHORT, rt.approvals.resolve, (request.id, "once"))
        threads.append(answer)
        answer.start()

    async def handler(args):
        return "ok"

    rt.approvals.notify(channel)
    add((lambda args: "ok") if form == "sync" else handler, approval=lambda args, context: Ask("sure?"))
    started = time.monotonic()
    assert ENFORCED[face](rt, ToolCall("x"), timeout=5 * SHORT).text == "ok"
    assert time.monotonic() - started >= 8 * SHORT
    threads[0].join()


@pytest.mark.parametrize("inner", ["inline", "guarded"])
def test_dispatch_B2_a_person_within_a_call_within_a_call(rt, add, inner):
    """dispatch.B2: a person whom an inner call waits for doesn't count for the outer one either."""
    threads = []

    def channel(request):
        threads.append(threading.Timer(8 * SHORT, rt.approvals.resolve, (request.id, "once")))
        threads[-1].start()

    rt.approvals.notify(channel)
    add(lambda args: "inner", "inner", approval=lambda args, context: Ask("sure?"))
    options = {"timeout": 5 * SHORT} if inner == "guarded" else {}
    add(lambda args: rt.call("inner", {}, **options), "outer")
    assert rt.execute(ToolCall("outer"), timeout=5 * SHORT).text == "inner"
    threads[0].join()


def test_dispatch_B2_after_the_person_the_clock_runs_again(rt, add, release):
    """dispatch.B2: what was left of the deadline before the question is left after it."""
    rt.approvals.notify(lambda request: rt.approvals.resolve(request.id, "once"))
    add(hang_sync(release), approval=lambda args, context: Ask("sure?"))
    started = time.monotonic()
    assert rt.execute(ToolCall("x"), timeout=SHORT).status == "timeout"
    assert in_time(time.monotonic() - started)


# Calls within calls --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("face", ["inline", "awaited"])
def test_dispatch_B2_a_call_within_a_call_stands_under_its_deadline(rt, add, release, face):
    """dispatch.B2: what a handler calls stands under the handler's deadline, and so does what that calls."""
    deadlines = []

    @mibyan.tool(toolset="t", name="inner")
    def inner(ctx: ToolContext) -> str:
        deadlines.append(ctx.deadline)
        return "ok"

    @mibyan.tool(toolset="t", name="middle")
    def middle(ctx: ToolContext) -> str:
        deadlines.append(ctx.deadline)
        return rt.call("inner")

    @mibyan.tool(toolset="t", name="outer")
    def outer(ctx: ToolContext) -> str:
        deadlines.append(ctx.deadline)
        return rt.call("middle") + rt.call("inner", {}, timeout=3 * SOON)

    for tool in (inner, middle, outer):
        rt.registry.add(tool)
    assert ENFORCED[face](rt, ToolCall("outer"), timeout=SOON).text == "okok"
    assert len(deadlines) == 4
    assert set(deadlines) == {deadlines[0]}


@pytest.mark.parametrize("face", ["inline", "awaited"])
@pytest.mark.parametrize("form", ["sync", "async"])
def test_dispatch_B2_an_abandoned_handler_can_call_nothing_more(rt, add, release, face, form):
    """dispatch.B2: a handler that was given up gets an error for what it calls afterwards: nothing happens after the answer."""
    ran, answers, over = [], [], threading.Event()

    def stubborn(args):
        release.wait(SOON)
        answers.append(rt.execute(ToolCall("deed")))
        over.set()

    async def stubborn_async(args):
        try:
            await asyncio.sleep(SOON)
        finally:
            answers.append(rt.execute(ToolCall("deed")))
            over.set()

    add(lambda args: ran.append(1), "deed")
    add(stubborn if form == "sync" else stubborn_async)
    assert ENFORCED[face](rt, ToolCall("x"), timeout=BEGUN).status == "timeout"
    release.set()
    assert over.wait(SOON)
    assert ran == []
    assert answers[0].status in {"cancelled", "timeout"}


@pytest.mark.parametrize("inner", ["inline", "guarded"])
def test_dispatch_B2_what_an_abandoned_handler_waits_for_is_cancelled(rt, add, inner):
    """dispatch.B2: an async tool that an abandoned handler waits for is cancelled with it, and its observers see that."""
    cancelled, statuses, observed = threading.Event(), [], threading.Event()

    async def sleeper(args):
        try:
            await asyncio.sleep(SOON)
        finally:
            cancelled.set()

    add(sleeper, "sleeper")
    add(lambda args: rt.call("sleeper", {}, **({"timeout": SOON} if inner == "guarded" else {})), "outer")
    rt.add_hook("post_tool_call", lambda tool_name, status: statuses.append((tool_name, status)) or (
        observed.set() if len(statuses) == 2 else None))  # fmt: skip
    assert rt.execute(ToolCall("outer"), timeout=BEGUN).status == "timeout"
    assert cancelled.wait(SOON)
    assert observed.wait(SOON)
    assert ("outer", "timeout") in statuses
    assert {status for name, status in statuses if name == "sleeper"} <= {"cancelled", "timeout"}


def test_a_background_task_outlives_its_call(rt, add):
    """dispatch.B1: a task that a handler starts goes on between calls, and may call tools when the call is long over."""
    results, over = [], threading.Event()

    async def background(gate):
        await gate.wait()
        results.append(await rt.aexecute(ToolCall("deed")))
        over.set()

    gates = []

    async def starter(args):
        gates.append((asyncio.get_running_loop(), asyncio.Event()))
        gates.append(asyncio.get_running_loop().create_task(background(gates[0][1])))
        return "started"

    add(lambda args: "done", "deed")
    add(starter)
    assert rt.execute(ToolCall("x"), timeout=SOON).text == "started"
    loop, gate = gates[0]
    loop.call_soon_threadsafe(gate.set)
    assert over.wait(SOON)
    assert results[0].text == "done"


def test_a_pipeline_that_itself_hangs_is_answered_too(rt, add, release, monkeypatch):
    """dispatch.B2: where not a step but what lies between steps takes for ever, the call is answered without it."""
    told = threading.Event()

    def slow_reading(raw):
        release.wait(SOON)
        return {}

    add(lambda args: pytest.fail("it ran"))
    rt.add_hook("post_tool_call", lambda status: told.set() if status == "timeout" else None)
    monkeypatch.setattr(pipeline, "read_arguments", slow_reading)
    started = time.monotonic()
    result = rt.execute(ToolCall("x"), timeout=SHORT)
    assert (result.status, in_time(time.monotonic() - started)) == ("timeout", True)
    assert told.wait(SOON)
    release.set()


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "5"])
def test_a_timeout_that_is_none(rt, add, timeout):
    """A call's `timeout` must be a positive number of seconds: a sentence, before anything runs."""
    add(lambda args: pytest.fail("it ran"))
    with pytest.raises((TypeError, ValueError), match="timeout must be"):
        rt.call("x", {}, timeout=timeout)


def test_dispatch_B2_fifty_stuck_tools_dont_delay_the_next_call(rt, add, release):
    """dispatch.B4: stuck threads never starve the next call."""
    add(hang_sync(release), "stuck")
    add(lambda args: "ok")

    async def main():
        results = await asyncio.gather(*(rt.aexecute(ToolCall("stuck"), timeout=BEGUN) for _ in range(50)))
        started = time.monotonic()
        after = await rt.aexecute(ToolCall("x"))
        print(f"after 50 stuck tools: {time.monotonic() - started:.4f} s")
        return results, after, time.monotonic() - started

    results, after, seconds = asyncio.run(main())
    assert {result.status for result in results} == {"timeout"}
    assert (after.text, seconds < SLACK) == ("ok", True)
    assert rt._parts.dispatcher.stuck == 50
    release.set()
    _settled(rt)


def test_json_of_a_timeout(rt, add, release):
    """The text of a time-out says what was still running."""
    add(hang_sync(release))
    told = json.loads(rt.call("x", {}, timeout=SHORT))
    assert told == {"error": "x timed out after 0.1 s (the handler of x was still running).", "error_type": "timeout"}
