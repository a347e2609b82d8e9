"""A home with a plugin in it, and three ways to run the command line: here, as a program, on a terminal."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mibyan.cli.main import main

#: Seconds that a program, or what it shall say, may take on a busy machine.
PATIENCE = 60.0

PLUGIN = '''
"""A plugin that is noisy, risky, and sometimes stuck."""
from __future__ import annotations

import os
import threading
from typing import Any

import mibyan

print("a greeting at import")


@mibyan.tool(toolset="bench", read_only=True, aliases=("repeat",))
def echo(text: str = "", number: int = 0, anything: Any = None) -> dict:
    """Give back what came.

    Args:
        text: Any text.
        number: A whole number.
    """
    return {"text": text, "number": number, "anything": anything}


@mibyan.tool(toolset="bench", approval=lambda args, context: mibyan.Ask("It can't be undone."))
def risky(text: str = "") -> str:
    """Do something that needs a yes."""
    return "done: " + text


@mibyan.tool(toolset="bench")
def noisy() -> dict:
    """Print, and start a program that prints."""
    print("printed by a tool")
    os.system("echo printed by a program")
    return {"quiet": True}


@mibyan.tool(toolset="bench")
def stuck() -> str:
    """Wait for what never comes."""
    threading.Event().wait(30)
    return "late"


@mibyan.tool(toolset="bench")
def fails() -> str:
    """Raise."""
    raise ValueError("no way")


@mibyan.tool(toolset="bench")
def forbidden() -> str:
    """Never run."""
    return "run"


@mibyan.tool(toolset="bench", check_fn=lambda: "the moon is in the wrong place")
def tides() -> str:
    """Something that isn't available."""
    return "high"


@mibyan.hookimpl
def pre_tool_call(tool_name):
    return mibyan.Block("policy says no") if tool_name == "forbidden" else None
'''

MANIFEST = "manifest_version: 1\nid: bench\nversion: '1.0'\ndescription: For tests.\n"


@dataclass(frozen=True)
class Done:
    """What a run came to."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)


def add_plugin(folder: Path, plugin_id: str, source: str, manifest: str = "") -> Path:
    """Put a folder plugin below `folder`."""
    root = folder / "plugins" / plugin_id
    root.mkdir(parents=True)
    (root / "__init__.py").write_text(source, encoding="utf-8")
    (root / "plugin.yaml").write_text(manifest or f"manifest_version: 1\nid: {plugin_id}\n", encoding="utf-8")
    return root


@pytest.fixture
def home(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home; the working directory is a folder without a project."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    path = own_home / ".mibyan"
    path.mkdir()
    return path


@pytest.fixture
def bench(home: Path) -> Path:
    """A home with the plugin `bench`."""
    add_plugin(home, "bench", PLUGIN, MANIFEST)
    return home


@pytest.fixture
def project(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a plugin `deploy` that nobody has trusted; it is the working directory."""
    folder = tmp_path / "project"
    source = "import mibyan\n\n@mibyan.tool(toolset='deploy')\ndef ship() -> str:\n    return 'shipped'\n"
    manifest = (
        "manifest_version: 1\nid: deploy\npermissions: [network]\n"
        "tools:\n  - {name: ship, toolset: deploy, schema: {description: Ships it., parameters: {type: object, properties: {}}}}\n"
    )
    add_plugin(folder / ".mibyan", "deploy", source, manifest)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Runs the command line in this process."""

    def run(*words: str) -> Done:
        capsys.readouterr()
        code = main(list(words))
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def program() -> Callable[..., Done]:
    """Runs the command line as a program of its own."""

    def run(*words: str | bytes, stdin: str | bytes | int = subprocess.DEVNULL, **environment: str | None) -> Done:
        changed = {**os.environ, **environment}
        given = (
            {"stdin": stdin}
            if isinstance(stdin, int)
            else {"input": stdin.encode() if isinstance(stdin, str) else stdin}
        )
        done = subprocess.run(
            [sys.executable, "-m", "mibyan", *words], capture_output=True, timeout=PATIENCE,
            env={name: value for name, value in changed.items() if value is not None}, **given,
        )  # fmt: skip
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def shell() -> Callable[[str], Done]:
    """Runs a line of bash in which `mibyan` is the command line."""

    def run(line: str) -> Done:
        prologue = f'set -o pipefail; mibyan() {{ "{sys.executable}" -m mibyan "$@"; }}; '
        done = subprocess.run(
            ["bash", "-c", prologue + line], capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


class Terminal:
    """A program with a terminal as its standard input and standard error, and a pipe as its standard output."""

    def __init__(self, *words: str, columns: int = 80, script: str = "") -> None:
        self._screen, end = pty.openpty()
        self.resize(columns)
        self.shown = ""
        script = script or "from mibyan.cli.main import main; sys.exit(main())"
        script = f"import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n{script}"
        self._process = subprocess.Popen(
            [sys.executable, "-c", script, *words],
            stdin=end,
            stderr=end,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        os.close(end)

    def resize(self, columns: int) -> None:
        """Make it as wide as that; who sits at it is told by a signal."""
        fcntl.ioctl(self._screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def expect(self, text: str) -> None:
        """Wait until something is shown."""
        self.expect_times(text, 1)

    def expect_times(self, text: str, times: int) -> None:
        """Wait until something has been shown so many times."""
        until = time.monotonic() + PATIENCE
        while self.shown.count(text) < times:
            assert time.monotonic() < until, f"{text!r} isn't shown, but: {self.shown!r}"
            assert self._read(1.0), f"{text!r} was never shown, but: {self.shown!r}"

    def type(self, text: str) -> None:
        """Type something."""
        os.write(self._screen, text.encode())

    def end(self) -> Done:
        """Wait for the end."""
        out, _ = self._process.communicate(timeout=PATIENCE)
        while self._read(0):
            pass
        return Done(self._process.returncode, out.decode(), self.shown)

    def close(self) -> None:
        """End what is still running."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(timeout=PATIENCE)
        self._process.stdout.close()
        os.close(self._screen)

    def _read(self, seconds: float) -> bool:
        """Take in what is shown; false when nothing can come any more (or nothing is there, if nobody waits)."""
        if not select.select([self._screen], [], [], seconds)[0]:
            return seconds > 0
        with suppress(OSError):  # the other end is closed
            piece = os.read(self._screen, 65536)
            self.shown += piece.decode("utf-8", "replace").replace("\r\n", "\n")
            return bool(piece)
        return False


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """Starts the command line on a terminal."""
    started: list[Terminal] = []

    def start(*words: str, columns: int = 80, script: str = "") -> Terminal:
        started.append(Terminal(*words, columns=columns, script=script))
        return started[-1]

    yield start
    for one in started:
        one.close()


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilityData(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@pytest.fixture
def bound_by_modes() -> Iterator[None]:
    """The modes of files count, for root too: this thread, and those it starts, may not override them meanwhile."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root may write everywhere")
    libc = ctypes.CDLL(None, use_errno=True)
    header, data = _CapabilityHeader(0x20080522, 0), (_CapabilityData * 2)()
    if libc.capget(ctypes.byref(header), data) != 0:
        pytest.skip(f"capabilities can't be read: {os.strerror(ctypes.get_errno())}")
    before = data[0].effective
    data[0].effective = before & ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(ctypes.byref(header), data) == 0
    yield
    data[0].effective = before
    assert libc.capset(ctypes.byref(header), data) == 0
