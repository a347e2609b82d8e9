"""`mibyan.plugins.frozen` and activation: a manifest's definitions are enough until something is used (plugins.M4, R12)."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from mibyan.errors import PluginError
from mibyan.plugins.loader import PluginLoader
from mibyan.tools.availability import Availability

from .world import World, answer, decisions, frozen_tool, tool, tools

#: A plugin whose import is counted in `sys.imports_of_test`.
COUNTED = "import sys\nsys.imports_of_test.append(__name__)\n"
STOP = "raise BaseException('a frozen plugin was imported')\n"


@pytest.fixture(autouse=True)
def imports(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The imports of counted plugins."""
    seen: list[str] = []
    monkeypatch.setattr(sys, "imports_of_test", seen, raising=False)
    return seen


def generation(loader: PluginLoader) -> int:
    return loader._services.store.generation


def one(world: World, source: str, *definitions: dict[str, Any], **manifest: Any) -> PluginLoader:
    """A loader with one frozen folder plugin `lazy`."""
    world.folder("lazy", source, {"tools": list(definitions), **manifest})
    return world.load()


def test_nothing_is_imported_to_know_what_there_is(world: World) -> None:
    """M4: tools, toolsets, commands, hooks, backends and services of a frozen plugin are known without its code."""
    loader = one(
        world, STOP,
        frozen_tool("word", flags={"aliases": ["mot"], "emoji": "W", "read_only": True, "timeout": 3}, requires_env=["KEY"],
                    requires={"env": ["HOME"]}),
        frozen_tool("other"),
        toolsets={"phrases": {"tools": ["word"], "includes": ["words"], "description": "d"}}, hooks=["post_tool_call"],
        commands=[{"name": "say", "description": "d", "args_hint": "TEXT"}], cli=["speech"],
        environments={"cloud": "lazy.cloud:Cloud"}, requires={"bins": ["sh"]},
    )  # fmt: skip
    record = loader.get("lazy")
    assert (record.state, record.tools, record.hooks, record.import_ms) == (
        "ready",
        ("other", "word"),
        ("post_tool_call",),
        None,
    )
    entry = tools(loader)["word"]
    assert (entry.toolset, entry.emoji, entry.read_only, entry.timeout, entry.aliases) == (
        "words",
        "W",
        True,
        3,
        ("mot",),
    )
    assert (entry.requires_env, entry.requires.env, entry.requires.bins) == (("KEY",), ("HOME",), ("sh",))
    assert entry.schema == {
        "name": "word",
        "description": "says word",
        "parameters": {"type": "object", "properties": {}},
    }
    assert entry.handler is None
    assert str(entry.origin).endswith("plugin.yaml")
    assert loader._services.store.find("mot") is entry
    assert loader._services.store.declared_toolsets["phrases"].includes == ("words",)
    assert [(o.name, o.value, o.args_hint) for o in loader.offers.commands.values()] == [("say", None, "TEXT")]
    assert list(loader.offers.cli) == ["speech"]
    assert loader.offers.environments["cloud"].value == "lazy.cloud:Cloud"


