"""Reloading and unloading (plugins.L7): backwards through the ledger, then anew; nothing fires twice."""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path

import pytest

from mibyan.errors import PluginError

from .world import World, answer, frozen_tool, tool, tools, write

TIMED = """
import sys, threading, mibyan
said = sys.said_of_test
@mibyan.hookimpl
def post_tool_call(tool_name):
    said.append("hook {version}")
@mibyan.hookimpl
def mibyan_unload():
    said.append("unload {version}")
def register(ctx):
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    ctx.on_unload(thread.join)
    ctx.on_unload(stop.set)
    ctx.on_unload(lambda: said.append("callback {version}"))
    ctx.register_tool("word", "words", {{"description": "d"}}, lambda args: "{version}")
"""


@pytest.fixture(autouse=True)
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What plugins said."""
    words: list[str] = []
    monkeypatch.setattr(sys, "said_of_test", words, raising=False)
    return words


def fire(loader: object) -> None:
    """Run the implementations of a hook once."""
    for implementation in loader._services.hooks.chain("post_tool_call").plain:
        implementation.function(tool_name="x")


def test_a_reload_runs_the_new_code_and_nothing_twice(world: World, said: list[str]) -> None:
    """plugins.L7: callbacks of the old one once, hooks and tools of the new one once, the thread ended."""
    root = world.folder("a", TIMED.format(version="1"))
    loader = world.load()
    threads = threading.active_count()
    for version in "234":
        write(root / "__init__.py", TIMED.format(version=version))
        record = loader.reload("a")
        assert (record.state, record.tools, answer(loader, "word")) == ("active", ("word",), version)
    fire(loader)
    assert said == ["unload 1", "callback 1", "unload 2", "callback 2", "unload 3", "callback 3", "hook 4"]
    assert threading.active_count() == threads


def test_a_reload_gives_a_new_owner(world: World) -> None:
    """What the old code held on to isn't the new plugin's."""
    world.folder("a", tool("word"))
    loader = world.load()
    old = loader.get("a").owner
    assert loader.reload("a").owner is not old


def test_a_displaced_tool_comes_back_and_is_displaced_again(world: World) -> None:
    """plugins.L7: unloading restores what an override had displaced; the reload displaces it anew."""
    world.folder("a", tool("word", answer="a"))
    root = world.folder("b", tool("word", "other", "b").replace("'b')", "'b', override=True)"))
    world.config("plugins: {entries: {b: {allow_tool_override: true}}}")
    loader = world.load()
    assert answer(loader, "word") == "b"
    write(root / "__init__.py", tool("another"))
    assert loader.reload("b").overrides == ()
    assert answer(loader, "word") == "a"
    write(root / "__init__.py", tool("word", "other", "b").replace("'b')", "'b', override=True)"))
    assert loader.reload("b").overrides == ("word",)
    assert answer(loader, "word") == "b"


def test_a_failing_reload_leaves_nothing(world: World) -> None:
    """A new version that fails is failed; the old one is gone; mended, it works again."""
    root = world.folder("a", tool("word"))
    loader = world.load()
    write(root / "__init__.py", tool("word") + "    raise ValueError('new')\n")
    assert loader.reload("a").state == "failed"
    assert tools(loader) == {}
    write(root / "__init__.py", tool("word"))
    assert loader.reload("a").state == "active"
    assert [d.kind for d in loader._services.log if d.subject == "plugin:a"] == ["loaded"]


def test_a_failed_plugin_can_be_mended_and_loaded(world: World) -> None:
    """Reload is how a broken plugin comes back without a restart."""
    root = world.folder("a", "raise SystemExit\n")
    loader = world.load()
    write(root / "__init__.py", tool("word"))
    assert (loader.reload("a").state, answer(loader, "word")) == ("active", "word")


def test_a_reload_reads_the_manifest_anew(world: World) -> None:
    """What the manifest says by now counts: frozen definitions, requirements."""
    root = world.folder("a", tool("word"))
    loader = world.load()
    write(
        root / "plugin.yaml",
        '{"version": "2.0", "tools": [{"name": "word", "toolset": "words", "schema": {"description": "says word"}}]}',
    )
    record = loader.reload("a")
    assert (record.state, record.version, record.import_ms is None) == ("ready", "2.0", True)
    assert answer(loader, "word") == "word"
    write(root / "plugin.yaml", '{"requires_mibyan": ">=99"}')
    assert (loader.reload("a").state, tools(loader)) == ("incompatible", {})


def test_a_plugin_that_is_gone_is_forgotten(world: World) -> None:
    """A folder that was removed is no plugin any more."""
    root = world.folder("a", tool("word"))
    loader = world.load()
    for path in root.iterdir():
        path.unlink() if path.is_file() else None
    with pytest.raises(PluginError, match="is gone"):
        loader.reload("a")
    assert tools(loader) == {}
    with pytest.raises(PluginError, match="there is no plugin 'a'"):
        loader.get("a")


def test_a_frozen_plugin_that_is_used_can_be_reloaded(world: World) -> None:
    """After a reload the manifest's definitions are there, and the next call imports the new code."""
    root = world.folder("a", tool("word", answer="1"), {"tools": [frozen_tool("word")]})
    loader = world.load()
    assert answer(loader, "word") == "1"
    write(root / "__init__.py", tool("word", answer="2"))
    assert loader.reload("a").state == "ready"
    assert answer(loader, "word") == "2"


