"""`Runners`: the threads and loops of one runtime, and what is stuck on them."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.guard import LATE
from mibyan.dispatch.threads import ThreadPool

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.dispatch.loops import Loops
    from mibyan.dispatch.steps import Step
    from mibyan.dispatch.threads import Job

log = logging.getLogger("mibyan.dispatch")


class Runners:
    """Made on demand, ended by `close`."""

    def __init__(self) -> None:
        self._pool = ThreadPool("mibyan")
        self._run = self._pool.submit
        self._dedicated: dict[str, ThreadPool] = {}
        self._loops: Loops | None = None
        self._stuck: set[Step] = set()
        self._lock = threading.Lock()
        self._closed = False

    @property
    def run(self) -> Callable[[Job], None]:
        """`submit` on a thread that serves every tool."""
        return self._run

    def submit(self, job: Job, thread: str = "pool") -> None:
        """Run a job on one of the threads; `thread` other than `pool` names one that serves nothing else.

        Raises:
            RuntimeError: The runtime is closed, or the system gives no more threads.
        """
        if thread == "pool":
            self._pool.submit(job)
            return
        while True:
            with self._lock:
                pool = self._dedicated.get(thread)
                if pool is None:
                    pool = self._dedicated[thread] = ThreadPool(f"mibyan-{thread}", most=1)
            try:
                pool.submit(job)
                return
            except RuntimeError:
                # Its thread is stuck, and was replaced just now by whoever gave that up.
                if self._closed or self._dedicated.get(thread) is pool:
                    raise

    def is_on(self, thread: str) -> bool:
        """Whether this code runs on the thread of that name already."""
        with self._lock:
            pool = self._dedicated.get(thread)
        return pool is not None and pool.is_mine

    def loops(self) -> Loops:
        """The runtime's own loops, made on first use."""
        loops = self._loops
        if loops is None:
            from mibyan.dispatch.loops import Loops

            with self._lock:
                if self._loops is None:
                    self._loops = Loops()
                loops = self._loops
                if self._closed:
                    loops.close()
        return loops

    # What nobody waits for any more --------------------------------------------------------------------------------

    def gave_up(self, step: Step) -> None:
        """Nobody waits for this step any more: the next one that needs its thread or its loop gets another."""
        self._stuck.add(step)
        if step.done:
            self._stuck.discard(step)
            return
        if step.thread != "pool":
            self._replace(step.thread)
        self._look_at_loops(step)

    def came_back(self, step: Step) -> None:
        """A step that was given up has ended."""
        self._stuck.discard(step)

    @property
    def stuck(self) -> int:
        """Steps that were given up and still run."""
        return len(self._stuck)

    @property
    def size(self) -> int:
        """Threads alive, those of loops among them."""
        loops = 0 if self._loops is None else self._loops.size
        with self._lock:
            pools = [self._pool, *self._dedicated.values()]
        return sum(pool.size for pool in pools) + loops

    def _replace(self, thread: str) -> None:
        with self._lock:
            pool = self._dedicated.pop(thread, None)
        if pool is not None:
            pool.close(wait=0.0)
            for job in pool.drain():
                self.submit(job, thread)

    def _look_at_loops(self, step: Step) -> None:
        """A loop that a given-up handler blocks is replaced."""
        if self._loops is None:
            return
        from mibyan.dispatch.loops import Pending

        for child in tuple(step.nested or ()):
            if isinstance(child, Pending) and not child.thread.answers(LATE):
                log.warning("%s blocks the runtime's event loop; a new loop takes its place.", step.label)
                self._loops.retire(child.thread)

    def fork_locks(self) -> tuple[Any, ...]:
        """See `mibyan.forks`: a loop that is only being started would leave its descriptors to the child."""
        return (self._lock,) if self._loops is None else (self._lock, self._loops.lock)

    def after_fork(self) -> None:
        """In a child process: threads and loops are made anew when they are needed."""
        self._lock = threading.Lock()
        self._pool.after_fork()
        self._dedicated, self._stuck = {}, set()
        if self._loops is not None:
            self._loops.after_fork()

    def close(self) -> None:
        """End what is idle now, and the rest when its work is done; a stuck thread is left behind as a daemon."""
        with self._lock:
            self._closed = True
            pools = [self._pool, *self._dedicated.values()]
        for index, pool in enumerate(pools):
            pool.close(wait=0.1 if index else 0.5)
        if self._loops is not None:
            self._loops.close()
