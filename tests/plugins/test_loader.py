"""`mibyan.plugins.loader`: what loading does with plugins of every source, and that no fault leaves anything behind."""

from __future__ import annotations

import logging
import os
import sys
import threading
from pathlib import Path

import pytest

from mibyan.errors import PluginError
from mibyan.plugins.loader import PluginLoader

from .world import World, answer, decisions, frozen_tool, tool, tools

TOOL_FILE = """
from mibyan import registry
registry.register(name={name!r}, toolset="words", schema={{"description": "says"}}, handler=lambda args: {name!r})
"""

#: Every way in which a module's import or a `register` can end that isn't returning.
ENDINGS = {
    "an exception": ("raise ValueError('no')", "ValueError: no"),
    "an exception without text": ("raise KeyError", "KeyError"),
    "an exception whose text can't be read": (
        "class Bad(Exception):\n    def __str__(self):\n        raise SystemExit\nraise Bad", "Bad: (its message can't be read)"),
    "sys.exit": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "exit without a code": ("raise SystemExit", "SystemExit"),
    "a base exception": ("class Odd(BaseException):\n    pass\nraise Odd('odd')", "Odd: odd"),
    "GeneratorExit": ("raise GeneratorExit", "GeneratorExit"),
    "StopIteration": ("raise StopIteration", "StopIteration"),
    "a cancellation": ("import asyncio; raise asyncio.CancelledError", "CancelledError"),
    "endless recursion": ("def f():\n    return f()\nf()", "RecursionError"),
    "out of memory": ("raise MemoryError", "MemoryError"),
    "an exception group": ("raise BaseExceptionGroup('both', [SystemExit(1), ValueError()])", "BaseExceptionGroup: both"),
    "a missing module": ("import no_such_module_xyz", "it imports 'no_such_module_xyz', which isn't there"),
    "a missing name": ("from os import no_such_name", "ImportError"),
    "an assertion": ("assert False, 'must not'", "AssertionError: must not"),
    "an error of Mibyan's without its parts": (
        "import mibyan\nclass Bad(mibyan.MibyanError):\n    def __init__(self): pass\nraise Bad", "it raised Bad"),
    "an error of Mibyan's with odd parts": ("import mibyan\nraise mibyan.MibyanError(['no text'], hint=3)", "['no text']"),
    "a missing module without a name": ("raise ModuleNotFoundError('gone', name=3)", "ModuleNotFoundError: gone"),
    "an endless message": ("raise ValueError('x' * 1_000_000)", "ValueError: xxx"),
    "a message with control characters": ("raise ValueError('\\x1b[31mred\\x00')", "ValueError: \\x1b[31mred"),
    "a warning made an error": ("raise DeprecationWarning('old')", "DeprecationWarning: old"),
}  # fmt: skip

#: What a plugin did before it failed.
DEEDS = """
import logging, os, sys, threading, warnings
from . import part
sys.path.insert(0, "/nowhere")
sys.path_hooks.append(lambda entry: None)
logging.getLogger().addHandler(logging.NullHandler())
logging.getLogger().setLevel(1)
os.environ["MIBYAN_TEST_FAULT"] = "1"
warnings.simplefilter("ignore")
sys.modules["a_module_of_the_fault"] = part
"""

REGISTRATIONS = """
import mibyan
ctx.register_tool("gone", "words", {"description": "x"}, lambda args: "x", aliases=["going"])
mibyan.registry.register("gone_too", "words", {"description": "x"}, lambda args: "x")
ctx.registry.register_toolset_alias("wording", "words")
ctx.register_toolset("phrases", ["gone"])
ctx.register_hook("post_tool_call", lambda tool_name: None)
ctx.register_command("speak", lambda text: text)
ctx.provide("voice", object)
"""


def indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.strip().splitlines())


