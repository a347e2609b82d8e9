"""One pass over checks, in which those that hang are left behind (registry.V2, V4)."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mibyan.tools.entry import ToolEntry

V = TypeVar("V")


class Apart(Protocol):
    """Runs a job where it can be given up."""

    def __call__(self, job: Callable[[], None], moment: Callable[[], float], take_over: Callable[[], bool]) -> bool:
        """Run `job` in a copy of this context, and wait for it.

        Args:
            job: What to run.
            moment: When to look, in seconds of `time.monotonic()`; it moves on while the job does.
            take_over: Asked then: whether the job is given up from that moment on.

        Returns:
            Whether the job came to its end.

        Raises:
            BaseException: What the job raised.
        """


class CheckPass(Generic[V]):
    """Asks checks one after the other; one that takes longer than `limit` is left, and the next is asked.

    Args:
        entries: Tools with different checks.
        ask: Gives the verdict on one.
        give_up: Gives the verdict on one whose check isn't waited for any more.
        limit: Seconds that each may take.
    """

    def __init__(
        self,
        entries: Sequence[ToolEntry],
        ask: Callable[[ToolEntry], V],
        give_up: Callable[[ToolEntry], V],
        limit: float,
    ) -> None:
        self._entries = entries
        self._ask = ask
        self._give_up = give_up
        self._limit = limit
        self._lock = threading.Lock()
        self._verdicts: list[V] = []
        #: Grows when a worker is given up: what it finds out afterwards is no news here.
        self._turn = 0
        self._since = float("inf")

    def run(self, apart: Apart | None) -> list[V]:
        """The verdicts, in the order of the entries.

        Raises:
            KeyboardInterrupt: It came meanwhile.
        """
        if apart is None:
            return [self._ask(entry) for entry in self._entries]
        while len(self._verdicts) < len(self._entries):
            turn = self._turn
            if not apart(lambda turn=turn: self._work(turn), self._moment, self._take_over):  # type: ignore[misc]
                self._verdicts.append(self._give_up(self._entries[len(self._verdicts)]))
        return self._verdicts

    def _work(self, turn: int) -> None:
        """On the worker: ask what is left, until it is done or given up."""
        for entry in self._entries[len(self._verdicts) :]:
            with self._lock:
                if turn != self._turn:
                    return
                self._since = time.monotonic()
            verdict = self._ask(entry)
            with self._lock:
                if turn != self._turn:
                    return
                self._verdicts.append(verdict)
                self._since = float("inf")

    def _moment(self) -> float:
        return self._since + self._limit

    def _take_over(self) -> bool:
        with self._lock:
            if time.monotonic() < self._moment():
                return False  # It has just gone on to the next.
            self._turn += 1
            self._since = float("inf")
            return True
