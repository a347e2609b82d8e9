"""How much of what is possible many callers get out of a tool that takes ten milliseconds.

A share of 1 is what sixty-four callers that lose no time between their calls would get.
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks import work
from benchmarks.figures import Target
from benchmarks.harness import Pair, measure, own_loop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from benchmarks.figures import Figure
    from benchmarks.harness import Effort

GROUP = "concurrency"

_CALLERS = 64
#: Calls that each caller makes, one after the other.
_CALLS = 20
#: Seconds that the tool takes.
_NAP = 0.01


def figures(effort: Effort) -> list[Figure]:
    """All figures of many callers."""
    with ExitStack() as stack:
        runtime = stack.enter_context(work.runtime())
        pool = stack.enter_context(ThreadPoolExecutor(_CALLERS))
        loop = stack.enter_context(own_loop())
        runtime.registry.register("nap", "bench", work.flat_schema(), _nap)
        if "src/app" not in runtime.call("nap", work.TEXT):
            raise RuntimeError("the tool that is to be called doesn't do its work")
        pairs = [
            Pair("64 threads", "64 threads without a runtime", lambda: _threads(lambda: _nap(work.ARGUMENTS)),
                 lambda: _threads(lambda: runtime.call("nap", work.TEXT)), "of ideal",
                 Target(0.93, subject="ours", at_least=True)),
            Pair("64 tasks, sync tool", "ThreadPoolExecutor(64)",
                 lambda: loop.run_until_complete(_tasks(lambda: loop.run_in_executor(pool, _nap, work.ARGUMENTS))),
                 lambda: loop.run_until_complete(_tasks(lambda: runtime.acall("nap", work.TEXT))), "of ideal",
                 Target(0.95, at_least=True)),
        ]  # fmt: skip
        return measure(GROUP, pairs, effort.long)


def _nap(args: dict[str, Any]) -> dict[str, str]:
    """The tool."""
    time.sleep(_NAP)
    return {"result": args["path"]}


def _threads(call: Callable[[], object]) -> float:
    """The share that sixty-four threads get."""
    ready = threading.Barrier(_CALLERS + 1)

    def caller() -> None:
        ready.wait()
        for _ in range(_CALLS):
            call()

    threads = [threading.Thread(target=caller) for _ in range(_CALLERS)]
    for thread in threads:
        thread.start()
    ready.wait()
    started = perf_counter()
    for thread in threads:
        thread.join()
    return _CALLS * _NAP / (perf_counter() - started)


async def _tasks(call: Callable[[], Awaitable[object]]) -> float:
    """The share that sixty-four tasks of one loop get."""

    async def caller() -> None:
        for _ in range(_CALLS):
            await call()

    started = perf_counter()
    await asyncio.gather(*(caller() for _ in range(_CALLERS)))
    return _CALLS * _NAP / (perf_counter() - started)
