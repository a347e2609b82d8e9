"""How late an answer at a deadline is, and what stuck tools cost those who call afterwards."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks import work
from benchmarks.figures import Target
from benchmarks.harness import Pair, PerCall, measure, own_loop

if TYPE_CHECKING:
    from collections.abc import Callable

    import mibyan
    from benchmarks.figures import Figure
    from benchmarks.harness import Effort

GROUP = "deadlines"

#: Seconds that a stuck tool is given, and those that a call never needs.
_SHORT = 0.05
_LONG = 60.0

#: Tools that are stuck at the same time.
_STUCK = 50


def figures(effort: Effort) -> list[Figure]:
    """All figures of deadlines."""
    with ExitStack() as stack:
        free, burdened = stack.enter_context(work.runtime()), stack.enter_context(work.runtime())
        released = threading.Event()
        stack.callback(released.set)  # Before the runtimes are closed.
        for runtime in free, burdened:
            _register(runtime, released)
        loop = stack.enter_context(own_loop())
        late = measure(GROUP, _late(free, loop), effort.runs)
        with ThreadPoolExecutor(_STUCK) as callers:
            answers = list(callers.map(lambda _: burdened.call("stuck", timeout=_SHORT), range(_STUCK)))
        if not all("timeout" in answer for answer in answers):
            raise RuntimeError(f"a tool that is stuck answers {answers[0]}")
        next_call = Pair("the next guarded call after fifty stuck tools", "the same with none stuck", _guarded(free),
                         _guarded(burdened), "µs", Target(1.5))  # fmt: skip
        return [*late, *measure(GROUP, [next_call], effort.windows)]


def _register(runtime: mibyan.Runtime, released: threading.Event) -> None:
    async def stuck_async(_args: dict[str, object]) -> None:
        await asyncio.sleep(_LONG)

    empty = {"description": "Never comes back.", "parameters": {"type": "object", "properties": {}}}
    runtime.registry.register("stuck", "bench", empty, lambda _args: released.wait())
    runtime.registry.register("stuck_async", "bench", empty, stuck_async)
    runtime.registry.register("quick", "bench", work.flat_schema(), work.handle)


def _late(runtime: mibyan.Runtime, loop: asyncio.AbstractEventLoop) -> list[Pair]:
    """Milliseconds past a deadline of fifty; a tenth of it is a lot."""

    async def wait_for() -> None:
        with_deadline = asyncio.wait_for(asyncio.sleep(_LONG), _SHORT)
        await asyncio.gather(with_deadline, return_exceptions=True)

    never = threading.Event()
    return [
        Pair("past the deadline of a sync tool", "Event.wait(0.05)", lambda: _overshoot(lambda: never.wait(_SHORT)),
             lambda: _overshoot(lambda: runtime.call("stuck", {}, timeout=_SHORT)), "ms", Target(5, subject="ours")),
        Pair("past the deadline of an async tool", "asyncio.wait_for",
             lambda: _overshoot(lambda: loop.run_until_complete(wait_for())),
             lambda: _overshoot(lambda: loop.run_until_complete(runtime.acall("stuck_async", {}, timeout=_SHORT))),
             "ms", Target(5, subject="ours")),
    ]  # fmt: skip


def _overshoot(call: Callable[[], object]) -> float:
    started = perf_counter()
    call()
    return (perf_counter() - started - _SHORT) * 1e3


def _guarded(runtime: mibyan.Runtime) -> Callable[[], float]:
    call = runtime.call
    return PerCall(lambda: call("quick", work.TEXT, timeout=_LONG))
