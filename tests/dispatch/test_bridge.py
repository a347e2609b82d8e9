"""Sync and async code in one another, and what travels with a call (dispatch.B1, B3)."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mibyan.dispatch import loops
from mibyan.tools.owner import Owner
from mibyan.tools.results import ToolCall

from .conftest import SOON, Face, make_runtime

WHO = contextvars.ContextVar("who", default="nobody")


# B1: loops ------------------------------------------------------------------------------------------------------------


def test_dispatch_B1_acall_runs_an_async_handler_on_the_callers_loop(rt, add):
    """dispatch.B1: `acall` runs async handlers on the caller's loop; `loop="runtime"` pins a tool to the runtime's."""
    where = {}

    def noting(name):
        async def handler(args):
            await asyncio.sleep(0)
            where[name] = asyncio.get_running_loop()

        return handler

    add(noting("free"), "free")
    add(noting("pinned"), "pinned", loop="runtime")

    async def main():
        await asyncio.gather(rt.acall("free"), rt.acall("pinned"))
        return asyncio.get_running_loop()

    mine = asyncio.run(main())
    assert where["free"] is mine
    rt.call("free")
    assert where["free"] is where["pinned"] is not mine


def test_dispatch_B1_the_runtimes_loop_lives_as_long_as_the_runtime(rt, add):
    """dispatch.B1: calls from several threads and loops share one loop: a cached async client stays usable."""
    clients = []

    async def handler(args):
        clients.append(asyncio.get_running_loop())
        return "ok"

    add(handler, loop="runtime")
    for face in (lambda: rt.call("x"), lambda: rt.call("x", {}, timeout=SOON), lambda: asyncio.run(rt.acall("x"))):
        assert face() == "ok"
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(face).result() == "ok"
    assert len(clients) == 6
    assert set(clients) == {clients[0]}
    assert clients[0].is_running()


def test_dispatch_B1_acall_doesnt_hold_the_loop(rt, add):
    """dispatch.B1: while a sync handler runs, its caller's loop goes on."""
    gate = threading.Event()
    add(lambda args: str(gate.wait(SOON)))

    async def main():
        call = asyncio.create_task(rt.acall("x"))
        await asyncio.sleep(0)
        gate.set()  # Only a loop that isn't held gets here.
        return await call

    assert asyncio.run(main()) == "True"


def test_dispatch_B1_acalls_run_at_the_same_time(rt, add):
    """dispatch.B1, B4: many awaited sync handlers run at once: more than the default executor's threads."""
    barrier = threading.Barrier(40)
    add(lambda args: str(barrier.wait(SOON) >= 0))

    async def main():
        return await asyncio.gather(*(rt.acall("x") for _ in range(40)))

    assert asyncio.run(main()) == ["True"] * 40


def test_dispatch_B1_the_sync_api_in_a_running_loop(rt, add):
    """dispatch.B1: sync calls of sync and async tools work inside a running loop."""

    async def handler(args):
        await asyncio.sleep(0)
        return "async"

    add(handler, "a")
    add(lambda args: "sync", "s")

    async def main():
        return [rt.call("a"), rt.call("s"), rt.call("a", {}, timeout=SOON), rt.call("s", {}, timeout=SOON)]

    assert asyncio.run(main()) == ["async", "sync", "async", "sync"]


def on_thread(function):
    box = []
    thread = threading.Thread(target=lambda: box.append(function()))
    thread.start()
    thread.join()
    return box[0]


