"""What it costs to tell which tools there are: again, after a change, and for the first time."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import count
from time import perf_counter_ns
from typing import TYPE_CHECKING

from benchmarks import work
from benchmarks.figures import Target
from benchmarks.harness import Pair, PerCall, measure, milliseconds
from benchmarks.manytools import fill, tool_name
from benchmarks.memory import plain_definition

if TYPE_CHECKING:
    import mibyan
    from benchmarks.figures import Figure
    from benchmarks.harness import Effort

GROUP = "definitions"

_SOME = 1_000
_MANY = 10_000


def figures(effort: Effort) -> list[Figure]:
    """All figures of definitions."""
    with ExitStack() as stack:
        some, many = stack.enter_context(work.runtime()), stack.enter_context(work.runtime())
        fill(some, _SOME)
        fill(many, _MANY)
        _check(some, _SOME)
        again = measure(GROUP, [_again(some, "1,000", 2), _again(many, "10,000", 20)], effort.windows)
        changed = measure(GROUP, [_changed(some)], effort.runs)
    return [*again, *changed, *measure(GROUP, [_cold()], effort.runs)]


def _check(runtime: mibyan.Runtime, tools: int) -> None:
    """What is measured does its work, also after a change."""
    before = runtime.definitions()
    _change(runtime, "another description")
    after = runtime.definitions()
    if len(before) != tools or len(after) != tools or before == after:
        raise RuntimeError(f"{len(before)} definitions of {tools} tools, and {len(after)} after a change")


def _change(runtime: mibyan.Runtime, description: str) -> None:
    """Register one of the tools anew, with another description."""
    schema = {**work.flat_schema(), "description": description}
    runtime.registry.register(tool_name(500), "bench", schema, work.handle)


def _again(runtime: mibyan.Runtime, tools: str, bound: float) -> Pair:
    kept = runtime.definitions()
    return Pair(f"unchanged, {tools} tools", "copy of a list", PerCall(kept.copy), PerCall(runtime.definitions), "µs",
                Target(bound, subject="ours"))  # fmt: skip


def _changed(runtime: mibyan.Runtime) -> Pair:
    numbers = count()

    def after_a_change() -> float:
        _change(runtime, f"description number {next(numbers)}")
        return milliseconds(runtime.definitions)

    return Pair("after one change of 1,000", "1,000 definitions as plain dicts", lambda: _plain(_SOME), after_a_change,
                "ms", Target(3, subject="ours"))  # fmt: skip


def _cold() -> Pair:
    def for_the_first_time() -> float:
        with work.runtime() as runtime:
            fill(runtime, _MANY)
            return milliseconds(runtime.definitions)

    return Pair("cold, 10,000 raw tools", "10,000 definitions as plain dicts", lambda: _plain(_MANY),
                for_the_first_time, "ms", Target(60, subject="ours"))  # fmt: skip


def _plain(tools: int) -> float:
    """Milliseconds to build as many definitions as plain dicts."""
    started = perf_counter_ns()
    built = [plain_definition(number) for number in range(tools)]
    took = perf_counter_ns() - started
    if len(built) != tools:
        raise RuntimeError("not all were built")
    return took / 1e6
