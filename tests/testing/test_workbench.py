"""The workbench: runtimes that see nothing of the machine, plugins made for them, and everything taken back (plugins.W2)."""

from __future__ import annotations

import builtins
import importlib.metadata
import logging
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import mibyan
from mibyan.testing import ToolCaller, Workbench

TOOL = """
    import mibyan

    @mibyan.tool(toolset="words")
    def {name}(text: str = "") -> str:
        '''Say it.'''
        return {name!r} + text
"""


def tool(name: str) -> str:
    return TOOL.format(name=name)


def own(runtime: mibyan.Runtime) -> list[str]:
    """The plugins that aren't built in."""
    return [one.id for one in runtime.plugins.survey() if one.source != "builtin"]


def state(root: Path) -> dict[str, object]:
    """What a workbench below `root` could leave behind."""
    return {
        "sys.path": list(sys.path),
        "finders": list(sys.meta_path),
        "importers": [place for place in sys.path_importer_cache if place.startswith(str(root))],
        "environment": dict(os.environ),
        "threads": set(threading.enumerate()),
        "modules": {name for name in sys.modules if not name.startswith(("mibyan.", "pydantic", "importlib"))},
    }


def test_workbench_W2_a_runtime_sees_nothing_of_the_machine(
    bench: Workbench, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither `~/.mibyan`, nor an installed plugin, nor the working directory's project, nor a variable."""
    with Workbench(tmp_path / "machine") as machine:
        machine.write_distribution("mibyan-plugin-installed", source=tool("installed"))
        folder = own_home / ".mibyan" / "plugins" / "mine"
        folder.mkdir(parents=True)
        (folder / "plugin.yaml").write_text("id: mine\n")
        (folder / "__init__.py").write_text("")
        (tmp_path / "project" / ".mibyan").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / "project")
        assert own(mibyan.Runtime(home=own_home / ".mibyan")) == ["installed", "mine"]
        assert own(bench.runtime()) == []
        assert bench.runtime()._parts.project is None


def test_workbench_W2_variables_are_away_and_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MIBYAN_SAFE_MODE and the like don't count meanwhile; what the test sets doesn't stay."""
    monkeypatch.setenv("MIBYAN_SAFE_MODE", "1")
    monkeypatch.setenv("MIBYAN_HOME", "/somewhere")
    with Workbench(tmp_path / "bench") as bench:
        assert "MIBYAN_SAFE_MODE" not in os.environ
        assert os.environ["MIBYAN_HOME"] == str(bench.home)
        os.environ["MIBYAN_PLUGINS"] = "other"
        runtime = bench.runtime()
        assert bench.load(runtime, bench.write_plugin(tool("one")).name).tools == ("one",)
    assert os.environ["MIBYAN_SAFE_MODE"] == "1"
    assert os.environ["MIBYAN_HOME"] == "/somewhere"
    assert "MIBYAN_PLUGINS" not in os.environ


def test_workbench_W2_nothing_is_left_behind(tmp_path: Path) -> None:
    """Path, finders, modules, environment and threads are as they were, whatever the plugins did."""
    with Workbench(tmp_path / "warm-up") as bench:  # what Mibyan itself imports on the way stays
        bench.load(bench.runtime(), bench.write_plugin(tool("one")).name)
    before = state(tmp_path)
    with Workbench(tmp_path / "bench") as bench:
        bench.write_distribution("mibyan-plugin-one", source=tool("one"))
        bench.write_distribution("mibyan-plugin-two", source=tool("two"), editable=True)
        runtime = bench.runtime()
        for name in ("one", "two"):
            assert bench.load(runtime, name).state == "active"
        assert ToolCaller(runtime).using(timeout=30)("two", text="!").text == "two!"
        bench.load(runtime, bench.write_plugin(tool("three"), "three").name)
        bench.load(runtime, bench.write_plugin("1/0", "four").name, check=False)
        assert state(tmp_path) != before
    assert state(tmp_path) == before
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("mibyan-plugin-one")


def test_workbench_W2_the_same_name_in_the_next_test_is_another_plugin(tmp_path: Path) -> None:
    """Two tests that fabricate one distribution don't see each other's code."""
    for number in (1, 2):
        with Workbench(tmp_path / str(number)) as bench:
            bench.write_distribution("mibyan-plugin-same", f"{number}.0", source=tool(f"tool{number}"))
            plugin = bench.load(bench.runtime(), "same")
            assert (plugin.version, plugin.tools) == (f"{number}.0", (f"tool{number}",))


SPREADING = """
import builtins, logging, os, sys, time
os.environ["SPREAD"] = os.environ["KEPT"] = "1"
os.environ.pop("TAKEN", None)
builtins.spread = 1
logging.root.setLevel(7)
sys.setrecursionlimit(sys.getrecursionlimit() + 10)
time.sleep = lambda seconds, before=time.sleep: before(seconds)
os.chdir("/")

def register(ctx):
    ctx.register_tool("spreading", "words", {"description": "d"}, lambda args: os.environ["SPREAD"])
"""


def test_what_a_plugin_changes_of_the_process_ends_with_its_test_W2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later test, of another plugin, mustn't pass or fail because of it; what the test itself set meanwhile stays."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TAKEN", "before")
    for name in ("SPREAD", "KEPT"):
        monkeypatch.delenv(name, raising=False)

    def look() -> list[Any]:
        return [os.environ.get("SPREAD"), os.environ.get("TAKEN"), hasattr(builtins, "spread"), logging.root.level,
                sys.getrecursionlimit(), time.sleep, Path.cwd()]  # fmt: skip

    before = look()
    for _ in range(2):
        with Workbench(tmp_path / "bench", keep_environment=True) as bench:
            runtime = bench.runtime()
            bench.load(runtime, bench.write_plugin(SPREADING).name)
            assert runtime.call("spreading", {}) == "1"
            assert os.environ["KEPT"] == "1"
            os.environ["KEPT"] = "by the test"
        assert look() == before
        assert os.environ.pop("KEPT") == "by the test"
        shutil.rmtree(tmp_path / "bench")


def test_what_an_installed_plugin_changes_at_its_import_stays_as_its_modules_do_W2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python imports it once: the second test would be without what the first one had."""
    monkeypatch.setenv("SPREAD", "no")
    source = "import os\nos.environ['SPREAD'] = 'yes'\n" + tool("spread_once").replace("\n    ", "\n")
    with Workbench(tmp_path / "machine") as machine:
        machine.write_distribution("mibyan-plugin-spread", source=source)
        for number in range(2):
            with Workbench(tmp_path / f"bench{number}") as bench:
                bench.load(bench.runtime(plugins=["spread"]), "spread")
                assert os.environ["SPREAD"] == "yes"
            assert os.environ["SPREAD"] == "yes"
