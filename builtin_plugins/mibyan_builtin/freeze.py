"""The built-in plugins' manifests, generated from their code: `python -m mibyan_builtin.freeze [--check]`.

With `--check` nothing is written; the exit code is 1 and the plugins are named when a manifest isn't what the code says.
"""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mibyan import __version__

HERE = Path(__file__).parent

#: The keywords of `registry.register` that are data; the others are known once the plugin is imported.
DATA_OPTIONS = (
    "description", "emoji", "aliases", "is_async", "timeout", "max_result_size_chars", "read_only", "destructive",
    "idempotent", "open_world", "parallel", "interactive", "thread", "loop", "check_ttl", "check_grace", "cache",
    "defer", "untrusted_output", "handled_by", "validate",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plugin:
    """A built-in plugin."""

    id: str
    #: What it does to the machine, for people to read.
    permissions: tuple[str, ...] = ()


PLUGINS = (
    Plugin("delegation"),
    Plugin("files", ("reads and writes files in the workspace",)),
    Plugin("memory"),
    Plugin("planning"),
    Plugin("sessions"),
    Plugin("terminal", ("runs commands on this machine",)),
)


def manifest(plugin: Plugin) -> dict[str, Any]:
    """The manifest that a plugin's code says, as JSON types (plugins.M2)."""
    module = importlib.import_module(f"mibyan_builtin.{plugin.id}")
    tools = [part for part in vars(module).values() if hasattr(part, "toolset") and hasattr(part, "options")]
    description = (module.__doc__ or "").split("\n", 1)[0].partition(": ")[2]
    data: dict[str, Any] = {"manifest_version": 1, "id": plugin.id, "version": __version__}
    data |= {"description": description[:1].upper() + description[1:], "author": "The Mibyan maintainers"}
    if plugin.permissions:
        data["permissions"] = list(plugin.permissions)
    data["tools"] = [_tool(each, module.__name__) for each in sorted(tools, key=lambda each: each.name)]
    return data


def text(plugin: Plugin) -> str:
    """The text of a plugin's `mibyan.json`."""
    return json.dumps(manifest(plugin), ensure_ascii=False, indent=1) + "\n"


def _tool(function: Any, module: str) -> dict[str, Any]:
    schema = {key: value for key, value in function.schema.items() if key != "name"}
    options = {key: function.options[key] for key in DATA_OPTIONS if key in function.options}
    flags = {key: value for key, value in options.items() if not callable(value)}
    target = f"{module}:{function.__name__}"
    return {"name": function.name, "toolset": function.toolset, "schema": schema, "target": target, "flags": flags}


def main(arguments: list[str]) -> int:
    """Write the manifests, or check them; the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m mibyan_builtin.freeze [--check]", file=sys.stderr)  # noqa: T201
        return 2
    drifted = []
    for plugin in PLUGINS:
        path = HERE / plugin.id / "mibyan.json"
        wanted = text(plugin)
        if not path.is_file() or path.read_text(encoding="utf-8") != wanted:
            drifted.append(plugin.id)
            if not arguments:
                path.write_text(wanted, encoding="utf-8")
    if not drifted:
        return 0
    verb = "drifted from the code" if arguments else "written"
    print(f"manifests {verb}: {', '.join(drifted)}", file=sys.stderr)  # noqa: T201
    return 1 if arguments else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
