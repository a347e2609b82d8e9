"""No growth, and the end of a runtime (dispatch.B4, B5)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mibyan import MibyanError, Runtime
from mibyan.tools.owner import Owner
from mibyan.tools.results import ToolCall

from .conftest import SOON, compile_call, make_runtime
from .hostile import check_well_formed

FACES = {
    "inline": lambda rt: rt.execute(ToolCall("x")),
    "guarded": lambda rt: rt.execute(ToolCall("x"), timeout=SOON),
    "awaited": lambda rt: asyncio.run(rt.aexecute(ToolCall("x"))),
}


def _quick(rt):
    compile_call(rt, "x")
    return rt.execute(ToolCall("x"), timeout=SOON)


FACES["quick"] = _quick


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted in /proc")
@pytest.mark.parametrize("form", ["sync", "async"])
def test_dispatch_B4_no_growth(rt, add, form):
    """dispatch.B4: after 2,000 calls from 100 short-lived threads, threads, loops and descriptors are what they were."""

    async def handler(args):
        return "ok"

    add((lambda args: "ok") if form == "sync" else handler)

    def twenty():
        for number in range(20):
            assert (rt.call("x") if number % 2 else rt.call("x", {}, timeout=SOON)) == "ok"

    def several(count):
        threads = [threading.Thread(target=twenty) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SOON)

    several(4)
    before, files = rt._parts.dispatcher.threads, descriptors()
    for _ in range(25):
        several(4)
    # Four callers at once need four threads, and one may be on its way back when the next call comes.
    assert rt._parts.dispatcher.threads <= max(before, 4) + 5
    assert descriptors() <= files + 3
    assert rt._parts.dispatcher.stuck == 0


@pytest.mark.parametrize("face", FACES)
def test_dispatch_B5_after_close_a_call_gets_an_error_at_once(rt, add, face):
    """dispatch.B5: a call of a closed runtime is answered with an error; closing twice is fine."""
    add(lambda args: pytest.fail("it ran"))
    rt.close()
    rt.close()
    assert rt.closed
    result = FACES[face](rt)
    check_well_formed(result)
    assert (result.status, "closed" in result.error) == ("cancelled", True)
    with pytest.raises(MibyanError, match="closed"):
        rt.session()


@pytest.mark.parametrize("face", ["guarded", "awaited"])
@pytest.mark.parametrize("form", ["sync", "async"])
def test_dispatch_B5_closing_during_a_call_cancels_it(rt, add, seen, face, form):
    """dispatch.B5: a call that runs when its runtime is closed ends as cancelled, and its observers see that."""
    begun, release = threading.Event(), threading.Event()

    def handler(args):
        begun.set()
        release.wait(SOON)

    async def handler_async(args):
        begun.set()
        await asyncio.sleep(SOON)

    add(handler if form == "sync" else handler_async)
    box = []
    thread = threading.Thread(target=lambda: box.append(FACES[face](rt)))
    thread.start()
    assert begun.wait(SOON)
    rt.close()
    thread.join(SOON)
    release.set()
    assert [result.status for result in box] == ["cancelled"]
    assert [told["status"] for told in seen] == ["cancelled"]


def test_dispatch_B5_closing_ends_the_sessions(rt, add):
    """`rt.close()` closes all sessions, the default one too: `on_session_end` fires once for each that made a call."""
    ended = []
    add(lambda args: "ok")
    rt.hooks.register(
        Owner("p", "plugin", "user"), {"on_session_end": lambda **values: ended.append(values["session_id"])}
    )
    sessions = [rt.session(name) for name in ("a", "b", "silent")]
    for session in sessions[:2]:
        rt.call("x", session=session)
    rt.call("x")
    rt.close()
    assert sorted(ended) == ["a", "b", "default"]
    assert all(session.closed for session in sessions)


def test_dispatch_B5_a_hook_that_hangs_doesnt_hold_the_end_up(tmp_path):
    """dispatch.B5: an `on_session_end` that never comes back costs its own time-out."""
    release = threading.Event()
    rt = make_runtime(tmp_path, dispatch={"hook_timeout": 1})
    rt.registry.register("x", "t", {"description": ""}, lambda args: "ok")
    rt.hooks.register(Owner("p", "plugin", "user"), {"on_session_end": lambda: release.wait(SOON)})
    rt.call("x")
    started = time.monotonic()
    rt.close()
    seconds = time.monotonic() - started
    release.set()
    assert seconds < 1 + SOON / 2


def test_dispatch_B5_nothing_is_left_running(tmp_path):
    """dispatch.B5: when a runtime without stuck tools is closed, its threads and loops have ended."""

    async def handler(args):
        return "ok"

    before = set(threading.enumerate())
    with make_runtime(tmp_path) as rt:
        rt.registry.register("x", "t", {"description": ""}, handler)
        for face in FACES.values():
            assert face(rt).text == "ok"
    left = [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("mibyan")]
    for thread in left:
        thread.join(SOON)
    assert [thread for thread in left if thread.is_alive()] == []


def test_dispatch_B5_as_an_async_context_manager(tmp_path):
    """`async with Runtime(...)` closes it at the end without holding the loop."""

    async def main():
        async with make_runtime(tmp_path) as rt:
            rt.registry.register("x", "t", {"description": ""}, lambda args: "ok")
            assert await rt.acall("x") == "ok"
        return rt.closed

    assert asyncio.run(main())


STUCK = """
import asyncio, sys, threading
from mibyan import Runtime, ToolCall

