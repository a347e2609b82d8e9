"""Plugins that register well and break the process they run in, or go on in it where they shouldn't (plugins.L2)."""

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from mibyan.errors import PluginError
from mibyan.plugins import transaction as transactions
from mibyan.plugins.process_state import ProcessState
from mibyan.plugins.transaction import transaction

FINE = """
import mibyan
mibyan.registry.register("fine", "set", {"description": "d"}, lambda args: "fine")
"""


@pytest.fixture(autouse=True)
def put_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A failed test mustn't spoil the next one."""
    monkeypatch.setattr(transactions, "REPLACED", {})
    before = ProcessState()
    yield
    before.restore(is_own)


def is_own(name: str, module: object) -> bool:
    """The modules that the plugins of these tests add."""
    return name == "mibyan.x"


def assign(holder: object, name: str, value: object) -> Callable[[], object]:
    return lambda: setattr(holder, name, value)


#: What a plugin does, and what is said of it.
DAMAGES: dict[str, tuple[Callable[[], object], str]] = {
    "a builtin that is no function": (assign(builtins, "len", None), "builtins.len is gone"),
    "the builtins one needs to put things back": (
        lambda: vars(builtins).update(dict.fromkeys(("vars", "setattr", "getattr", "isinstance", "dict", "__import__"))),
        "is gone"),
    "no os.stat": (assign(os, "stat", None), "os.stat is gone"),
    "os.open deleted": (lambda: delattr(os, "open"), "os.open is gone"),
    "no json.loads": (assign(json, "loads", None), "json.loads is gone"),
    "no locks": (assign(threading, "Lock", None), "threading.Lock is gone"),
    "no clock": (assign(time, "time", 5), "time.time is gone"),
    "no excepthook": (assign(sys, "excepthook", None), "sys.excepthook is gone"),
    "no environment": (assign(os, "environ", None), "os.environ is another object"),
    "another environment": (assign(os, "environ", {}), "os.environ is another object"),
    "other modules": (lambda: setattr(sys, "modules", dict(sys.modules)), "sys.modules is another object"),
    "no path": (assign(sys, "path", None), "sys.path isn't a list"),
    "no finders": (assign(sys, "meta_path", None), "sys.meta_path isn't a list"),
    # Looked up when it is done: another test may have put another list there.
    "finders taken away": (lambda: sys.meta_path.clear(), "isn't in sys.meta_path any more"),  # noqa: PLW0108
    "the path emptied": (lambda: sys.path.clear(), "isn't in sys.path any more"),  # noqa: PLW0108
    "a path that can't be": (lambda: sys.path.insert(0, "\ud800"), "'\\ud800' in sys.path can't be a path"),
    "a path with a NUL": (lambda: sys.path.append("a\0b"), "'a\\x00b' in sys.path can't be a path"),
    "a barred module": (lambda: sys.modules.__setitem__("json", None), "the module json can't be imported"),  # type: ignore[arg-type]
    "Mibyan barred": (lambda: sys.modules.__setitem__("mibyan.x", None), "the module mibyan.x can't be imported"),  # type: ignore[arg-type]
    "hardly a stack": (lambda: sys.setrecursionlimit(300), "the recursion limit is 300"),
    "equal to everything": (assign(os, "stat", SimpleNamespace()), "os.stat is gone"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_plugins_L2_who_breaks_the_process_has_failed(damage: str) -> None:
    """It has registered well, and nobody else could go on: it is taken back, and what it broke is as it was."""
    do, said = DAMAGES[damage]
    undone = []
    before = (builtins.len, os.stat, os.open, json.loads, os.environ, sys.modules, list(sys.path), list(sys.meta_path))
    with (
        pytest.raises(PluginError, match="it has broken the process that it runs in: ") as caught,
        transaction("breaker", is_own, lambda: undone.append(sorted([1]))),
    ):
        do()
    assert said in caught.value.message
    assert undone == [[1]]
    assert (builtins.len, os.stat, os.open, json.loads, os.environ, sys.modules, sys.path, sys.meta_path) == before


HARMLESS: dict[str, Callable[[], object]] = {
    "nothing": lambda: None,
    "a path in front": lambda: sys.path.insert(0, "/nowhere"),
    "another path": lambda: setattr(sys, "path", ["/nowhere", *sys.path]),
    "no text in the path": lambda: sys.path.insert(0, 5),  # type: ignore[arg-type]
    "a finder in front": lambda: sys.meta_path.insert(0, SimpleNamespace(find_spec=lambda *_: None)),
    "a deeper stack": lambda: sys.setrecursionlimit(sys.getrecursionlimit() + 1),
    "a variable": lambda: os.environ.__setitem__("SOME", "1"),
}


@pytest.mark.parametrize("deed", HARMLESS)
def test_plugins_L2_what_libraries_do_breaks_nothing(deed: str) -> None:
    with transaction("library", is_own, lambda: None) as running:
        HARMLESS[deed]()
    assert running.replaced == ()


def test_plugins_L2_replaced_functions_stay_and_are_known() -> None:
    """As with gevent; who looks for a fault is told."""
    with transaction("green", is_own, lambda: None) as running:
        time.sleep = print  # type: ignore[assignment]
    assert running.replaced == transactions.REPLACED["green"] == ("time.sleep",)


def run_cli(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    return subprocess.run([sys.executable, "-m", "mibyan", "--home", str(home), *words], cwd=home, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=100)  # fmt: skip


def folder(home: Path, plugin_id: str, source: str) -> None:
    base = home / "plugins" / plugin_id
    base.mkdir(parents=True)
    (base / "plugin.yaml").write_text("{}")
    (base / "__init__.py").write_text(source)


def test_plugins_L2_the_others_work_beside_one_that_breaks_the_process(tmp_path: Path) -> None:
    folder(
        tmp_path,
        "a-breaker",
        FINE.replace("fine", "bad") + "import json, os, sys\njson.dumps = os.stat = None\nsys.meta_path.clear()\n",
    )
    folder(tmp_path, "fine", FINE)
    done = run_cli(tmp_path, "call", "fine", "{}")
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert "it has broken the process that it runs in: " in done.stderr
    listed = json.loads(run_cli(tmp_path, "tools", "list", "--json").stdout)
    assert "bad" not in [one["name"] for one in listed["tools"]]


def test_plugins_L2_a_fault_that_comes_of_a_replaced_function_names_who_replaced_it(tmp_path: Path) -> None:
    folder(
        tmp_path,
        "clever",
        "import json\njson.dumps = lambda value, f=json.dumps, **_: f(value, **_) if isinstance(value, list) else 1 / 0\n"
        + FINE,
    )
    done = run_cli(tmp_path, "tools", "list", "--json")
    assert done.returncode == 1
    assert "'clever' has replaced json.dumps for the whole process: that may be why" in done.stderr
    assert "mibyan plugins disable clever" in done.stderr
    assert "Mibyan's own doing" not in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("ending", ["", "    raise ImportError('child')\n", "    raise SystemExit(0)\n"])
def test_plugins_L2_a_child_that_a_plugin_makes_isnt_the_host(tmp_path: Path, ending: str) -> None:
    """Else each call would be carried out twice, and its answer written twice."""
    counting = "lambda args: open(__file__ + '.calls', 'a').write('x') and 'fine'"
    source = FINE.replace('lambda args: "fine"', counting)
    folder(
        tmp_path,
        "forking",
        f"import os\npid = os.fork()\nif not pid:\n    pass\n{ending}if pid: os.waitpid(pid, 0)\n" + source,
    )
    done = run_cli(tmp_path, "call", "fine", "{}")
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert (tmp_path / "plugins" / "forking" / "__init__.py.calls").read_text() == "x"
    assert "plugin 'forking' made a child process while it was loaded, which ends here" in done.stderr


def test_what_plugins_print_at_the_end_isnt_data(tmp_path: Path) -> None:
    folder(
        tmp_path, "late", "import atexit, os\natexit.register(lambda: (print('late'), os.write(1, b'later')))\n" + FINE
    )
    done = run_cli(tmp_path, "tools", "list", "--json")
    assert "fine" in [one["name"] for one in json.loads(done.stdout)["tools"]]
    assert "late" in done.stderr
    assert "later" in done.stderr


#: Modules that Mibyan imports on its way, by the names of files in a project that lie in wait.
BAIT = (
    "json",
    "yaml",
    "click",
    "pydantic",
    "filelock",
    "packaging",
    "asyncio",
    "logging",
    "textwrap",
    "mibyan_builtin",
)


@pytest.mark.parametrize("command", [("plugins", "list", "--load"), ("doctor",), ("config", "show")])
def test_plugins_S1_python_m_mibyan_runs_nothing_of_the_directory_it_is_started_in(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    """`python -m` puts the current directory first: a project would be run by being entered."""
    project = tmp_path / "project"
    (project / ".mibyan").mkdir(parents=True)
    for name in BAIT:
        (project / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    done = subprocess.run([sys.executable, "-m", "mibyan", "--home", str(tmp_path / "home"), *command], cwd=project,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=100)  # fmt: skip
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()
    assert done.returncode == 0, done.stderr
