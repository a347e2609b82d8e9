"""`mibyan.plugins.context`: what a plugin can do through `ctx`, and that it ends with the plugin (api.md)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mibyan.errors import MibyanError, PluginError, ToolOwnershipError
from mibyan.plugins.context import PluginContext
from mibyan.plugins.loader import PluginLoader
from mibyan.tools.registry import ToolRegistry

from .world import World, answer, tool, tools

KEEP = (
    "import sys\ndef register(ctx):\n    sys.contexts_of_test[ctx.plugin_id] = ctx\n    ctx.on_unload(lambda: None)\n"
)
SCHEMA = {"description": "d"}


@pytest.fixture(autouse=True)
def contexts(monkeypatch: pytest.MonkeyPatch) -> dict[str, PluginContext]:
    """The contexts that plugins kept."""
    kept: dict[str, PluginContext] = {}
    monkeypatch.setattr(sys, "contexts_of_test", kept, raising=False)
    return kept


@pytest.fixture
def loader(world: World) -> Iterator[PluginLoader]:
    """Two plugins that keep their contexts, and one tool each."""
    for name in ("a", "b"):
        world.folder(name, KEEP + f"    ctx.register_tool({name!r}, 'words', {{'description': 'd'}}, lambda args: {name!r})\n",
                     {"version": "1.0", "description": "a plugin"})  # fmt: skip
    return world.load()


def test_a_context_says_who_the_plugin_is(
    loader: PluginLoader, contexts: dict[str, PluginContext], world: World
) -> None:
    """api.md: `plugin_id`, `manifest`, `logger`, `approvals`, `registry`."""
    ctx = contexts["a"]
    assert (ctx.plugin_id, ctx.manifest.version, ctx.manifest.description) == ("a", "1.0", "a plugin")
    assert ctx.logger.name == "mibyan.plugins.a"
    assert isinstance(ctx.registry, ToolRegistry)
    assert repr(ctx) == "<PluginContext of 'a'>"


def test_a_plugin_without_manifest_has_an_empty_one(world: World) -> None:
    """`ctx.manifest` is always there."""
    world.tool_file("clock", "import mibyan\nregistry = mibyan.registry\n"
                    "registry.register('x', 'words', {'description': 'd'}, lambda args: 'x')\n" + KEEP)  # fmt: skip
    world.load()
    assert sys.contexts_of_test["tools.clock"].manifest.id == "tools.clock"


def test_settings_are_read_only(world: World, contexts: dict[str, PluginContext]) -> None:
    """`ctx.config` can be read like a dict and not changed, at no depth."""
    world.folder("a", KEEP + "    ctx.provide('x', object)\n")
    world.config("plugins: {entries: {a: {config: {words: {one: 1}, list: [1]}}}}")
    world.load()
    config: Any = contexts["a"].config
    assert (config["words"]["one"], list(config["list"])) == (1, [1])
    for change in (lambda: config.update(x=1), config["words"].clear, lambda: config["list"].append(2)):
        with pytest.raises(TypeError, match="read-only"):
            change()


def test_settings_have_the_defaults_of_their_schema(world: World, contexts: dict[str, PluginContext]) -> None:
    """`ctx.config`: what nobody wrote is as the manifest's `config_schema` says, in sections too; what was written stays."""
    limits = {"type": "object", "properties": {"low": {"default": 1}, "high": {"default": 9}}}
    schema = {
        "type": "object",
        "properties": {"units": {"default": "metric"}, "limits": limits, "key": {"type": "string"}},
    }
    world.folder("a", KEEP + "    ctx.provide('x', object)\n", {"config_schema": schema})
    world.config("plugins: {entries: {a: {config: {limits: {low: 5}}}}}")
    world.load()
    config = contexts["a"].config
    assert config == {"units": "metric", "limits": {"low": 5, "high": 9}}
    with pytest.raises(TypeError, match="read-only"):
        config["limits"]["low"] = 1


def test_the_state_folder_is_the_plugin_s_own(
    loader: PluginLoader, contexts: dict[str, PluginContext], world: World
) -> None:
    """`ctx.state`: made on first use, for the user only, there again next time."""
    assert not (world.home / "state").exists()
    path = contexts["a"].state
    assert path == world.home / "state" / "a"
    assert path.stat().st_mode & 0o777 == 0o700
    (path / "x").write_text("kept")
    assert (contexts["a"].state / "x").read_text() == "kept"