def in_pool(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


#: How an async handler may call a sync API: what runs `rt.call(...)`.
WAYS = {
    "itself": lambda function: function(),
    "a thread": on_thread,
    "a pool": in_pool,
}


@pytest.mark.parametrize("face", ["inline", "guarded", "awaited", "in a loop"], indirect=True)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("inner", [{}, {"timeout": SOON}])
def test_dispatch_B1_async_handlers_that_call_the_sync_api(face: Face, add, monkeypatch, way, inner):
    """dispatch.B1: an async handler may call the sync API of an async tool, three deep, also through threads of its own."""
    monkeypatch.setattr(loops, "STUCK", 0.05)
    rt = face.rt

    async def handler(args):
        await asyncio.sleep(0)
        if args["depth"] == 0:
            return "bottom"
        return WAYS[way](lambda: rt.call("x", {"depth": args["depth"] - 1}, **inner)) + "!"

    add(handler)
    assert face("x", {"depth": 3}).text == "bottom!!!"


@pytest.mark.parametrize("face", ["inline", "guarded", "awaited", "in a loop"], indirect=True)
def test_dispatch_B1_through_to_thread_and_back(face: Face, add):
    """dispatch.B1: sync within async within sync, by `asyncio.to_thread` and by `acall`."""
    rt = face.rt

    async def handler(args):
        if args["depth"] == 0:
            return "bottom"
        inner = {"depth": args["depth"] - 1}
        return await asyncio.to_thread(rt.call, "x", inner) + await rt.acall("x", inner)

    add(handler)
    assert face("x", {"depth": 2}).text == "bottom" * 4


def test_dispatch_B1_async_hooks_and_checks_may_call_tools(rt, add):
    """dispatch.B1: what is awaited around a handler may call async tools by the sync API too."""

    async def check():
        return rt.call("inner") == "inner"

    async def hook(tool_name):
        if tool_name == "x":
            assert rt.call("inner") == "inner"

    async def handler(args):
        return "inner"

    add(handler, "inner")
    add(lambda args: "ok", check_fn=check)
    rt.add_hook("pre_tool_call", hook)
    assert rt.call("x") == "ok"
    assert rt.call("x", {}, timeout=SOON) == "ok"
    assert asyncio.run(rt.acall("x")) == "ok"


# B3: context ----------------------------------------------------------------------------------------------------------


def _note(seen, what, answer=None):
    seen.append((what, WHO.get()))
    return answer


@pytest.mark.parametrize("form", ["sync", "async"])
def test_dispatch_B3_context_variables_are_visible(face: Face, add, form):
    """dispatch.B3: the caller's context variables are visible in checks, hooks, approvals, channels and handlers."""
    seen = []
    rt = face.rt

    def make(what, answer=None):
        def function(*_, **__):
            return _note(seen, what, answer)

        async def coroutine(*_, **__):
            await asyncio.sleep(0)
            return _note(seen, what, answer)

        return function if form == "sync" else coroutine

    add(
        make("handler", "ok"),
        check_fn=make("check", True),
        approval=make("approval"),
        timeout=lambda args: _note(seen, "timeout", SOON),
    )
    hooks = ("on_session_start", "pre_tool_call", "transform_tool_result", "post_tool_call")
    for hook in hooks:
        function = make(hook)
        rt.hooks.register(Owner(hook, "plugin", "user"), {hook: _keyword_less(function)})
    token = WHO.set("me")
    try:
        if face.name == "on a thread":
            context = contextvars.copy_context()
            in_pool(lambda: context.run(rt.call, "x"))
        else:
            assert face().text == "ok"
    finally:
        WHO.reset(token)
    called = [what for what, _ in seen]
    assert set(called) == {"check", "handler", "approval", *hooks} | (
        {"timeout"} if "guarded" not in face.name else set()
    )
    assert {who for _, who in seen} == {"me"}


def _keyword_less(function):
    """A hook implementation that takes none of the arguments."""
    if asyncio.iscoroutinefunction(function):

        async def hook():
            return await function()
    else:

        def hook():
            return function()

    return hook


def test_dispatch_B3_two_callers_dont_mix(rt, add):
    """dispatch.B3: each of many calls at once sees its own caller's variables."""
    add(lambda args: WHO.get())

    async def caller(name):
        WHO.set(name)
        return await rt.acall("x")

    async def main():
        return await asyncio.gather(*(caller(f"c{n}") for n in range(30)))

    assert asyncio.run(main()) == [f"c{n}" for n in range(30)]


def test_dispatch_B3_what_a_handler_sets_stays_with_it(rt, add):
    """dispatch.B3: a guarded or awaited handler's own settings don't reach its caller."""

    async def handler(args):
        WHO.set("handler")

    add(handler)
    add(lambda args: WHO.set("handler") and None, "s")
    rt.call("x")
    rt.call("x", {}, timeout=SOON)
    rt.call("s", {}, timeout=SOON)

    async def main():
        await rt.acall("x")
        return WHO.get()

    assert (WHO.get(), asyncio.run(main())) == ("nobody", "nobody")


# The call's own context -----------------------------------------------------------------------------------------------

CONTEXT = {"task_id": "t1", "tool_call_id": "c1", "user_task": "do it"}


@pytest.mark.parametrize("face", ["inline", "guarded", "awaited", "in a loop", "on a thread"], indirect=True)
def test_a_handler_gets_the_context_it_names(face: Face, kind, add):
    """api: of `task_id, session_id, tool_call_id, user_task, enabled_tools, session` only those the signature accepts."""
    got = {}
    session = face.rt.session("s1", enabled_toolsets=["tests"])

    def every(args, **context):
        got.update(context)

    add(kind(every))
    add(lambda args, session_id, *, task_id: f"{session_id} {task_id}", "some")
    add(lambda args, unknown="default": unknown, "none")
    face(call_id="c1", session=session, task_id="t1", user_task="do it")
    assert got == {**CONTEXT, "session_id": "s1", "session": session, "enabled_tools": ["none", "some", "x"]}
    assert face("some", session=session, task_id="t1").text == "s1 t1"
    assert face("none").text == "default"


def test_the_seeds_keywords_reach_handlers_that_accept_them(rt, add):
    """`registry.dispatch(name, args, **context)` gives handlers further keywords, if they take them."""
    add(lambda args, **context: f"{context['flavour']} {context['task_id']}")
    add(lambda args, flavour="plain": flavour, "named")
    add(lambda args: "none", "bare")
    assert rt.registry.dispatch("x", {}, flavour="sweet", task_id="t") == "sweet t"
    assert [rt.registry.dispatch(name, {}, flavour="sweet") for name in ("named", "bare")] == ["sweet", "none"]


def test_a_dedicated_thread_is_always_the_same(rt, add):
    """dispatch.B4: `thread="dedicated"` gives a tool one thread of its own, on every face, also within itself."""
    threads = []

    def handler(args):
        threads.append(threading.current_thread())
        return rt.call("x", {"depth": 0}) if args.get("depth") else "ok"

    add(handler, thread="dedicated")
    assert (
        rt.call("x")
        == rt.call("x", {}, timeout=SOON)
        == asyncio.run(rt.acall("x"))
        == rt.call("x", {"depth": 1})
        == "ok"
    )
    assert len(threads) == 5
    assert set(threads) == {threads[0]}
    assert threads[0] is not threading.current_thread()


def test_a_tool_on_the_pool_leaves_the_callers_thread(rt, add):
    """dispatch.B4: `thread="pool"` runs a sync handler on the runtime's threads, inline too."""
    add(lambda args: str(threading.current_thread() is threading.main_thread()), thread="pool")
    assert rt.call("x") == "False"


def test_calls_in_a_call_know_their_session(rt, add):
    """A nested call names its session itself; left out it is the runtime's default one."""
    add(lambda args, session_id: session_id, "who")
    add(lambda args, session: rt.call("who") + " " + rt.call("who", session=session))
    assert rt.call("x", session=rt.session("s1")) == "default s1"


def test_a_structured_call_takes_a_tool_call(rt):
    """`execute` and `aexecute` take a `ToolCall`: anything else is a TypeError in words."""
    with pytest.raises(TypeError, match="takes a ToolCall, not str"):
        rt.execute("x")
    with pytest.raises(TypeError, match="takes a ToolCall, not dict"):
        asyncio.run(rt.aexecute({}))


@pytest.mark.parametrize("key", ["task_id", "user_task", "tool_call_id"])
def test_a_calls_own_words_are_text(rt, add, key):
    """The ids and the user's task are text or `None`."""
    add(lambda args: "ok")
    with pytest.raises(TypeError, match=f"{key} must be text or None, not int"):
        rt.call("x", {}, **{key: 5})
    assert rt.execute(ToolCall("x")).ok


def test_registry_D5_a_call_within_a_call_is_in_its_session(rt, add, tmp_path):
    """Without a session of its own, what a handler calls sees what the handler's conversation may see, and no more."""
    with make_runtime(tmp_path / "other") as other:

        def outer(args):
            return [json.loads(rt.registry.dispatch(name, {})) for name in ("inner", "hidden")] + [
                json.loads(other.registry.dispatch("inner", {}))
            ]

        add(outer)
        add(inner, "inner")
        for each, name in ((rt, "hidden"), (other, "inner")):
            each.registry.register(name, "elsewhere", {"description": "d"}, inner)
        session = rt.session(enabled_toolsets=["tests"])
        for _ in range(3):
            mine, hidden, others = json.loads(rt.call("x", {}, session=session))
            assert mine == {"in": session.id}
            assert hidden["error_type"] == "tool_not_in_session"
            assert others == {"in": "default"}


def inner(args, session_id):
    return {"in": session_id}


def test_dispatch_B1_what_outlived_a_call_is_not_ended_with_it(rt, add):
    """A context that a call has left behind: what is awaited in it belongs to no call any more."""
    left = []
    add(lambda args: left.append(contextvars.copy_context()))
    session = rt.session()
    rt.call("x", {}, session=session)
    session.interrupt()

    async def late():
        return "fine"

    assert left[0].run(rt._parts.dispatcher.run_async, late()) == "fine"
