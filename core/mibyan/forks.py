"""A fork in the middle: what has threads, loops and locks of its own is made anew in the child process.

Of a process that forks only the forking thread goes on in the child. A lock that another thread held stays locked there
for ever, and what that thread was changing stays half changed. So a fork waits a moment for the locks that guard changes
of several steps, and for what others import, and the child gets fresh locks. Nothing is registered until something that
must survive is made.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Protocol

from mibyan.import_locks import ImportsOfOthers

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Seconds for which a fork waits until others have finished what they are changing.
PATIENCE = 2.0


class Survivor(Protocol):
    """Something that goes on in a child process."""

    def fork_locks(self) -> Iterable[Any]:
        """The locks without which what they guard could be half changed; none of them is held for long."""

    def after_fork(self) -> None:
        """In the child: have fresh locks, and forget the threads that aren't there."""


class _Forks:
    """Who survives, and the locks that are held while a process forks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._survivors: list[weakref.ref[Survivor]] = []
        self._held: list[Any] = []
        #: `None`: nothing is registered yet.
        self._imports: ImportsOfOthers | None = None
        #: The thread that has prepared a fork; one that had begun before anything was registered wasn't.
        self._forking: int | None = None

    def add(self, survivor: Survivor) -> None:
        """Let `survivor`, as long as it lives, survive forks."""
        with self._lock:
            self._survivors = [known for known in self._survivors if known() is not None]
            self._survivors.append(weakref.ref(survivor))
            if self._imports is None and hasattr(os, "register_at_fork"):
                self._imports = ImportsOfOthers()
                os.register_at_fork(before=self._before, after_in_parent=self._release, after_in_child=self._in_child)

    def _before(self) -> None:
        assert self._imports is not None  # noqa: S101 - it is made before this is registered
        absent, until = self._imports.begin(), time.monotonic() + PATIENCE
        self._imports.wait(until, absent=absent)
        self._lock.acquire()
        self._forking = threading.get_ident()
        for survivor in self._living():
            for lock in survivor.fork_locks():
                if lock.acquire(timeout=max(0.0, until - time.monotonic())):
                    self._held.append(lock)

    def _release(self) -> None:
        if self._forking == threading.get_ident():
            self._forking = None
            while self._held:
                self._held.pop().release()
            self._lock.release()

    def _in_child(self) -> None:
        self._release()
        # Where this fork wasn't prepared, another thread may have been at it.
        self._lock, self._held, self._forking = threading.Lock(), [], None
        if self._imports is not None:
            self._imports.forget()
        for survivor in self._living():
            survivor.after_fork()

    def _living(self) -> list[Survivor]:
        return [survivor for known in self._survivors if (survivor := known()) is not None]


_FORKS = _Forks()


def survive(survivor: Survivor) -> None:
    """Let `survivor`, as long as it lives, go on in child processes."""
    _FORKS.add(survivor)


def renewed(lock: Any) -> Any:
    """A reentrant lock for the child: the same where the forking thread has it, else a fresh one."""
    return lock if lock._is_owned() else threading.RLock()