@pytest.mark.parametrize("kind", ["folder", "wheel"])
@pytest.mark.parametrize(
    ("target", "source"),
    [
        (None, tool("word")),
        (None, "import mibyan\n@mibyan.tool(toolset='words')\ndef word(): return 'word'\n"),
        (
            None,
            "import mibyan\nmibyan.registry.register('word', 'words', {'description': 'says word'}, lambda a: 'word')\n",
        ),
        ("{m}:handle", "def handle(args, **context): return 'word'\n"),
        ("{m}:word", "import mibyan\n@mibyan.tool\ndef word(): return 'word'\n"),
        ("{m}:Holder.handle", "class Holder:\n    @staticmethod\n    def handle(args): return 'word'\n"),
        (".part:handle", ""),
        ("{m}.part:handle", ""),
        ("{m}:handle", "from .part import handle\n"),
    ],
)
def test_a_call_imports_the_plugin_and_gets_the_handler(
    world: World, kind: str, target: str | None, source: str
) -> None:
    """M4: a handler comes from what the code registers, or from the manifest's `module:attribute`."""
    name = "lazy_of_test"
    definition = frozen_tool("word", **({"target": target.format(m=name)} if target else {}))
    make = world.folder if kind == "folder" else world.wheel
    make(name, source, {"tools": [definition]}, part="def handle(args): return 'word'\n")
    loader = world.load()
    plugin_id = next(iter(loader.records()))
    entry = tools(loader)["word"]
    before = generation(loader)
    assert (loader.get(plugin_id).state, entry.handler) == ("ready", None)
    assert answer(loader, "word") == "word"
    record = loader.get(plugin_id)
    assert (record.state, record.tools) == ("active", ("word",))
    assert record.import_ms is not None
    assert generation(loader) == before
    assert tools(loader)["word"].schema == entry.schema
    assert tools(loader)["word"].activate is None


@pytest.mark.parametrize("target", ["tools:handle", ".tools:handle", "lazy:entry", "lazy.tools:handle", "json:dumps"])
def test_a_folder_s_targets_are_named_as_seen_from_it(world: World, target: str) -> None:
    """A folder's manifest names its modules as they lie in it, by the folder's name, or any other module."""
    world.folder("lazy", "from .tools import handle as entry\n", {"tools": [frozen_tool("word", target=target)]},
                 tools="def handle(args): return '{}'\n")  # fmt: skip
    assert answer(world.load(), "word") == "{}"


def test_typed_functions_keep_the_manifest_s_definition(world: World) -> None:
    """A typed function's schema isn't built for a call: the manifest's stays, with the toolset; the code's options count."""
    loader = one(
        world,
        """
        import mibyan
        @mibyan.tool(toolset="elsewhere", timeout=lambda args: 7, approval=lambda args, context: None)
        def word(size: int = 3) -> str: return "word" * size
        """,
        frozen_tool("word"),
    )
    before = generation(loader)
    loader.activate("lazy")
    entry = tools(loader)["word"]
    assert (entry.toolset, entry.schema["description"], entry.timeout({}), generation(loader)) == (
        "words",
        "says word",
        7,
        before,
    )
    assert entry.bind is not None
    assert entry.approval is not None


def test_importing_replaces_the_plugin_s_own_entries_only(world: World) -> None:
    """registry.R12: what was deregistered stays away, what somebody else holds stays theirs."""
    world.folder("first", tool("taken", answer="first"))
    loader = one(world, "".join(tool(name).replace("register(", f"register_{name}(", 1) for name in ("word", "gone", "taken"))
                 + "def register(ctx):\n    register_word(ctx); register_gone(ctx); register_taken(ctx)\n",
                 frozen_tool("word"), frozen_tool("gone"), frozen_tool("taken"))  # fmt: skip
    loader._services.store.deregister("gone", tools(loader)["gone"].owner)
    before = generation(loader)
    loader.activate("lazy")
    assert (answer(loader, "word"), answer(loader, "taken"), answer(loader, "gone")) == ("word", "first", "no gone")
    assert generation(loader) == before
    assert loader.get("lazy").tools == ("word",)


def test_what_isn_t_announced_is_drift(world: World) -> None:
    """registry.R12: tools and hooks that only the code has aren't taken, and the report says so."""
    source = (
        "import mibyan\n@mibyan.hookimpl\ndef post_tool_call(): pass\n"
        + tool("word")
        + ("    ctx.register_tool('extra', 'words', {'description': 'd'}, lambda args: 'extra')\n")
    )
    loader = one(world, source, frozen_tool("word"), hooks=["pre_tool_call"])
    loader.activate("lazy")
    assert sorted(tools(loader)) == ["word"]
    told = [decision.reason for decision in decisions(loader, "lazy") if decision.kind == "warning"]
    assert len(told) == 1
    for words in ("the tool 'extra'", "the hook 'post_tool_call'", "no hook 'pre_tool_call'"):
        assert words in told[0]
    assert not loader._services.hooks.chain("post_tool_call")


