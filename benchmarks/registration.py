"""What it costs to register a tool: time, and memory with its definition."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, TypeVar

import mibyan
from benchmarks import work
from benchmarks.figures import Target
from benchmarks.harness import Pair, measure
from benchmarks.manytools import functions, tool_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.figures import Figure
    from benchmarks.harness import Effort

GROUP = "registration"

#: Tools in a registry before a new one is begun, and how many of them a window registers.
_FULL = 1_000
_WINDOW = 20

#: Tools whose memory is measured.
_MEASURED = 10_000

_T = TypeVar("_T")


def figures(effort: Effort) -> list[Figure]:
    """All figures of registering."""
    with ExitStack() as stack:
        pairs = [
            Pair("a raw tool", "its schema as JSON text", _Windows(stack, _raw, _keep_text),
                 _Windows(stack, _raw, _register_raw), "µs", Target(8, subject="ours")),
            Pair("a function of plain types", "inspect.signature", _Windows(stack, _plain, _read_signature),
                 _Windows(stack, _plain, _register_function), "µs", Target(25, subject="ours")),
            Pair("a function with postponed annotations", "inspect.signature",
                 _Windows(stack, _postponed, _read_signature), _Windows(stack, _postponed, _register_function), "µs",
                 Target(25, subject="ours")),
        ]  # fmt: skip
        timed = measure(GROUP, pairs, effort.windows)
    memory = Pair("memory of a raw tool with its definition", "the definition as plain dicts",
                  lambda: _memory("plain"), lambda: _memory("runtime"), "KiB", Target(4, subject="ours"))  # fmt: skip
    return [*timed, *measure(GROUP, [memory], effort.long)]


class _Windows:
    """Microseconds a tool, in windows of twenty, in registries that grow up to a thousand tools."""

    def __init__(
        self, stack: ExitStack, make: Callable[[int], Sequence[_T]], use: Callable[[mibyan.Runtime, Sequence[_T]], None]
    ) -> None:
        self._stack = stack.enter_context(ExitStack())
        self._make = make
        self._use = use
        self._runtime: mibyan.Runtime | None = None
        self._tools = 0

    def __call__(self) -> float:
        """Measure one window."""
        runtime, made = self._room(), self._make(self._tools)
        started = perf_counter_ns()
        self._use(runtime, made)
        took = perf_counter_ns() - started
        self._tools += len(made)
        return took / len(made) / 1e3

    def _room(self) -> mibyan.Runtime:
        if self._runtime is None or self._tools >= _FULL:
            self._stack.close()
            self._runtime, self._tools = self._stack.enter_context(work.runtime()), 0
            self._runtime.registry.get_all_tool_names()
        return self._runtime


def _raw(first: int) -> list[tuple[str, dict[str, Any]]]:
    return [(tool_name(number), work.flat_schema(number)) for number in range(first, first + _WINDOW)]


def _plain(first: int) -> list[Callable[..., Any]]:
    return functions(first, _WINDOW)


def _postponed(first: int) -> list[Callable[..., Any]]:
    return functions(first, _WINDOW, postponed=True)


def _keep_text(_runtime: mibyan.Runtime, tools: Sequence[tuple[str, dict[str, Any]]]) -> None:
    kept = {}
    for name, schema in tools:
        kept[name] = json.dumps(schema), work.handle


def _register_raw(runtime: mibyan.Runtime, tools: Sequence[tuple[str, dict[str, Any]]]) -> None:
    register = runtime.registry.register
    for name, schema in tools:
        register(name, "bench", schema, work.handle)


def _read_signature(_runtime: mibyan.Runtime, tools: Sequence[Callable[..., Any]]) -> None:
    for function in tools:
        inspect.signature(function)


def _register_function(runtime: mibyan.Runtime, tools: Sequence[Callable[..., Any]]) -> None:
    add = runtime.registry.add
    for function in tools:
        add(mibyan.tool(toolset="bench")(function))


def _memory(kept: str) -> float:
    """KiB a tool, of ten thousand, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", kept, str(_MEASURED)],
        cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"benchmarks.memory ended with {done.returncode}:\n{done.stderr}")
    return float(done.stdout) / 1024
