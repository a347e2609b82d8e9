"""Policies fail closed: `role: policy` and it can't be used means that no call gets through (plugins.M2, dispatch.H2)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mibyan
from mibyan import Runtime, ToolCall, ToolResult
from mibyan.errors import PluginError
from mibyan.plugins.policies import is_policy

from .world import World, frozen_tool, tool, write

SCHEMA = {"description": "d", "parameters": {"type": "object", "properties": {}}}
BROKEN = "raise ValueError('no luck')\n"
#: A policy that lets through what isn't called `forbidden`.
POLICY = """
import mibyan

@mibyan.hookimpl
def pre_tool_call(tool_name):
    return mibyan.Block('not that') if tool_name == 'forbidden' else None
"""
POLICY_ROLE = {"role": "policy"}
LAZY_POLICY = {"role": "policy", "hooks": ["pre_tool_call"], "tools": [frozen_tool("word")]}


@pytest.fixture
def start(world: World) -> Iterator[Callable[..., Runtime]]:
    """Starts runtimes with the host's tools `free` and `forbidden`; whatever runs says so in `rt.ran`."""
    started: list[Runtime] = []

    def start(**options: Any) -> Runtime:
        rt = Runtime(home=world.home, project=world.project, **options)
        started.append(rt)
        for name in ("free", "forbidden"):
            rt.registry.register(name, "host", SCHEMA, lambda args, name=name: name)
        return rt

    yield start
    for rt in started:
        rt.close()


def called(rt: Runtime, name: str = "free") -> ToolResult:
    return rt.execute(ToolCall(name, {}))


def assert_blocked(result: ToolResult, plugin_id: str, *words: str) -> None:
    """A well-formed refusal that names the plugin, why, and what changes it."""
    assert (result.status, result.error_type) == ("blocked", "blocked")
    assert json.loads(result.text)["blocked_by"] == plugin_id
    for word in (f"plugin {plugin_id!r}", "role: policy", *words, f"mibyan plugins disable {plugin_id}"):
        assert word in result.error


# Why it can't be used ---------------------------------------------------------------------------------------------


def broken(world: World) -> None:
    world.folder("guard", BROKEN, POLICY_ROLE)


def broken_wheel(world: World) -> None:
    world.wheel("guard", BROKEN, {"id": "guard", "version": "1.0", **POLICY_ROLE})


def broken_lazy(world: World) -> None:
    world.folder("guard", BROKEN, LAZY_POLICY)


def says_too_much(world: World) -> None:
    world.folder("guard", POLICY, {"role": "policy", "toolz": []})


def isn_t_yaml(world: World) -> None:
    write(world.folder("guard", POLICY) / "plugin.yaml", "id: guard\nrole: policy\nhooks: [\n")


def broken_wheel_manifest(world: World) -> None:
    world.wheel("guard", POLICY)
    write(world.site / "guard-1.0.dist-info" / "extra_metadata" / "mibyan.json", '{"role": "policy", "id": "guard"')


def lacks_a_variable(world: World) -> None:
    world.folder("guard", POLICY, {**POLICY_ROLE, "requires": {"env": ["NO_SUCH_VARIABLE_XYZ"]}})


def lacks_a_variable_lazy(world: World) -> None:
    world.folder("guard", POLICY, {**LAZY_POLICY, "requires": {"env": ["NO_SUCH_VARIABLE_XYZ"]}})


def lacks_a_plugin(world: World) -> None:
    world.folder("guard", POLICY, {**POLICY_ROLE, "requires_plugins": ["absent"]})


def loses_a_plugin(world: World) -> None:
    world.folder("guard", POLICY, {**POLICY_ROLE, "requires_plugins": ["later"]})
    world.folder("later", BROKEN, {"after": ["guard"]})


def for_another_mibyan(world: World) -> None:
    world.folder("guard", POLICY, {**POLICY_ROLE, "requires_mibyan": ">=99"})


def isolated(world: World) -> None:
    world.folder("guard", POLICY, POLICY_ROLE)
    world.config("plugins: {entries: {guard: {isolation: process}}}")


def misconfigured(world: World) -> None:
    world.folder("guard", POLICY, {**POLICY_ROLE, "config_schema": {"type": "object", "required": ["level"]}})


def offers_nothing(world: World) -> None:
    world.folder("guard", "", POLICY_ROLE)


