"""`mibyan plugins check` tries a folder plugin in a real environment, whatever its code does (plugins.W3)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from mibyan.cli.main import main

pytestmark = pytest.mark.system

FINE = """
    import mibyan

    @mibyan.tool(toolset="weather")
    def forecast(city: str) -> str:
        '''Forecast.'''
        return city

    @mibyan.hookimpl
    def pre_tool_call(tool_name):
        return None

    def register(ctx):
        ctx.register_toolset("outdoors", ["forecast"])
        ctx.register_command("sky", lambda text: text)
        ctx.provide("sun", lambda: object())
"""

NAUGHTY = """
    import logging, os, socket, subprocess, sys, threading
    import mibyan

    open("made.txt", "w").close()
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    subprocess.run(["true"])
    socket.socket().close()
    print("hello")
    os.environ["NAUGHTY"] = "1"
    logging.getLogger().addHandler(logging.NullHandler())
    sys.path.append("/nowhere")

    @mibyan.hookimpl
    def pre_tool_cal(tool_name):
        return None

    @mibyan.tool(toolset="weather")
    def forecast(city: str) -> str:
        '''Forecast.'''
        return city
"""

OFFER = "\n\ndef register(ctx):\n    ctx.register_tool('t', 't', {'description': 'T.', 'parameters': {'type': 'object', 'properties': {}}}, lambda args: '{}')\n"


def folder_plugin(tmp_path: Path, plugin_id: str, source: str, manifest: str = "") -> Path:
    root = tmp_path / plugin_id
    root.mkdir()
    (root / "__init__.py").write_text(dedent(source))
    (root / "plugin.yaml").write_text(f"id: {plugin_id}\n{manifest}")
    return root


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs the check; what came of each, as statuses and texts by id. Nothing is left in the folder for scratch files."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))

    def check(path: Path, *words: str) -> dict[str, Any]:
        capsys.readouterr()
        code = main(["plugins", "check", str(path), "--json", *words])
        document = json.loads(capsys.readouterr().out)
        assert document["ok"] is (code == 0)
        assert list(scratch.iterdir()) == []
        assert str(scratch) not in json.dumps(document)
        found: dict[str, Any] = {}
        for one in document["checks"]:
            found.setdefault(one["id"], []).append(one)
        return found

    return check


def statuses(found: dict[str, Any], *status: str) -> set[str]:
    return {name for name, several in found.items() if any(one["status"] in status for one in several)}


def test_W3_a_plugin_that_is_fine(check: Callable, tmp_path: Path) -> None:
    """plugins.W3: once frozen, a good plugin has nothing to mend but words; what it registers is gone when it is unloaded."""
    root = folder_plugin(tmp_path, "weather", FINE, "version: '1.0'\n")
    assert main(["plugins", "manifest", str(root), "--write"]) == 0
    before = sorted(path.name for path in root.iterdir())
    found = check(root)
    assert statuses(found, "fail") == set()
    assert statuses(found, "warn") == {"requires-mibyan", "description", "readme", "license"}
    for name in (
        "load",
        "unload",
        "frozen",
        "schemas",
        "import.time",
        "import.files",
        "import.threads",
        "import.process",
    ):
        assert found[name][0]["status"] == "ok", found[name]
    assert found["load"][0]["text"] == "1 tool, 1 hook"
    assert sorted(path.name for path in root.iterdir()) == before


def test_W3_what_a_plugin_does_while_it_is_loaded(check: Callable, tmp_path: Path) -> None:
    """plugins.W3: files, threads, programs, sockets and prints are told with their lines; what it changes of the process too."""
    root = folder_plugin(
        tmp_path, "naughty", NAUGHTY, "tools: [{name: forecast, toolset: w, schema: {}}]\ncommands: [old]\n"
    )
    found = check(root)
    lines = {
        check_id: {one["origin"].rpartition(":")[2] for one in found[check_id] if one["origin"]}
        for check_id in ("import.files", "import.threads", "import.processes", "import.sockets")
    }
    assert lines == {"import.files": {"5"}, "import.threads": {"6"}, "import.processes": {"7"}, "import.sockets": {"8"}}
    assert found["import.files"][0]["origin"] == f"{root / '__init__.py'}:5"
    assert "hello" in found["import.prints"][0]["text"]
    told = {(one["status"], one["text"].split(",")[0]) for one in found["import.process"]}
    assert ("fail", "it changes the environment variable NAUGHTY") in told
    assert {text for status, text in told if status == "warn"} == {
        "it changes root handlers as long as it is loaded", "it changes sys.path (/nowhere) as long as it is loaded",
    }  # fmt: skip
    assert statuses(found, "fail") == {
        "import.files", "import.threads", "import.processes", "import.sockets", "import.prints", "import.process", "unload", "frozen",
    }  # fmt: skip
    assert "pre_tool_call" in found["load"][0]["fix"]
    assert [one["status"] for one in found["frozen"]] == ["fail", "warn"]
    assert not (root / "made.txt").exists()


@pytest.mark.parametrize(
    ("source", "check_id", "text"),
    [
        ("import os\nos._exit(3)\n", "load", "exit code 3"),
        ("import ctypes\nctypes.string_at(0)\n", "load", "SIG"),
        ("raise SystemExit('enough')\n", "load", "enough"),
        ("import pytest\n", "load", "'pytest', which isn't there"),
        ("x = 1\n", "load", "failed"),
        ("import os\n" + OFFER + "    ctx.on_unload(lambda: os._exit(4))\n", "unload", "exit code 4"),
        ("import os\n" + OFFER + "    ctx.on_unload(lambda: 1 / 0)\n", "unload", "ZeroDivisionError"),
    ],
    ids=["exit", "crash", "SystemExit", "import", "nothing", "exit at unload", "raises at unload"],
)
def test_W3_code_that_ends_badly(check: Callable, tmp_path: Path, source: str, check_id: str, text: str) -> None:
    """plugins.W3: a plugin that ends the process, or can't be loaded, is told as such."""
    found = check(folder_plugin(tmp_path, "bad", source))
    assert statuses(found, "fail") == {check_id}
    assert text in found[check_id][0]["text"]


