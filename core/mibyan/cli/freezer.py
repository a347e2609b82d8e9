"""Freezing one plugin in a process of its own: `python -m mibyan.cli.freezer PATH HOME ANSWER SETTINGS SECONDS`.

The plugin's code may do what it likes here: print, exit, hang. The answer goes to a file, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mibyan.errors import MibyanError

if TYPE_CHECKING:
    from mibyan.plugins.sources.authored import Authored


#: Bytes of a file that the plugin, or what it prints, may write.
FILE_LIMIT = 64 * 1024 * 1024

#: Seconds after its time for the one that waits to end it; then it ends by itself.
GRACE = 5


def main(path: str, home: str, answer: str, settings: str) -> None:
    """Load the plugin at `path` and write what its code says.

    Args:
        path: As for `find_authored`.
        home: An empty folder, the runtime's home.
        answer: The file to write: `{"keys", "notes", "variables", "unregistered"}`, or `{"error", "hint"}`.
        settings: A JSON file with what the plugin is given as its own settings, beside the defaults of their schema.
    """
    from mibyan.plugins.learning import UnlearnableError

    environ = dict(os.environ)
    try:
        said = _frozen(path, home, environ, json.loads(Path(settings).read_bytes()))
    except UnlearnableError as error:
        said = {"error": str(error), "hint": None}
    except MibyanError as error:
        said = {"error": error.message, "hint": error.hint}
    Path(answer).write_text(json.dumps(said), encoding="utf-8")


def _frozen(path: str, home: str, environ: dict[str, str], settings: dict[str, Any]) -> dict[str, Any]:
    from mibyan.plugins.alone import Alone
    from mibyan.plugins.defaults import with_defaults
    from mibyan.plugins.freezing import Freezing, tools_of
    from mibyan.plugins.learning import require_no_secret
    from mibyan.plugins.sources.authored import find_authored
    from mibyan.runtime import Runtime

    found = find_authored(Path(path))
    sys.path[:0] = found.folders
    own = with_defaults(found.data.get("config_schema"), settings)
    config = {"plugins": {"entries": {found.candidate.id: {"config": own}}}} if own else None
    with Runtime(home, config=config) as runtime:
        services = runtime._parts.plugins._services
        written = [tool for tool in tools_of(found.data) if tool.get("target")]
        plugin = Alone(found.candidate, services, expected=len(written))
        freezing = Freezing(plugin, found.data)
        keys = freezing.keys()
        variables = sorted(_variables(found) & environ.keys())
        require_no_secret(keys, variables, services, environ)
        return {
            "keys": keys, "notes": freezing.notes, "variables": variables, "unregistered": freezing.unregistered(),
        }  # fmt: skip


def _variables(found: Authored) -> set[str]:
    """The names in the plugin's sources that may be variables."""
    from mibyan.plugins.learning import UnlearnableError, named_in_files

    try:
        return set(named_in_files(_sources(found)).variables)
    except UnlearnableError:
        return set()


def _sources(found: Authored) -> list[str]:
    root, target = found.candidate.root, found.candidate.target
    if root is not None:
        return sorted(str(path) for path in root.rglob("*.py"))
    module = sys.modules.get(target.value.partition(":")[0]) if target is not None else None
    file = getattr(module, "__file__", None)
    return [file] if isinstance(file, str) else []


def _limit(seconds: float) -> None:
    """Let no file grow without end, the one that takes what is printed least of all; and end, if the one that waits is gone."""
    if hasattr(signal, "alarm"):
        signal.alarm(min(int(seconds) + GRACE, 2**31 - 1))
    with suppress(ImportError, OSError, ValueError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT if hard < 0 else min(FILE_LIMIT, hard), hard))


if __name__ == "__main__":
    _limit(float(sys.argv.pop()))
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # what the plugin left running, threads and exit handlers, is of no interest
