"""`Worker`: one peer in a process of its own, whose calls are measured there and asked for from here."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from benchmarks import work
from benchmarks.harness import sized

if TYPE_CHECKING:
    from types import TracebackType

_SERVE = Path(__file__).with_name("serve.py")
ADAPTERS = Path(__file__).with_name("adapters")


class Worker:
    """Microseconds a call of a peer, window by window; a context manager.

    Args:
        python: The peer's interpreter.
        adapter: The adapter's file.
        variant: What the adapter is to make.

    Raises:
        RuntimeError: The peer doesn't start, or its call doesn't do its work.
    """

    def __init__(self, python: Path, adapter: Path, variant: str) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="mibyan-bench-")
        self._errors = (Path(self._home.name) / "errors").open("w+", encoding="utf-8")
        task = json.dumps({"arguments": work.ARGUMENTS, "schema": work.flat_schema()})
        self._process = subprocess.Popen(
            [python, _SERVE, adapter, variant, task], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._errors, text=True, cwd=self._home.name, env=peer_environment(Path(self._home.name)),
        )  # fmt: skip
        self._calls = 0

    def __enter__(self) -> Self:
        answer = str(self._read())
        if work.ARGUMENTS["path"] not in answer:
            self.close()
            raise RuntimeError(f"its call answers {answer[:200]}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __call__(self) -> float:
        """Measure one window; the first time, find out how many calls it has."""
        if not self._calls:
            self._calls = sized(self._window)
        return self._window(self._calls) / self._calls / 1e3

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()
        self._home.cleanup()

    def _window(self, calls: int) -> int:
        if self._process.stdin is not None:
            print(calls, file=self._process.stdin, flush=True)
        return int(self._read())

    def _read(self) -> Any:
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if line:
            return json.loads(line)
        self._errors.seek(0)
        said = self._errors.read()[-1000:]
        self.close()
        raise RuntimeError(f"its process ended:\n{said}")


def peer_environment(home: Path) -> dict[str, str]:
    """The variables of a peer's process: a home of its own, nothing of ours on its path."""
    return {
        "PATH": os.environ.get("PATH", os.defpath), "HOME": str(home), "LANG": "C.UTF-8", "NO_COLOR": "1",
        "HERMES_HOME": str(home / "hermes"), "LLM_USER_PATH": str(home / "llm"),
    }  # fmt: skip
