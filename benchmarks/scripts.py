"""What a script costs that calls tools, beside the interpreter that runs it and the tools that it waits for."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import mibyan
from benchmarks.figures import Target
from benchmarks.harness import Pair, measure, milliseconds

if TYPE_CHECKING:
    from benchmarks.figures import Figure
    from benchmarks.harness import Effort

GROUP = "scripts"

#: Calls at once, and the seconds that each takes.
_CALLS, _NAP = 4, 0.3
_FOUR = """
import threading
from mibyan_tools import nap
answers = []
threads = [threading.Thread(target=lambda: answers.append(nap()["napped"])) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
for answer in answers: print(answer)
"""


def figures(effort: Effort) -> list[Figure]:
    """All figures of scripts."""
    with ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="mibyan-bench-"))
        runtime = stack.enter_context(mibyan.Runtime(home=home, safe_mode=True))
        empty = {"description": "Takes a nap.", "parameters": {"type": "object", "properties": {}}}
        runtime.registry.register("nap", "bench", empty, _nap)
        bare = [sys.executable, "-c", "print(1)"]
        pairs = [
            Pair("a script of one line", "python -c", lambda: milliseconds(lambda: subprocess.run(bare, check=True, capture_output=True)),
                 lambda: milliseconds(lambda: _run(runtime, "print(1)", "1\n")), "ms", Target(4)),
            Pair("four calls of 300 ms at once from a script", "four threads", lambda: milliseconds(_four_naps),
                 lambda: milliseconds(lambda: _run(runtime, _FOUR, "True\n" * _CALLS)), "ms", Target(400, subject="ours")),
        ]  # fmt: skip
        return measure(GROUP, pairs, effort.runs)


def _run(runtime: mibyan.Runtime, code: str, output: str) -> None:
    answer = runtime.call("execute_code", {"code": code})
    if json.loads(answer).get("output") != output:
        raise RuntimeError(f"a script answers {answer}")


def _nap(args: dict[str, Any]) -> dict[str, bool]:
    """The tool."""
    del args
    time.sleep(_NAP)
    return {"napped": True}


def _four_naps() -> None:
    threads = [threading.Thread(target=_nap, args=({},)) for _ in range(_CALLS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