def nothing_left(loader: PluginLoader) -> None:
    """Nothing of a plugin is in the runtime or in the process."""
    services = loader._services
    assert services.store.snapshot.entries == {}
    assert services.store.snapshot.aliases == {}
    assert services.store.snapshot.toolset_aliases == {}
    assert services.store.declared_toolsets == {}
    assert not any(services.hooks.chain(hook) for hook in ("pre_tool_call", "post_tool_call", "mibyan_unload"))
    assert loader._loading.offers.of_kind("command") == {}
    assert dict(loader.provided) == {}
    assert [name for name in sys.modules if name.startswith("mibyan_private_")] == []
    assert "a_module_of_the_fault" not in sys.modules
    assert "/nowhere" not in sys.path
    assert "MIBYAN_TEST_FAULT" not in os.environ


@pytest.fixture
def root_logger() -> list[object]:
    """What the root logger had before."""
    return [*logging.root.handlers, logging.root.level]


@pytest.mark.parametrize("name", ENDINGS)
@pytest.mark.parametrize("when", ["import", "register", "async register", "mibyan_register"])
def test_whatever_ends_a_registration_leaves_nothing(
    world: World, root_logger: list[object], name: str, when: str
) -> None:
    """plugins.L2: however an import or a register ends, nothing of it stays, and the others load."""
    code, told = ENDINGS[name]
    heads = {"register": "def register(ctx):", "async register": "async def register(ctx):",
             "mibyan_register": "import mibyan\n@mibyan.hookimpl\ndef mibyan_register(ctx):"}  # fmt: skip
    source = DEEDS + (code if when == "import" else heads[when] + "\n" + indent(REGISTRATIONS) + indent(code))
    world.folder("faulty", source, part="")
    loader = world.load()
    record = loader.get("faulty")
    assert record.state == "failed"
    assert len(record.reason) < 3000
    if not (when == "async register" and name == "StopIteration"):  # Python makes a RuntimeError of it
        assert told in record.reason
    nothing_left(loader)
    assert [*logging.root.handlers, logging.root.level] == root_logger
    [decision] = decisions(loader, "faulty")
    assert (decision.kind, decision.problem, decision.reason) == ("failed", True, record.reason)


def test_the_others_load(world: World) -> None:
    """plugins.L2: plugins before and after a faulty one work."""
    for name, source in (("a", tool("a")), ("b", "import sys; sys.exit()"), ("c", tool("c"))):
        world.folder(name, source)
    loader = world.load()
    assert [(record.id, record.state) for record in loader.all_records()] == [
        ("a", "active"), ("b", "failed"), ("c", "active"),
    ]  # fmt: skip
    assert (answer(loader, "a"), answer(loader, "c")) == ("a", "c")


@pytest.mark.parametrize("when", ["import", "register"])
def test_an_interrupt_leaves_after_the_rollback(world: World, when: str) -> None:
    """plugins.L2: KeyboardInterrupt leaves; nothing stays, and the next load goes on where this one stopped."""
    stop = "import os\nif not os.environ.get('GO_ON'):\n    raise KeyboardInterrupt\n"
    body = REGISTRATIONS + stop
    world.folder("a", "def register(ctx):\n" + indent(body) if when == "register" else stop + tool("gone"))
    world.folder("b", tool("b"))
    loader = world.loader()
    with pytest.raises(KeyboardInterrupt):
        loader.load()
    nothing_left(loader)
    os.environ["GO_ON"] = "1"
    try:
        loader.load()
    finally:
        del os.environ["GO_ON"]
    assert [record.state for record in loader.all_records()] == ["active", "active"]


def test_a_failure_says_where(world: World) -> None:
    """L1: the reason of a failure names the line of the plugin's own code, also when a library raised."""
    path = world.folder("faulty", "import json\n\n\ndef register(ctx):\n    json.loads('{')\n")
    assert f"({path / '__init__.py'}:5)" in world.load().get("faulty").reason


def test_a_refused_registration_says_where(world: World) -> None:
    """L1: what the registry refuses is told with the line that asked."""
    path = world.folder("faulty", "def register(ctx):\n    ctx.register_tool('a b', 'words', {}, len)\n")
    record = world.load().get("faulty")
    assert record.reason == f"The tool name 'a b' isn't valid. ({path / '__init__.py'}:2)"
    assert record.hint == "Use 1 to 64 of the characters a-z, A-Z, 0-9, '_' and '-'."


