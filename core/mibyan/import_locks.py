"""Imports in a process that forks: what another thread imports just then is imported anew in the child.

Python leaves three things behind. The lock of a module that another thread imports stays locked in the child, and whoever
imports that module there waits for ever; the module itself stays half made; and a library that takes a lock over each
fork, and is imported by another thread while one is being prepared, releases a lock afterwards that it never took.
"""

from __future__ import annotations

import _frozen_importlib
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module
from typing import Any
from weakref import WeakSet

#: What takes a lock over each fork once it is imported, which happens when an event loop first needs a thread. (Of the
#: standard library `logging` does that too; Mibyan imports it before it has anything to do with forks.)
_EXECUTORS = "concurrent.futures.thread"
#: Seconds between two looks whether somebody's import is through.
_LOOK = 0.001
#: Seconds for which nobody holds the executors' lock but who forks.
_SHORT = 0.1


class ImportsOfOthers:
    """What threads other than the forking one are importing; made when forks begin to be prepared."""

    def __init__(self) -> None:
        #: Imports that lasted longer than a fork waits: they are waited for once.
        self._lasting: WeakSet[Any] = WeakSet()
        #: The parent's main thread.
        self._main: int | None = None
        #: Whether executors had no part in forks when this one began. If they are there already, their turn comes after
        #: this one's in each fork's preparation.
        self._absent = _EXECUTORS not in sys.modules

    def begin(self) -> bool:
        """First of all when a process forks: whether executors may have no part in this fork."""
        self._absent = self._absent and (_EXECUTORS not in sys.modules or _is_half(_EXECUTORS))
        return self._absent

    def wait(self, until: float, *, absent: bool) -> None:
        """Before the fork: let the others' imports come to their end.

        Args:
            until: How long at most, a moment of `time.monotonic()`.
            absent: What `begin` gave.
        """
        self._main = threading.main_thread().ident
        if absent and threading.active_count() > 1:
            _take_part()
        while left := [lock for lock in _of_others() if lock not in self._lasting]:
            if time.monotonic() >= until:
                self._lasting.update(left)
                return
            time.sleep(_LOOK)

    def forget(self) -> None:
        """In the child: let go of what is half imported, and of the locks of threads that aren't there."""
        here = threading.get_ident()
        for lock in _of_others():
            if lock.owner == self._main and lock in self._lasting:
                _take_as_it_is(lock.name)
            else:
                _forget(lock.name)
        for name, lock in _locks().items():
            if lock.owner != here:  # also one that somebody was about to take
                _module_locks().pop(name, None)
        known = getattr(_frozen_importlib, "_blocking_on", {})
        waiting: dict[int, Any] = getattr(known, "data", known)  # from 3.12 on weak references, in a mapping of its own
        for thread in [thread for thread in waiting if thread != here]:  # a new thread may get a former one's number
            waiting.pop(thread, None)


def _take_part() -> None:
    """Import what another thread may import any moment, and take the lock that it releases after the fork."""
    with suppress(Exception):
        # It can't be had only where it has a part in this fork after all, and is this thread's.
        import_module(_EXECUTORS)._global_shutdown_lock.acquire(timeout=_SHORT)


def _module_locks() -> dict[str, Any]:
    """Python's own weak references to the locks of the modules that are being imported, by name."""
    return getattr(_frozen_importlib, "_module_locks", {})


def _locks() -> dict[str, Any]:
    return {name: lock for name, known in _module_locks().copy().items() if (lock := known()) is not None}


def _of_others() -> list[Any]:
    """The locks that other threads hold."""
    here = threading.get_ident()
    return [lock for lock in _locks().values() if getattr(lock, "owner", None) not in (None, here)]


def _is_half(name: str) -> bool:
    """Whether a module's code is still running for the first time, as the import system itself tells it."""
    return getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False) is True


def _take_as_it_is(name: str) -> None:
    """A program may run as the import of a module, by its main thread: it isn't to run a second time in the child."""
    if _is_half(name):
        vars(vars(sys.modules[name])["__spec__"])["_initializing"] = False


def _forget(name: str) -> None:
    """Let a module that another thread was importing be imported anew; if only its place was left to do, do that."""
    if _is_half(name):
        del sys.modules[name]
        return
    package, _, last = name.rpartition(".")
    if name in sys.modules and package in sys.modules:
        vars(sys.modules[package]).setdefault(last, sys.modules[name])
