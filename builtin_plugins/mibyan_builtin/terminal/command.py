"""`LocalProcess`: a command that was started on this machine."""

from __future__ import annotations

import os
import selectors
import shutil
import struct
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mibyan.environments import BackendError, CommandProcess
from mibyan_builtin.terminal.shellstate import read_report
from mibyan_builtin.terminal.tree import GRACE, MARK, PATIENCE, end_tree, group, send

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mibyan_builtin.terminal.shellstate import Report

#: Bytes read at once.
CHUNK = 65_536
#: Rows and columns of a terminal that nobody has told its size.
SIZE = 24, 80
#: Ctrl-D: the end of the input, at the beginning of a line. Each is for one reader: after these seconds the next comes.
_EOF = b"\x04"
_EOF_AGAIN = 0.25
#: Opening its own terminal makes it the session's; the shell of a command mustn't do that in a sandbox.
_TAKE_TERMINAL = 'exec 0<>"$0" 1>&0 2>&0; exec "$@"'


@dataclass(frozen=True, slots=True)
class Start:
    """What a command is started with."""

    arguments: Sequence[str]
    directory: str
    environment: Mapping[str, str]
    stdin: bytes | None = None
    keep_stdin: bool = False
    pty: bool = False
    #: Whether its first process only watches over it, and dies of signals that are the command's.
    watched: bool = False
    #: The descriptors that it inherits.
    pass_fds: tuple[int, ...] = ()


def shell() -> tuple[list[str], bool]:
    """The shell that commands run in with what it is told, and whether it is bash: else it is sh."""
    bash = shutil.which("bash")
    # Debian's bash reads ~/.bashrc for a command too, when it thinks that it was started over ssh.
    return ([bash, "--norc", "-c"], True) if bash else ([shutil.which("sh") or "/bin/sh", "-c"], False)