def test_another_definition_is_drift_and_the_code_s_counts(world: World) -> None:
    """registry.R12: the generation grows only if a definition changed."""
    loader = one(world, tool("word").replace("says word", "says more"), frozen_tool("word"))
    before = generation(loader)
    loader.activate("lazy")
    assert tools(loader)["word"].schema["description"] == "says more"
    assert generation(loader) == before + 1
    assert any("another definition of the tool 'word'" in decision.reason for decision in decisions(loader, "lazy"))


def test_tools_may_be_registered_once_it_runs(world: World) -> None:
    """Only the import is bound by the manifest: what the plugin registers later is its own."""
    source = """
        def register(ctx):
            def handle(args):
                ctx.register_tool("later", "words", {"description": "d"}, lambda args: "later")
                return "word"
            ctx.register_tool("word", "words", {"description": "says word"}, handle)
    """
    loader = one(world, source, frozen_tool("word"))
    assert (answer(loader, "word"), answer(loader, "later")) == ("word", "later")


@pytest.mark.parametrize(
    ("target", "source", "told"),
    [
        (None, "x = 1\n", "its manifest announces the tool 'word', which its code doesn't register"),
        ("lazy:gone", "x = 1\n", "has no 'gone'"),
        ("lazy:x", "x = 1\n", "its manifest names 'lazy:x' as a handler, which is int, not a function"),
        ("lazy.gone:x", "x = 1\n", "gone"),
        ("no_such_module_xyz:x", "x = 1\n", "'no_such_module_xyz', which isn't there"),
        (None, "raise SystemExit(3)\n", "it ended the program"),
        (None, "import no_such_module_xyz\n", "it imports 'no_such_module_xyz', which isn't there"),
    ],
)
def test_code_that_doesn_t_keep_the_manifest_s_word_fails(
    world: World, imports: list[str], target: str | None, source: str, told: str
) -> None:
    """A first use that fails says why; then everything of the plugin is gone, and it isn't tried again."""
    definition = frozen_tool("word", **({"target": target} if target else {}))
    loader = one(world, COUNTED + source, definition, frozen_tool("other"), hooks=["post_tool_call"], commands=["say"])
    with pytest.raises(PluginError) as caught:
        answer(loader, "word")
    assert told in caught.value.message
    assert (caught.value.plugin_id, caught.value.origin) == ("lazy", loader.get("lazy").origin)
    record = loader.get("lazy")
    assert (record.state, record.tools, record.hooks, tools(loader), loader.offers.commands) == (
        "failed",
        (),
        (),
        {},
        {},
    )
    with pytest.raises(PluginError, match="has failed"):
        loader.activate("lazy")
    assert len(imports) == 1
    assert [decision.kind for decision in decisions(loader, "lazy")] == ["failed"]


def test_hooks_import_their_plugin_when_they_are_first_needed(world: World, imports: list[str]) -> None:
    """M4: an announced hook is imported with its first call, and one that fails is as if it weren't there."""
    source = (
        COUNTED
        + "import mibyan\n@mibyan.hookimpl\ndef post_tool_call(): pass\n@mibyan.hookimpl\ndef mibyan_unload(): pass\n"
    )
    loader = one(world, source, hooks=["post_tool_call"])
    world.folder("broken", STOP, {"tools": [], "hooks": ["post_tool_call"]})
    loader = world.load()
    hooks = loader._services.hooks
    assert not hooks.chain("pre_tool_call")
    assert imports == []
    assert [i.owner.id for i in hooks.chain("post_tool_call").plain] == ["lazy"]
    assert len(imports) == 1
    assert (loader.get("broken").state, loader.get("lazy").state) == ("failed", "active")