def twice(world: World) -> None:
    world.folder("guard", POLICY, POLICY_ROLE)
    write(world.home / "plugins" / "shelf" / "guard" / "plugin.yaml", "{}")
    write(world.home / "plugins" / "shelf" / "guard" / "__init__.py", POLICY)


FAULTS: dict[Callable[[World], None], str] = {
    broken: "(failed: it raised ValueError: no luck", broken_wheel: "no luck", broken_lazy: "no luck",
    says_too_much: "toolz", isn_t_yaml: "plugin.yaml", broken_wheel_manifest: "mibyan.json",
    lacks_a_variable: "(needs: environment variable NO_SUCH_VARIABLE_XYZ is not set",
    lacks_a_variable_lazy: "NO_SUCH_VARIABLE_XYZ", lacks_a_plugin: "it needs the plugin 'absent'",
    loses_a_plugin: "it needs the plugin 'later', which has failed", for_another_mibyan: "(incompatible: it works with",
    isolated: "isolation", misconfigured: "level", offers_nothing: "offers nothing", twice: "both are off",
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_policy_that_can_t_be_used_blocks_every_call(
    world: World, start: Callable[..., Runtime], fault: Callable[[World], None]
) -> None:
    """Whatever keeps a policy from its work: calls are refused, naming it, the reason and the command; the report says so."""
    fault(world)
    rt = start()
    for _ in range(2):
        assert_blocked(called(rt), "guard", FAULTS[fault])
    told = [problem for problem in rt.report().problems if problem.kind == "blocked"]
    assert {(problem.plugin_id, problem.fix) for problem in told} == {("guard", "mibyan plugins disable guard")}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("how", ["config", "option", "safe mode"])
def test_the_operator_s_word_lets_calls_through(
    world: World, start: Callable[..., Runtime], fault: Callable[[World], None], how: str
) -> None:
    """A policy that is disabled, or left out by --no-plugin or --safe-mode, blocks nothing."""
    fault(world)
    if how == "config":
        world.config("plugins: {disabled: [guard]}")
    rt = start(**{"config": {}, "option": {"no_plugins": ["guard"]}, "safe mode": {"safe_mode": True}}[how])
    assert called(rt).text == "free"


@pytest.mark.parametrize("manifest", [{}, {"role": "tools"}, {"role": "observer"}, {"description": "role: policy"}])
def test_other_roles_leave_nothing_behind(
    world: World, start: Callable[..., Runtime], manifest: dict[str, Any]
) -> None:
    """plugins.L2: without `role: policy` a plugin that fails is as if it weren't there."""
    world.folder("guard", BROKEN, manifest)
    write(world.folder("faulty") / "plugin.yaml", "description: |\n  a role, policy or not\ntoolz: []\n")
    rt = start()
    assert called(rt).text == "free"
    assert rt.plugins.get("guard").state == "failed"


def test_a_policy_that_works_decides_itself(world: World, start: Callable[..., Runtime]) -> None:
    """Nothing is added to a policy that can be used, imported or announced."""
    world.folder("guard", POLICY, POLICY_ROLE)
    world.folder("lazy", POLICY, {"role": "policy", "hooks": ["pre_tool_call"], "tools": []})
    rt = start()
    assert called(rt).text == "free"
    assert called(rt, "forbidden").error == "not that"
    assert not [problem for problem in rt.report().problems if problem.kind == "blocked"]


# Trust ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("manifest", ['{"role": "policy"}', "role: policy\ntoolz: []\n"])
def test_a_repository_can_t_block_calls_by_being_entered(
    world: World, start: Callable[..., Runtime], manifest: str
) -> None:
    """plugins.S1: a project's policy that nobody trusts is nothing, however broken; a trusted one fails closed."""
    root = world.folder("guard", BROKEN, project=True)
    write(root / "plugin.yaml", manifest)
    assert called(start()).text == "free"
    world.trust("guard", root)
    assert_blocked(called(start()), "guard")
    write(root / "more.py", "")
    assert called(start()).text == "free"


# From then on, until --------------------------------------------------------------------------------------------------


def test_a_first_use_that_fails_is_the_end_of_calls(world: World, start: Callable[..., Runtime]) -> None:
    """A lazy policy is imported at its first need, a call or a tool of its own; if that fails nothing gets through."""
    world.folder("guard", BROKEN, LAZY_POLICY)
    rt = start()
    assert rt.plugins.get("guard").state == "ready"
    assert called(rt, "word").error_type == "tool_unavailable"
    assert_blocked(called(rt), "guard", "no luck")
    with pytest.raises(PluginError, match="no luck"):
        rt.plugins.activate("guard")


def test_mending_ends_it(world: World, start: Callable[..., Runtime]) -> None:
    """Mended and reloaded, the policy decides again; broken again, nothing gets through."""
    root = world.folder("guard", BROKEN, POLICY_ROLE)
    rt = start()
    assert_blocked(called(rt), "guard")
    write(root / "__init__.py", POLICY)
    assert rt.plugins.reload("guard").state == "active"
    assert (called(rt).text, called(rt, "forbidden").error) == ("free", "not that")
    assert not [problem for problem in rt.report().problems if problem.kind == "blocked"]
    write(root / "__init__.py", BROKEN)
    rt.plugins.reload("guard")
    assert_blocked(called(rt), "guard")
    write(root / "plugin.yaml", '{"role": "tools"}')
    rt.plugins.reload("guard")
    assert called(rt).text == "free"


@pytest.mark.parametrize("source", [POLICY, BROKEN])
@pytest.mark.parametrize("manifest", [POLICY_ROLE, LAZY_POLICY])
def test_unloading_ends_it(world: World, start: Callable[..., Runtime], source: str, manifest: dict[str, Any]) -> None:
    """A host that unloads a policy, broken or not, has said that it may go."""
    world.folder("guard", source, manifest)
    rt = start()
    called(rt)
    rt.plugins.unload("guard")
    assert called(rt).text == "free"


def test_a_policy_that_is_gone_blocks_nothing(world: World, start: Callable[..., Runtime]) -> None:
    """Taken away and reloaded: there is no plugin any more, and no policy."""
    root = world.folder("guard", BROKEN, POLICY_ROLE)
    rt = start()
    (root / "plugin.yaml").unlink()
    with pytest.raises(PluginError, match="is gone"):
        rt.plugins.reload("guard")
    assert called(rt).text == "free"


def test_what_was_missing_may_come(
    world: World, start: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lazy policy's variable is set: it is imported at the next call and decides."""
    lacks_a_variable_lazy(world)
    write(world.home / "plugins" / "guard" / "__init__.py", POLICY + tool("word"))
    rt = start()
    assert_blocked(called(rt), "guard")
    monkeypatch.setenv("NO_SUCH_VARIABLE_XYZ", "1")
    assert called(rt).text == "free"
    assert called(rt, "forbidden").error == "not that"


# No moment without --------------------------------------------------------------------------------------------------


CALLS_ON_THE_WAY_OUT = (
    POLICY
    + """
import sys
def register(ctx):
    rt = mibyan.get_runtime()
    ctx.on_unload(lambda: sys.answers_of_test.append(rt.call("first", {})))
    if sys.fails_of_test:
        raise ValueError('no luck')
"""
)


@pytest.mark.parametrize(
    ("end", "manifest"),
    [*((end, manifest) for end in ("rollback", "reload", "unload") for manifest in (POLICY_ROLE, LAZY_POLICY)),
     ("bereft", POLICY_ROLE)],
)  # fmt: skip
def test_there_is_no_moment_without_a_policy(
    world: World, start: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch, end: str, manifest: dict[str, Any]
) -> None:
    """Between a policy's hooks going and what becomes of it being known, calls are refused; unless it goes for good."""
    import sys

    answers: list[str] = []
    monkeypatch.setattr(sys, "answers_of_test", answers, raising=False)
    monkeypatch.setattr(sys, "fails_of_test", end == "rollback", raising=False)
    world.folder("a", tool("first"))
    source = CALLS_ON_THE_WAY_OUT + "    ctx.register_tool('word', 'words', {'description': 'says word'}, len)\n"
    world.folder("guard", source, {**manifest, **({"requires_plugins": ["later"]} if end == "bereft" else {})})
    world.folder("later", BROKEN, {"after": ["guard"]})
    rt = start()
    called(rt)
    if end in {"reload", "unload"}:
        getattr(rt.plugins, end)("guard")
    (answer,) = answers
    if end == "unload":
        assert answer == "first"
    else:
        assert json.loads(answer)["error_type"] == "blocked"
        assert "guard" in answer


# Every way in -------------------------------------------------------------------------------------------------------


WAYS: dict[str, Callable[..., ToolResult]] = {
    "execute": called,
    "guarded": lambda rt, name="free": rt.execute(ToolCall(name, {}), timeout=20),
    "aexecute": lambda rt, name="free": asyncio.run(rt.aexecute(ToolCall(name, {}))),
    "call_many": lambda rt, name="free": rt.call_many([ToolCall(name, {})])[0],
    "acall_many": lambda rt, name="free": asyncio.run(rt.acall_many([ToolCall(name, {})]))[0],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", [broken, broken_lazy, lacks_a_variable_lazy], ids=lambda fault: fault.__name__)
def test_every_way_in_is_blocked(
    world: World, start: Callable[..., Runtime], way: str, fault: Callable[[World], None]
) -> None:
    """Inline, guarded, awaited, in a batch; the first call of a process too."""
    fault(world)
    assert_blocked(WAYS[way](start()), "guard")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("hooks", [[], ["pre_tol_call"], ["transform_tool_result"]])
@pytest.mark.parametrize("source", [POLICY, BROKEN], ids=["works", "broken"])
def test_a_policy_that_doesn_t_announce_itself_decides_all_the_same(
    world: World, start: Callable[..., Runtime], way: str, hooks: list[str], source: str
) -> None:
    """dispatch.H2: what a frozen policy's manifest leaves out lets no call past it, the first one neither; it is told."""
    register = (
        "\ndef register(ctx):\n    ctx.register_tool('word', 'words', {'description': 'd'}, lambda args: 'word')\n"
    )
    world.folder("guard", source + register, {"role": "policy", "hooks": hooks, "tools": [frozen_tool("word")]})
    rt = start()
    assert rt.plugins.get("guard").state == "ready"
    told = [one for one in rt.report().problems if "doesn't announce the hook 'pre_tool_call'" in one.reason]
    assert [(one.plugin_id, "hooks: [pre_tool_call]" in str(one.fix)) for one in told] == [("guard", True)]
    if source is BROKEN:
        assert_blocked(WAYS[way](rt), "guard", "no luck")
        return
    assert WAYS[way](rt, "forbidden").error == "not that"
    assert WAYS[way](rt).text == "free"


def test_other_roles_are_imported_for_their_hooks_only(world: World, start: Callable[..., Runtime]) -> None:
    """plugins.M4: a frozen plugin that is no policy stays as lazy as its manifest says."""
    for role in ("tools", "observer"):
        world.folder(role, BROKEN, {"role": role, "hooks": [], "tools": [frozen_tool(f"word_{role}")]})
    rt = start()
    assert called(rt).text == "free"
    assert {rt.plugins.get(role).state for role in ("tools", "observer")} == {"ready"}


def test_a_plugin_s_own_calls_and_agent_level_tools_are_blocked_too(
    world: World, start: Callable[..., Runtime]
) -> None:
    """dispatch.C3: hooks wrap what the session answers itself; `registry.dispatch` is the same pipeline."""
    broken(world)
    rt = start()
    assert json.loads(rt.registry.dispatch("free", {}))["error_type"] == "blocked"
    rt.registry.register("memory", "memory", SCHEMA, lambda args: "no", handled_by="agent")
    session = rt.session(handlers={"memory": lambda args: "remembered"})
    assert rt.execute(ToolCall("memory", {}), session=session).status == "blocked"


def test_two_broken_policies_are_named_one_after_the_other(world: World, start: Callable[..., Runtime]) -> None:
    """Unloading one leaves the other in the way."""
    world.folder("guard", BROKEN, POLICY_ROLE)
    world.folder("warden", BROKEN, POLICY_ROLE)
    rt = start()
    assert_blocked(called(rt), "guard")
    rt.plugins.unload("guard")
    assert_blocked(called(rt), "warden")
    rt.plugins.unload("warden")
    assert called(rt).text == "free"


def test_the_command_line_ends_with_3(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """api.md, exit codes: a call that a broken policy blocks ends with 3 and says what to do."""
    from mibyan.cli.main import main

    world.folder("guard", BROKEN, POLICY_ROLE)
    world.folder("plain", tool("word"))
    assert main(["call", "word", "--home", str(world.home), "--json"]) == 3
    assert "mibyan plugins disable guard" in json.loads(capsys.readouterr().out)["error"]


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("role: policy\nx: [\n", True), ("role: 'policy'\nx: [\n", True), ('{"role": "policy", "x": [', True),
        ("role: tools\nx: [\n", False), ("config_schema:\n  note: the role, policy or not\nx: [\n", False),
        ("- role: policy\n", False), ("toolz: 1\nconfig_schema: {role: policy}\n", False), ("\x00", False), ("", False),
    ],
)  # fmt: skip
def test_a_role_is_read_in_a_manifest_that_isn_t_one(world: World, text: str, policy: bool) -> None:
    """What a faulty manifest says at its top level counts, also if it can't even be parsed; nothing else does."""
    write(world.folder("guard") / "plugin.yaml", text)
    (candidate,) = (record.candidate for record in world.loader().survey())
    if text == "":
        assert candidate.problem is None
    assert is_policy(candidate) is policy


# What else goes with a plugin -----------------------------------------------------------------------------------------


SERVICE = """
import sys
class Service:
    def __init__(self, word):
        self.word = word
    def close(self):
        sys.closed_of_test.append(self.word)
        if self.word == 'angry':
            raise ValueError('no')
class Async(Service):
    async def close(self):
        sys.closed_of_test.append(self.word)
def register(ctx):
    ctx.provide('calm', lambda: Service('calm'))
    ctx.provide('angry', lambda: Service('angry'))
    ctx.provide('async', lambda: Async('async'))
    ctx.provide('plain', dict)
    ctx.provide('class', lambda: Service)
    ctx.provide('unused', lambda: Service('unused'))
    ctx.on_unload(lambda: sys.closed_of_test.append('callback'))
"""


@pytest.mark.parametrize("end", ["unload", "reload", "close"])
def test_services_go_with_their_plugin(
    world: World, start: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """plugins.L7: what a factory made is closed, the last one first, before the plugin's callbacks, and forgotten."""
    import sys

    closed: list[str] = []
    monkeypatch.setattr(sys, "closed_of_test", closed, raising=False)
    world.folder("service", SERVICE)
    rt = start()
    made = {name: rt.provided(name) for name in ("calm", "angry", "async", "plain", "class")}
    assert rt.provided("calm") is made["calm"]
    rt.close() if end == "close" else getattr(rt.plugins, end)("service")
    assert closed == ["async", "angry", "calm", "callback"]
    if end == "reload":
        assert rt.provided("calm") is not made["calm"]
    if end == "unload":
        with pytest.raises(mibyan.MibyanError, match="No plugin provides 'calm'"):
            rt.provided("calm")


def test_an_override_that_was_taken_back_isn_t_in_the_report(world: World, start: Callable[..., Runtime]) -> None:
    """architecture, *Decisions are data*: what isn't so any more isn't told: neither after a rollback nor an unload."""
    world.folder("a", tool("word"))
    source = "def register(ctx):\n    ctx.register_tool('word', 'words', {'description': 'd'}, len, override=True)\n"
    root = world.folder("b", source + "    raise ValueError\n")
    world.config("plugins: {entries: {b: {allow_tool_override: true}}}")
    rt = start()

    def overrides() -> list[str | None]:
        return [one.plugin_id for one in rt.report().about("tool:word") if one.kind == "overridden"]

    assert overrides() == []
    write(root / "__init__.py", source)
    rt.plugins.reload("b")
    assert overrides() == ["b"]
    rt.plugins.unload("b")
    assert overrides() == []


@pytest.mark.parametrize("spelling", ["my_plugin", "my-plugin", "My.Plugin", "mibyan-plugin-my-plugin"])
@pytest.mark.parametrize(("source", "given"), [("", True), (", source: user", True), (", source: pip", False)])
def test_a_tool_s_context_has_the_plugin_s_settings(
    world: World, start: Callable[..., Runtime], spelling: str, source: str, given: bool
) -> None:
    """What a tool is told of its plugin's settings is what `ctx.config` is: any spelling of the id, the source's own."""
    code = """
    import mibyan
    @mibyan.tool(toolset="words")
    def word(ctx: mibyan.ToolContext) -> dict:
        return dict(ctx.config)
    """
    world.folder("my_plugin", code)
    world.config(f"plugins: {{entries: {{{spelling}: {{config: {{unit: metric}}{source}}}}}}}")
    assert json.loads(start().call("word", {})) == ({"unit": "metric"} if given else {})
