"""`freeze`: what a plugin's code says of its manifest, found out in a process of its own that may come to any harm."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mibyan.cli.apart import run_apart
from mibyan.errors import PluginError
from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mibyan.cli.apart import Ended
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
    #: What only the manifest says, by key: names of toolsets and commands that the code doesn't register.
    unregistered: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def only(self) -> list[str]:
        """That, a sentence each."""
        return [
            f"the {key[:-1]} {name!r} is only in the manifest: the code doesn't register it"
            for key, names in self.unregistered.items() for name in names
        ]  # fmt: skip

    def pruned(self) -> Frozen:
        """The same, without what only the manifest says."""
        keys = dict(self.keys)
        for key, names in self.unregistered.items():
            left = _without_names(keys.pop(key, None), names)
            if left:
                keys[key] = left
        return Frozen({key: keys[key] for key in self.keys if key in keys}, self.notes)


def _without_names(value: Any, names: Collection[str]) -> Any:
    if isinstance(value, dict):
        return {name: one for name, one in value.items() if name not in names}
    return [one for one in value or () if one["name"] not in names]


@record
class Interpreter:
    """What runs a plugin's code."""

    #: Python; that of another environment finds its own modules.
    path: str = sys.executable
    #: The plugin's own settings beside the defaults of its `config_schema`, as `plugins.entries.<id>.config` has them.
    settings: Mapping[str, Any] = field(default_factory=dict)


def freeze(found: Authored, *, timeout: float, by: Interpreter | None = None) -> Frozen:
    """What the code of a plugin registers, in the environment of this process; and again without its variables.

    Args:
        found: The plugin.
        timeout: Seconds for loading it.
        by: What runs it; `None`: this Python, without settings of the plugin's.

    Raises:
        PluginError: It can't be loaded, and why.
    """
    by = Interpreter() if by is None else by
    said = _apart(found, timeout, (), by)
    notes = [(str(tool), str(text)) for tool, text in said["notes"]]
    variables = sorted(set(said["variables"]) - _NEEDED)
    if variables:
        notes += [("", text) for text in _without(found, timeout, said["keys"], variables, by)]
    return Frozen(said["keys"], tuple(notes), {key: tuple(names) for key, names in said["unregistered"].items()})


def _without(
    found: Authored, timeout: float, keys: Mapping[str, Any], variables: list[str], by: Interpreter
) -> list[str]:
    """How a registration depends on the environment, in a sentence; none if it doesn't."""
    names = ", ".join(variables)
    try:
        bare = _apart(found, timeout, variables, by)["keys"]
    except PluginError as error:
        return [f"without the variables {names} its code can't be loaded: {error.message}"]
    if bare == keys:
        return []
    have, lack = ({tool["name"] for tool in each["tools"]} for each in (keys, bare))
    differing = sorted(have ^ lack)
    what = f"the tools {', '.join(differing)} depend on them" if differing else "definitions depend on them"
    return [f"it registers something else without the variables {names}: {what}; the manifest says how it is with them"]


def _apart(found: Authored, timeout: float, without: Collection[str], by: Interpreter) -> dict[str, Any]:
    with TemporaryDirectory(prefix="mibyan-", ignore_cleanup_errors=True) as folder:
        base = Path(folder)
        for name in ("home", "work"):
            (base / name).mkdir()
        answer = base / "answer.json"
        settings = base / "settings.json"
        settings.write_text(json.dumps(by.settings), encoding="utf-8")
        words: list[str | Path] = [found.place, base / "home", answer, settings, str(timeout)]
        ended = run_apart(
            [by.path, "-P", "-m", "mibyan.cli.freezer", *words], cwd=base / "work", log=base / "log.txt", timeout=timeout,
            env=_environment(without, by, base / "work"),
        )  # fmt: skip
        return _answer(found, answer, ended)


def _environment(without: Collection[str], by: Interpreter, work: Path) -> dict[str, str]:
    """The environment of the other process: the same modules are found, and nothing of the operator's is."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MIBYAN_") and name not in without}
    kept.pop("PYTHONPATH", None)
    if by.path == sys.executable:
        path = os.pathsep.join(entry for entry in sys.path if entry and os.path.isabs(entry))  # noqa: PTH117 - text
        kept["PYTHONPATH"] = path
    else:
        kept["HOME"] = kept["TMPDIR"] = str(work)
    # Nothing is written beside the author's sources; the order of sets is the same each time.
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}


def _answer(found: Authored, answer: Path, ended: Ended) -> dict[str, Any]:
    plugin_id = found.candidate.id
    try:
        said: dict[str, Any] = json.loads(answer.read_bytes())
    except (OSError, ValueError):
        said = {"error": ended.how + ended.last_words, "hint": None}
    if "error" in said:
        raise PluginError(f"plugin {plugin_id!r} can't be loaded: {said['error']}", hint=said["hint"], plugin_id=plugin_id,
                          origin=found.candidate.origin)  # fmt: skip
    return said
