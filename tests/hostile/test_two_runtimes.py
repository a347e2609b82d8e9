"""Two runtimes in one process share nothing but the modules of wheels (architecture, *One runtime, no global state*)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import mibyan
from mibyan import Ask, Block, Runtime, ToolCall

from .world import SCHEMA, SOON, World

#: The same id and the same tools in both homes, with different code.
PLUGIN = """
import mibyan

ANSWER = "__HOME__"
COUNT = []

def checked():
    COUNT.append(1)
    return True

def inside(args):
    mibyan.registry.register("made_" + ANSWER, "made", {"description": "d"}, lambda args: ANSWER)
    rt = mibyan.get_runtime()
    names = sorted(d["function"]["name"] for d in mibyan.get_tool_definitions(["made"]))
    return [ANSWER, mibyan.handle_function_call("same", {}), names, rt.config.dispatch.max_workers,
            rt.registry.get_entry("same").toolset, CTX[0].dispatch_tool("same")]

async def ainside(args):
    return inside(args)

CTX = []

def register(ctx):
    CTX[:] = [ctx]
    ctx.register_tool("same", "set___HOME__", {"description": "__HOME__"}, lambda args: ANSWER)
    ctx.register_tool("inside", "words", {"description": "d"}, inside)
    ctx.register_tool("ainside", "words", {"description": "d"}, ainside)
    ctx.register_tool("checked", "words", {"description": "d"}, lambda args: COUNT, check_fn=checked, check_ttl=1000)
    ctx.register_hook("transform_tool_result", lambda result: f"{result} by __HOME__" if result == "hooked" else None)
    ctx.register_tool("hooked", "words", {"description": "d"}, lambda args: "hooked")
    ctx.provide("thing", lambda: [ANSWER])
"""
WORKERS = {"one": 3, "two": 5}


@pytest.fixture
def both(world: World) -> dict[str, Runtime]:
    """Two runtimes over two homes with a plugin of the same id."""
    for home, workers in WORKERS.items():
        world.folder("same", PLUGIN.replace("__HOME__", home), home=home)
        world.config(f"dispatch: {{max_workers: {workers}}}", home=home)
    return {home: world.runtime(home) for home in WORKERS}


def expected(home: str) -> list[Any]:
    return [home, home, [f"made_{home}"], WORKERS[home], f"set_{home}", home]


def ask(rt: Runtime, home: str) -> None:
    """Everything that a runtime of that home answers, on every way in."""
    import json

    for name in ("inside", "ainside"):
        assert json.loads(rt.call(name, {})) == expected(home)
        assert json.loads(rt.call(name, {}, timeout=SOON)) == expected(home)
        assert json.loads(asyncio.run(rt.acall(name, {}))) == expected(home)
    (result,) = rt.call_many([ToolCall("inside", {})])
    assert result.data == expected(home)
    assert rt.call("hooked", {}) == f"hooked by {home}"
    assert rt.registry.get_schema("same")["description"] == home
    assert rt.toolsets.resolve(f"set_{home}") == ("same",)
    assert rt.provided("thing") == [home]
    assert rt.provided("thing") is rt.provided("thing")


def test_two_runtimes_one_after_the_other(both: dict[str, Runtime]) -> None:
    """Same plugin id, same tools, same hook: each runtime has its own code, configuration, toolsets, services."""
    for _ in range(2):
        for home, rt in both.items():
            ask(rt, home)


def test_two_runtimes_in_threads(both: dict[str, Runtime]) -> None:
    """The same in eight threads at once, first loads included."""
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(ask, rt, home) for _ in range(4) for home, rt in both.items()]
        for future in futures:
            future.result(SOON * 2)


def test_two_runtimes_in_tasks(both: dict[str, Runtime]) -> None:
    """The same in tasks of one loop."""
    import json

    async def one(home: str, name: str) -> None:
        assert json.loads(await both[home].acall(name, {})) == expected(home)

    async def main() -> None:
        await asyncio.gather(*(one(home, name) for _ in range(10) for home in both for name in ("inside", "ainside")))

    asyncio.run(main())


@pytest.mark.parametrize("closed", ["one", "two"])
def test_closing_one_leaves_the_other(both: dict[str, Runtime], closed: str) -> None:
    """Closing a runtime ends its own calls, threads, plugins and sessions; the other's go on."""
    other = "two" if closed == "one" else "one"
    for home, rt in both.items():
        ask(rt, home)
    go, started = threading.Event(), threading.Event()
    both[other].registry.register("waits", "t", SCHEMA, lambda args: (started.set(), go.wait(SOON)) and "done")
    with ThreadPoolExecutor(1) as pool, both[other].session("s") as session:
        running = pool.submit(both[other].call, "waits", {}, session=session, timeout=SOON)
        assert started.wait(SOON)
        both[closed].close()
        assert "closed" in both[closed].call("same", {})
        ask(both[other], other)
        go.set()
        assert running.result(SOON) == "done"
        assert not session.closed
    ask(both[other], other)


def test_two_runtimes_share_no_session(both: dict[str, Runtime]) -> None:
    """A session of one isn't known to the other, and the same id is two conversations."""
    one, two = both.values()
    first = one.session("s", enabled_toolsets=["words"])
    with pytest.raises(mibyan.MibyanError, match="No open session"):
        two.call("same", {}, session="s")
    second = two.session("s")
    assert "tool_not_in_session" in one.call("same", {}, session="s")
    assert two.call("same", {}, session="s") == "two"
    first.close()
    assert two.call("same", {}, session=second) == "two"