def test_a_check_imports_its_plugin(world: World, imports: list[str]) -> None:
    """M4: a check that is code is imported when it is first asked; tools that share it share one probe."""
    source = (
        COUNTED
        + "def check():\n    imports = __import__('sys').imports_of_test\n    imports.append('probe')\n    return 'not today'\n"
    )
    both = [frozen_tool(name, check="lazy:check", target="lazy:check") for name in ("one", "two")]
    loader = one(world, source, *both, frozen_tool("free", target="lazy:check"))
    entries = list(tools(loader).values())
    verdicts = Availability().verdicts(entries)
    assert (verdicts["one"].reason, verdicts["two"].reason, verdicts["free"].available) == (
        "not today",
        "not today",
        True,
    )
    assert imports[1:] == ["probe"]
    assert Availability().verdicts(list(tools(loader).values()))["one"].reason == "not today"


def test_a_check_of_a_broken_plugin_is_a_no(world: World) -> None:
    """registry.V2: a check that can't be imported means unavailable, with the reason."""
    loader = one(world, STOP, frozen_tool("word", check="lazy:check"))
    verdict = Availability().verdicts(tools(loader).values())["word"]
    assert not verdict.available
    assert "a frozen plugin was imported" in str(verdict.reason)


def test_one_import_for_many_threads(world: World, imports: list[str]) -> None:
    """Threads that use a plugin at the same time import it once; all get the tool."""
    loader = one(world, COUNTED + "import time; time.sleep(0.05)\n" + tool("word"), frozen_tool("word"))
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(answer(loader, "word"))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["word"] * 6
    assert len(imports) == 1


def test_a_plugin_that_uses_itself_while_it_is_imported_is_told(world: World) -> None:
    """Re-entrancy: the tool isn't there yet, which is an error and no deadlock."""
    loader = one(world, "def register(ctx):\n    ctx.dispatch_tool('word')\n", frozen_tool("word"))
    with pytest.raises(PluginError, match="it is being imported right now"):
        loader.activate("lazy")


def test_a_plugin_may_use_another_s_tool_while_it_is_imported(world: World) -> None:
    """The other one is imported on the way, and stays although the first one fails."""
    world.folder("user", "def register(ctx):\n    raise ValueError(ctx.dispatch_tool('word'))\n")
    loader = one(world, tool("word"), frozen_tool("word"))
    assert loader.get("user").state == "failed"
    # `lazy` comes before `user` in the order, so it was there to be used.
    assert "ValueError: word" in loader.get("user").reason
    assert (loader.get("lazy").state, answer(loader, "word")) == ("active", "word")