form, closing, home = sys.argv[1:]
rt = Runtime(home=home)
rt._parts._loaded = True

def handler(args):
    threading.Event().wait()

async def handler_async(args):
    threading.Event().wait()  # It blocks the loop for ever.

rt.registry.register("x", "t", {"description": ""}, handler if form == "sync" else handler_async)
print(rt.execute(ToolCall("x"), timeout=0.3).status, flush=True)
if closing == "closed":
    rt.close()
"""


@pytest.mark.parametrize("form", ["sync", "async"])
@pytest.mark.parametrize("closing", ["closed", "left open"])
def test_dispatch_B5_the_interpreter_exits_with_a_stuck_tool(tmp_path: Path, form: str, closing: str) -> None:
    """dispatch.B5: a tool that never comes back doesn't hold the process open, closed or not."""
    done = subprocess.run(
        [sys.executable, "-c", STUCK, form, closing, str(tmp_path / "home")], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "timeout\n"), done.stderr


def test_two_runtimes_share_nothing(tmp_path):
    """Two runtimes in one process have their own tools, hooks and sessions; closing one leaves the other working."""
    one, two = (make_runtime(tmp_path / name) for name in ("one", "two"))
    for name, rt in (("one", one), ("two", two)):
        rt.registry.register("x", "t", {"description": ""}, lambda args, name=name: name)
    one.add_hook("transform_tool_result", lambda result: result + "!")
    one.session("s")
    two.session("s")
    assert (one.call("x"), two.call("x")) == ("one!", "two")
    one.close()
    assert (json.loads(one.call("x"))["error_type"], two.call("x")) == ("cancelled", "two")
    two.close()
    assert isinstance(two, Runtime)


def test_a_coroutine_that_never_began_is_closed(rt, monkeypatch):
    """A coroutine that a sync handler gave, and whose call was given up before a loop took it, is closed quietly."""

    async def never():
        pytest.fail("it ran")

    made = never()
    rt.registry.register("x", "t", {"description": ""}, lambda args: made)
    monkeypatch.setattr(rt._parts.dispatcher.performer, "_loops", _no_loops)
    assert rt.execute(ToolCall("x")).status == "error"
    assert made.cr_frame is None


def _no_loops():
    raise RuntimeError("no loop can be had")
