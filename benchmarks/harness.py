"""How everything is timed: in short windows, each beside its floor, forward and backward in turn."""

from __future__ import annotations

import asyncio
import gc
import sys
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from benchmarks.figures import Figure, Samples

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from benchmarks.figures import Target

#: Nanoseconds that a window should take: so short that the machine seldom does something else meanwhile.
WINDOW = 400_000


@dataclass(frozen=True, slots=True)
class Effort:
    """How many pairs are measured.

    Args:
        windows: Of figures that take microseconds.
        runs: Of those that take milliseconds.
        long: Of those that take about a second.
        processes: Of whole processes.
        processor: Whether processes are measured by their processor time.
    """

    windows: int
    runs: int
    long: int
    processes: int
    processor: bool = False

    @property
    def process_unit(self) -> str:
        """The unit of what a process takes."""
        return "ms CPU" if self.processor else "ms"


FULL = Effort(windows=600, runs=30, long=5, processes=31)
QUICK = Effort(windows=100, runs=9, long=3, processes=9)
SMOKE = Effort(windows=1, runs=1, long=1, processes=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure to be: how it is measured, and what is measured beside it.

    Args:
        name: What is measured.
        floor_name: What stands beside it.
        floor: Measures the floor once.
        ours: Measures ours once.
        unit: The unit of both.
        target: What it should be.
    """

    name: str
    floor_name: str
    floor: Callable[[], float]
    ours: Callable[[], float]
    unit: str
    target: Target | None = None


def measure(group: str, pairs: Sequence[Pair], rounds: int) -> list[Figure]:
    """Measure each pair `rounds` times, interleaved: forward in one round, backward in the next.

    Each sampler runs once beforehand: whatever is made on first use is made, and the length of its windows found.
    """
    floors: list[list[float]] = [[] for _ in pairs]
    ours: list[list[float]] = [[] for _ in pairs]
    for pair in pairs:
        pair.floor()
        pair.ours()
    with quiet_gc():
        for number in range(rounds):
            forward = number % 2 == 0
            for index in range(len(pairs)) if forward else reversed(range(len(pairs))):
                pair = pairs[index]
                steps = [(floors[index], pair.floor), (ours[index], pair.ours)]
                for samples, sampler in steps if forward else reversed(steps):
                    samples.append(sampler())
    return [
        Figure(group, pair.name, pair.floor_name, pair.unit, Samples(tuple(below), tuple(above)), pair.target)
        for pair, below, above in zip(pairs, floors, ours, strict=True)
    ]


@contextmanager
def quiet_gc() -> Iterator[None]:
    """Garbage collection stays on, as for a user, but what is there already isn't gone through again and again."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class PerWindow(ABC):
    """Microseconds a call: the mean of one window of calls."""

    _calls = 0

    def __call__(self) -> float:
        """Measure one window; the first time, find out how many calls it has."""
        if not self._calls:
            self._calls = sized(self._window)
        return self._window(self._calls) / self._calls / 1e3

    @abstractmethod
    def _window(self, calls: int) -> int:
        """Nanoseconds that so many calls take."""


class PerCall(PerWindow):
    """A plain call."""

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function

    def _window(self, calls: int) -> int:
        function = self._function
        started = perf_counter_ns()
        for _ in repeat(None, calls):
            function()
        return perf_counter_ns() - started


class PerAwait(PerWindow):
    """An awaited call, within a running loop: starting the loop isn't in it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, function: Callable[[], Awaitable[object]]) -> None:
        self._loop = loop
        self._function = function

    def _window(self, calls: int) -> int:
        return self._loop.run_until_complete(self._awaited(calls))

    async def _awaited(self, calls: int) -> int:
        function = self._function
        started = perf_counter_ns()
        for _ in repeat(None, calls):
            await function()
        return perf_counter_ns() - started


def sized(window: Callable[[int], int]) -> int:
    """How many calls make a window of the right length."""
    for _ in range(3):
        window(1)  # The first calls import and build what the others find.
    calls = 1
    while (took := window(calls)) < WINDOW // 4:
        calls *= 4 if took < WINDOW // 32 else 2
    return max(1, calls * WINDOW // took)


@contextmanager
def own_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop to measure in, closed afterwards with the threads that it has lent."""
    loop = asyncio.new_event_loop()
    try:
        yield loop
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def milliseconds(function: Callable[[], Any]) -> float:
    """What one call takes."""
    started = perf_counter_ns()
    function()
    return (perf_counter_ns() - started) / 1e6


def interpreter() -> str:
    """The interpreter's name and version."""
    return f"{sys.implementation.name} {sys.version.split()[0]}"