def test_an_interrupted_import_can_be_tried_again(world: World) -> None:
    """plugins.L2: KeyboardInterrupt leaves; the plugin is announced as before, and the next use imports it."""
    stop = "import os\nif not os.environ.get('GO_ON'):\n    raise KeyboardInterrupt\n"
    loader = one(world, stop + tool("word"), frozen_tool("word"), hooks=["post_tool_call"])
    with pytest.raises(KeyboardInterrupt):
        answer(loader, "word")
    assert (loader.get("lazy").state, loader.get("lazy").hooks) == ("ready", ("post_tool_call",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GO_ON", "1")
        assert answer(loader, "word") == "word"


def test_a_manifest_s_overrides_need_the_opt_in(world: World) -> None:
    """registry.R5: a frozen plugin that overrides names it in its manifest, and needs both keys like any other."""
    world.folder("a", tool("word", answer="a"))
    world.folder(
        "lazy",
        tool("word", "other", "lazy"),
        {"tools": [frozen_tool("word") | {"toolset": "other"}], "overrides": ["word"]},
    )
    loader = world.load()
    assert (loader.get("lazy").state, answer(loader, "word")) == ("failed", "a")
    world.config("plugins: {entries: {lazy: {allow_tool_override: true}}}")
    loader = world.load()
    assert (loader.get("lazy").state, loader.get("lazy").overrides) == ("ready", ("word",))
    assert answer(loader, "word") == "lazy"
    loader.unload("lazy")
    assert answer(loader, "word") == "a"


def test_agent_level_tools_need_no_handler(world: World) -> None:
    """dispatch.C3: what the session answers has no handler to be supplied."""
    loader = one(world, tool("word"), frozen_tool("word"), frozen_tool("plan", flags={"handled_by": "agent"}))
    loader.activate("lazy")
    assert loader.get("lazy").tools == ("plan", "word")


def test_a_service_is_provided_on_first_use(world: World, imports: list[str]) -> None:
    """architecture: `rt.mcp` looks up what the plugin `mcp` provides; that imports it."""
    loader = one(
        world, COUNTED + "def register(ctx):\n    ctx.provide('lazy', lambda: 'made')\n", hooks=["post_tool_call"]
    )
    assert imports == []
    assert loader.provided["lazy"]() == "made"
    assert list(loader.provided) == ["lazy"]
    assert loader.provided.get("nothing") is None
    assert len(imports) == 1


def test_a_command_imports_its_plugin(world: World) -> None:
    """`mibyan command NAME`: an announced command's handler is imported when it is run; unknown ones get a suggestion."""
    source = "def register(ctx):\n    ctx.register_command('say', lambda text: text.upper(), 'd', 'TEXT')\n"
    loader = one(world, source, commands=["say", "forgotten"])
    assert loader.offers.command("say").value("a") == "A"
    with pytest.raises(PluginError, match="doesn't register it"):
        loader.offers.command("forgotten")
    with pytest.raises(PluginError, match="did you mean 'say'"):
        loader.offers.command("sya")


def test_what_a_manifest_names_can_be_resolved(world: World, imports: list[str]) -> None:
    """A terminal backend's class is imported when it is asked for."""
    loader = one(world, COUNTED, frozen_tool("word", target=".part:handle"), environments={"cloud": ".part:Cloud"})
    assert loader.get("lazy").state == "ready"
    (world.home / "plugins" / "lazy" / "part.py").write_text("class Cloud: ...\ndef handle(args): ...\n")
    offer = loader.offers.environments["cloud"]
    assert loader.resolve(offer.owner.id, offer.value).__name__ == "Cloud"
    with pytest.raises(PluginError, match="has no 'Gone'"):
        loader.resolve("lazy", ".part:Gone")


def test_after_closing_nothing_is_imported(world: World, imports: list[str]) -> None:
    """dispatch.B5: a closed runtime answers with a sentence."""
    loader = one(world, COUNTED + tool("word"), frozen_tool("word"))
    activate = tools(loader)["word"].activate
    loader.close()
    with pytest.raises(PluginError, match="the runtime is closed"):
        activate()
    assert imports == []


def test_a_manifest_s_unknown_hooks_are_told(world: World) -> None:
    """plugins.L3: a hook that doesn't exist is a record with a suggestion, and the plugin is there."""
    loader = one(world, STOP, frozen_tool("word"), hooks=["pre_tool_cal"])
    assert loader.get("lazy").state == "ready"
    told = [decision.reason for decision in loader._services.log if decision.kind == "unknown"]
    assert len(told) == 1
    assert "did you mean 'pre_tool_call'" in told[0]


def test_hooks_may_be_added_once_it_runs(world: World) -> None:
    """Only the import is bound by the manifest: a hook that `register` adds unannounced is drift, one added later isn't."""
    source = """
        def register(ctx):
            def handle(args):
                return ctx.register_hook("post_tool_call", lambda tool_name: None)
            ctx.register_tool("word", "words", {"description": "says word"}, handle)
            ctx.register_hook("on_session_end", lambda: None)
    """
    loader = one(world, source, frozen_tool("word"))
    assert answer(loader, "word") is True
    assert loader.get("lazy").hooks == ("post_tool_call",)
    assert any("the hook 'on_session_end'" in decision.reason for decision in decisions(loader, "lazy"))