def test_a_syntax_error_says_where(world: World) -> None:
    """L1: code that isn't Python is a sentence with file and line."""
    path = world.folder("faulty", "x = 1\nx x\n")
    record = world.load().get("faulty")
    assert record.reason.startswith("its code isn't Python: ")
    assert f"({path / '__init__.py'}:2)" in record.reason


@pytest.mark.parametrize(
    "source",
    ["", "x = 1\n", "def register(ctx):\n    pass\n", "async def register(ctx):\n    pass\n", "register = 3\n",
     "def register(ctx):\n    yield\n", "import mibyan\n@mibyan.hookimpl\ndef mibyan_unload():\n    pass\n"],
)  # fmt: skip
def test_a_plugin_that_offers_nothing_is_failed(world: World, source: str) -> None:
    """plugins.L4: a module that registers nothing is failed, with that reason and what to write."""
    world.folder("empty", source)
    record = world.load().get("empty")
    assert record.state == "failed"
    assert record.reason.startswith("it offers nothing")
    assert "def register(ctx)" in str(record.hint)


@pytest.mark.parametrize("more", [False, True])
def test_plugins_L3_a_misspelt_hook_is_all_there_is(world: World, more: bool) -> None:
    """plugins.L3: who offers nothing because a hook is misspelt is told which was meant."""
    hook = "@mibyan.hookimpl\ndef pre_tol_call(tool_name):\n    return None\n"
    world.folder("guard", f"import mibyan\n{hook}" + (hook.replace("pre_tol_call", "quite_else") if more else ""))
    record = world.load().get("guard")
    assert record.state == "failed"
    assert record.reason.startswith(
        "it offers nothing: there is no hook 'pre_tol_call' (did you mean 'pre_tool_call'?)"
    )
    assert "pre_tool_call" in str(record.hint)


@pytest.mark.parametrize(
    "source",
    [
        tool("only"),
        "async def register(ctx):\n    ctx.register_tool('only', 't', {'description': 'd'}, lambda a: 'only')\n    return 3\n",
        "import mibyan\n@mibyan.tool\ndef only(): return 'only'\n",
        "import mibyan\nmibyan.registry.register('only', 't', {'description': 'd'}, lambda a: 'only')\n",
        (
            "import mibyan\n@mibyan.hookimpl\ndef mibyan_register(ctx):\n"
            "    ctx.register_tool('only', 't', {'description': 'd'}, lambda a: 'only')\n"
        ),
        "import mibyan\n@mibyan.tool\ndef only(): return 'only'\ndef register(ctx):\n    ctx.registry.add(only)\n",
    ],
    ids=["register", "async register", "@tool", "the facade", "mibyan_register", "@tool added by hand"],
)
def test_every_way_to_register_a_tool_works(world: World, source: str) -> None:
    """api.md: `register(ctx)`, sync or async, `mibyan_register`, `@mibyan.tool`, the seeds' facade."""
    world.folder("plugin", source)
    loader = world.load()
    assert loader.get("plugin").tools == ("only",)
    assert loader.get("plugin").owner is tools(loader)["only"].owner


def test_hooks_are_registered_in_every_way(world: World) -> None:
    """api.md: marked functions of the module, and `ctx.register_hook`; unknown names are told with a suggestion (L3)."""
    world.folder(
        "plugin",
        """
        import mibyan
        @mibyan.hookimpl
        def post_tool_call(tool_name): pass
        @mibyan.hookimpl
        def pre_tool_cal(tool_name): pass
        def register(ctx):
            assert ctx.register_hook("on_session_start", lambda session_id: None)
            assert not ctx.register_hook("on_session_begin", lambda: None)
        """,
    )
    loader = world.load()
    assert loader.get("plugin").hooks == ("on_session_start", "post_tool_call")
    told = {decision.subject: decision.reason for decision in loader._services.log if decision.kind == "unknown"}
    assert "did you mean 'pre_tool_call'" in told["hook:pre_tool_cal"]
    assert "hook:on_session_begin" in told


