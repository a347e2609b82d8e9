"""Running one command on this machine, in the foreground, to its end or its deadline."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from mibyan import ToolError
from mibyan_builtin.terminal import leaving
from mibyan_builtin.terminal.output import Output
from mibyan_builtin.terminal.tree import GRACE, MARK, PATIENCE, end_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

#: Seconds that a process which outlives the command has to write what is on its way.
DRAIN = 0.2
#: Seconds between two looks whether the command has ended or is to end.
TICK = 0.05
#: Bytes read at once.
CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class Command:
    """A command and what it runs with."""

    text: str
    directory: Path
    environment: Mapping[str, str]
    stdin: bytes | None
    #: Seconds.
    timeout: float
    #: Characters of output that are kept.
    limit: int
    #: Whether the call is over.
    cancelled: Callable[[], bool]


@dataclass(slots=True)
class Outcome:
    """How it went."""

    output: Output
    #: `exit`, `timeout` or `cancelled`.
    ended_by: str = "exit"
    #: 128 + n after signal n.
    exit_code: int = 0
    #: Seconds.
    duration: float = 0.0


def shell() -> list[str]:
    """The shell that commands run in, and what it is told: bash, else sh."""
    bash = shutil.which("bash")
    # Debian's bash reads ~/.bashrc for a command too, when it thinks that it was started over ssh.
    return [bash, "--norc", "-c"] if bash else [shutil.which("sh") or "/bin/sh", "-c"]


def run(command: Command) -> Outcome:
    """Run a command; however this ends, none of its processes that must end is left.

    Raises:
        ToolError: It couldn't be started.
    """
    mark = os.urandom(16).hex()
    with leaving.counted(mark):
        return _run(command, mark)


def _run(command: Command, mark: str) -> Outcome:
    started = time.monotonic()
    process = _start(command, mark)
    running = _Running(command, process, Outcome(Output(command.limit)), started)
    try:
        running.follow()
        if running.outcome.ended_by != "exit":
            _end(process, mark)
        running.drain()
    except BaseException:
        if process.returncode is None:
            _end(process, mark, grace=0)
        raise
    finally:
        running.close()
    return running.finish()


def _end(process: subprocess.Popen[bytes], mark: str, *, grace: float = GRACE) -> None:
    """End the command's processes; one that this user may not end (sudo's) isn't waited for."""
    end_tree(process.pid, mark, grace=grace)
    with suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE)


def _start(command: Command, mark: str) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            [*shell(), command.text],
            cwd=command.directory,
            env={**command.environment, MARK: mark, "PWD": str(command.directory)},
            stdin=subprocess.DEVNULL if command.stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ToolError(f"The command can't be started in {command.directory}: {reason}") from None


@dataclass(slots=True)
class _Running:
    """A command on its way: its output is taken and its input given as it can take it."""

    command: Command
    process: subprocess.Popen[bytes]
    outcome: Outcome
    started: float
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    #: What is left of the input.
    rest: memoryview = field(default_factory=lambda: memoryview(b""))

    def __post_init__(self) -> None:
        self._watch(self.process.stdout, selectors.EVENT_READ)
        if self.command.stdin is not None:
            self.rest = memoryview(self.command.stdin)
            self._watch(self.process.stdin, selectors.EVENT_WRITE)
        with suppress(AttributeError, OSError):  # Linux only; elsewhere the end is seen at the next tick
            self.selector.register(os.pidfd_open(self.process.pid), selectors.EVENT_READ)

    def follow(self) -> None:
        """Take output until the command has ended, its time is up or the call is over."""
        deadline = self.started + self.command.timeout
        while self.process.poll() is None:
            left = deadline - time.monotonic()
            if left <= 0 or self.command.cancelled() or leaving.begun():
                self.outcome.ended_by = "timeout" if left <= 0 else "cancelled"
                return
            self._serve(min(left, TICK))

    def drain(self) -> None:
        """Take what is still on its way; a process that goes on holding the pipe isn't waited for."""
        until = time.monotonic() + DRAIN
        while self._is_open() and (left := until - time.monotonic()) > 0:
            self._serve(min(left, TICK))
            if self.process.stdin in self._streams():
                self._drop(self.process.stdin)

    def finish(self) -> Outcome:
        """How it went."""
        code = self.process.returncode if self.process.returncode is not None else -signal.SIGKILL
        self.outcome.exit_code = 128 - code if code < 0 else code
        self.outcome.duration = time.monotonic() - self.started
        self.outcome.output.close()
        return self.outcome

    def close(self) -> None:
        """Close every descriptor."""
        for key in list(self.selector.get_map().values()):
            self._drop(key.fileobj)
        self.selector.close()

    def _watch(self, stream: IO[bytes] | None, events: int) -> None:
        if stream is not None:
            os.set_blocking(stream.fileno(), False)
            self.selector.register(stream, events)

    def _streams(self) -> list[object]:
        return [key.fileobj for key in self.selector.get_map().values()]

    def _is_open(self) -> bool:
        return self.process.stdout in self._streams()

    def _serve(self, wait: float) -> None:
        for key, _ in self.selector.select(wait):
            if key.fileobj is self.process.stdout:
                self._read(self.process.stdout)
            elif key.fileobj is self.process.stdin:
                self._write(self.process.stdin)
            else:
                self._drop(key.fileobj)  # the process has ended, which `poll` will say

    def _read(self, stream: IO[bytes] | None) -> None:
        data = stream.read(CHUNK) if stream else b""
        if data:
            self.outcome.output.write(data)
        elif data is not None:
            self._drop(stream)

    def _write(self, stream: IO[bytes] | None) -> None:
        try:
            written = stream.write(self.rest[:CHUNK]) if stream else 0
        except OSError:  # the command doesn't read any more
            self.rest = memoryview(b"")
        else:
            self.rest = self.rest[written or 0 :]
        if not self.rest:
            self._drop(stream)

    def _drop(self, source: object) -> None:
        """Stop watching something, and close it."""
        with suppress(KeyError, ValueError):
            self.selector.unregister(source)  # type: ignore[arg-type]
        if isinstance(source, int):
            os.close(source)
        elif source is not None:
            with suppress(OSError):
                source.close()  # type: ignore[attr-defined]