def test_a_state_folder_that_can_t_be_made_is_an_error(
    loader: PluginLoader, contexts: dict[str, PluginContext], world: World
) -> None:
    """A sentence with the path and what to do."""
    (world.home / "state").write_text("in the way")
    with pytest.raises(PluginError, match="can't be made") as caught:
        _ = contexts["a"].state
    assert caught.value.hint


def test_a_plugin_calls_other_tools_through_the_pipeline(
    loader: PluginLoader, contexts: dict[str, PluginContext]
) -> None:
    """`ctx.dispatch_tool`: the runtime's own door, in the plugin's name."""
    assert contexts["a"].dispatch_tool("b", {}) == "b"
    assert contexts["a"].dispatch_tool("b") == "b"


def test_without_a_runtime_there_is_no_pipeline(world: World, contexts: dict[str, PluginContext]) -> None:
    """A loader by itself says so."""
    world.folder("a", KEEP + "    ctx.provide('x', object)\n")
    world.load(dispatch_tool=None)
    with pytest.raises(PluginError, match="needs a runtime"):
        contexts["a"].dispatch_tool("b")


def test_what_is_another_s_is_rejected(loader: PluginLoader, contexts: dict[str, PluginContext]) -> None:
    """registry.R4, R7, R8: names, toolsets, commands, services and skills of another plugin are neither taken nor removed."""
    a, b = contexts["a"], contexts["b"]
    assert a.register_toolset("phrases", ["a"], description="d")
    assert not b.register_toolset("phrases", ["b"])
    assert a.register_toolset("phrases", ["a", "b"])
    assert a.register_command("say", str.upper)
    assert not b.register_command("say", str.lower)
    assert a.provide("voice", object)
    assert not b.provide("voice", object)
    assert b.register_tool("a", "words", SCHEMA, len) is None
    with pytest.raises(ToolOwnershipError):
        b.registry.deregister("a")
    rejected = [(d.subject, d.plugin_id) for d in loader._services.log if d.kind == "rejected"]
    assert rejected == [(subject, "b") for subject in ("toolset:phrases", "command:say", "service:voice", "tool:a")]
    assert all(d.fix and d.problem for d in loader._services.log if d.kind == "rejected")
    assert loader.offers.command("say").value("x") == "X"


def test_a_plugin_can_t_set_the_operator_s_policy(loader: PluginLoader, contexts: dict[str, PluginContext]) -> None:
    """registry.R5: `register_plugin_override_policy` is refused."""
    with pytest.raises(ToolOwnershipError):
        contexts["a"].registry.register_plugin_override_policy("a", True)


def test_hooks_of_a_context_run_in_the_plugin_s_place(loader: PluginLoader, contexts: dict[str, PluginContext]) -> None:
    """dispatch.H4: whatever the order of registration, plugins' hooks run in the order of plugins."""
    for name in ("b", "a"):
        assert contexts[name].register_hook("post_tool_call", lambda tool_name: None)
    chain = loader._services.hooks.chain("post_tool_call")
    assert [i.owner.id for i in chain.plain] == ["a", "b"]


