"""The runtime's own threads: for sync code that must be abandonable, and for sync code under an event loop.

They are daemons, and no pool's exit handler joins them: a tool that never returns holds neither the next call nor the
interpreter. There is no upper bound to wait at (a stuck tool would starve the next call); idle threads but one end by
themselves.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

#: What a thread does, never raising; what it gives is called when the thread is free for the next one.
Job: TypeAlias = "Callable[[], Callable[[], None] | None]"

#: Seconds after which a thread without work ends, if there is another one.
IDLE_SECONDS = 10.0


class _Worker:
    """One thread and the job it waits for."""

    __slots__ = ("_job", "_pool", "_ready", "thread")

    def __init__(self, pool: ThreadPool, job: Job, name: str) -> None:
        self._pool = pool
        self._job: Job | None = job
        #: Held while there is nothing to do.
        self._ready = threading.Lock()
        self._ready.acquire()
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def give(self, job: Job | None) -> None:
        """Hand over the next job; `None`: end."""
        self._job = job
        self._ready.release()

    def _run(self) -> None:
        while True:
            job = self._job
            if job is None:
                break
            self._job = None
            wake = job()
            # It rests before whoever waits goes on: the next job finds it idle.
            patience = self._pool.rest(self)
            if wake is not None:
                wake()
            del job, wake  # Nothing of a call stays alive in an idle thread.
            if patience is None:
                break
            if not self._ready.acquire(timeout=patience) and self._pool.leave(self):
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
        self._waiting: deque[Job] = deque()
        self._lock = threading.Lock()
        #: The worker that is asked first and stays however long nothing comes, if it is idle; the others that are.
        self._first: deque[_Worker] = deque()
        self._idle: deque[_Worker] = deque()
        self._workers: set[_Worker] = set()
        self._closed = False
        self._serial = 0
        self._started = 0

    def submit(self, job: Job) -> None:
        """Run `job` on a thread of the pool.

        Raises:
            RuntimeError: The pool is closed.
        """
        try:
            # One step each, here, in `rest` and in `leave`: who takes an idle worker off a list has it alone.
            self._first.pop().give(job)
        except IndexError:
            self._submit(job)

    def _submit(self, job: Job) -> None:
        """Run `job` on a new thread, or when one comes free."""
        with suppress(IndexError):
            self._idle.pop().give(job)
            return
        with self._lock:
            if self._closed:
                msg = "the runtime is closed"
                raise RuntimeError(msg)
            if self._most is not None and self._started >= self._most:
                with suppress(
                    IndexError
                ):  # Whoever takes one without the lock may be faster: it comes back for this one.
                    (self._first or self._idle).pop().give(job)
                    return
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

    def rest(self, worker: _Worker) -> float | None:
        """Take a worker that is done onto the idle list.

        Returns:
            Seconds after which it ends if nothing comes, -1 for ever; `None`: at once, the pool is closed.
        """
        if worker not in self._workers:
            return None
        # Setting a timer takes a third of a hand-over: the one that serves call after call does without.
        idle, patience = (self._idle, IDLE_SECONDS) if self._first else (self._first, -1.0)
        if self._most is None:
            idle.append(worker)
        else:
            with self._lock:
                if self._waiting and not self._closed:
                    worker.give(self._waiting.popleft())
                    return patience
                idle.append(worker)
        # Whoever closed the pool just now may not have seen it on the list.
        return None if self._closed and self._take(idle, worker) else patience

    def leave(self, worker: _Worker) -> bool:
        """Let an idle worker end; false when it was just given a job."""
        if self._take(self._idle, worker):
            return True
        worker._ready.acquire()
        return False

    def _take(self, idle: deque[_Worker], worker: _Worker) -> bool:
        try:
            idle.remove(worker)
        except ValueError:
            return False
        return True

    def drain(self) -> list[Job]:
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
        self._waiting, self._first, self._idle, self._workers = deque(), deque(), deque(), set()
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
        with self._lock:
            self._closed = True
            workers = list(self._workers)
        idle = []
        for workers_of in (self._first, self._idle):
            with suppress(IndexError):
                while True:
                    idle.append(workers_of.pop())
                    idle[-1].give(None)
        until = time.monotonic() + wait
        for worker in idle + [worker for worker in workers if worker not in idle]:
            if worker.thread is not threading.current_thread():
                with suppress(RuntimeError):  # It is only being started, by somebody else.
                    worker.thread.join(max(0.0, until - time.monotonic()))