def _start(start: Start, mark: str, streams: dict[str, Any]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            start.arguments,
            cwd=start.directory,
            env={**start.environment, MARK: mark, "PWD": start.directory},
            start_new_session=True,
            pass_fds=start.pass_fds,
            **streams,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BackendError(f"The command can't be started in {start.directory}: {reason}") from None


class LocalProcess(CommandProcess):
    """A started command; its output and its input are served by whoever reads.

    Args:
        start: What it is started with.
        report: The descriptor on which its shell reports; it is closed here.
        ended: Gets the report, once the command has ended and this is closed.

    Raises:
        BackendError: It couldn't be started.
    """

    def __init__(self, start: Start, report: int | None = None, ended: Callable[[Report], None] | None = None) -> None:
        self.id = self._mark = os.urandom(16).hex()
        self.directory = start.directory
        self._report_fd, self._ended, self._said = report, ended, bytearray()
        self._report: Report | None = None
        self._lock = threading.RLock()
        self._pending = bytearray(start.stdin or b"")
        self._pty, self._watched = start.pty, start.watched
        self._killing = self._closed = False
        self._finishing = not start.keep_stdin
        self._eof_due = 0.0
        self._selector = selectors.DefaultSelector()
        try:
            self._process = self._started(start)
        except BaseException:
            self._selector.close()
            raise
        self.pid = self._process.pid
        self._watch_all()

    # Starting ----------------------------------------------------------------------------------------------------

    def _started(self, start: Start) -> subprocess.Popen[bytes]:
        self._in, self._out, child_in, child_out = _terminal() if start.pty else _pipes(start)
        if start.pty:
            words = ["/bin/sh", "-c", _TAKE_TERMINAL, os.ttyname(child_out), *start.arguments]
            known = {"TERM": "xterm-256color"} if start.environment.get("TERM", "dumb") == "dumb" else {}
            start = Start(words, start.directory, {**start.environment, **known}, pass_fds=start.pass_fds)
            self._end_line()
        streams = {"stdin": child_in, "stdout": child_out, "stderr": child_out}
        try:
            return _start(start, self._mark, streams)
        except BaseException:
            for fd in {self._in, self._out} - {-1}:
                os.close(fd)
            raise
        finally:
            for fd in {child_in, child_out} - {subprocess.DEVNULL}:
                os.close(fd)

    def _end_line(self) -> None:
        """On a terminal the end of the input is a sign in it."""
        if self._finishing:
            self._eof_due = time.monotonic() + _EOF_AGAIN
            self._pending += _EOF if bytes(self._pending[-1:]) in {b"", b"\n"} else _EOF * 2

    def _watch_all(self) -> None:
        for fd in {self._in, self._out} - {-1}:
            os.set_blocking(fd, False)
        self._selector.register(self._out, selectors.EVENT_READ, "output")
        if self._report_fd is not None:
            os.set_blocking(self._report_fd, False)
        with suppress(AttributeError, OSError):  # Linux only; elsewhere the end is seen at the next look
            self._selector.register(os.pidfd_open(self._process.pid), selectors.EVENT_READ, "end")
        self._pump()

    # What its environment asks -----------------------------------------------------------------------------------

    def poll(self) -> int | None:
        """See `CommandProcess`."""
        with self._lock:
            # Whoever ends its processes needs its number, which is nobody else's until it is waited for.
            code = self._process.returncode if self._killing else self._process.poll()
        return None if code is None else 128 - code if code < 0 else code

    def read(self, timeout: float = 0.0) -> bytes | None:
        """See `CommandProcess`."""
        if self._closed or (self._out < 0 and self.poll() is not None):
            return None
        self._watch_input()
        data: bytes | None = b""
        found = self._selector.select(max(timeout, 0.0))
        if not found:
            self._listen()
        for key, _ in found:
            match key.data:
                case "output":
                    data = self._taken()
                case "input":
                    self._pump()
                case _:
                    self._drop(key.fd)
        return None if self._out < 0 and not data else data or b""

    def write(self, data: bytes) -> None:
        """See `CommandProcess`."""
        with self._lock:
            if self._finishing or self._in < 0:
                raise BackendError("The command's input is closed")
            self._pending += data
        self._pump()

    def close_stdin(self) -> None:
        """See `CommandProcess`."""
        with self._lock:
            if not self._finishing:
                self._finishing = True
                if self._pty:
                    self._end_line()
        self._pump()

    def resize(self, rows: int, columns: int) -> None:
        """See `CommandProcess`."""
        if self._pty and self._out >= 0:
            _set_size(self._out, rows, columns)

    def signal(self, number: int) -> None:
        """See `CommandProcess`."""
        with self._lock, suppress(ProcessLookupError, PermissionError):
            if self._process.poll() is not None:
                return
            if self._watched:
                send(group(self._process.pid), number)
            else:
                os.killpg(self._process.pid, number)

    def kill(self, grace: float = GRACE) -> None:
        """See `CommandProcess`; a process that this user may not end (sudo's) isn't waited for."""
        with self._lock:
            ended, self._killing = self._process.poll() is not None, True
        try:
            # Once it was waited for its number may be another's: those it left are found by their mark.
            end_tree(-1 if ended else self._process.pid, self._mark, grace=grace)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE)
        finally:
            self._killing = False

    @property
    def cwd(self) -> str | None:
        """See `CommandProcess`."""
        return None if self._report is None else self._report.cwd

    def close(self) -> None:
        """See `CommandProcess`."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._listen()
            if self._report_fd is not None:  # a process that goes on has it too
                self._drop(self._report_fd)
                self._report_fd = None
            self._in = -1 if self._in == self._out else self._in
            for key in list(self._selector.get_map().values()):
                self._drop(key.fd)
            if self._in >= 0:
                self._drop(self._in)
            self._in = self._out = -1
            self._selector.close()
        self._report = read_report(bytes(self._said))
        if self._report is not None and self._ended is not None:
            self._ended(self._report)

    # Streams -----------------------------------------------------------------------------------------------------

    def _taken(self) -> bytes | None:
        try:
            data = os.read(self._out, CHUNK)
        except BlockingIOError:
            return b""
        except OSError:  # a terminal that nobody holds any more
            data = b""
        if not data:
            with self._lock:
                fd, self._out = self._out, -1
                if self._in == fd:
                    self._in = -1
                self._drop(fd)
        return data

    def _listen(self) -> None:
        """Take what the shell reports; it comes in many small pieces, so nobody is woken for each."""
        fd = self._report_fd
        with suppress(OSError):
            while fd is not None and (data := os.read(fd, CHUNK)):
                self._said += data
            if fd is not None:
                self._report_fd = None
                self._drop(fd)

    def _watch_input(self) -> None:
        """Wait for room in the input as long as there is something to give."""
        with self._lock:
            if self._in < 0:
                return
            if self._in == self._out:
                if self._finishing and not self._pending and time.monotonic() > self._eof_due:
                    self._end_line()
                more = selectors.EVENT_WRITE if self._pending else 0
                self._selector.modify(self._in, selectors.EVENT_READ | more, "output")
                if self._pending:
                    self._pump()
            elif self._in not in self._selector.get_map() and self._pending:
                self._selector.register(self._in, selectors.EVENT_WRITE, "input")

    def _pump(self) -> None:
        """Give as much input as is taken now; then, if that was all, end it."""
        with self._lock:
            while self._in >= 0 and self._pending:
                try:
                    written = os.write(self._in, memoryview(bytes(self._pending[:CHUNK])))
                except BlockingIOError:
                    return
                except OSError:  # the command doesn't read any more
                    self._pending.clear()
                    self._finishing = True
                else:
                    del self._pending[:written]
            if self._in >= 0 and self._in != self._out:
                if self._finishing:
                    fd, self._in = self._in, -1
                    self._drop(fd)
                else:
                    with suppress(KeyError, ValueError):
                        self._selector.unregister(self._in)

    def _drop(self, fd: int) -> None:
        """Stop watching a descriptor, and close it."""
        with suppress(KeyError, ValueError):
            self._selector.unregister(fd)
        with suppress(OSError):
            os.close(fd)


def _pipes(start: Start) -> tuple[int, int, int, int]:
    """Where input goes and output comes from here, and the command's ends of both; -1: there is no input."""
    out, child_out = os.pipe()
    if start.stdin is None and not start.keep_stdin:
        return -1, out, subprocess.DEVNULL, child_out
    child_in, into = os.pipe()
    return into, out, child_in, child_out


def _terminal() -> tuple[int, int, int, int]:
    master, slave = os.openpty()
    _set_size(master, *SIZE)
    return master, master, slave, slave


def _set_size(fd: int, rows: int, columns: int) -> None:
    import fcntl
    import termios

    with suppress(OSError):
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
