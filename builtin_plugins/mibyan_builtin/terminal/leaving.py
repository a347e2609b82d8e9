"""When this process ends, its commands end first (terminal.E3).

A call that was cancelled is answered at once, while the thread that runs its command still gives the command's processes
the time to end. If the process ended meanwhile, that thread would be gone, and those that don't heed SIGTERM would stay.
Python runs what is registered with `atexit` while such threads still run, so that is where they are waited for.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mibyan_builtin.terminal.tree import GRACE, PATIENCE, TICK

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The commands that run in this process, whichever runtime they belong to, with its number: a fork has none of them.
_running: set[tuple[int, str]] = set()
# Each change of it is one step, so there is no lock: one that another thread held would stay held in a child process.
_begun = threading.Event()
_registered = False


@contextmanager
def counted(mark: str) -> Iterator[None]:
    """While this lasts a command runs, or is being ended.

    Args:
        mark: What tells it from others.
    """
    global _registered  # noqa: PLW0603 - as `atexit` is the process's
    import atexit

    entry = os.getpid(), mark
    _running.add(entry)
    if not _registered:  # A second time would do no harm.
        atexit.register(leave)
        _registered = True
    try:
        yield
    finally:
        _running.discard(entry)


def begun() -> bool:
    """Whether this process is ending, so that commands are to end."""
    return _begun.is_set()


def leave() -> None:
    """Let every command be ended, and wait for that; not for ever (they may hang in the kernel)."""
    _begun.set()
    until = time.monotonic() + GRACE + 2 * PATIENCE
    while _any_left() and time.monotonic() < until:
        time.sleep(TICK)


def _any_left() -> bool:
    return any(process == os.getpid() for process, _ in tuple(_running))
