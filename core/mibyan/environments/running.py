"""Running a started command to its end, its deadline or its cancellation: the same for every backend (terminal.E3, E4)."""

from __future__ import annotations

import signal
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from mibyan.environments.records import CommandResult
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.environments.process import CommandProcess
    from mibyan.environments.records import EndedBy

#: Bytes of output that are kept where nothing else is said, and the share of its beginning.
KEPT: Final = 16 * 1024 * 1024
HEAD: Final = 0.4
#: Seconds between two looks whether the command is to end.
TICK: Final = 0.05
#: Seconds that a process which outlives the command has to write what is on its way.
DRAIN: Final = 0.2


@record(eq=False)
class Run:
    """How long a command may run, and where its output goes; see `Environment.run`."""

    timeout: float | None = None
    cancelled: Callable[[], bool] | None = None
    on_output: Callable[[bytes], None] | None = None
    keep: int = KEPT


class HeadAndTail:
    """The beginning and the end of bytes that come in pieces.

    Args:
        most: Bytes that are kept.
    """

    def __init__(self, most: int) -> None:
        self._head_room = int(most * HEAD)
        self._tail_room = most - self._head_room
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._size = 0

    def write(self, data: bytes) -> None:
        """Take a piece."""
        self._size += len(data)
        if self._head_room:
            self._head.append(data[: self._head_room])
            data = data[self._head_room :]
            self._head_room -= len(self._head[-1])
        if data:
            self._tail.append(data)
            self._tail_size += len(data)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_room:
            self._tail_size -= len(self._tail.popleft())

    def kept(self) -> tuple[bytes, int]:
        """What was kept, and how many bytes were left out between its two parts."""
        head, tail = b"".join(self._head), b"".join(self._tail)
        tail = tail[max(len(tail) - self._tail_room, 0) :]
        return head + tail, self._size - len(head) - len(tail)


def run_to_end(start: Callable[[], CommandProcess], limits: Run) -> CommandResult:
    """Start a command and see it through; however that ends, none of its processes that must end is left.

    Args:
        start: Starts it.
        limits: How long it may run, and where its output goes.
    """
    kept = HeadAndTail(limits.keep)
    take = limits.on_output or kept.write
    started = time.monotonic()
    process = start()
    try:
        ended_by = _follow(process, limits, take, started)
        if ended_by != "exit":
            process.kill()
        _drain(process, take)
    except BaseException:
        if process.poll() is None:
            process.kill(grace=0)
        raise
    finally:
        process.close()
    code = process.poll()
    output, omitted = kept.kept()
    return CommandResult(
        128 + signal.SIGKILL if code is None else code, output, ended_by, time.monotonic() - started,
        process.cwd or process.directory, omitted, process.note,
    )  # fmt: skip


def _follow(process: CommandProcess, limits: Run, take: Callable[[bytes], None], started: float) -> EndedBy:
    """Take output until the command has ended, its time is up or nobody waits for it."""
    deadline = float("inf") if limits.timeout is None else started + limits.timeout
    while process.poll() is None:
        left = deadline - time.monotonic()
        if left <= 0:
            return "timeout"
        if limits.cancelled is not None and limits.cancelled():
            return "cancelled"
        data = process.read(min(left, TICK))
        if data:
            take(data)
    return "exit"


def _drain(process: CommandProcess, take: Callable[[bytes], None]) -> None:
    """Take what is still on its way; a process that goes on holding the output isn't waited for."""
    until = time.monotonic() + DRAIN
    while (left := until - time.monotonic()) > 0:
        data = process.read(min(left, TICK))
        if data is None:
            return
        if data:
            take(data)
