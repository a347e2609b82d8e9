"""What dead processes leave in the journal, made by hand, and real ones that die."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from mibyan.plugins.contents import LOADED_BY, Contents, content_of
from mibyan.plugins.journal import HEAD
from mibyan.plugins.writers import Writer, this_process
from mibyan.records import as_dict, replace

#: Loads the plugins of a home and calls a tool.
CALL = "import sys; from mibyan import Runtime\nwith Runtime(home=sys.argv[1]) as rt: print(rt.call(sys.argv[2], {}))"


def started(script: str, *words: str | Path, **environment: str) -> subprocess.Popen[str]:
    """A Python process."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, words)], text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **environment},
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> int:
    """Its exit code; what it said is thrown away."""
    process.communicate(timeout=60)
    return process.returncode


def wait_for(path: Path) -> None:
    """Wait until a file is there, which says that something has begun."""
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until, f"{path} never came"
        time.sleep(0.005)


def dead_writer() -> Writer:
    """A process of this machine that isn't there any more."""
    process = started("")
    ended(process)
    return replace(this_process(), pid=process.pid, started=1)


def leave(loader: Any, plugin_id: str, *, writer: Writer | None = None, step: str = "import", **changes: Any) -> Path:
    """Leave in the journal what a process leaves that died while it imported a plugin; the file."""
    candidate = next(one.candidate for one in loader.survey() if one.candidate.id == plugin_id)
    said = {"content": content_of(candidate, Contents()), "by": LOADED_BY, **changes}
    lines = [["begin", 1, 0, plugin_id, candidate.origin, said["content"], said["by"], step, time.time() - 5]]
    return write_lines(loader._services.home, lines, dead_writer() if writer is None else writer)


def write_lines(home: Path, lines: list[Any], writer: Writer) -> Path:
    """A file of the journal."""
    path = home / "journal" / f"{writer.pid}-{os.urandom(6).hex()}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in [[HEAD, *as_dict(writer).values()], *lines]))
    return path