def test_two_runtimes_share_no_policy(both: dict[str, Runtime]) -> None:
    """Hooks, approvals, override policies and decisions of one say nothing in the other."""
    one, two = both.values()
    one.add_hook("pre_tool_call", lambda tool_name: Block("no") if tool_name == "same" else None)
    one.approvals.notify(lambda request: one.approvals.resolve(request.id, "once"))
    for rt in both.values():
        rt.registry.register("risky", "t", SCHEMA, lambda args: "done", approval=lambda args, context: Ask("?"))
    assert ('"blocked"' in one.call("same", {}), two.call("same", {})) == (True, "two")
    assert (one.call("risky", {}), '"denied"' in two.call("risky", {})) == ("done", True)
    one.registry.register_plugin_override_policy("same", allowed=True)
    assert not two._parts.store._opt_ins
    assert not [decision for decision in one.report().decisions if decision.kind == "denied"]


def test_two_runtimes_share_no_verdict(world: World) -> None:
    """A check that both know is asked by each; forgetting in one leaves the other's verdict."""
    asked: list[str] = []

    def check() -> bool:
        asked.append("x")
        return True

    one, two = world.runtime("one"), world.runtime("two")
    for rt in (one, two):
        rt.registry.register("x", "t", SCHEMA, lambda args: "x", check_fn=check, check_ttl=1000)
        rt.definitions()
        rt.definitions()
    assert len(asked) == 2
    one.availability.invalidate()
    two.definitions()
    assert len(asked) == 2


WHEEL = """
import mibyan

COUNT = []

def count(args):
    COUNT.append(1)
    return len(COUNT)

mibyan.registry.register("counts", "wheel", {"description": "d"}, count)

@mibyan.tool(toolset="wheel")
def typed(x: int = 1) -> int:
    return x
"""


def test_a_wheels_module_is_all_they_share(world: World) -> None:
    """A wheel's module is imported once in a process; its tools are registered in each runtime, and are each one's own."""
    world.wheel("counting", WHEEL)
    one, two = world.runtime("one"), world.runtime("two")
    assert [rt.call("counts", {}) for rt in (one, two, one)] == ["1", "2", "3"]
    assert one.registry.get_entry("counts") is not two.registry.get_entry("counts")
    assert one.registry.deregister("counts")
    assert two.call("counts", {}) == "4"
    assert two.call("typed", {"x": 5}) == "5"
    one.close()
    assert two.call("counts", {}) == "5"
    three = world.runtime("three")
    assert three.call("counts", {}) == "6"


@pytest.mark.parametrize("inner", ["call", "timeout", "acall"])
@pytest.mark.parametrize("outer", ["call", "timeout", "acall"])
def test_one_runtimes_handler_calls_the_other(bare: Callable[..., Runtime], outer: str, inner: str) -> None:
    """A handler may use another runtime: its own loop there is the one that its clients are on."""
    one, two = bare("one"), bare("two")
    loops: list[Any] = []

    async def leaf(args: dict[str, Any]) -> str:
        loops.append(asyncio.get_running_loop())
        return "leaf"

    async def node(args: dict[str, Any]) -> str:
        if inner == "acall":
            return await two.acall("leaf", {})
        return two.call("leaf", {}, timeout=SOON if inner == "timeout" else None)

    two.registry.register("leaf", "t", SCHEMA, leaf, loop="runtime")
    one.registry.register("node", "t", SCHEMA, node)
    assert two.call("leaf", {}) == "leaf"
    match outer:
        case "call":
            assert one.call("node", {}) == "leaf"
        case "timeout":
            assert one.call("node", {}, timeout=SOON) == "leaf"
        case "acall":
            assert asyncio.run(one.acall("node", {})) == "leaf"
    # An async client that was made in the first call is used on the same loop in the second one.
    assert len(loops) == 2
    assert loops[0] is loops[1]


def test_a_plugin_that_loads_may_wait_for_a_thread_that_calls(world: World) -> None:
    """A thread that a loading plugin waits for gets an answer from its runtime: nobody waits for the load for ever."""
    world.folder("waits", """
        import contextvars, threading, mibyan
        def register(ctx):
            ctx.register_tool("early", "t", {"description": "d"}, lambda args: "early")
            answers = []
            rt = mibyan.get_runtime()
            context = contextvars.copy_context()
            thread = threading.Thread(target=context.run, args=(lambda: answers.append(rt.call("early", {})),))
            thread.start()
            thread.join(20)
            assert answers == ["early"], answers
        """)  # fmt: skip
    assert world.runtime().call("early", {}) == "early"


def test_the_default_runtime_is_nobodys_but_its_own(both: dict[str, Runtime]) -> None:
    """Outside of plugins the facade means the default runtime, whatever other runtimes there are."""
    default = mibyan.get_runtime()
    try:
        assert default not in both.values()
        assert mibyan.registry.get_entry("same") is None
        assert mibyan.registry.register("free", "t", SCHEMA, lambda args: "free") is not None
        assert mibyan.handle_function_call("free", {}) == "free"
        assert [rt.registry.get_entry("free") for rt in both.values()] == [None, None]
    finally:
        default.close()
