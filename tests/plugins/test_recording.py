"""`mibyan.plugins.recording`: what a module asked at its import is told to each further runtime (architecture, R6)."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator

import pytest

from mibyan.plugins import recording
from mibyan.plugins.loader import PluginLoader
from mibyan.plugins.recording import RECORDINGS, Asked, Recorder, Recordings

from .world import World, tool, tools

FACADE = """
import mibyan
COUNT = []
mibyan.registry.register({name!r}, "words", {{"description": "d"}}, lambda args: COUNT.append(1) or len(COUNT))
"""
TYPED = """
import mibyan
COUNT = []
@mibyan.tool(toolset="words")
def {name}():
    COUNT.append(1)
    return len(COUNT)
"""


@pytest.fixture(autouse=True)
def own_recordings(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recordings]:
    """Recordings are the process's; a test has its own."""
    made = Recordings()
    monkeypatch.setattr(recording, "RECORDINGS", made)
    return made


def owned(loader: PluginLoader) -> dict[str, str]:
    """The tools of a runtime with the ids of their owners."""
    return {name: entry.owner.id for name, entry in sorted(tools(loader).items())}


@pytest.mark.parametrize("source", [FACADE, TYPED], ids=["facade", "@tool"])
def test_each_runtime_gets_what_a_module_asked_at_its_import(world: World, source: str) -> None:
    """architecture: a pip module is imported once per process; further runtimes get its tools, with owners of their own."""
    plugin_id = world.wheel("wheel_recorded", source.format(name="word"))
    first, second = world.load(), world.load()
    assert owned(first) == owned(second) == {"word": plugin_id}
    assert tools(first)["word"].owner is not tools(second)["word"].owner
    module = sys.modules["wheel_recorded"]
    first.close()
    third = world.load()
    assert (owned(first), owned(third)) == ({}, {"word": plugin_id})
    assert sys.modules["wheel_recorded"] is module


@pytest.mark.parametrize("source", [FACADE, TYPED], ids=["facade", "@tool"])
def test_what_sub_modules_asked_counts_too(world: World, source: str) -> None:
    """What the modules below the plugin's own asked for is the plugin's, in every runtime."""
    plugin_id = world.wheel("wheel_parts", "from . import one\nfrom .deep import two\n", one=source.format(name="one"),
                            **{"deep/__init__": "", "deep/two": source.format(name="two")})  # fmt: skip
    assert owned(world.load()) == owned(world.load()) == {"one": plugin_id, "two": plugin_id}


@pytest.mark.parametrize("source", [FACADE, TYPED], ids=["facade", "@tool"])
@pytest.mark.parametrize("importer", ["wheel_aa", "wheel_zz"])
def test_a_library_s_tools_belong_to_its_own_plugin(world: World, source: str, importer: str) -> None:
    """A plugin that imports another's module as a library doesn't get that one's tools, in whatever order they load."""
    world.wheel("wheel_mm", source.format(name="word"), part="VALUE = 3\n")
    other = world.wheel(importer, "from wheel_mm import part\nimport wheel_mm.part\n" + tool("other"))
    for loader in (world.load(), world.load()):
        assert owned(loader) == {"word": "wheel-mm", "other": other}


def test_a_folder_plugin_may_use_a_wheel_as_a_library(world: World) -> None:
    """The same for a folder plugin; a disabled wheel's tools are nobody's."""
    world.wheel("wheel_mm", FACADE.format(name="word") + TYPED.format(name="typed"))
    world.folder("local", "import wheel_mm\n" + tool("other"))
    assert owned(world.load()) == {"other": "local", "typed": "wheel-mm", "word": "wheel-mm"}
    world.config("plugins: {disabled: [wheel-mm]}")
    assert owned(world.load()) == {"other": "local"}


def test_a_library_that_is_no_plugin_registers_for_its_importer(world: World) -> None:
    """What a plain library makes at its import is the importing plugin's: nobody else's."""
    (world.site / "plain_library.py").write_text(TYPED.format(name="word"))
    plugin_id = world.wheel("wheel_importer", "import plain_library\n")
    assert owned(world.load()) == owned(world.load()) == {"word": plugin_id}


def test_a_failed_import_is_asked_again(world: World) -> None:
    """What a module asked before its import failed is forgotten; the next runtime imports it anew."""
    source = "import os\n" + FACADE.format(name="word") + "if not os.environ.get('WORKS_NOW'): raise ValueError\n"
    plugin_id = world.wheel("wheel_failing", source)
    assert world.load().get(plugin_id).state == "failed"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKS_NOW", "1")
        assert owned(world.load()) == {"word": plugin_id}


def test_tool_functions_of_a_module_that_was_there_are_found(world: World) -> None:
    """A host that imports a plugin's module itself doesn't take its typed tools away."""
    plugin_id = world.wheel("wheel_early", TYPED.format(name="word"))
    importlib.import_module("wheel_early")
    assert owned(world.load()) == {"word": plugin_id}


