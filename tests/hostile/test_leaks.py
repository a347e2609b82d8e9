"""Nothing is left behind: threads, descriptors, loops, files; and what is stuck holds nobody up (dispatch.B4, B5)."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from mibyan import Runtime, ToolCall

from .world import SCHEMA, SOON

#: Called in a program of its own, since what else a test process has open isn't this test's business.
MEASURE = """
import asyncio, gc, logging, os, sys, threading, warnings
from pathlib import Path
from mibyan import Runtime, ToolCall

warnings.simplefilter("error")
logging.disable(logging.CRITICAL)
SOON = 30.0
SCHEMA = {"description": "d", "parameters": {"type": "object", "properties": {}}}
home = Path(sys.argv[1])

def empty(name="home", **config):
    rt = Runtime(home=home / name, config=config or None)
    rt._parts._loaded = True
    return rt

def settled(is_so):
    '''Wait, within bounds, until the system has ended what was asked to end.'''
    until = threading.Event()
    for _ in range(3000):
        if is_so():
            return True
        until.wait(0.01)
    return False

def measure():
    gc.collect()
    loops = sum(isinstance(thing, asyncio.AbstractEventLoop) and not thing.is_closed() for thing in gc.get_objects())
    return {"threads": threading.active_count(), "descriptors": len(os.listdir("/proc/self/fd")), "loops": loops,
            "files": sorted(str(path) for path in home.rglob("*"))}
