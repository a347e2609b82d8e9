"""Running one script: its folder, its processes, its output, to its end or its deadline."""

# ruff: noqa: PTH101, PTH123 - descriptors, and modes of what may be a link, which pathlib has no words for

from __future__ import annotations

import os
import selectors
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mibyan import ToolError
from mibyan_builtin.code.serving import Exchange
from mibyan_builtin.terminal import leaving
from mibyan_builtin.terminal.output import Output
from mibyan_builtin.terminal.tree import MARK, PATIENCE, end_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from mibyan import ToolCall, ToolResult

#: Seconds between two looks whether the script is to end.
TICK = 0.05
#: Seconds that the script's processes have to be gone once it was let go of, before they are looked for one by one.
LETTING_GO = 1.0
#: Seconds for output that is still on its way.
DRAIN = 0.2
CHUNK = 65_536
#: Characters of a socket's path that every system takes.
_LONGEST_PATH = 90
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Script:
    """A script and what it runs with."""

    source: str
    directory: Path
    environment: Mapping[str, str]
    #: Seconds.
    timeout: float
    #: Characters of output that are kept.
    limit: int
    #: The source of `mibyan_tools`.
    tools: str
    #: The tools that it may call.
    names: Collection[str]
    #: Tool calls that run at once.
    workers: int
    #: Runs a tool call.
    execute: Callable[[ToolCall], ToolResult]
    #: What is said of a tool that it may not call.
    refuse: Callable[[str], tuple[str, str]]
    #: Whether the call is over.
    cancelled: Callable[[], bool]
    #: Seconds for which persons were waited for: they don't count.
    held: Callable[[], float]
    #: Ends the tool calls that still run.
    end_calls: Callable[[], None]


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
    calls: list[dict[str, Any]] = field(default_factory=list)
    #: Calls that were refused before they were made.
    refused: int = 0


def run(script: Script) -> Outcome:
    """Run a script; however this ends, neither its processes nor its folder are left.

    Raises:
        ToolError: It couldn't be started.
    """
    mark = os.urandom(16).hex()
    with ExitStack() as stack:
        stack.enter_context(leaving.counted(mark))
        folder = _make_folder()
        stack.callback(_remove, folder)
        token = os.urandom(32).hex()
        try:
            _fill(folder, script)
            exchange = Exchange(f"{folder}/tools", token, script.execute, script.names, script.workers, script.refuse)
        except OSError as error:
            raise ToolError(f"The script's folder {folder} can't be used: {error.strerror or error}") from None
        stack.callback(exchange.close)
        stack.callback(script.end_calls)
        return _Running(script, folder, mark, token, exchange).run()


def _make_folder() -> str:
    """A folder that only this user can look into, with a path that is short enough for a socket in it."""
    folder = tempfile.gettempdir()
    where = folder if len(os.fsencode(folder)) < _LONGEST_PATH - 40 else "/tmp"  # noqa: S108 - made with mkdtemp
    try:
        return tempfile.mkdtemp(prefix="mibyan-code-", dir=where)
    except OSError as error:
        raise ToolError(f"No temporary folder can be made in {where}: {error.strerror or error}") from None


def _fill(folder: str, script: Script) -> None:
    texts = {"execute_code.py": script.source, "mibyan_tools.py": script.tools}
    texts["mibyan_tools_client.py"] = (_HERE / "client.py").read_text(encoding="utf-8")
    for name, text in texts.items():
        handle = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)


def _remove(folder: str) -> None:
    """Remove the folder, whatever the script has made of it."""

    def again(function: Callable[[str], object], path: str, _error: object) -> None:
        with suppress(OSError):
            os.chmod(Path(path).parent, stat.S_IRWXU)
            os.chmod(path, stat.S_IRWXU, follow_symlinks=function not in {os.unlink, os.remove})
            function(path)

    shutil.rmtree(folder, onerror=again)
    if os.path.lexists(folder):  # A folder in it could be read only now.
        shutil.rmtree(folder, ignore_errors=True)


