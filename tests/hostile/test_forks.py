"""A fork in the middle: the child's runtime works, the parent's doesn't notice (architecture, *One runtime*)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

#: What every program begins with: a runtime without plugins, tools of every kind, and a fork that reports.
BEGIN = """
import asyncio, os, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of every fork with threads.
from pathlib import Path
from mibyan import Runtime, ToolCall

SOON = 20.0
SCHEMA = {"description": "d", "parameters": {"type": "object", "properties": {}}}
home = Path(sys.argv[1])

def empty(name="home", **config):
    rt = Runtime(home=home / name, config=config or None)
    rt._parts._loaded = True
    return rt

async def coroutine(args):
    await asyncio.sleep(0)
    return "async"

rt = empty()
rt.registry.register("sync", "tests", SCHEMA, lambda args: "sync")
rt.registry.register("async", "tests", SCHEMA, coroutine, is_async=True)
rt.registry.register("own", "tests", SCHEMA, lambda args: "own", thread="dedicated")

def everything_works(rt):
    for name in ("sync", "async", "own"):
        assert rt.call(name, {}) == name, rt.call(name, {})
        assert rt.call(name, {}, timeout=SOON) == name
        assert asyncio.run(rt.acall(name, {})) == name
    assert [r.text for r in rt.call_many([ToolCall(n, {}) for n in ("sync", "async", "own")])] == ["sync", "async", "own"]
    assert rt.registry.register("late", "tests", SCHEMA, lambda args: "late") is not None
    assert rt.call("late", {}) == "late"
    assert {d["function"]["name"] for d in rt.definitions()} >= {"sync", "async", "own", "late"}
    assert rt.registry.deregister("late")
    with rt.session() as session:
        assert rt.call("sync", {}, session=session) == "sync"

def forked(work):
    '''What `work` came to in a child process: its text, "" when all was well.'''
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        told = ""
        try:
            work()
        except BaseException as error:
            import traceback
            told = "".join(traceback.format_exception(error))
        os.write(write, told.encode() or b"well")
        os._exit(0)
    os.close(write)
    import select
    ready, _, _ = select.select([read], [], [], SOON)
    told = os.read(read, 65536).decode() if ready else "the child hangs"
    if not ready:
        os.kill(pid, 9)
    os.waitpid(pid, 0)
    os.close(read)
    assert told == "well", told