"""

PROGRAMS = {
    "a storm": """
        def storm(rt, turns):
            go = threading.Event()
            async def sleeps(args):
                await asyncio.sleep(SOON)
            async def quick(args):
                await asyncio.sleep(0)
                return "quick"
            def fails(args):
                raise ValueError("x")
            rt.registry.register("sync", "t", SCHEMA, lambda args: "sync", read_only=True)
            rt.registry.register("quick", "t", SCHEMA, quick, read_only=True)
            rt.registry.register("sleeps", "t", SCHEMA, sleeps)
            rt.registry.register("fails", "t", SCHEMA, fails, read_only=True)
            rt.registry.register("stuck", "t", SCHEMA, lambda args: go.wait(SOON))
            rt.registry.register("own", "t", SCHEMA, lambda args: "own", thread="dedicated")
            async def some():
                await asyncio.gather(*(rt.acall(name, {}) for name in ("sync", "quick", "fails", "own")))
                try:
                    async with asyncio.timeout(0.001):
                        await rt.acall("sleeps", {})
                except TimeoutError:
                    pass
            for turn in range(turns):
                for name in ("sync", "quick", "fails", "own", "unknown"):
                    rt.call(name, {})
                    rt.call(name, {}, timeout=SOON)
                rt.call_many([ToolCall(name, {}) for name in ("sync", "quick", "fails")])
                if turn % 10 == 0:
                    asyncio.run(some())
                    assert '"timeout"' in rt.call("sleeps", {}, timeout=0.001)
                    with rt.session() as session:
                        rt.call("sync", {}, session=session)
                if turn % 30 == 0:
                    assert '"timeout"' in rt.call("stuck", {}, timeout=0.001)
            go.set()
            assert settled(lambda: rt._parts.dispatcher.stuck == 0)

        with empty("warm") as rt:
            storm(rt, 11)
        before = measure()
        with empty() as rt:
            storm(rt, 150)
            assert rt._parts.dispatcher.threads < 100, rt._parts.dispatcher.threads
        assert settled(lambda: {**measure(), "files": 0} == {**before, "files": 0}), (measure(), before)
        assert measure()["files"] == before["files"]
    """,
    "runtimes that come and go": """
        async def quick(args):
            return "quick"
        def use():
            with empty() as rt:
                rt.registry.register("sync", "t", SCHEMA, lambda args: "sync")
                rt.registry.register("quick", "t", SCHEMA, quick)
                for name in ("sync", "quick"):
                    assert rt.call(name, {}) == name
                    assert rt.call(name, {}, timeout=SOON) == name
        use()
        before = measure()
        for _ in range(50):
            use()
        assert settled(lambda: measure() == before), (measure(), before)
        import weakref
        rt = empty()
        gone = weakref.ref(rt)
        rt.close()
        del rt
        gc.collect()
        assert gone() is None
    """,
    "short-lived threads": """
        async def quick(args):
            return "quick"
        with empty() as rt:
            rt.registry.register("sync", "t", SCHEMA, lambda args: "sync")
            rt.registry.register("quick", "t", SCHEMA, quick)
            def use():
                for name in ("sync", "quick"):
                    assert rt.call(name, {}) == name
                    assert rt.call(name, {}, timeout=SOON) == name
                    assert asyncio.run(rt.acall(name, {})) == name
            def several(count):
                for _ in range(count // 4):
                    threads = [threading.Thread(target=use) for _ in range(4)]
                    for thread in threads:
                        thread.start()
                    for thread in threads:
                        thread.join(SOON)
            several(8)
            before = measure()
            several(300)
            # How many of the four are at it at once is chance; that there are never more isn't.
            assert settled(lambda: measure()["threads"] <= before["threads"] + 8), (measure(), before)
            assert settled(lambda: measure()["descriptors"] == before["descriptors"]), (measure(), before)
            assert measure()["loops"] == before["loops"]
    """,
    "stuck when it is closed": """
        go = threading.Event()
        started = threading.Semaphore(0)
        async def sleeps(args):
            started.release()
            await asyncio.sleep(SOON)
        def stuck(args):
            started.release()
            go.wait(SOON)
        before = measure()
        rt = empty()
        rt.registry.register("stuck", "t", SCHEMA, stuck)
        rt.registry.register("sleeps", "t", SCHEMA, sleeps)
        answers = []
        callers = [threading.Thread(target=lambda n=n: answers.append(rt.call(n, {}, timeout=SOON)))
                   for n in ("stuck", "sleeps") for _ in range(5)]
        for caller in callers:
            caller.start()
        assert all(started.acquire(timeout=SOON) for _ in callers)
        rt.close()
        for caller in callers:
            caller.join(SOON)
        assert len(answers) == 10 and all('"cancelled"' in answer for answer in answers), answers
        go.set()
        assert settled(lambda: measure()["threads"] == before["threads"]), (measure(), before)
        assert settled(lambda: measure()["descriptors"] == before["descriptors"]), (measure(), before)
        assert "closed" in rt.call("stuck", {})
    """,
    "the interpreter ends": """
        never = threading.Event()
        started = threading.Semaphore(0)
        def stuck(args):
            started.release()
            never.wait()
        async def astuck(args):
            started.release()
            never.wait()
        rt = empty()
        rt.registry.register("stuck", "t", SCHEMA, stuck)
        rt.registry.register("astuck", "t", SCHEMA, astuck)
        for name in ("stuck", "astuck"):
            assert '"timeout"' in rt.call(name, {}, timeout=0.2)
        # Neither is closed nor comes back: the program ends all the same.
    """,
}


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="descriptors can't be counted here")
@pytest.mark.parametrize("what", PROGRAMS)
def test_dispatch_B4_nothing_grows(tmp_path: Path, what: str) -> None:
    """dispatch.B4, B5: threads, descriptors, loops and files are what they were; the interpreter exits."""
    program = MEASURE + dedent(PROGRAMS[what])
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


@pytest.mark.parametrize("kind", ["sync", "async", "dedicated"])
@pytest.mark.parametrize("way", ["call", "acall", "call_many"])
def test_dispatch_B4_fifty_stuck_tools_hold_nobody_up(bare: Callable[..., Runtime], kind: str, way: str) -> None:
    """dispatch.B4: with fifty stuck tools the next call runs at once, on every way in; they are counted until they return."""
    rt, go = bare(), threading.Event()

    def stuck(args: dict[str, Any]) -> str:
        go.wait(SOON)
        return "back"

    async def astuck(args: dict[str, Any]) -> str:
        return stuck(args)

    handler = astuck if kind == "async" else stuck
    options = {"thread": "dedicated"} if kind == "dedicated" else {}
    rt.registry.register("stuck", "t", SCHEMA, handler, **options)
    rt.registry.register("next", "t", SCHEMA, lambda args: "next")
    rt.registry.register("anext", "t", SCHEMA, awaits)
    try:
        with ThreadPoolExecutor(50) as pool:
            answers = list(pool.map(lambda _: rt.call("stuck", {}, timeout=0.3), range(50)))
        assert all('"timeout"' in answer for answer in answers)
        assert 0 < rt._parts.dispatcher.stuck <= 50
        for name in ("next", "anext"):
            match way:
                case "call":
                    # A deadline that fifty stuck tools would use up is none for a call that doesn't wait for them.
                    assert rt.call(name, {}, timeout=SOON / 3) == name
                case "acall":
                    assert asyncio.run(rt.acall(name, {}, timeout=SOON / 3)) == name
                case "call_many":
                    assert [r.text for r in rt.call_many([ToolCall(name, {})] * 3, timeout=SOON / 3)] == [name] * 3
    finally:
        go.set()
    wait = threading.Event()
    for _ in range(1000):
        if not rt._parts.dispatcher.stuck:
            break
        wait.wait(0.02)
    assert rt._parts.dispatcher.stuck == 0


async def awaits(args: dict[str, Any]) -> str:
    await asyncio.sleep(0)
    return "anext"


def test_an_unloaded_plugins_objects_are_let_go(bare: Callable[..., Runtime]) -> None:
    """What a tool's handler held is collected once the tool is gone: no plan, verdict or definition keeps it."""
    import weakref

    class Thing:
        def check(self) -> bool:
            return True

        def handle(self, args: dict[str, Any]) -> str:
            return "x"

    rt = bare(availability={"ttl": 1000, "grace": 0})
    thing = Thing()
    gone = weakref.ref(thing)
    rt.registry.register("x", "t", SCHEMA, thing.handle, check_fn=thing.check)
    rt.registry.register("y", "t", SCHEMA, lambda args: "y")
    assert rt.call("x", {}) == rt.call("x", {}, timeout=SOON) == "x"
    assert len(rt.definitions()) == 2
    assert rt.registry.deregister("x")
    assert rt.call("y", {}) == rt.call("y", {}, timeout=SOON) == "y"
    assert len(rt.definitions()) == 1
    del thing
    gc.collect()
    assert gone() is None


def test_files_of_results_are_where_they_belong(bare: Callable[..., Runtime], tmp_path: Path) -> None:
    """Results that are kept in files are in the profile's own cache and nowhere else."""
    rt = bare(dispatch={"max_result_chars": 100})
    rt.registry.register("x", "t", SCHEMA, lambda args: "x" * 1000)
    for _ in range(5):
        rt.call("x", {})
    assert {path.parts[-3:-1] for path in tmp_path.rglob("*") if path.is_file()} == {("cache", "results")}
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
