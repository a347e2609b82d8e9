"""`freeze`: what a plugin's code says of its manifest, found out in a process of its own that may come to any harm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mibyan.errors import PluginError
from mibyan.records import record
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mibyan.plugins.sources.authored import Authored

#: Variables without which programs don't run, and that no plugin registers by.
_NEEDED = frozenset({
    "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "PYTHONHOME", "PYTHONPATH", "SHELL", "SYSTEMROOT",
    "TEMP", "TERM", "TMP", "TMPDIR", "USER", "VIRTUAL_ENV",
})  # fmt: skip


@record
class Frozen:
    """What a plugin's code says."""

    #: The keys of its manifest that the code decides.
    keys: Mapping[str, Any]
    #: What can't be frozen: the tool (empty: no tool's) and a sentence.
    notes: tuple[tuple[str, str], ...]


def freeze(found: Authored, *, timeout: float) -> Frozen:
    """What the code of a plugin registers, in the environment of this process; and again without its variables.

    Args:
        found: The plugin.
        timeout: Seconds for loading it.

    Raises:
        PluginError: It can't be loaded, and why.
    """
    said = _apart(found, timeout, ())
    notes = [(str(tool), str(text)) for tool, text in said["notes"]]
    variables = sorted(set(said["variables"]) - _NEEDED)
    if variables:
        notes += [("", text) for text in _without(found, timeout, said["keys"], variables)]
    return Frozen(said["keys"], tuple(notes))


def _without(found: Authored, timeout: float, keys: Mapping[str, Any], variables: list[str]) -> list[str]:
    """How a registration depends on the environment, in a sentence; none if it doesn't."""
    names = ", ".join(variables)
    try:
        bare = _apart(found, timeout, variables)["keys"]
    except PluginError as error:
        return [f"without the variables {names} its code can't be loaded: {error.message}"]
    if bare == keys:
        return []
    have, lack = ({tool["name"] for tool in each["tools"]} for each in (keys, bare))
    differing = sorted(have ^ lack)
    what = f"the tools {', '.join(differing)} depend on them" if differing else "definitions depend on them"
    return [f"it registers something else without the variables {names}: {what}; the manifest says how it is with them"]


def _apart(found: Authored, timeout: float, without: Collection[str]) -> dict[str, Any]:
    with TemporaryDirectory(prefix="mibyan-", ignore_cleanup_errors=True) as folder:
        base = Path(folder)
        for name in ("home", "work"):
            (base / name).mkdir()
        answer, log = base / "answer.json", base / "log.txt"
        command = [
            sys.executable,
            "-P",
            "-m",
            "mibyan.cli.freezer",
            str(found.place),
            str(base / "home"),
            str(answer),
            str(timeout),
        ]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=base / "work",
                env=_environment(without), start_new_session=True,
            )  # fmt: skip
            code = _waited(process, timeout)
        return _answer(found, answer, log, code, timeout)


def _environment(without: Collection[str]) -> dict[str, str]:
    """The environment of the other process: the same modules are found, and nothing of the operator's is."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MIBYAN_") and name not in without}
    path = os.pathsep.join(entry for entry in sys.path if entry and os.path.isabs(entry))  # noqa: PTH117 - text
    # Nothing is written beside the author's sources; the order of sets is the same each time.
    return {**kept, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}


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


def _answer(found: Authored, answer: Path, log: Path, code: int | None, timeout: float) -> dict[str, Any]:
    plugin_id = found.candidate.id
    try:
        said: dict[str, Any] = json.loads(answer.read_bytes())
    except (OSError, ValueError):
        said = {"error": _ended(code, timeout) + _last_words(log), "hint": None}
    if "error" in said:
        raise PluginError(f"plugin {plugin_id!r} can't be loaded: {said['error']}", hint=said["hint"], plugin_id=plugin_id,
                          origin=found.candidate.origin)  # fmt: skip
    return said


def _ended(code: int | None, timeout: float) -> str:
    if code is None:
        return f"its code was still running after {timeout:g} s, and was ended"
    if code < 0:
        with suppress(ValueError):
            return f"its code ended the process by {signal.Signals(-code).name}"
    return f"its code ended the process with exit code {code}"


def _last_words(log: Path) -> str:
    """The last line that was printed."""
    with suppress(OSError):
        lines = log.read_bytes()[-2000:].decode("utf-8", "replace").strip().splitlines()
        return f"; the last it printed: {one_line(lines[-1], 200)}" if lines else ""
    return ""
