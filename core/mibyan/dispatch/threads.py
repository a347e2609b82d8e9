"""The runtime's own threads: for sync code that must be abandonable, and for sync code under an event loop.

They are daemons, and no pool's exit handler joins them: a tool that never returns holds neither the next call nor the
interpreter. There is no upper bound to wait at (a stuck tool would starve the next call); idle threads end by themselves.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds after which a thread without work ends.
IDLE_SECONDS = 10.0


class _Worker:
    """One thread and the job it waits for."""

    __slots__ = ("_job", "_pool", "_ready", "thread")

    def __init__(self, pool: ThreadPool, job: Callable[[], None], name: str) -> None:
        self._pool = pool
        self._job: Callable[[], None] | None = job
        self._ready = threading.Semaphore(0)
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def give(self, job: Callable[[], None] | None) -> None:
        """Hand over the next job; `None`: end."""
        self._job = job
        self._ready.release()

    def _run(self) -> None:
        while True:
            job = self._job
            if job is None:
                break
            self._job = None
            job()
            del job  # Nothing of a call stays alive in an idle thread.
            if not self._pool.rest(self):
                break
            if not self._ready.acquire(timeout=IDLE_SECONDS) and self._pool.leave(self):
                break
        self._pool.gone(self)


class ThreadPool:
    """Threads that are made on demand and used again.

    Args:
        name: What the threads are called.
        most: Threads at most, jobs beyond wait their turn; `None`: no bound.
    """

    def __init__(self, name: str = "mibyan", most: int | None = None) -> None:
        self._name = name
        self._most = most
        self._waiting: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._idle: deque[_Worker] = deque()
        self._workers: set[_Worker] = set()
        self._closed = False
        self._serial = 0
        self._started = 0

    def submit(self, job: Callable[[], None]) -> None:
        """Run `job` (it may not raise) on a thread of the pool.

        Raises:
            RuntimeError: The pool is closed.
        """
        with self._lock:
            if self._closed:
                msg = "the runtime is closed"
                raise RuntimeError(msg)
            if self._idle:
                self._idle.pop().give(job)
                return
            if self._most is not None and self._started >= self._most:
                self._waiting.append(job)
                return
            self._started += 1
            self._serial += 1
            worker = _Worker(self, job, f"{self._name}-{self._serial}")
            self._workers.add(worker)
        try:
            worker.thread.start()
        except BaseException:  # The system gives no more threads.
            self.gone(worker)
            raise

    def rest(self, worker: _Worker) -> bool:
        """Take a worker that is done onto the idle list; false when the pool is closed."""
        with self._lock:
            if self._closed or worker not in self._workers:
                return False
            if self._waiting:
                worker.give(self._waiting.popleft())
            else:
                self._idle.append(worker)
            return True

    def leave(self, worker: _Worker) -> bool:
        """Let an idle worker end; false when it was just given a job."""
        with self._lock:
            if worker in self._idle:
                self._idle.remove(worker)
                return True
        worker._ready.acquire()
        return False

    def drain(self) -> list[Callable[[], None]]:
        """Take the jobs that still wait for their turn."""
        with self._lock:
            jobs = list(self._waiting)
            self._waiting.clear()
        return jobs

    def gone(self, worker: _Worker) -> None:
        """Forget a worker that ended."""
        with self._lock:
            self._started -= worker in self._workers
            self._workers.discard(worker)

    def after_fork(self) -> None:
        """In a child process: the threads, and the jobs that wait for them, are the parent's."""
        self._lock = threading.Lock()
        self._waiting, self._idle, self._workers = deque(), deque(), set()
        self._started = 0

    @property
    def is_mine(self) -> bool:
        """Whether this is one of its threads."""
        here = threading.current_thread()
        with self._lock:
            return any(worker.thread is here for worker in self._workers)

    @property
    def size(self) -> int:
        """Threads alive: idle, working and stuck ones."""
        with self._lock:
            return sum(worker.thread.is_alive() for worker in self._workers)

    def close(self, wait: float = 0.5) -> None:
        """End the idle threads now and the others when their work is done; wait for them up to `wait` seconds."""
        import time

        with self._lock:
            self._closed = True
            idle, self._idle = list(self._idle), deque()
            workers = list(self._workers)
        for worker in idle:
            worker.give(None)
        until = time.monotonic() + wait
        for worker in idle + [worker for worker in workers if worker not in idle]:
            if worker.thread is not threading.current_thread():
                with suppress(RuntimeError):  # It is only being started, by somebody else.
                    worker.thread.join(max(0.0, until - time.monotonic()))
