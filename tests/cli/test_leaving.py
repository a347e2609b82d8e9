"""Leaving: threads that hold the interpreter are waited for, but not for ever."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from mibyan.cli.leaving import leave

PATIENCE = 60.0

SCRIPT = """
import atexit, os, signal, sys, threading
from mibyan.cli import leaving
from mibyan.cli.main import main
leaving._SOON, leaving.PATIENCE = 0.05, {patience}
atexit.register(print, "registered with atexit")
waiting = threading.Thread(target=threading.Event().wait, name="leak\\x1b[31m")
waiting.start()
told = leaving.say
def tell(text):
    told(text)
    if {interrupt}:
        os.kill(os.getpid(), signal.SIGINT)
leaving.say = tell
sys.exit(main())
"""


def run(*words: str, patience: float = 0.1, interrupt: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process with a thread that never ends."""
    script = SCRIPT.format(patience=patience, interrupt=interrupt)
    return subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.mark.parametrize(("words", "code"), [(["config", "path"], 0), (["nonesuch"], 2)])
def test_a_thread_that_never_ends_does_not_keep_the_process(home, words: list[str], code: int) -> None:
    """A plugin's thread that isn't a daemon is given up after a while, and is named; code and output are as always."""
    done = run(*words)
    assert done.returncode == code
    assert "threads that a plugin has started: leak\\x1b[31m" in done.stderr
    assert done.stdout.splitlines() == [*([str(home / "config.yaml")] if code == 0 else []), "registered with atexit"]


def test_ctrl_c_ends_the_waiting(home) -> None:
    """Ctrl-C while such a thread is waited for: the process ends, with the command's own code and no traceback."""
    done = run("config", "path", patience=50, interrupt=True)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_a_thread_that_ends_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    """What a thread is still doing is not cut off."""
    finished = threading.Event()
    release = threading.Event()
    thread = threading.Thread(target=lambda: (release.wait(PATIENCE), finished.set()))
    thread.start()
    threading.Timer(0.05, release.set).start()
    assert leave(3) == 3
    assert finished.is_set()
    assert capsys.readouterr().err == ""


def test_nothing_is_waited_for_where_nothing_runs() -> None:
    """The code is what it was."""
    assert leave(130) == 130
