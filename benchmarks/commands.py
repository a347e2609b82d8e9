"""Commands of the tool `terminal` beside the shell's own: a warm one, the end of one that is stuck, much output."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import mibyan
from benchmarks.figures import Target
from benchmarks.harness import Pair, PerCall, measure
from benchmarks.memory import resident

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.figures import Figure
    from benchmarks.harness import Effort

GROUP = "commands"

#: Seconds that a command is given which takes longer.
_SHORT = 0.2
_STUBBORN = "trap '' TERM; while :; do sleep 1; done"
_BYTES = 300_000_000


def figures(effort: Effort) -> list[Figure]:
    """All figures of commands."""
    with ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="mibyan-bench-"))
        runtime = stack.enter_context(mibyan.Runtime(home=home, config={"approvals": {"mode": "off"}}, safe_mode=True))
        runtime.approvals.notify(lambda request: runtime.approvals.resolve(request.id, "session"))
        session = stack.enter_context(runtime.session(cwd=home))

        def terminal(command: str, **arguments: object) -> str:
            return runtime.call("terminal", {"command": command, **arguments}, session=session)

        if '"exit_code": 0' not in terminal("pwd"):
            raise RuntimeError(f"terminal answers {terminal('pwd')}")
        warm = Pair("terminal('pwd')", "bash -c pwd", PerCall(lambda: _bare("pwd", home)),
                    PerCall(lambda: terminal("pwd")), "µs", Target(1.6))  # fmt: skip
        return [
            *measure(GROUP, [warm], effort.windows), *measure(GROUP, _ends(terminal, session), effort.runs),
            *measure(GROUP, [_much(terminal, home)], 1),
        ]  # fmt: skip


def _bare(command: str, cwd: str) -> None:
    subprocess.run(["bash", "-c", command], cwd=cwd, capture_output=True, check=True)


def _ends(terminal: Callable[..., str], session: mibyan.Session) -> list[Pair]:
    """Milliseconds from the moment when a command should end to its answer."""

    def late(command: str) -> float:
        started = perf_counter()
        terminal(command, timeout=_SHORT)
        return (perf_counter() - started - _SHORT) * 1e3

    def interrupted() -> float:
        moments: list[float] = []

        def interrupt() -> None:
            moments.append(perf_counter())
            session.interrupt()

        timer = threading.Timer(_SHORT, interrupt)
        timer.start()
        terminal("sleep 60", timeout=60)
        return (perf_counter() - moments[0]) * 1e3

    return [
        Pair("past the deadline of a command", "subprocess.run(timeout=0.2)", _floor, lambda: late("sleep 60"), "ms",
             Target(100, subject="ours")),
        Pair("the same, when it ignores SIGTERM", "subprocess.run(timeout=0.2)", _floor, lambda: late(_STUBBORN), "ms",
             Target(1200, subject="ours")),
        Pair("from an interrupt to the answer", "subprocess.run(timeout=0.2)", _floor, interrupted, "ms",
             Target(300, subject="ours")),
    ]  # fmt: skip


def _floor() -> float:
    started = perf_counter()
    try:
        subprocess.run(["sleep", "60"], timeout=_SHORT, check=False)
    except subprocess.TimeoutExpired:
        return (perf_counter() - started - _SHORT) * 1e3
    raise RuntimeError("sleep has ended early")


def _much(terminal: Callable[..., str], home: str) -> Pair:
    """Megabytes that this process grows by while a command writes three hundred."""
    command = f"yes 0123456789012345678901234567890123456789 | head -c {_BYTES}"
    return Pair("memory for 300 MB of output", "bash to a file", lambda: _peak(lambda: _bare(f"{command} > much", home)),
                lambda: _peak(lambda: terminal(command, timeout=600)), "MB", Target(32, subject="ours"))  # fmt: skip


def _peak(work: Callable[[], object]) -> float:
    before, most = resident(), [0]
    ended = threading.Event()

    def watch() -> None:
        pages, size = Path("/proc/self/statm"), os.sysconf("SC_PAGE_SIZE")
        while not ended.wait(0.01):
            most[0] = max(most[0], int(pages.read_text(encoding="ascii").split()[1]) * size)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        ended.set()
        watcher.join()
    return max(most[0] - before, 0) / 1e6