@pytest.mark.parametrize("frozen", [False, True])
def test_installed_plugins_need_a_restart(world: World, frozen: bool) -> None:
    """plugins.L7: for pip plugins the answer is that a restart is needed; nothing has changed."""
    plugin_id = world.wheel("wheel_reloaded", tool("word"), {"tools": [frozen_tool("word")]} if frozen else None)
    loader = world.load()
    with pytest.raises(PluginError, match="a restart is needed"):
        loader.reload(plugin_id)
    assert answer(loader, "word") == "word"


def test_an_installed_plugin_can_be_unloaded_and_used_again(world: World) -> None:
    """Unloading takes a wheel's tools out of this runtime; its modules stay, they are the process's."""
    plugin_id = world.wheel("wheel_unloaded", "import mibyan\n@mibyan.tool\ndef word(): return 'word'\n")
    loader = world.load()
    loader.unload(plugin_id)
    assert (tools(loader), loader.get(plugin_id).state, "wheel_unloaded" in sys.modules) == ({}, "found", True)
    loader.activate(plugin_id)
    assert list(tools(loader)) == ["word"]


def test_unloading_takes_back_what_it_added_to_the_process(world: World) -> None:
    """plugins.L7: root handlers and path entries of an unloaded plugin go."""
    world.folder(
        "a",
        "import logging, sys\nsys.path.append('/nowhere')\nlogging.getLogger().addHandler(logging.NullHandler())\n"
        + tool("word"),
    )
    before = (list(sys.path), list(logging.root.handlers))
    loader = world.load()
    assert (list(sys.path), list(logging.root.handlers)) != before
    loader.unload("a")
    assert (list(sys.path), list(logging.root.handlers)) == before


def test_unloading_is_done_once(world: World, said: list[str]) -> None:
    """Unloading twice, or closing afterwards, calls nothing twice; unknown ids are errors."""
    world.folder("a", TIMED.format(version="1"))
    loader = world.load()
    loader.unload("a")
    loader.unload("a")
    loader.close()
    assert said == ["unload 1", "callback 1"]
    with pytest.raises(PluginError, match="there is no plugin 'b1'"):
        loader.unload("b1")


def test_async_callbacks_are_awaited(world: World, said: list[str]) -> None:
    """`on_unload` and `mibyan_unload` may be coroutine functions."""
    world.folder("a", """
        import sys, mibyan
        @mibyan.hookimpl
        async def mibyan_unload(): sys.said_of_test.append("unload")
        async def close(): sys.said_of_test.append("callback")
        def register(ctx):
            ctx.on_unload(close)
            ctx.register_command("say", len)
    """)  # fmt: skip
    world.load().unload("a")
    assert said == ["unload", "callback"]


def test_a_failing_callback_is_told(world: World) -> None:
    """A callback that raises, whatever it is, is a warning and keeps nothing from going."""
    world.folder("a", tool("word") + "    ctx.on_unload(lambda: exit(3))\n")
    loader = world.load()
    loader.unload("a")
    assert tools(loader) == {}
    assert any("its unload callback raised SystemExit: 3" in decision.reason for decision in loader._services.log)


def test_a_tool_file_can_be_reloaded(world: World) -> None:
    """Files of a tools directory are reloaded like folders, with their helpers."""
    source = "from mibyan import registry\nfrom . import helper\nregistry.register('word', 'words', {'description': 'd'}, lambda args: helper.WORD)\n"
    path = world.tool_file("clock", source)
    write(path.with_name("helper.py"), "WORD = 1\n")
    loader = world.load()
    write(path.with_name("helper.py"), "WORD = 2\n")
    assert answer(loader, "word") == 1
    loader.reload("tools.clock")
    assert answer(loader, "word") == 2


def test_a_project_plugin_is_reloaded_from_what_is_trusted(world: World, tmp_path: Path) -> None:
    """plugins.S1: a reload runs new project code only once that is trusted."""
    root = world.folder("a", tool("word", answer="1"), project=True)
    world.trust("a", root)
    loader = world.load()
    write(root / "__init__.py", tool("word", answer="2"))
    assert loader.reload("a").state == "untrusted"
    world.trust("a", root)
    assert (loader.reload("a").state, answer(loader, "word")) == ("active", "2")
