"""`LocalEnvironment`: the terminal backend `local`, commands on this machine."""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakSet

from mibyan.environments import BackendError, Environment
from mibyan_builtin.terminal import leaving
from mibyan_builtin.terminal.command import LocalProcess, Start, shell
from mibyan_builtin.terminal.copying import copy
from mibyan_builtin.terminal.directories import located, working_directory
from mibyan_builtin.terminal.environment import command_environment, is_withheld
from mibyan_builtin.terminal.sandbox import Sandbox, sandbox
from mibyan_builtin.terminal.shellstate import COMMAND, Given, ShellState, script

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    from mibyan.environments import CommandResult, EnvironmentContext
    from mibyan_builtin.terminal.shellstate import Report

#: Descriptors from here on are the shell's own: commands use small ones.
_OWN_DESCRIPTORS = 200
#: Bytes that the report of a shell may have before it has to wait for its reader.
_REPORT_SIZE = 1 << 20


class LocalEnvironment(Environment):
    """Commands on this machine, by its user; see `Environment`.

    Secrets of the host's environment don't reach them. Without a sandbox nothing keeps a command from looking at the host's
    own `/proc`.
    """

    name = "local"

    def __init__(self, context: EnvironmentContext) -> None:
        super().__init__(context)
        settings = context.settings
        self._passthrough = frozenset(settings.env_passthrough) if settings else frozenset()
        self._start = context.cwd or _configured(settings.cwd if settings else None)
        self._state = ShellState()
        self._processes: WeakSet[LocalProcess] = WeakSet()
        self._lock = threading.Lock()
        self._closed = False
        kind, network = (settings.sandbox, settings.sandbox_network) if settings else ("none", False)
        self._sandbox: Sandbox | None = sandbox(kind, self.cwd, network=network)
        self._watched = self._sandbox is not None and self._sandbox.watches

    @property
    def cwd(self) -> str:
        """See `Environment`."""
        found = self._state.cwd or self._start
        if found is not None:
            return found
        try:
            return os.getcwd()  # noqa: PTH109 - resolved at each command, as the process moves
        except FileNotFoundError:
            hint = "Give one with workdir."
            raise BackendError("The working directory doesn't exist any more", hint=hint) from None

    def set_cwd(self, path: str) -> None:
        """See `Environment`; in a sandbox commands may then write there too."""
        self._state.cwd = None
        self._start = path
        if self._sandbox is not None:
            self._sandbox.allow(path)

    def run(
        self, command: str, cwd: str | None = None, timeout: float | None = None, stdin: bytes | None = None,
        env: Mapping[str, str] | None = None, pty: bool = False,  # noqa: FBT001, FBT002 - the contract's
        *, cancelled: Callable[[], bool] | None = None, **options: Any,
    ) -> CommandResult:  # fmt: skip
        """See `Environment`; also when this process is about to end, the command is ended first."""

        def is_over() -> bool:
            return leaving.begun() or (cancelled is not None and cancelled())

        with leaving.counted(os.urandom(16).hex()):
            return super().run(command, cwd, timeout, stdin, env, pty, cancelled=is_over, **options)

    def spawn(
        self, command: str, *, cwd: str | None = None, stdin: bytes | None = None, keep_stdin: bool = False,
        env: Mapping[str, str] | None = None, pty: bool = False, persist: bool = False,
    ) -> LocalProcess:  # fmt: skip
        """See `Environment`."""
        directory, note = working_directory(cwd, self.cwd if cwd is None or not os.path.isabs(cwd) else "/")  # noqa: PTH117
        base = command_environment(os.environ, secrets=self.context.secret_names(), passthrough=self._passthrough)
        environment = {**self._state.environment(base), **(env or {})}
        given = Given(directory, environment, self._state.functions, cwd is not None)
        functions, (report, told) = _kept(given.functions), _report_pipe() if persist else (None, None)
        try:
            words = self._words(command, directory, told, functions)
            inherited = tuple(fd for fd in (told, functions) if fd is not None)
            start = Start(words, directory, environment, stdin, keep_stdin, pty, self._watched, inherited)
            process = self._started(start, report, lambda said: self._keep(given, said))
        except BaseException:
            _close(report)
            raise
        finally:
            _close(told, functions)
        process.note = note
        return process

    def _words(self, command: str, directory: str, told: int | None, functions: int | None) -> list[str]:
        """The words that run a command."""
        words, bash = shell()
        if told is not None:
            words += [script(told, functions, bash=bash), words[0], command]
        elif functions is not None:
            words += [
                f'. /dev/fd/{functions}; exec {functions}<&-; {COMMAND}=$1; shift; eval "${COMMAND}"',
                words[0],
                command,
            ]
        else:
            words.append(command)
        return words if self._sandbox is None else self._sandbox.wrap(words, directory)

    def _started(self, start: Start, report: int | None, ended: Callable[[Report], None]) -> LocalProcess:
        with self._lock:
            if self._closed:
                raise BackendError("The environment is closed", hint="Begin another session.")
            process = LocalProcess(start, report, ended)
            self._processes.add(process)
        return process

    def _keep(self, given: Given, said: Report) -> None:
        secrets = self.context.secret_names()
        self._state.take(given, said, lambda name: is_withheld(name, secrets, self._passthrough))

    def upload(self, source: Path, target: str) -> None:
        """See `Environment`."""
        copy(str(source), located(target, self.cwd))

    def download(self, source: str, target: Path) -> None:
        """See `Environment`."""
        copy(located(source, self.cwd), str(target))

    def close(self) -> None:
        """See `Environment`."""
        with self._lock:
            self._closed = True
            processes = list(self._processes)
        for process in processes:
            if process.poll() is None:
                process.kill()


def _configured(path: str | None) -> str | None:
    return os.path.abspath(os.path.expanduser(path)) if path else None  # noqa: PTH100, PTH111 - links stay


def _high(fd: int) -> int:
    """A copy of a descriptor among those that commands don't use; `fd` itself is closed."""
    import fcntl

    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _OWN_DESCRIPTORS)
    finally:
        os.close(fd)


def _report_pipe() -> tuple[int, int]:
    """Where a shell's report is read, and where it is written."""
    import fcntl

    report, told = os.pipe()
    with suppress(AttributeError, OSError):  # Linux only, and within a limit
        fcntl.fcntl(report, fcntl.F_SETPIPE_SZ, _REPORT_SIZE)
    return report, _high(told)


def _kept(functions: bytes) -> int | None:
    """A descriptor from which functions are read; they are in memory where the system can do that."""
    if not functions:
        return None
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("functions")
        os.write(fd, functions)
        os.lseek(fd, 0, os.SEEK_SET)
        return _high(fd)
    with tempfile.TemporaryFile() as stream:
        stream.write(functions)
        stream.flush()
        stream.seek(0)
        return _high(os.dup(stream.fileno()))


def _close(*fds: int | None) -> None:
    for fd in fds:
        if fd is not None:
            os.close(fd)
