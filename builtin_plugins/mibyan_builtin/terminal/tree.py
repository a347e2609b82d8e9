"""The processes that a command has started, and ending all of them (terminal.E3).

They are found by their descent, by their session and group, and by a mark in their environment: also those that made a
session of their own or outlived their parent. (Only a process that did both and wiped its environment isn't found.)
"""

# ruff: noqa: PTH112, PTH123, PTH208 - descriptors and the system's own files, which pathlib has no words for

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

#: Processes by number and start: a number alone may be somebody else's by now.
Known: TypeAlias = set[tuple[int, int]]

#: The environment variable that marks a command's processes.
MARK = "MIBYAN_COMMAND_ID"
#: Seconds that processes have to end by themselves after SIGTERM. (One that catches it goes on meanwhile.)
GRACE = 0.5
#: Seconds after SIGKILL until processes that still are there are given up (they hang in the kernel).
PATIENCE = 2.0
#: Seconds between two looks.
TICK = 0.03


@dataclass(frozen=True, slots=True)
class Process:
    """One process, at one moment."""

    pid: int
    parent: int
    group: int
    session: int
    #: When it began, in the kernel's ticks; 0: that can't be told.
    started: int
    #: Whether it has ended and waits for its parent to take notice.
    zombie: bool


def end_tree(leader: int, mark: str, *, grace: float = GRACE) -> None:
    """End the process `leader` and everything it started.

    Args:
        leader: The command's process, which leads a session of its own. It must not have been waited for: until then
            nobody else can get its number.
        mark: The value of `MARK` in its environment.
        grace: Seconds between SIGTERM and SIGKILL.
    """
    # All are stopped before any is told to end: else a shell whose program has just ended goes on to the next one.
    known: Known = set()
    found = _freeze(leader, mark, known)
    send(found, signal.SIGTERM)
    send(found, signal.SIGCONT)
    until = time.monotonic() + grace
    while _members(leader, mark, known):
        if time.monotonic() > until:
            return _kill(leader, mark, known)
        time.sleep(TICK)
    return None


def _freeze(leader: int, mark: str, known: Known) -> set[int]:
    """Stop the processes, and those that they started meanwhile; who they are."""
    until = time.monotonic() + PATIENCE
    stopped: set[int] = set()
    while (fresh := _members(leader, mark, known) - stopped) and time.monotonic() < until:
        send(fresh, signal.SIGSTOP)
        stopped |= fresh
    return stopped


def _kill(leader: int, mark: str, known: Known) -> None:
    """SIGKILL until nobody is left."""
    until = time.monotonic() + PATIENCE
    while found := _freeze(leader, mark, known):
        send(found, signal.SIGKILL)
        if time.monotonic() > until:
            return
        time.sleep(TICK)


def group(leader: int) -> list[int]:
    """The processes of the group that `leader` leads, without itself."""
    return [each.pid for each in _processes() if each.group == leader and each.pid != leader]


def send(pids: Collection[int], number: int) -> None:
    """Send a signal to those that are still there."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _members(leader: int, mark: str, known: Known) -> set[int]:
    """The command's processes that are alive.

    Who is among `known` stays a member, and the others are added: while a process ends or becomes another program, its
    environment can't be seen, and its parent may be gone.
    """
    processes = list(_processes())
    wanted = f"{MARK}={mark}".encode()
    members = {each.pid for each in processes if leader in {each.pid, each.group, each.session}}
    members |= {each.pid for each in processes if (each.pid, each.started) in known}
    members |= {each.pid for each in processes if each.pid not in members and wanted in _environment(each.pid)}
    children: dict[int, list[int]] = {}
    for each in processes:
        children.setdefault(each.parent, []).append(each.pid)
    pending = list(members)
    while pending:
        fresh = [pid for pid in children.get(pending.pop(), []) if pid not in members]
        members.update(fresh)
        pending += fresh
    members -= {each.pid for each in processes if each.zombie} | {os.getpid()}
    known |= {(each.pid, each.started) for each in processes if each.pid in members and each.started}
    return members


def _processes() -> Iterator[Process]:
    """Every process that can be seen."""
    if os.path.isdir("/proc/self"):
        for name in os.listdir("/proc"):
            if name.isdecimal() and (process := _from_proc(int(name))):
                yield process
    else:
        yield from _from_ps()


def _from_proc(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            # The name is in brackets and may have brackets and blanks itself.
            told = stream.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if len(told) < 20:
        return None
    state, (parent, group, session) = told[0], map(int, told[1:4])
    return Process(pid, parent, group, session, int(told[19]), state in {b"Z", b"X"})


def _from_ps() -> Iterator[Process]:
    """As `ps` tells it, on systems without /proc; sessions aren't told there."""
    arguments = ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat="]
    told = subprocess.run(arguments, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    for line in told.stdout.splitlines():
        with suppress(ValueError):
            pid, parent, group, state = line.split(None, 3)
            yield Process(int(pid), int(parent), int(group), int(group), 0, state.startswith("Z"))


def _environment(pid: int) -> tuple[bytes, ...]:
    """The variables that a process was started with; nothing when they can't be seen."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            return tuple(stream.read().split(b"\0"))
    except OSError:
        return ()
