"""`run_apart`: a program in a process group of its own, that may come to any harm and ends with whoever waits for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from mibyan.records import record
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: Bytes of what was printed, from its end, that are looked at for the last words.
_TAIL = 4000


@record
class Ended:
    """How a program came to its end."""

    #: Its exit code, negative: the signal; `None`: it took too long.
    code: int | None
    #: Seconds that it had.
    seconds: float
    #: What it printed.
    log: Path

    @property
    def how(self) -> str:
        """How it ended, said of its code."""
        if self.code is None:
            return f"its code was still running after {self.seconds:g} s, and was ended"
        if self.code < 0:
            with suppress(ValueError):
                return f"its code ended the process by {signal.Signals(-self.code).name}"
        return f"its code ended the process with exit code {self.code}"

    @property
    def tail(self) -> list[str]:
        """The last lines that it printed."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - _TAIL))
                return [line for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
        except OSError:
            return []

    @property
    def last_words(self) -> str:
        """The last line that it printed, to be put behind a sentence; empty if it printed nothing."""
        lines = self.tail
        return f"; the last it printed: {one_line(lines[-1], 200)}" if lines else ""


def run_apart(command: Sequence[str | Path], *, cwd: Path, log: Path, timeout: float, env: Mapping[str, str]) -> Ended:
    """Run a program; it and what it has started have ended when this returns or raises.

    Args:
        command: Its words.
        cwd: Where it runs.
        log: The file that takes what it prints.
        timeout: Seconds.
        env: Its environment, all of it.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=cwd,
            env=dict(env), start_new_session=True,
        )  # fmt: skip
        return Ended(_waited(process, timeout), timeout, log)


def _waited(process: subprocess.Popen[bytes], timeout: float) -> int | None:
    """The exit code, `None` if it took too long; whatever the process has started ends with it."""
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            process.kill() if sys.platform == "win32" else os.killpg(process.pid, signal.SIGKILL)
        process.wait()
