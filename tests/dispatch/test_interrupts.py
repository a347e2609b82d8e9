"""Calls that are ended from outside: interrupts, cancelled hosts, closed sessions (dispatch.C4, B5)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mibyan.tools.results import ToolCall

from .conftest import SOON
from .hostile import check_well_formed

PROGRAM = """
import asyncio, json, os, signal, sys, threading
from mibyan import Runtime, ToolCall

face, form, home = sys.argv[1:]
rt = Runtime(home=home)
rt._parts._loaded = True
seen = []

def handler(args):
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait(20)

async def handler_async(args):
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.sleep(20)

rt.registry.register("x", "t", {"description": ""}, handler if form == "sync" else handler_async)
rt.add_hook("post_tool_call", lambda status, error_type: seen.append([status, error_type]))
try:
    if face == "inline":
        rt.execute(ToolCall("x"))
    elif face == "guarded":
        rt.execute(ToolCall("x"), timeout=20)
    else:
        asyncio.run(rt.aexecute(ToolCall("x")))
except KeyboardInterrupt:
    print(json.dumps({"left": True, "seen": seen}), flush=True)
rt.close()
"""


@pytest.mark.parametrize("face", ["inline", "guarded", "awaited"])
@pytest.mark.parametrize("form", ["sync", "async"])
def test_dispatch_C4_an_interrupt_leaves_after_the_observers_ran(tmp_path: Path, face: str, form: str) -> None:
    """dispatch.C4: a real SIGINT leaves as KeyboardInterrupt, once the observers have seen the call end as cancelled."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, face, form, str(tmp_path / "home")],
        capture_output=True, text=True, timeout=60, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"left": True, "seen": [["cancelled", "cancelled"]]}


@pytest.mark.parametrize("face", ["inline", "guarded"], indirect=True)
def test_dispatch_C4_an_interrupt_that_a_handler_raises_leaves_too(face, kind, add, seen):
    """dispatch.C4: KeyboardInterrupt is the one exception that isn't a result; the observers see it first."""

    def handler(args, **_):
        raise KeyboardInterrupt

    add(kind(handler))
    with pytest.raises(KeyboardInterrupt):
        face()
    assert [told["status"] for told in seen] == ["cancelled"]


@pytest.mark.parametrize("form", ["sync", "async"])
def test_dispatch_C4_a_host_that_cancels_its_task(rt, add, seen, form):
    """dispatch.C4: when the awaiting task is cancelled CancelledError leaves, and the observers have seen the call."""
    begun, release = threading.Event(), threading.Event()

    def handler(args):
        begun.set()
        release.wait(SOON)

    async def handler_async(args):
        begun.set()
        await asyncio.sleep(SOON)

    add(handler if form == "sync" else handler_async)

    async def main():
        task = asyncio.create_task(rt.aexecute(ToolCall("x")))
        await asyncio.to_thread(begun.wait, SOON)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return list(seen)

    try:
        told = asyncio.run(main())
    finally:
        release.set()
    assert [(each["status"], each["error_type"]) for each in told] == [("cancelled", "cancelled")]


@pytest.mark.parametrize("form", ["sync", "async"])
def test_dispatch_C4_a_hosts_own_timeout_works(rt, add, seen, form):
    """dispatch.C4: `asyncio.timeout` around `acall` ends in TimeoutError, and the next call works."""
    release = threading.Event()

    async def handler_async(args):
        await asyncio.sleep(SOON)

    add((lambda args: release.wait(SOON)) if form == "sync" else handler_async)
    add(lambda args: "ok", "other")

    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await rt.acall("x")
        return await rt.acall("other")

    try:
        assert asyncio.run(main()) == "ok"
    finally:
        release.set()
    assert [told["status"] for told in seen] == ["cancelled", "ok"]


@pytest.mark.parametrize("face", ["guarded", "awaited", "inline async"])
@pytest.mark.parametrize("end", ["interrupt", "close"])
def test_a_session_that_is_interrupted(rt, add, seen, face, end):
    """`session.interrupt()` and `session.close()` end what runs with status cancelled; other sessions go on."""
    begun, release = threading.Event(), threading.Event()
    session = rt.session("s1")

    def handler(args):
        begun.set()
        release.wait(SOON)

    async def handler_async(args):
        begun.set()
        await asyncio.sleep(SOON)

    add(handler if face == "guarded" else handler_async)
    box = []

    def run():
        if face == "guarded":
            box.append(rt.execute(ToolCall("x"), session=session, timeout=SOON))
        elif face == "awaited":
            box.append(asyncio.run(rt.aexecute(ToolCall("x"), session=session)))
        else:
            box.append(rt.execute(ToolCall("x"), session=session))

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(SOON)
    getattr(session, end)()
    thread.join(SOON)
    release.set()
    (result,) = box
    check_well_formed(result)
    assert (result.status, result.error_type) == ("cancelled", "cancelled")
    assert [told["status"] for told in seen] == ["cancelled"]
    add(lambda args: "next", "next")
    again = rt.execute(ToolCall("next"), session=session)
    assert again.status == ("ok" if end == "interrupt" else "cancelled")
    assert rt.call("next") == "next"


def test_an_interrupt_before_a_call_doesnt_end_it(rt, add):
    """An interrupt ends what is running, not what comes."""
    add(lambda args: "ok")
    session = rt.session()
    session.interrupt()
    assert rt.execute(ToolCall("x"), session=session, timeout=SOON).text == "ok"