def test_W3_a_hang_is_ended(check: Callable, tmp_path: Path) -> None:
    """plugins.W3: at the end of its time a plugin that hangs is ended, and that is said."""
    found = check(folder_plugin(tmp_path, "stuck", "import threading\nthreading.Event().wait()\n"), "--timeout", "2")
    assert "still running after 2 s" in found["load"][0]["text"]


def test_W3_settings(check: Callable, tmp_path: Path) -> None:
    """plugins.M2: a plugin has the defaults of its settings, and those of --config; what isn't valid is a mistake."""
    source = "def register(ctx):\n    ctx.register_tool(ctx.config['name'] + ctx.config['more'], 't', {'description': 'T.'}, lambda args: '{}')\n"
    schema = "config_schema: {type: object, required: [more], properties: {name: {type: string, default: na}, more: {type: string}}}\n"
    root = folder_plugin(
        tmp_path, "config", source, f"{schema}tools: [{{name: name, toolset: t, schema: {{description: T.}}}}]\n"
    )
    assert statuses(check(root), "fail") == {"load"}
    file = tmp_path / "settings.yaml"
    file.write_text("more: me\n")
    found = check(root, "--config", str(file))
    assert statuses(found, "fail") == set()
    assert found["frozen"][0]["status"] == "ok"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_W3_nothing_is_left_of_an_interrupted_check(tmp_path: Path, number: signal.Signals) -> None:
    """plugins.W3: Ctrl-C and kill end the plugin's process too, and remove what was made."""
    fifo, scratch = tmp_path / "fifo", tmp_path / "scratch"
    os.mkfifo(fifo)
    scratch.mkdir()
    source = f"import os, threading\nend = os.open({str(fifo)!r}, os.O_WRONLY)\nos.write(end, b'x')\nthreading.Event().wait()\n"
    root = folder_plugin(tmp_path, "stuck", source)
    process = subprocess.Popen(
        [sys.executable, "-m", "mibyan", "plugins", "check", str(root)], env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with fifo.open("rb") as reader:
        assert reader.read(1) == b"x"
        process.send_signal(number)
        assert reader.read() == b""  # the plugin's process has ended
    assert process.wait(60) == 128 + number
    assert list(scratch.iterdir()) == []