class _Running:
    """A script on its way: its output is taken and its calls are served."""

    def __init__(self, script: Script, folder: str, mark: str, token: str, exchange: Exchange) -> None:
        self._script = script
        self._mark = mark
        self._exchange = exchange
        self._outcome = Outcome(Output(script.limit))
        self._selector = selectors.DefaultSelector()
        self._started = time.monotonic()
        self._process = self._start(folder)
        assert self._process.stdin is not None  # noqa: S101 - a pipe was asked for
        assert self._process.stdout is not None  # noqa: S101 - likewise
        #: The script lives as long as somebody holds it.
        self._lifeline = self._process.stdin
        self._stdout = self._process.stdout
        with suppress(OSError):
            self._lifeline.write(f"{token}\n".encode())

    def _start(self, folder: str) -> subprocess.Popen[bytes]:
        script = self._script
        command = [sys.executable, "-I", "-u", "-X", "utf8", str(_HERE / "boot.py"), folder]
        environment = {**script.environment, MARK: self._mark, "PWD": str(script.directory)}
        try:
            return subprocess.Popen(
                command, cwd=script.directory, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, start_new_session=True, bufsize=0,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ToolError(f"The script can't be started in {script.directory}: {reason}") from None

    def run(self) -> Outcome:
        """Follow it to its end; how it went."""
        watched: int | None = None
        try:
            watched = self._watch()
            self._follow()
            self._end()
            self._drain()
        except BaseException:
            self._end(patience=0.0)
            raise
        finally:
            self._close(watched)
        return self._finish()

    def _watch(self) -> int | None:
        os.set_blocking(self._stdout.fileno(), False)
        self._selector.register(self._stdout, selectors.EVENT_READ, lambda _: self._read())
        self._exchange.attach(self._selector)
        try:  # Linux only; elsewhere the end is seen at the next tick
            watched = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):
            return None
        self._selector.register(watched, selectors.EVENT_READ, lambda _: None)
        return watched

    def _follow(self) -> None:
        """Serve the script until it has ended, its time is up or the call is over."""
        while self._process.poll() is None:
            left = self._started + self._script.timeout + self._script.held() - time.monotonic()
            if left <= 0 or self._script.cancelled() or leaving.begun():
                self._outcome.ended_by = "timeout" if left <= 0 else "cancelled"
                return
            self._serve(min(left, TICK))
            self._exchange.tick()

    def _serve(self, wait: float) -> None:
        for key, events in self._selector.select(wait):
            key.data(events)

    def _read(self) -> None:
        data = self._stdout.read(CHUNK)
        if data:
            self._outcome.output.write(data)
        elif data is not None:
            self._selector.unregister(self._stdout)

    def _end(self, patience: float = LETTING_GO) -> None:
        """Let go of the script: who watches it ends its processes; those that are left are looked for."""
        with suppress(OSError):
            self._lifeline.close()
        until = time.monotonic() + patience
        while self._process.poll() is None and time.monotonic() < until:
            self._serve(0.01)
        clean = self._process.returncode is not None and self._process.returncode >= 0
        if clean and sys.platform == "linux":
            return
        # Whoever watched was stopped or killed, or can't take in orphans here.
        end_tree(self._process.pid, self._mark, grace=0.0)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE)

    def _drain(self) -> None:
        until = time.monotonic() + DRAIN
        while self._is_open() and (left := until - time.monotonic()) > 0:
            self._serve(min(left, TICK))

    def _is_open(self) -> bool:
        return self._stdout in [key.fileobj for key in self._selector.get_map().values()]

    def _close(self, watched: int | None) -> None:
        self._outcome.duration = time.monotonic() - self._started
        self._script.end_calls()
        self._exchange.close()
        self._selector.close()
        if watched is not None:
            os.close(watched)
        self._stdout.close()
        with suppress(OSError):
            self._lifeline.close()

    def _finish(self) -> Outcome:
        outcome = self._outcome
        code = self._process.returncode
        code = 137 if code is None else code
        outcome.exit_code = 128 - code if code < 0 else code
        outcome.output.close()
        outcome.calls = [made.to_dict() for made in self._exchange.made]
        outcome.refused = self._exchange.refused
        return outcome