def test_a_bad_hook_signature_fails_the_plugin(world: World) -> None:
    """plugins.L3: both signatures are shown, and nothing of the plugin stays."""
    source = "import mibyan\n@mibyan.hookimpl\ndef pre_tool_call(tool, arguments): pass\n" + tool("gone")
    world.folder("faulty", source)
    loader = world.load()
    record = loader.get("faulty")
    assert record.state == "failed"
    assert "pre_tool_call(tool_name, args" in record.reason
    assert "pre_tool_call(tool, arguments)" in record.reason
    assert tools(loader) == {}


@pytest.mark.parametrize("caught", [False, True])
@pytest.mark.parametrize("through", ["ctx", "facade"])
def test_an_override_without_opt_in_rolls_the_plugin_back(world: World, through: str, caught: bool) -> None:
    """registry.R5: a refused override undoes the whole plugin, also if the plugin caught the exception."""
    world.folder("a", tool("word"))
    register = "ctx.registry.register" if through == "ctx" else "mibyan.registry.register"
    call = f"{register}('word', 'other', {{'description': 'd'}}, lambda a: 'b', override=True)"
    body = f"try:\n    {call}\nexcept Exception:\n    pass\n" if caught else call
    world.folder("b", "import mibyan\n" + tool("mine").rstrip() + "\n" + indent(body))
    loader = world.load()
    record = loader.get("b")
    assert (record.state, answer(loader, "word"), sorted(tools(loader))) == ("failed", "word", ["word"])
    assert "allow_tool_override: true" in str(record.hint)


@pytest.mark.parametrize("allowed", ["true", "[word]"])
def test_an_override_with_opt_in_displaces_until_it_is_unloaded(world: World, allowed: str) -> None:
    """registry.R5: both keys let a plugin take the name; unloading it brings the displaced tool back."""
    world.folder("a", tool("word"))
    world.folder("b", tool("word", "other", "b").replace("'b')", "'b', override=True)"))
    world.config(f"plugins: {{entries: {{b: {{allow_tool_override: {allowed}}}}}}}")
    loader = world.load()
    assert (answer(loader, "word"), loader.get("b").overrides) == ("b", ("word",))
    loader.unload("b")
    assert (answer(loader, "word"), loader.get("b").state) == ("word", "found")


@pytest.mark.parametrize(
    ("said", "allowed"),
    [("allow_tool_override: true", False), ("allow_tool_override: true, source: pip", False),
     ("allow_tool_override: true, source: project", True)],
)  # fmt: skip
def test_a_project_plugin_needs_its_source_named(world: World, said: str, allowed: bool) -> None:
    """registry.R5: what is allowed to an id counts for a project's plugin only with `source: project`."""
    world.folder("a", tool("word"))
    root = world.folder("b", tool("word", "other", "b").replace("'b')", "'b', override=True)"), project=True)
    world.trust("b", root)
    world.config(f"plugins: {{entries: {{b: {{{said}}}}}}}")
    loader = world.load()
    assert loader.get("b").state == ("active" if allowed else "failed")
    assert answer(loader, "word") == ("b" if allowed else "word")


def test_the_first_owner_keeps_a_name(world: World) -> None:
    """registry.R4: by tier, then by id; the loser is active without the tool, and the report says so."""
    world.folder("b", tool("word", answer="b"))
    world.folder("a", tool("word", "other", "a"))
    world.wheel("zz_wheel_first", tool("word", answer="wheel"))
    world.tool_file("early", TOOL_FILE.format(name="word"))
    loader = world.load()
    assert answer(loader, "word") == "wheel"
    assert {record.id: record.state for record in loader.all_records()} == {
        "zz-wheel-first": "active", "a": "active", "b": "active", "tools.early": "active",
    }  # fmt: skip
    rejected = [d.plugin_id for d in loader._services.log if (d.kind, d.subject) == ("rejected", "tool:word")]
    assert rejected == ["a", "b", "tools.early"]