@pytest.mark.parametrize(
    ("manifest", "observer"), [({}, False), ({"on_error": "allow"}, True), ({"role": "observer"}, True)]
)
def test_a_manifest_makes_hooks_observers(world: World, manifest: dict[str, str], observer: bool) -> None:
    """dispatch.H2: `on_error: allow` marks a plugin's hooks as observers."""
    world.folder("a", "import mibyan\n@mibyan.hookimpl\ndef pre_tool_call(): pass\n", manifest)
    chain = world.load()._services.hooks.chain("pre_tool_call")
    assert [i.observer for i in chain.plain] == [observer]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda ctx: ctx.register_hook("post_tool_call", 3),
        lambda ctx: ctx.register_hook(3, len),
        lambda ctx: ctx.register_command("say", "not callable"),
        lambda ctx: ctx.register_command("", len),
        lambda ctx: ctx.register_toolset(None),
        lambda ctx: ctx.register_toolset("x", "one text"),
        lambda ctx: ctx.register_toolset("x", [3]),
        lambda ctx: ctx.provide("x", 3),
        lambda ctx: ctx.provide(" ", len),
        lambda ctx: ctx.on_unload(3),
        lambda ctx: ctx.register_tool("x", "words", SCHEMA, 3),
        lambda ctx: ctx.register_tool("x", "words", SCHEMA, len, no_such_option=1),
    ],
)
def test_wrong_arguments_are_errors(
    loader: PluginLoader, contexts: dict[str, PluginContext], wrong: Callable[[PluginContext], object]
) -> None:
    """Every method says what it takes; nothing was registered."""
    before = loader._services.store.generation
    with pytest.raises(TypeError):
        wrong(contexts["a"])
    assert loader._services.store.generation == before


def skill(root: Path, name: str) -> Path:
    (root / name).mkdir(parents=True)
    (root / name / "SKILL.md").write_text("# A skill\n")
    return root / name


def test_skills_are_checked(world: World, contexts: dict[str, PluginContext], tmp_path: Path) -> None:
    """`ctx.register_skill`: a folder with a SKILL.md, or a .md file, inside the plugin's folder."""
    root = world.folder("a", KEEP + "    ctx.provide('x', object)\n", {"skills": ["skills/told"]})
    for name in ("told", "dance"):
        skill(root / "skills", name)
    (root / "sing.md").write_text("# Sing\n")
    outside = skill(tmp_path / "elsewhere", "far")
    (root / "link").symlink_to(outside)
    loader = world.load()
    assert contexts["a"].register_skill("skills/dance")
    assert contexts["a"].register_skill(root / "sing.md")
    assert {name: offer.value.name for name, offer in loader.offers.skills.items()} == {
        "dance": "dance", "sing": "sing.md", "told": "told",
    }  # fmt: skip
    for path, told in (("nowhere", "isn't a folder with a SKILL.md"), ("skills", "isn't a folder with"),
                       ("link", "leaves the plugin's folder"), ("../b", "leaves"), (outside, "leaves")):  # fmt: skip
        with pytest.raises(PluginError, match=told):
            contexts["a"].register_skill(path)


def test_a_manifest_s_bad_skill_fails_the_plugin(world: World) -> None:
    """A manifest that names what isn't there is told."""
    world.folder("a", tool("word"), {"skills": ["nowhere"]})
    assert "the skill 'nowhere' isn't a folder" in world.load().get("a").reason


LATE: dict[str, Callable[[PluginContext], object]] = {
    "register_tool": lambda ctx: ctx.register_tool("late", "words", SCHEMA, len),
    "registry.register": lambda ctx: ctx.registry.register("late", "words", SCHEMA, len),
    "registry.deregister": lambda ctx: ctx.registry.deregister("a"),
    "registry.register_toolset_alias": lambda ctx: ctx.registry.register_toolset_alias("late", "words"),
    "register_toolset": lambda ctx: ctx.register_toolset("late"),
    "register_hook": lambda ctx: ctx.register_hook("post_tool_call", lambda: None),
    "register_command": lambda ctx: ctx.register_command("late", len),
    "register_skill": lambda ctx: ctx.register_skill("late"),
    "provide": lambda ctx: ctx.provide("late", len),
    "on_unload": lambda ctx: ctx.on_unload(lambda: None),
    "dispatch_tool": lambda ctx: ctx.dispatch_tool("b"),
}


@pytest.mark.parametrize("name", LATE)
@pytest.mark.parametrize("end", ["unload", "reload", "close", "rollback"])
def test_a_context_ends_with_its_plugin(world: World, contexts: dict[str, PluginContext], name: str, end: str) -> None:
    """plugins.L7: after an unload, a reload, a close or a rollback the old context can do nothing more."""
    world.folder("a", KEEP + ("    raise ValueError\n" if end == "rollback" else "    ctx.provide('x', object)\n"))
    world.folder("b", tool("b"))
    loader = world.load()
    ctx = contexts["a"]
    if end == "close":
        loader.close()
    elif end != "rollback":
        getattr(loader, end)("a")
    before = loader._services.store.generation
    with pytest.raises(PluginError, match="it isn't loaded"):
        LATE[name](ctx)
    assert loader._services.store.generation == before
    assert "late" not in tools(loader)