def test_what_a_module_does_elsewhere_isn_t_repeated(world: World) -> None:
    """`register(ctx)` runs in each runtime; only what the import asked is replayed, once."""
    source = (
        FACADE.format(name="word")
        + "def register(ctx):\n    ctx.register_tool('mine', 'words', {'description': 'd'}, len)\n"
    )
    world.wheel("wheel_both", source)
    for _ in range(3):
        loader = world.load()
        assert sorted(tools(loader)) == ["mine", "word"]
        assert loader.get("wheel-both").tools == ("mine", "word")


def test_a_removal_at_import_is_repeated(world: World) -> None:
    """What is asked is asked in order, removals and aliases too."""
    source = (
        FACADE.format(name="word")
        + FACADE.format(name="gone")
        + ("mibyan.registry.deregister('gone')\nmibyan.registry.register_toolset_alias('wording', 'words')\n")
    )
    world.wheel("wheel_removing", source)
    for loader in (world.load(), world.load()):
        assert sorted(tools(loader)) == ["word"]
        assert dict(loader._services.store.snapshot.toolset_aliases) == {"wording": "words"}


def test_a_private_module_isn_t_kept(world: World, own_recordings: Recordings) -> None:
    """A folder plugin's modules are one runtime's: nothing of them is kept for others."""
    world.folder("local", FACADE.format(name="word") + TYPED.format(name="typed"))
    world.load()
    assert own_recordings._asked == []


def test_late_tools_aren_t_collected(world: World) -> None:
    """A thread that an import started can't add to the plugin when the import is over."""
    world.folder("local", """
        import contextvars, threading, mibyan
        go = threading.Event()
        def late():
            go.wait()
            @mibyan.tool(toolset="words")
            def late(): return "late"
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(late,))
        thread.start()
        def register(ctx):
            go.set()
            thread.join()
            ctx.register_tool("word", "words", {"description": "d"}, len)
    """)  # fmt: skip
    assert sorted(tools(world.load())) == ["word"]


def test_tools_made_in_register_aren_t_collected(world: World) -> None:
    """`@mibyan.tool` inside a function registers nothing by itself; `ctx.registry.add` does."""
    world.folder("local", """
        import mibyan
        def register(ctx):
            @mibyan.tool(toolset="words")
            def made(): return 1
            @mibyan.tool(toolset="words")
            def added(): return 1
            ctx.registry.add(added)
    """)  # fmt: skip
    assert sorted(tools(world.load())) == ["added"]


def test_the_same_module_in_another_object_is_new() -> None:
    """Recordings hold for the module object that asked: one that was imported anew asks itself."""
    kept = Recordings()
    module = type(sys)("module_of_test")
    sys.modules["module_of_test"] = module
    try:
        kept.add(Asked("module_of_test", "module_of_test", module, None, "register"))
        assert len(kept.of("module_of_test")) == 1
        sys.modules["module_of_test"] = type(sys)("module_of_test")
        assert kept.of("module_of_test") == []
    finally:
        del sys.modules["module_of_test"]


@pytest.mark.parametrize(
    ("name", "plugin"),
    [
        ("own", "own"), ("own.part", "own"), ("ownish", None), ("other", "other"), ("other.deep.part", "other"),
        ("shared.a", "shared.a"), ("shared.a.part", "shared.a"), ("shared.c", None), ("alone.helper", "alone.plugin"),
        ("json", None),
    ],
)  # fmt: skip
def test_which_plugin_a_module_belongs_to(name: str, plugin: str | None) -> None:
    """A module is that plugin's whose main module it is or lies below; else the only one's in its top package."""
    recorder = Recorder("own", ["other", "shared.a", "shared.b", "alone.plugin"], keep=True)
    assert recorder._plugin_of(name) == plugin


def test_recordings_take_from_many_threads() -> None:
    """Nothing is lost when plugins of several runtimes are imported at once."""
    kept = Recordings()
    threads = [
        threading.Thread(target=lambda: [kept.add(Asked("sys", "sys", sys, None, "add")) for _ in range(200)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kept.of("sys")) == 800


def test_the_process_has_one_set() -> None:
    """Outside of tests the recordings are the process's."""
    assert isinstance(RECORDINGS, Recordings)


@pytest.mark.parametrize("importer", ["wheel_aa", "wheel_zz"])
def test_whatever_a_library_asks_is_done_for_its_own_plugin(world: World, importer: str) -> None:
    """Aliases and removals of an imported plugin's module wait for that plugin too."""
    source = (
        FACADE.format(name="word") + FACADE.format(name="gone") + "mibyan.registry.deregister('gone')\n"
        "mibyan.registry.register_toolset_alias('wording', 'words')\n"
    )
    world.wheel("wheel_mm", source)
    other = world.wheel(importer, "import wheel_mm\n" + tool("other", "others"))
    for loader in (world.load(), world.load()):
        assert owned(loader) == {"word": "wheel-mm", "other": other}
        assert dict(loader._services.store.snapshot.toolset_aliases) == {"wording": "words"}