def test_threads_of_a_failed_plugin_are_named(world: World) -> None:
    """plugins.L2: a thread can't be taken back; the report names it."""
    world.folder("faulty", """
        import threading
        stop = threading.Event()
        threading.stop_of_test = stop
        threading.Thread(target=stop.wait, name="a-stray", daemon=True).start()
        raise ValueError
    """)  # fmt: skip
    loader = world.load()
    threading.stop_of_test.set()
    reasons = [decision.reason for decision in decisions(loader, "faulty")]
    assert any("a-stray" in reason for reason in reasons)


def test_callbacks_of_a_failed_plugin_are_called(world: World) -> None:
    """plugins.L2: what a plugin wanted done when it goes is done when its loading fails, the last one first."""
    world.folder("faulty", """
        import sys
        def register(ctx):
            sys.said_by_faulty = []
            ctx.on_unload(lambda: sys.said_by_faulty.append("first"))
            ctx.on_unload(lambda: 1 / 0)
            ctx.on_unload(lambda: sys.said_by_faulty.append("last"))
            raise ValueError
    """)  # fmt: skip
    world.load()
    try:
        assert sys.said_by_faulty == ["last", "first"]
    finally:
        del sys.said_by_faulty


def test_loading_happens_once(world: World) -> None:
    """`load` is idempotent, also from many threads at once: each plugin is imported once."""
    world.folder("a", "import sys\nsys.count_of_a = getattr(sys, 'count_of_a', 0) + 1\n" + tool("a"))
    loader = world.loader()
    threads = [threading.Thread(target=loader.load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    loader.load()
    try:
        assert sys.count_of_a == 1
    finally:
        del sys.count_of_a
    assert loader.get("a").state == "active"


def test_runtimes_load_at_the_same_time(world: World) -> None:
    """Two runtimes in two threads: each gets every plugin, faults in one plugin spoil no other."""
    for name in ("a", "b", "c"):
        world.folder(name, "from . import part\n" + tool(name), part="import time\ntime.sleep(0.005)\n")
    world.folder("faulty", DEEDS + "raise SystemExit\n", part="")
    world.wheel("wheel_at_once", "import mibyan\n@mibyan.tool(toolset='words')\ndef typed(): return 1\n")
    loaders = [world.loader() for _ in range(4)]
    threads = [threading.Thread(target=loader.load) for loader in loaders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for loader in loaders:
        assert sorted(tools(loader)) == ["a", "b", "c", "typed"]
        assert loader.get("faulty").state == "failed"
    assert "/nowhere" not in sys.path


def test_a_plugin_may_ask_for_its_runtime_while_it_loads(world: World) -> None:
    """Re-entrancy: `load` within a plugin's loading returns at once, with what is there so far."""
    loader = world.loader()
    sys.loader_of_test = loader
    world.folder("a", tool("a"))
    world.folder("b", "import sys\nsys.loader_of_test.load()\nseen = list(sys.loader_of_test.records())\n" + tool("b"))
    try:
        loader.load()
    finally:
        del sys.loader_of_test
    assert loader.get("b").state == "active"


def test_records_are_by_id_and_in_order(world: World) -> None:
    """`records()`: one for each id, in the order of plugins.F1; `get` takes any spelling, unknown ids get a suggestion."""
    world.folder("my_plugin", tool("x"))
    world.wheel("other_wheel", tool("y"))
    loader = world.load()
    assert list(loader.records()) == ["other-wheel", "my_plugin"]
    assert loader.get("My-Plugin").id == "my_plugin"
    assert loader.get("mibyan-plugin-other.wheel").id == "other-wheel"
    with pytest.raises(PluginError, match="did you mean 'my_plugin'"):
        loader.get("my_plugni")


def test_an_import_is_timed(world: World) -> None:
    """`import_ms`: milliseconds of the import and the registration; none for what wasn't imported."""
    world.folder("a", "import time; time.sleep(0.02)\n" + tool("a"))
    world.folder("lazy", tool("lazy"), {"tools": [frozen_tool("lazy")]})
    loader = world.load()
    assert loader.get("a").import_ms >= 20
    assert loader.get("lazy").import_ms is None


def test_tool_files_load_one_by_one(world: World) -> None:
    """plugins.F6: a failing file is told, the others load; each is its own plugin."""
    for name, source in (
        ("clock", TOOL_FILE.format(name="clock")),
        ("needs_sdk", "import an_sdk_that_is_not_there\n" + TOOL_FILE.format(name="never")),
        ("quits", TOOL_FILE.format(name="quits") + "raise SystemExit\n"),
        ("typed", "import mibyan\n@mibyan.tool(toolset='words')\ndef typed(): return 'typed'\n"),
        ("helper", "VALUE = 3\n"),
    ):
        world.tool_file(name, source)
    loader = world.load()
    assert {record.id: record.state for record in loader.all_records()} == {
        "tools.clock": "active", "tools.needs_sdk": "failed", "tools.quits": "failed", "tools.typed": "active",
    }  # fmt: skip
    assert sorted(tools(loader)) == ["clock", "typed"]
    assert "an_sdk_that_is_not_there" in loader.get("tools.needs_sdk").reason


def test_a_directory_of_tools_is_loaded_by_hand(world: World, tmp_path: Path) -> None:
    """Seed 000, *Discovery*: the files of any directory; what was loaded is loaded once, a name in use gets a number."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "clock.py").write_text(TOOL_FILE.format(name="second_clock"))
    (folder / "broken.py").write_text("raise ValueError\n" + TOOL_FILE.format(name="broken"))
    (folder / "plain.py").write_text("x = 1\n")
    world.tool_file("clock", TOOL_FILE.format(name="clock"))
    loader = world.loader()
    assert loader.load_tools_directory(folder) == ["tools.clock.2"]
    assert loader.load_tools_directory(str(folder)) == ["tools.clock.2"]
    assert loader.load_tools_directory(world.home / "tools") == ["tools.clock"]
    assert sorted(tools(loader)) == ["clock", "second_clock"]
    with pytest.raises(PluginError, match="isn't a directory"):
        loader.load_tools_directory(folder / "nowhere")
    loader.close()
    with pytest.raises(PluginError, match="closed"):
        loader.load_tools_directory(folder)


def test_a_denied_tool_file_stays_off_by_hand(world: World, tmp_path: Path) -> None:
    """plugins.L6: `plugins.disabled` wins over everything, safe mode too."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "clock.py").write_text(TOOL_FILE.format(name="clock"))
    world.config("plugins: {disabled: [tools.clock]}")
    assert world.loader().load_tools_directory(folder) == []
    world.config("")
    assert world.loader(safe_mode=True).load_tools_directory(folder) == []
    assert world.loader().load_tools_directory(folder) == ["tools.clock"]


def test_closing_unloads_everything(world: World) -> None:
    """`close`: callbacks and `mibyan_unload`, the last plugin first, each guarded; nothing stays; twice is fine."""
    source = """
        import sys, mibyan
        said = sys.said_at_close = getattr(sys, "said_at_close", [])
        @mibyan.hookimpl
        def mibyan_unload():
            said.append(__name__[-1] + " unload")
        def register(ctx):
            ctx.register_tool(ctx.plugin_id, "words", {"description": "x"}, lambda a: "x")
            ctx.on_unload(lambda: said.append(ctx.plugin_id + " callback"))
            ctx.on_unload(lambda: sys.exit(1))
    """
    world.folder("a", source)
    world.folder("b", source)
    loader = world.load()
    loader.close()
    loader.close()
    try:
        assert sys.said_at_close == ["b unload", "b callback", "a unload", "a callback"]
    finally:
        del sys.said_at_close
    nothing_left(loader)