def test_what_is_registered_late_is_in_the_ledger(loader: PluginLoader, contexts: dict[str, PluginContext]) -> None:
    """While the plugin is loaded, its threads may register through `ctx`; it goes with the plugin."""
    thread = threading.Thread(target=lambda: [LATE[name](contexts["a"]) for name in
                                              ("register_tool", "register_toolset", "register_hook", "register_command")])  # fmt: skip
    thread.start()
    thread.join()
    assert loader.get("a").tools == ("a", "late")
    assert loader.get("a").hooks == ("post_tool_call",)
    loader.unload("a")
    assert "late" not in tools(loader)
    assert (loader._services.store.declared_toolsets, loader.offers.commands) == ({}, {})
    assert not loader._services.hooks.chain("post_tool_call")


def test_a_late_override_without_opt_in_is_refused(loader: PluginLoader, contexts: dict[str, PluginContext]) -> None:
    """registry.R5: also when the plugin is long loaded; it stays loaded, the tool stays whose it is."""
    with pytest.raises(MibyanError, match="opt-in"):
        contexts["b"].register_tool("a", "other", SCHEMA, len, override=True)
    assert answer(loader, "a") == "a"
    assert loader.get("b").state == "active"


def test_a_project_s_plugin_has_a_state_of_its_own(
    world: World, contexts: dict[str, PluginContext], tmp_path: Path
) -> None:
    """What comes with a repository doesn't get at the state of a user's plugin with the same id."""
    root = world.folder("a", KEEP + "    ctx.provide('x', object)\n", project=True)
    world.trust("a", root)
    world.load()
    theirs = contexts["a"].state
    assert theirs.parent == world.home / "state"
    assert theirs.name.startswith("a@")
    assert not (world.home / "state" / "a").exists()


@pytest.mark.parametrize(("source", "given"), [("", True), ("project", True), ("user", False), ("pip", False)])
def test_settings_for_another_source_aren_t_handed_over(
    world: World, contexts: dict[str, PluginContext], source: str, given: bool
) -> None:
    """What the operator says about a plugin of one source doesn't reach one of the same id from another."""
    root = world.folder("a", KEEP + "    ctx.provide('x', object)\n", project=True)
    world.trust("a", root)
    world.config(f"plugins: {{entries: {{a: {{config: {{key: secret}}{f', source: {source}' if source else ''}}}}}}}")
    world.load()
    assert dict(contexts["a"].config) == ({"key": "secret"} if given else {})


#: A function that registers through the facade: whose is it?
ASKS = "def asks(*args):\n    mibyan.registry.register('asked', 'words', {'description': 'd'}, len)\n    return mibyan.registry\n"


@pytest.mark.parametrize("way", ["command", "async command", "service"])
def test_what_a_plugin_does_later_is_in_its_name(world: World, way: str) -> None:
    """registry.R6: while a plugin's command or factory runs, the facade means its runtime and the plugin."""
    body = {
        "command": "    ctx.register_command('run', asks)\n",
        "async command": "    async def run(text):\n        return asks()\n    ctx.register_command('run', run)\n",
        "service": "    ctx.provide('run', asks)\n",
    }[way]
    world.folder("a", "import mibyan\n" + ASKS + "def register(ctx):\n" + body)
    loader = world.load()
    if way == "service":
        loader.provided["run"]()
    else:
        loader.run_command("run", "text")
    assert tools(loader)["asked"].owner is loader.get("a").owner


def test_a_command_gets_its_text(world: World) -> None:
    """`run_command`: raw text in, whatever the handler gives out; what it raises leaves."""
    world.folder("a", """
        def register(ctx):
            ctx.register_command("shout", str.upper)
            ctx.register_command("fail", int)
    """)  # fmt: skip
    loader = world.load()
    assert loader.run_command("shout", "a b") == "A B"
    with pytest.raises(ValueError, match="invalid literal"):
        loader.run_command("fail", "x")
