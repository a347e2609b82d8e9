"""Loading and unloading one plugin in a process of its own: `python -m mibyan.cli.checking.probe ORDER SECONDS`.

ORDER is a JSON file: `{"id", "home", "warm", "stage", "answer", "log", "inside"}`. The plugin's code may do what it likes
here; what was going on when it ended the process stands in the file `stage`.
"""

from __future__ import annotations

import compileall
import json
import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mibyan.errors import MibyanError
from mibyan.text import describe_exception, one_line

if TYPE_CHECKING:
    from mibyan.plugins.state import PluginRecord
    from mibyan.runtime import Runtime

#: A plugin that has Mibyan import what it needs to load any plugin, so that this isn't put to the account of the one that is looked at.
_WARM = "def register(ctx):\n    ctx.register_tool('warm', 'warm', {'description': 'Warm.', 'parameters': {'type': 'object', 'properties': {}}}, lambda args: '{}')\n"


def main(order: dict[str, Any]) -> dict[str, Any]:
    """Do it.

    Returns:
        `{"state", "reason", "hint", "ms", "tools", "schemas", "seen", "threads", "printed", "changed", "left", "remains", "problems"}`.
    """
    from mibyan.cli.checking.picture import differences, picture
    from mibyan.cli.checking.watching import Watch
    from mibyan.plugins.process_state import ProcessState
    from mibyan.runtime import Runtime

    logging.lastResort = logging.NullHandler()  # what is logged is no print
    _warm_up(Path(order["warm"]), order["id"])
    plugin_id, log = order["id"], Path(order["log"])
    for folder in order["inside"]:
        compileall.compile_dir(folder, quiet=2)
    with Runtime(order["home"], no_plugins=[plugin_id]) as bare:
        bare.plugins.load()
        before = picture(bare)
    watch = Watch(
        order["inside"],
        [str(Path(order["home"], "cache")), str(Path(order["home"], "logs"))],
        str(Path(order["home"], "state")),
    )
    with Runtime(order["home"]) as runtime:
        stage(order, "load")
        state, printed = ProcessState(), _size(log)
        watch.begin()
        record = _loaded(runtime, plugin_id)
        watch.end()
        _flush()
        answer: dict[str, Any] = {
            "state": record.state, "reason": record.reason, "hint": record.hint, "ms": record.import_ms,
            "tools": list(record.tools), "overrides": list(record.overrides), "hooks": list(record.hooks), "schemas": _schemas(runtime, record), "seen": list(watch.seen),
            "threads": watch.running, "printed": _printed(log, printed), "changed": state.changes() + _paths(state),
            "problems": _problems(runtime, plugin_id),
        }  # fmt: skip
        write(order, {**answer, "left": None})
        stage(order, "unload")
        if record.is_usable:
            runtime.plugins.unload(plugin_id)
        answer["left"] = differences(before, picture(runtime)) if record.is_usable else []
        answer["remains"] = state.changes() + _paths(state)
        answer["words"] = [one for one in _problems(runtime, plugin_id) if one not in answer["problems"]]
        answer["still"] = watch.running
    return answer


def write(order: dict[str, Any], answer: dict[str, Any]) -> None:
    """Write the answer; before the plugin is unloaded it has `left: null`."""
    Path(order["answer"]).write_text(json.dumps(answer, default=str), encoding="utf-8")


def stage(order: dict[str, Any], name: str) -> None:
    """Note what is going on."""
    Path(order["stage"]).write_text(name, encoding="utf-8")


def _warm_up(home: Path, plugin_id: str) -> None:
    from mibyan.runtime import Runtime

    folder = home / "plugins" / "warm"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text("id: warm\n", encoding="utf-8")
    (folder / "__init__.py").write_text(_WARM, encoding="utf-8")
    with Runtime(home, no_plugins=[plugin_id]) as runtime:
        runtime.plugins.load()
        runtime.plugins.unload("warm")


def _loaded(runtime: Runtime, plugin_id: str) -> PluginRecord:
    """What becomes of the plugin; one that is known without its code is imported all the same."""
    loader = runtime.plugins
    loader.load()
    record = loader.get(plugin_id)
    if record.is_usable:
        try:
            loader.activate(plugin_id)
        except MibyanError:
            return loader.get(plugin_id)
    return loader.get(plugin_id)


def _schemas(runtime: Runtime, record: PluginRecord) -> list[dict[str, Any]]:
    """What providers can't be told of its tools."""
    from mibyan.cli.checking.schemas import unsayable
    from mibyan.records import as_dict

    found = [(name, runtime.registry.get_schema(name)) for name in record.tools]
    return [as_dict(one) for one in unsayable([(name, schema) for name, schema in found if schema is not None])]


def _problems(runtime: Runtime, plugin_id: str) -> list[list[Any]]:
    """What the report says of it: reason, mend, place."""
    mine = [
        one for one in runtime.report().problems if one.plugin_id == plugin_id and one.kind in {"unknown", "warning"}
    ]
    return [[one.reason, one.fix, one.origin] for one in mine if "manifest PATH --write" not in (one.fix or "")]


def _paths(state: Any) -> list[str]:
    added = state.additions().get("sys.path", [])
    return [f"sys.path ({one_line(str(entry), 100)})" for entry in added]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # a plugin may have put anything there
            stream.flush()


def _size(log: Path) -> int:
    _flush()
    return log.stat().st_size


def _printed(log: Path, before: int) -> str:
    """What was printed since, its beginning."""
    with log.open("rb") as file:
        file.seek(before)
        return file.read(500).decode("utf-8", "replace")


def _run(words: list[str]) -> None:
    from mibyan.cli.freezer import _limit

    order = json.loads(Path(words[0]).read_bytes())
    _limit(float(words[1]))
    stage(order, "start")
    try:
        answer = main(order)
    except BaseException as error:
        answer = {"error": describe_exception(error)}
    write(order, answer)


if __name__ == "__main__":
    _run(sys.argv[1:])
    _flush()
    os._exit(0)  # what the plugin left running, threads and exit handlers, is of no interest