"""

PROGRAMS = {
    "threads and loops run": """
        everything_works(rt)
        forked(lambda: everything_works(rt))
        everything_works(rt)
    """,
    "calls run in other threads": """
        go, started = threading.Event(), [threading.Event(), threading.Event()]
        rt.registry.register("waits", "tests", SCHEMA, lambda args: (started[0].set(), go.wait(SOON)) and "done")
        async def waits(args):
            started[1].set()
            await asyncio.to_thread(go.wait, SOON)
            return "done"
        rt.registry.register("awaits", "tests", SCHEMA, waits)
        answers = []
        callers = [threading.Thread(target=lambda n=n: answers.append(rt.call(n, {}, timeout=SOON))) for n in ("waits", "awaits")]
        for caller in callers:
            caller.start()
        assert all(event.wait(SOON) for event in started)
        def child():
            everything_works(rt)
            rt.close()
            assert "closed" in rt.call("sync", {})
        forked(child)
        assert not answers
        go.set()
        for caller in callers:
            caller.join(SOON)
        assert answers == ["done", "done"], answers
        everything_works(rt)
    """,
    "locks are held": """
        # Whatever another thread holds at that moment, for as long as it likes.
        held = [rt._parts._lock, rt._parts.sessions._lock, rt._parts.approvals._lock, rt._parts.availability._lock,
                rt._parts.hooks._lock, rt._parts.log._lock, rt._parts.dispatcher._lock, rt._parts.dispatcher.runners._lock,
                rt._parts.dispatcher.runners._pool._lock, rt._parts.dispatcher.runners.loops()._lock, rt._parts.plugins._lock,
                rt._parts.toolsets._lock, rt._parts.store._lock, rt._parts.sessions.find(None)._lock]
        ready, go = threading.Event(), threading.Event()
        def hold():
            for lock in held:
                lock.acquire()
            ready.set()
            go.wait(SOON)
            for lock in reversed(held):
                lock.release()
        holder = threading.Thread(target=hold)
        holder.start()
        assert ready.wait(SOON)
        forked(lambda: everything_works(rt))
        go.set()
        holder.join(SOON)
        everything_works(rt)
    """,
    "the registry changes meanwhile": """
        stop = threading.Event()
        def change(n):
            while not stop.is_set():
                rt.registry.register(f"t{n}", "tests", SCHEMA, lambda args: "", aliases=[f"a{n}"])
                rt.registry.deregister(f"t{n}")
        changers = [threading.Thread(target=change, args=(n,)) for n in range(4)]
        for changer in changers:
            changer.start()
        def child():
            snapshot = rt.registry.snapshot
            for n in range(4):
                assert (f"t{n}" in snapshot.entries) == (f"a{n}" in snapshot.aliases)
                assert (rt.registry.get_entry(f"t{n}") is None) == (rt.registry.get_entry(f"a{n}") is None)
            everything_works(rt)
        for _ in range(10):
            forked(child)
        stop.set()
        for changer in changers:
            changer.join(SOON)
        everything_works(rt)
    """,
    "a check is under way": """
        started, go = threading.Event(), threading.Event()
        def check():
            started.set()
            return go.wait(SOON)
        rt.registry.register("checked", "tests", SCHEMA, lambda args: "ok", check_fn=check)
        prober = threading.Thread(target=lambda: rt.definitions())
        prober.start()
        assert started.wait(SOON)
        def child():
            go.set()
            assert rt.call("checked", {}) == "ok"
        forked(child)
        go.set()
        prober.join(SOON)
    """,
    "within a handler": """
        def forks(args):
            forked(lambda: everything_works(rt))
            return "forked"
        rt.registry.register("forks", "tests", SCHEMA, forks)
        assert rt.call("forks", {}) == "forked", rt.call("forks", {})
        assert rt.call("forks", {}, timeout=SOON) == "forked"
        assert asyncio.run(rt.acall("forks", {})) == "forked"
        async def forks_too(args):
            return forks(args)
        rt.registry.register("aforks", "tests", SCHEMA, forks_too)
        assert rt.call("aforks", {}) == "forked", rt.call("aforks", {})
        everything_works(rt)
    """,
    "multiprocessing": """
        import multiprocessing
        everything_works(rt)
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        def work(n):
            everything_works(rt)
            queue.put(n)
        processes = [context.Process(target=work, args=(n,)) for n in range(3)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(SOON)
        assert [process.exitcode for process in processes] == [0, 0, 0], [process.exitcode for process in processes]
        assert sorted(queue.get() for _ in processes) == [0, 1, 2]
        everything_works(rt)
    """,
    "a child of a child": """
        everything_works(rt)
        forked(lambda: (everything_works(rt), forked(lambda: everything_works(rt)), everything_works(rt)))
    """,
    "sessions end where they began": """
        ended = []
        rt.add_hook("on_session_end", lambda session_id: ended.append(session_id))
        rt.add_hook("on_session_start", lambda session_id: ended.append("start " + session_id))
        session = rt.session("s")
        rt.call("sync", {}, session=session)
        del ended[:]
        def child():
            assert rt.call("sync", {}, session="s") == "sync"
            with rt.session("own") as own:
                rt.call("sync", {}, session=own)
            rt.close()
            assert ended == ["start own", "own"], ended
        forked(child)
        session.close()
        assert ended == ["s"], ended
    """,
    "an approval is being waited for": """
        asked = threading.Event()
        from mibyan import Ask
        rt.registry.register("risky", "tests", SCHEMA, lambda args: "done", approval=lambda args, context: Ask("sure?"))
        rt.approvals.notify(lambda request: asked.set())
        answers = []
        caller = threading.Thread(target=lambda: answers.append(rt.call("risky", {})))
        caller.start()
        assert asked.wait(SOON)
        def child():
            assert rt.approvals.pending() == []
            rt.approvals.notify(lambda request: rt.approvals.resolve(request.id, "once"))
            assert rt.call("risky", {}) == "done"
        forked(child)
        (request,) = rt.approvals.pending()
        rt.approvals.resolve(request.id, "once")
        caller.join(SOON)
        assert answers == ["done"]
    """,
    "another thread is at an import that takes its time": """
        import builtins
        from mibyan import forks
        forks.PATIENCE = 0.05
        builtins.STARTED, builtins.GO = threading.Event(), threading.Event()
        (home / "takes_time.py").write_text("import builtins\\nbuiltins.STARTED.set()\\nbuiltins.GO.wait(20)\\nvalue = 1\\n")
        sys.path.insert(0, str(home))
        def imports(args):
            import takes_time
            return str(takes_time.value)
        rt.registry.register("imports", "tests", SCHEMA, imports)
        answers = []
        importer = threading.Thread(target=lambda: answers.append(rt.call("imports", {}, timeout=SOON)))
        importer.start()
        assert builtins.STARTED.wait(SOON)
        def child():
            builtins.GO.set()
            assert rt.call("imports", {}) == "1", rt.call("imports", {})
            everything_works(rt)
        forked(child)
        assert not answers
        forked(child)
        builtins.GO.set()
        importer.join(SOON)
        assert answers == ["1"], answers
        everything_works(rt)
    """,
    "another thread's import comes to its end": """
        import builtins
        builtins.STARTED, builtins.GO, builtins.RUNS = threading.Event(), threading.Event(), []
        (home / "takes_time.py").write_text("import builtins\\nbuiltins.RUNS.append(1)\\nbuiltins.STARTED.set()\\nbuiltins.GO.wait(20)\\n")
        sys.path.insert(0, str(home))
        def imports():
            import takes_time
        importer = threading.Thread(target=imports)
        importer.start()
        assert builtins.STARTED.wait(SOON)
        os.register_at_fork(before=builtins.GO.set)
        def child():
            imports()
            assert builtins.RUNS == [1], builtins.RUNS
        forked(child)
        importer.join(SOON)
    """,
    "a module is through, but not in its package yet": """
        import _frozen_importlib
        package, module = type(os)("package"), type(os)("package.module")
        sys.modules.update({"package": package, "package.module": module})
        ready, go = threading.Event(), threading.Event()
        def hold():
            with _frozen_importlib._ModuleLockManager("package.module"):
                ready.set()
                go.wait(SOON)
        holder = threading.Thread(target=hold)
        holder.start()
        assert ready.wait(SOON)
        from mibyan import forks
        forks.PATIENCE = 0.05
        def child():
            import package.module
            assert package.module is module
        forked(child)
        go.set()
        holder.join(SOON)
    """,
    "the program is an import of the main thread": """
        from mibyan import forks
        forks.PATIENCE = 0.05
        (home / "app.py").write_text(
            "import __main__, threading\\n"
            "runs = getattr(__main__, 'runs', 0) + 1\\n"
            "__main__.runs = runs\\n"
            "worker = threading.Thread(target=__main__.work)\\n"
            "worker.start()\\n"
            "worker.join()\\n"
        )
        sys.path.insert(0, str(home))
        errors = []
        def child():
            import app
            assert (app.runs, runs) == (1, 1)
            everything_works(rt)
        def work():
            try:
                forked(child)
            except BaseException as error:
                errors.append(error)
        import app
        assert not errors, errors
    """,
    "credentials are being looked for": """
        from mibyan.config.settings import Settings
        ready, go, to_data = threading.Event(), threading.Event(), Settings.to_data
        def slow(settings):
            ready.set()
            go.wait(SOON)
            return to_data(settings)
        Settings.to_data = slow
        looker = threading.Thread(target=lambda: rt._parts.clean("text"))
        looker.start()
        assert ready.wait(SOON)
        def child():
            go.set()
            assert rt._parts.clean("text") == "text"
            everything_works(rt)
        forked(child)
        go.set()
        looker.join(SOON)
    """,
    "the registry is half changed for long": """
        from mibyan import forks
        forks.PATIENCE = 0.05
        store, ready, go = rt._parts.store, threading.Event(), threading.Event()
        rt.registry.register("changing", "tests", SCHEMA, lambda args: "")
        def change():
            with store._mutation:
                rt.registry.deregister("changing")
                ready.set()
                go.wait(SOON)
        changer = threading.Thread(target=change)
        changer.start()
        assert ready.wait(SOON)
        def child():
            snapshot = rt.registry.snapshot
            assert rt.registry.snapshot is snapshot
            assert "changing" not in snapshot.entries
            everything_works(rt)
            rt.registry.register("changing", "tests", SCHEMA, lambda args: "")
            assert rt.registry.snapshot.generation > snapshot.generation
            assert "changing" in rt.registry.snapshot.entries
            everything_works(rt)
        forked(child)
        go.set()
        changer.join(SOON)
        everything_works(rt)
    """,
    "another thread begins the first command": """
        import atexit
        from mibyan_builtin.terminal import leaving
        ready, go, register = threading.Event(), threading.Event(), atexit.register
        def slow(function):
            ready.set()
            go.wait(SOON)
            return register(function)
        atexit.register = slow
        def begin():
            with leaving.counted("mark"):
                pass
        beginner = threading.Thread(target=begin)
        beginner.start()
        assert ready.wait(SOON)
        def child():
            go.set()
            begin()
            leaving.leave()
        forked(child)
        go.set()
        beginner.join(SOON)
    """,
    "a registry made by hand": """
        from mibyan import ToolRegistry
        registry = ToolRegistry()
        ready, go = threading.Event(), threading.Event()
        def hold():
            with registry._store._lock:
                ready.set()
                go.wait(SOON)
        holder = threading.Thread(target=hold)
        holder.start()
        assert ready.wait(SOON)
        forked(lambda: registry.register("x", "tests", SCHEMA, len) and registry.deregister("x"))
        go.set()
        holder.join(SOON)
    """,
}

PLUGINS = {
    "what plugins want called at their end": (
        """
        def register(ctx):
            ctx.register_tool("mine", "t", {"description": "d"}, lambda args: "mine")
            ctx.provide("service", lambda: Service())
            ctx.on_unload(lambda: LOG.append("unload"))
        class Service:
            def close(self):
                LOG.append("close")
        LOG = []
        """,
        """
        service = rt.provided("service")
        log = sys.modules[type(service).__module__].LOG
        def child():
            assert rt.call("mine", {}) == "mine"
            assert rt.provided("service") is not service
            rt.close()
            assert log == [], log
        forked(child)
        assert rt.provided("service") is service
        rt.close()
        assert log == ["close", "unload"], log
        """,
    ),
    "a plugin is being loaded in another thread": (
        """
        import builtins
        def register(ctx):
            ctx.register_tool("mine", "t", {"description": "d"}, lambda args: "mine")
            if not builtins.GO.is_set():
                builtins.STARTED.set()
                builtins.GO.wait(20)
        """,
        """
        import builtins
        loader = threading.Thread(target=lambda: rt.call("mine", {}))
        loader.start()
        assert builtins.STARTED.wait(SOON)
        def child():
            builtins.GO.set()
            assert rt.call("mine", {}) == "mine", rt.call("mine", {})
        forked(child)
        builtins.GO.set()
        loader.join(SOON)
        assert rt.call("mine", {}) == "mine"
        """,
    ),
}


#: What happens while a fork is being prepared, before the runtime has heard of it.
MIDWAY = {
    "the first runtime is made": """
        import os, sys, threading
        made = []
        def make():
            from mibyan import Runtime
            maker = threading.Thread(target=lambda: made.append(Runtime(home=sys.argv[1])))
            maker.start()
            maker.join()
        os.register_at_fork(before=lambda: made or make())
    """,
    "a library is imported that takes a lock over each fork": """
        import os, sys, threading
        from mibyan import Runtime
        def use():
            import concurrent.futures.thread
        def use_elsewhere():
            user = threading.Thread(target=use)
            user.start()
            user.join()
        os.register_at_fork(before=use_elsewhere)
        rt = Runtime(home=sys.argv[1])
        assert "concurrent.futures.thread" not in sys.modules and "logging" in sys.modules
        made = [rt]
        other = threading.Thread(target=threading.Event().wait, daemon=True)
        other.start()
    """,
}

#: And then the fork.
AND_FORK = """
pid = os.fork()
if pid == 0:
    with Runtime(home=sys.argv[1]) as rt:
        rt.registry.register("t", "tests", {"description": "d"}, lambda args: "child")
        assert rt.call("t", {}, timeout=20) == "child"
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
made[0].registry.register("t", "tests", {"description": "d"}, lambda args: "parent")
assert made[0].call("t", {}, timeout=20) == "parent"
made[0].close()
executors = sys.modules.get("concurrent.futures.thread")
assert executors is None or not executors._global_shutdown_lock.locked()
"""


def run(tmp_path: Path, program: str) -> None:
    """Run a program in a process of its own, within a bounded time."""
    # From Python 3.12 on a fork beside threads is warned about: that is what these are about.
    words = [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", program, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=90)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_fork_in_the_middle(tmp_path: Path, what: str) -> None:
    """architecture: after a fork a runtime rebuilds its threads, loops and locks; the parent is as it was."""
    run(tmp_path, BEGIN + dedent(PROGRAMS[what]) + "\nrt.close()\n")


@pytest.mark.parametrize("what", MIDWAY)
def test_a_fork_that_others_get_into(tmp_path: Path, what: str) -> None:
    """architecture: what begins while a fork is being prepared releases no lock that it didn't take."""
    run(tmp_path, dedent(MIDWAY[what]) + "\nfrom mibyan import Runtime\n" + AND_FORK)


@pytest.mark.parametrize("what", PLUGINS)
def test_a_fork_with_plugins(tmp_path: Path, what: str) -> None:
    """architecture: what a plugin made is the parent's, and what was being loaded is loaded anew in the child."""
    plugin, program = PLUGINS[what]
    folder = tmp_path / "plugged" / "plugins" / "p"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text("{}")
    (folder / "__init__.py").write_text(dedent(plugin))
    start = """
        rt.close()
        import builtins
        builtins.GO, builtins.STARTED = threading.Event(), threading.Event()
        rt = Runtime(home=home / "plugged")
    """
    run(tmp_path, BEGIN + dedent(start) + dedent(program) + "\nrt.close()\n")
