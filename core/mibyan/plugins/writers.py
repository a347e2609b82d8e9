"""`Writer`: which process has written something, and whether it is gone: for what only a dead process leaves behind (plugins.L4).

A process id alone says nothing: it may be another process's by now, or one of another container. Where the kernel tells
(Linux) a process is known by its boot, its process-id namespace, its id and its start; a zombie is gone, a suspended
process isn't. Elsewhere, and for another container on the same kernel, a lock on what it writes tells: it ends with the
process. Of another machine's process (a home on a network) nothing is known.
"""
# os and text: this runs while plugins are imported.
# ruff: noqa: PTH115

from __future__ import annotations

import os
import sys
from functools import lru_cache

from mibyan.plugins.sources.files import read_bytes
from mibyan.records import record

#: No link is followed, and a pipe isn't waited for.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
#: States of a process that runs no more (proc_pid_stat(5)).
_ENDED = frozenset("ZXx")
_LIMIT = 4096


@record
class Writer:
    """A process."""

    pid: int
    #: Its start in clock ticks since the boot (field 22 of `/proc/PID/stat`); 0: that can't be told.
    started: int
    #: The boot's id; empty: that can't be told.
    boot: str
    #: The process-id namespace that `pid` is of.
    space: str
    #: The machine, or container, by name.
    machine: str

    def is_gone(self, path: str) -> bool | None:
        """Whether the process runs no more; `None`: that can't be told.

        Args:
            path: The file on which it holds a lock (`lock`) as long as it lives.
        """
        me = this_process()
        if self.boot != me.boot:
            # This machine has been started anew since then, or it is another one.
            return True if self.machine == me.machine else None
        if not self.boot and self.machine != me.machine:
            return None
        if self.pid != me.pid and self.started and me.started and self.space == me.space:
            gone = self._has_ended()
            if gone is not None:
                return gone
        # Also of this very process: a program that has replaced itself (exec) keeps its id and its start.
        return _is_unlocked(path)

    def _has_ended(self) -> bool | None:
        status = _status(self.pid)
        if status is not None:
            return status[1] != self.started or status[0] in _ENDED
        try:
            os.kill(self.pid, 0)  # asks only
        except ProcessLookupError:
            return True
        except OSError:
            pass
        return None  # it is there, and hidden


def this_process() -> Writer:
    """The process that asks."""
    return _of(os.getpid())


def lock(descriptor: int) -> bool:
    """Hold the lock of an open file until the process ends; whether that can be done here."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _is_unlocked(path: str) -> bool | None:
    """Whether nobody holds the lock; `None`: that can't be told."""
    try:
        import fcntl

        descriptor = os.open(path, _READ)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    else:
        return True
    finally:
        os.close(descriptor)


@lru_cache(maxsize=1)
def _of(pid: int) -> Writer:
    status = _status(pid) if _text("/proc/self/stat").startswith(f"{pid} ") else None
    boot = _text("/proc/sys/kernel/random/boot_id").strip()
    try:
        space = os.readlink("/proc/self/ns/pid")
    except (OSError, AttributeError):
        space = ""
    name = os.uname().nodename if hasattr(os, "uname") else sys.platform
    return Writer(pid, 0 if status is None else status[1], boot, space, f"{name} {_text('/etc/machine-id').strip()}")


def _status(pid: int) -> tuple[str, int] | None:
    """State and start of a process; `None` if there is none of that id, or none can be seen."""
    # Its name stands in brackets, and may have brackets and blanks in it.
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    try:
        return fields[0], int(fields[19])
    except (IndexError, ValueError):
        return None


def _text(path: str) -> str:
    try:
        return read_bytes(path, _LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""
