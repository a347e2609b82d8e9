"""Importing is free: no module of Mibyan does anything when it is imported (architecture's fourth never)."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(importlib.util.find_spec("mibyan").submodule_search_locations[0])

#: What `import mibyan` alone must not pull in (api.md, "Python").
HEAVY = (
    "asyncio", "click", "docstring_parser", "filelock", "importlib.metadata", "importlib_metadata", "inspect",
    "jsonschema_rs", "logging", "mibyan_builtin", "packaging", "pluggy", "pydantic", "pydantic_core", "rich",
    "yaml",
)  # fmt: skip

#: Import each module by itself and print what it did: `{"module": ["effect", ...]}`.
WATCH = r"""
import importlib, json, logging, os, sys, threading, types

ACTS = ("ctypes.", "os.exec", "os.fork", "os.link", "os.mkdir", "os.posix_spawn", "os.putenv", "os.remove", "os.rename",
        "os.rmdir", "os.symlink", "os.system", "os.truncate", "os.unsetenv", "shutil.", "socket.", "subprocess.",
        "tempfile.")
effects = []

def watch(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)):
        path = os.fsdecode(args[0])
        flags = args[2] or 0
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) or not path.endswith((".py", ".pyc")):
            effects.append(f"opened {path}")
    elif event.startswith(ACTS):
        effects.append(f"{event} {args!r:.200}")

def state():
    return {
        "sys.path": list(sys.path),
        "the finders": [repr(finder) for finder in (*sys.meta_path, *sys.path_hooks)],
        "the environment": dict(os.environ),
        "the threads": [thread.name for thread in threading.enumerate()],
        "the root logger": [repr(logging.root.handlers), logging.root.level],
        "the working directory": os.getcwd(),
        "sys.excepthook": repr(sys.excepthook),
        "foreign modules": [name for name in sys.modules if name.partition(".")[0] == "mibyan_builtin"],
    }

def own_modules():
    return [name for name in sys.modules if name.partition(".")[0] == "mibyan"]

import ctypes, socket, subprocess, tempfile, shutil
seen = {}
names = sys.argv[1:]
for name in names:                 # once unwatched: what other people's libraries do is not Mibyan's doing
    importlib.import_module(name)
sys.addaudithook(watch)
for name in names:
    for loaded in own_modules():
        del sys.modules[loaded]
    before = state()
    effects.clear()
    importlib.import_module(name)
    seen[name] = list(effects) + [f"changed {what}" for what, value in state().items() if value != before[what]]
print(json.dumps({name: done for name, done in seen.items() if done}))
"""

#: Import every module, then look at what the facade's names have become.
FACADE = """
import importlib, json, sys, types
for name in sys.argv[1:]:
    importlib.import_module(name)
import mibyan
print(json.dumps([name for name in mibyan.__all__ if isinstance(getattr(mibyan, name), types.ModuleType)]))
"""


def modules() -> list[str]:
    """The dotted names of all modules of the package `mibyan`, but `__main__`, which is a program."""
    paths = (path.relative_to(ROOT.parent).with_suffix("") for path in ROOT.rglob("*.py"))
    names = {".".join(path.parts[:-1] if path.name == "__init__" else path.parts) for path in paths}
    return sorted(name for name in names if not name.endswith("__main__"))


def ask(script: str, *arguments: str, cwd: Path) -> Any:
    """The JSON document that `script` prints, run in a fresh interpreter that writes no bytecode."""
    run = subprocess.run([sys.executable, "-B", "-c", script, *arguments], capture_output=True, text=True, cwd=cwd)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_the_list_of_modules_is_not_empty() -> None:
    """The tests below look at every room of the house."""
    assert {"mibyan", "mibyan.errors", "mibyan.tools.entry"} <= set(modules())


def test_no_module_has_an_effect_when_imported(tmp_path: Path) -> None:
    """Each module, imported by itself: no file but sources opened, no thread, no change of the process's state."""
    assert ask(WATCH, *modules(), cwd=tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


def test_the_watch_sees_an_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: a module that writes, sets a variable and starts a thread is told of."""
    source = (
        "import os, threading\nopen('x', 'w').close()\nos.environ['X'] = '1'\n"
        "threading.Thread(target=threading.Event().wait, daemon=True, name='t').start()\n"
    )
    (tmp_path / "mibyan_noisy.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    script = WATCH.replace('== "mibyan"]', '== "mibyan_noisy"]')
    done = ask(script, "mibyan_noisy", cwd=tmp_path)["mibyan_noisy"]
    for effect in ("opened x", "os.putenv", "changed the threads"):
        assert any(effect in line for line in done), done


def test_import_mibyan_is_light(tmp_path: Path) -> None:
    """`import mibyan` alone pulls in none of the heavy libraries and no plugin."""
    script = "import json, sys\nbefore = set(sys.modules)\nimport mibyan\nprint(json.dumps(sorted(set(sys.modules) - before)))"
    loaded = ask(script, cwd=tmp_path)
    assert [name for name in loaded if name.startswith(tuple(f"{heavy}." for heavy in HEAVY)) or name in HEAVY] == []


def test_no_submodule_takes_a_facade_name(tmp_path: Path) -> None:
    """After every module was imported, each public name of `mibyan` still is what it should be."""
    assert ask(FACADE, *modules(), cwd=tmp_path) == []


def test_every_package_has_an_init() -> None:
    """No folder with sources is a namespace package: other people's wheels can't put modules into Mibyan."""
    assert [
        str(folder) for folder in {path.parent for path in ROOT.rglob("*.py")} if not (folder / "__init__.py").exists()
    ] == []
