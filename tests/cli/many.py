"""Many plugins on disk, frozen ones and ones that have to be learned, as wheels and as folders, written in any order."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Runs before anything else: notes each piece of a plugin's code that is run, and can list folders in another order.
SITECUSTOMIZE = """
import os, random, sys

_root, _log, _seed = os.environ["MANY_ROOT"] + os.sep, os.environ["MANY_LOG"], os.environ.get("MANY_SEED")


def _watch(event, args):
    if event == "exec" and getattr(args[0], "co_filename", "").startswith(_root):
        with open(_log, "a") as log:
            log.write(args[0].co_filename + "\\n")


sys.addaudithook(_watch)

if _seed is not None:
    _listdir, _scandir = os.listdir, os.scandir

    def _shuffled(entries):
        entries = sorted(entries, key=lambda one: getattr(one, "name", one), reverse=_seed == "reversed")
        if _seed != "reversed":
            random.Random(_seed).shuffle(entries)
        return entries

    class _Scan:
        def __init__(self, path="."):
            with _scandir(path) as entries:
                self._entries = iter(_shuffled(entries))

        def __iter__(self):
            return self

        def __next__(self):
            return next(self._entries)

        def __enter__(self):
            return self

        def __exit__(self, *exc):
            pass

        close = __exit__

    os.listdir, os.scandir = lambda path=".": _shuffled(_listdir(path)), _Scan
"""

SOURCE = '''
"""Plugin {id}."""
import mibyan


@mibyan.tool(toolset="words_{group}", name="word_{id}", read_only=True)
def word(text: str, times: int = 1) -> str:
    """Say a word for {id}.

    Args:
        text: The word.
        times: How often.
    """
    return "{id}:" + text * times
'''
SCHEMA = {
    "description": "Say a word for {id}.",
    "parameters": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "The word."},
            "times": {"type": "integer", "default": 1, "description": "How often."},
        },
        "required": ["text"],
        "additionalProperties": False,
    },
}


@dataclass
class Many:
    """What is written, below one folder, and how it is looked at.

    Args:
        root: The folder: `sites/0`, `sites/1` (on `sys.path`), `home`, and `customize` for what runs first.
    """

    root: Path
    #: What is to be written for each plugin: files by their paths below `root`.
    plugins: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, plugin_id: str, kind: str, *, frozen: bool, after: str | None = None, **more: Any) -> None:
        """A plugin of a kind: `wheel`, `folder`, or `category` (a folder in one)."""
        group = plugin_id[-1]
        said: dict[str, Any] = {"manifest_version": 1, "id": plugin_id, "version": "1.0", **more}
        if after is not None:
            said["after"] = [after]
        target = f"{plugin_id}:word"
        if frozen:
            schema = {**SCHEMA, "description": SCHEMA["description"].format(id=plugin_id)}
            said["tools"] = [
                {"name": f"word_{plugin_id}", "toolset": f"words_{group}", "schema": schema, "target": target}
            ]
        source = SOURCE.format(id=plugin_id, group=group)
        if kind == "wheel":
            site = f"sites/{len(self.plugins) % 2}"
            info = f"{site}/{plugin_id}-1.0.dist-info"
            files = {
                f"{site}/{plugin_id}/__init__.py": source,
                f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {plugin_id}\nVersion: 1.0\n",
                f"{info}/RECORD": f"{plugin_id}/__init__.py,,\n",
                f"{info}/entry_points.txt": f"[mibyan.plugins]\n{plugin_id} = {plugin_id}\n",
                f"{info}/extra_metadata/mibyan.json": json.dumps(said),
            }
        else:
            folder = f"home/plugins/{'drawer/' if kind == 'category' else ''}{plugin_id}"
            files = {f"{folder}/__init__.py": source, f"{folder}/plugin.yaml": json.dumps(said)}
        self.plugins[plugin_id] = files

    def write(self, seed: int = 0) -> None:
        """Write all, the plugins and the files of each in an order of their own for each `seed`."""
        shuffle = random.Random(seed).shuffle
        for folder in ("home/plugins", "sites/0", "sites/1", "work", "customize"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        (self.root / "customize" / "sitecustomize.py").write_text(SITECUSTOMIZE)
        ids = list(self.plugins)
        shuffle(ids)
        for plugin_id in ids:
            files = list(self.plugins[plugin_id].items())
            shuffle(files)
            for name, text in files:
                path = self.root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")

    def runner(self) -> Callable[..., tuple[str, set[str]]]:
        """Runs a Python with the words it is given, and tells what it printed and whose code it ran."""
        log = self.root / "log"

        def run(*words: str, **env: str) -> tuple[str, set[str]]:
            log.write_text("")
            here = Path(__file__).parents[2]
            path = (self.root / "customize", self.root / "sites/0", self.root / "sites/1", *_own(here))
            clean = {key: text for key, text in os.environ.items() if not key.startswith(("MIBYAN_", "PYTHON"))}
            done = subprocess.run(
                [sys.executable, *words], cwd=self.root / "work", capture_output=True, text=True, check=False, timeout=120,
                env={**clean, "MIBYAN_HOME": str(self.root / "home"), "PYTHONPATH": os.pathsep.join(map(str, path)),
                     "MANY_ROOT": str(self.root), "MANY_LOG": str(log), **env},
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
            ran = {line for line in log.read_text().splitlines() if "/customize/" not in line}
            owners = {name: plugin_id for plugin_id, files in self.plugins.items() for name in files}
            return done.stdout, {owners[Path(line).relative_to(self.root).as_posix()] for line in ran}

        return run


def _own(checkout: Path) -> list[str]:
    """Where this test's Mibyan comes from, if it isn't installed: entries of `sys.path` in the checkout."""
    return [entry for entry in sys.path if entry and Path(entry).is_relative_to(checkout)]
