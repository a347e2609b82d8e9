"""`mibyan.explain.tool`: every candidate for a name, and why (plugins.W5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mibyan.explain.session import Asked
from mibyan.explain.tool import explain_tool

from .conftest import LOUD, Home, frozen, registering


def switched_off(home: Home) -> None:
    home.plugin("p", registering("word"))
    home.file("config.yaml", "plugins:\n  disabled:\n    - other\n    - P\n")


def not_autoloaded(home: Home) -> None:
    home.plugin("p", registering("word"))
    home.file("config.yaml", "plugins:\n  autoload: false\n")


def untrusted(home: Home) -> None:
    home.plugin("p", registering("word"), project=True)


def incompatible(home: Home) -> None:
    home.plugin("p", registering("word"), {"requires_mibyan": ">=99"})


def needing(home: Home) -> None:
    home.plugin("p", registering("word"), {"requires": {"bins": ["no-such-program-here"]}})


def failing(home: Home) -> None:
    home.plugin("p", registering("word") + "    raise ValueError('oops')\n")


def unreadable_manifest(home: Home) -> None:
    (home.plugin("p", registering("word")) / "plugin.yaml").write_text("id: [")


def reserved(home: Home) -> None:
    home.plugin("p", registering("tool_call"))


def near_miss(home: Home) -> None:
    home.file("tools/near.py", "import mibyan\nif True:\n    mibyan.registry.register('word', 'words', {}, print)\n")


def without_manifest(home: Home) -> None:
    home.file("plugins/p/__init__.py", registering("word"))


def at_the_wrong_place(home: Home) -> None:
    home.file("plugins/p.py", registering("word"))


def conditional(home: Home) -> None:
    home.plugin("p", "def register(ctx):\n    ctx.register_tool('other', 'words', {}, print)\n"
                     "    if False:\n        ctx.register_tool('word', 'words', {}, print)\n")  # fmt: skip


def deregistering(home: Home) -> None:
    source = registering("word") + "    ctx.registry.deregister('word')\n"
    home.plugin("p", source, {"hooks": []})


STATES = [
    # the world, the name, the claim's state, rule, file and line, what decided, what changes it
    (switched_off, "word", "disabled", "plugins.L6", "plugins/p/__init__.py:2", "config.yaml:4: plugins.disabled[1]",
     "mibyan plugins enable p"),
    (not_autoloaded, "word", "disabled", "plugins.L6", "plugins/p/__init__.py:2", "config.yaml:2: plugins.autoload",
     "mibyan plugins enable p"),
    (untrusted, "word", "untrusted", "plugins.S1", "plugins/p/__init__.py:2", None, "mibyan plugins trust p"),
    (incompatible, "word", "incompatible", "plugins.M3", "plugins/p/__init__.py:2", None, "pip install 'mibyan>=99'"),
    (needing, "word", "needs", "registry.V1", "plugins/p/__init__.py:2", None, "no-such-program-here"),
    (failing, "word", "rolled_back", "plugins.L2", "plugins/p/__init__.py:2", None, "mibyan plugins disable p"),
    (unreadable_manifest, "word", "failed", "plugins.M1", "plugins/p/__init__.py:2", None, ""),
    (reserved, "tool_call", "rejected", "registry.R11", "plugins/p/__init__.py:2", None, "another name"),
    (near_miss, "word", "near_miss", "plugins.F6", "tools/near.py:3", None, "top level"),
    (without_manifest, "word", "near_miss", "plugins.F5", "plugins/p/__init__.py:2", None, "write a plugin.yaml"),
    (at_the_wrong_place, "word", "near_miss", "plugins.F6", "plugins/p.py:2", None, "Move it"),
    (conditional, "word", "unregistered", "plugins.L2", "plugins/p/__init__.py:4", None, "plugins/p/__init__.py:4"),
    (deregistering, "word", "unregistered", "plugins.L2", "plugins/p/__init__.py:2", None, "plugins/p/__init__.py:2"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "name", "state", "rule", "origin", "line", "fix"), STATES,
                         ids=[row[0].__name__ for row in STATES])  # fmt: skip
def test_plugins_W5_a_tool_that_nobody_has(
    home: Home, make: Callable, name: str, state: str, rule: str, origin: str, line: str | None, fix: str
) -> None:
    """plugins.W5: who wants it, at which file and line, by which rule and line it isn't there, and what changes that."""
    make(home)
    answer = home.why(name)
    assert answer.state == "absent"
    (claim,) = answer.claims
    assert (claim.state, claim.rule, claim.tool) == (state, rule, name)
    assert claim.origin.endswith(origin)
    assert (claim.decided_by or "").endswith(line or "")
    assert (claim.decided_by is None) == (line is None)
    assert fix in (claim.fix or "")
    assert "isn't there" in answer.sentence
    assert json.loads(json.dumps(answer.to_dict()))["candidates"][0]["origin"] == claim.origin


def test_plugins_W5_all_who_want_one_name(home: Home) -> None:
    """registry.R4, R5: the one that answers first, then who was displaced, who came too late and who asked in vain."""
    home.plugin("a", registering("word"))
    home.plugin("b", registering("word", "others"), {"after": ["a"]})
    home.plugin("c", registering("word", more=", override=True"), {"after": ["b"]})
    home.plugin("d", registering("word", more=", override=True"), {"after": ["c"]})
    home.file("config.yaml", "plugins:\n  entries:\n    c:\n      allow_tool_override: true\n")
    answer = home.why("word")
    told = {claim.plugin: claim for claim in answer.claims}
    assert [claim.plugin for claim in answer.claims] == ["c", "a", "b", "d"]
    assert {plugin: claim.state for plugin, claim in told.items()} == {
        "c": "ready", "a": "displaced", "b": "rejected", "d": "rejected",
    }  # fmt: skip
    assert [told[one].rule for one in "abd"] == ["registry.R5", "registry.R4", "registry.R5"]
    assert told["a"].decided_by == f"{home.path}/config.yaml:4: plugins.entries.c.allow_tool_override"
    assert told["a"].fix == "plugins.entries.c.allow_tool_override: false"
    assert "plugins.entries.b.allow_tool_override: [word]" in told["b"].fix
    assert told["d"].fix == "plugins:\n  entries:\n    d:\n      allow_tool_override: true"
    assert all(claim.origin.endswith(f"plugins/{claim.plugin}/__init__.py:2") for claim in answer.claims)


def test_plugins_W5_last_wins(home: Home) -> None:
    """registry.R10: the line that lets the last one win is what decided."""
    home.plugin("a", registering("word"))
    home.plugin("b", registering("word"))
    home.file("config.yaml", "namespace: {collisions: last_wins}\n")
    first, second = home.why("word").claims
    assert (first.plugin, second.plugin, second.state, second.rule) == ("b", "a", "displaced", "registry.R10")
    assert second.decided_by == f"{home.path}/config.yaml:1: namespace.collisions"


def test_plugins_W5_frozen_tools_are_found_without_being_run(home: Home, site: Callable) -> None:
    """plugins.M4: of plugins that would fail when they are run, loaded or not, the file and line are known all the same."""
    home.plugin("a", LOUD, frozen("word", "a:word"))
    home.plugin("b", "from .inner import word\nraise RuntimeError\n", frozen("word", "b:word"), inner=LOUD)
    home.plugin("c", LOUD, {**frozen("word", "c:word"), "requires_mibyan": ">=99"})
    site("wheel", LOUD, frozen("word", "wheel:word"))
    answer = home.why("word")
    assert {claim.plugin: (claim.state, Path(claim.origin).parent.name, Path(claim.origin).name)
            for claim in answer.claims} == {
        "wheel": ("ready", "wheel", "__init__.py:3"), "a": ("rejected", "a", "__init__.py:3"),
        "b": ("rejected", "b", "inner.py:3"), "c": ("incompatible", "c", "__init__.py:3"),
    }  # fmt: skip


def test_plugins_W5_what_only_code_can_tell(home: Home) -> None:
    """A frozen plugin's check is an open question, and says how to have it answered; `load` does."""
    source = "def word(args):\n    return 'x'\n\ndef check():\n    return 'the moon is wrong'\n"
    home.plugin("p", source, frozen("word", "p:word", check="p:check"))
    answer = home.why("word")
    assert (answer.state, answer.claims[0].origin.rpartition("/")[2]) == ("unchecked", "__init__.py:1")
    assert "if its check passes" in answer.sentence
    assert ["tools why word --load" in question for question in answer.open_questions] == [True]
    loaded = home.why("word", Asked(load=True))
    assert (loaded.state, loaded.claims[0].reason, loaded.open_questions) == ("unavailable", "the moon is wrong", ())
    assert loaded.claims[0].rule == "registry.V2"


def test_plugins_W5_a_plugin_that_cannot_be_imported_to_be_asked(home: Home) -> None:
    """With `load` the failure of the import is part of the answer."""
    home.plugin("p", LOUD, frozen("word", "p:word"))
    answer = home.why("word", Asked(load=True))
    assert answer.state == "absent"
    assert [claim.state for claim in answer.claims] == ["rolled_back"]
    assert "somebody ran me" in answer.claims[0].reason


def test_plugins_W5_names_that_are_worked_out_are_an_open_question(home: Home) -> None:
    """Which tools a plugin registers whose names are computed can't be read; the answer says so."""
    home.plugin("p", "def register(ctx):\n    for n in names():\n        ctx.register_tool(n, 'words', {}, print)\n")
    home.file("config.yaml", "plugins: {disabled: [p]}\n")
    answer = home.why("word")
    assert answer.state == "unknown"
    assert ["'p' (disabled)" in question for question in answer.open_questions] == [True]


SESSIONS: list[tuple[str, dict[str, Any], str, str, str | None, str]] = [
    ("toolsets:\n  disabled: [words]\n", {}, "hidden", "registry.T4", "config.yaml:2: toolsets.disabled[0]",
     "Remove 'words' from toolsets.disabled"),
    ("toolsets:\n  enabled: [files]\n", {}, "hidden", "registry.T4", "config.yaml:2: toolsets.enabled",
     "Add 'words' to toolsets.enabled"),
    ("", {"enabled": ["files"]}, "hidden", "registry.T4", None, "Add 'words' to enabled_toolsets"),
    ("", {"disabled": ["words"]}, "hidden", "registry.T4", None, "Remove 'words' from disabled_toolsets"),
    ("", {"enabled": ["words"], "disabled": ["all"]}, "hidden", "registry.T4", None, "Remove 'all'"),
    ("", {"platform": "cron"}, "hidden", "registry.T4", None, "Add 'words' to platform 'cron'"),
    ("platform_toolsets:\n  mine: [files]\n", {"platform": "mine"}, "hidden", "registry.T4",
     "config.yaml:2: platform_toolsets.mine", "Add 'words' to platform_toolsets.mine"),
    ("", {"platform": "webhook"}, "hidden", "registry.T3", None, "by its own name"),
    ("", {"platform": "cli"}, "ready", "registry.R4", None, "mibyan plugins disable p"),
    ("", {"enabled": ["words"]}, "ready", "registry.R4", None, "mibyan plugins disable p"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "asked", "state", "rule", "line", "fix"), SESSIONS)
def test_plugins_W5_what_a_session_makes_of_it(
    home: Home, config: str, asked: dict[str, Any], state: str, rule: str, line: str | None, fix: str
) -> None:
    """registry.T3, T4: which list hides the tool from the session, and in which line of the configuration it stands."""
    home.plugin("p", registering("word"))
    home.file("config.yaml", config)
    (claim,) = home.why("word", Asked(**asked)).claims
    assert (claim.state, claim.rule) == (state, rule)
    assert claim.decided_by == (line and f"{home.path}/{line}")
    assert fix in claim.fix


@pytest.mark.parametrize(
    ("more", "state", "reason", "fix"),
    [
        (", check_fn=lambda: 'no moon'", "unavailable", "no moon", "no moon"),
        (", check_fn=lambda: False, requires_env='WHY_TEST_TOKEN'", "unavailable", "its check says no",
         "export WHY_TEST_TOKEN=…"),
        (", requires_env='WHY_TEST_TOKEN'", "ready", "", ""),
    ],
)  # fmt: skip
def test_plugins_W5_a_tool_that_is_not_available(home: Home, more: str, state: str, reason: str, fix: str) -> None:
    """registry.V1, V2: what the check says, and what is missing."""
    home.plugin("p", registering("word", more=more))
    answer = home.why("word")
    assert answer.state == state
    assert reason in answer.claims[0].reason
    assert fix in answer.claims[0].fix


def test_plugins_W5_a_declared_requirement(home: Home) -> None:
    """registry.V1: a manifest's requirement decides without an import, and the answer is the command that meets it."""
    needs = {"env": ["WHY_TEST_TOKEN"], "bins": ["no-such-program"], "modules": ["no_such_module"]}
    home.plugin("p", LOUD, frozen("word", "p:word", requires=needs))
    (claim,) = home.why("word").claims
    assert (claim.state, claim.rule) == ("unavailable", "registry.V1")
    for command in ("export WHY_TEST_TOKEN=…", "no-such-program", "python -m pip install no_such_module"):
        assert command in claim.fix


def test_plugins_W5_formats_that_cannot_express_it(home: Home) -> None:
    """registry.D4: which formats leave the tool out; for a session of such a format it isn't there."""
    with home.runtime() as runtime:
        schema = {"description": "d", "parameters": {"type": "object", "properties": {"größe": {"type": "string"}}}}
        runtime.registry.register("word", "words", schema, print)
        answer = explain_tool(runtime, "word")
        assert (answer.state, list(answer.left_out)) == ("ready", ["anthropic"])
        told = explain_tool(runtime, "word", Asked(format="anthropic"))
        assert (told.state, told.claims[0].rule) == ("left_out", "registry.D4")
        assert explain_tool(runtime, "word", Asked(format="openai")).state == "ready"


def test_plugins_W5_an_alias(home: Home) -> None:
    """registry.R8: an alias leads to its tool; who wanted it too is told."""
    home.plugin("a", registering("word", more=", aliases=['speech']"))
    home.plugin("b", registering("talk", more=", aliases=['speech']"), {"after": ["a"]})
    answer = home.why("speech")
    assert [(claim.plugin, claim.tool, claim.state) for claim in answer.claims] == [
        ("a", "word", "ready"), ("b", "talk", "rejected"),
    ]  # fmt: skip
    assert answer.claims[1].rule == "registry.R8"
    assert "its alias" in answer.sentence


def test_plugins_W5_the_hosts_own_tool(home: Home) -> None:
    """The host's tool is told like a plugin's, and what a plugin lost to it too."""
    home.plugin("p", registering("word"))
    with home.runtime() as runtime:
        runtime.registry.register("word", "words", {"description": "d"}, lambda args: "x", override=True)
        first, second = explain_tool(runtime, "word").claims
    assert (first.plugin, first.state) == ("host", "ready")
    assert first.origin.startswith(f"{__file__}:")
    assert (second.plugin, second.state) == ("p", "displaced")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("wrod", "word"),
        ("WORD", "word"),
        ("Read-File", "read_file"),
        ("terminl", "terminal"),
        ("hiden", "hidden"),
        ("readfile", "read_file"),
        ("zzzzzz", None),
    ],
)
def test_plugins_W5_a_name_that_nobody_wants(home: Home, name: str, meant: str | None) -> None:
    """A suggestion, that of a plugin which isn't loaded too, and where such a tool could come from."""
    home.plugin("p", registering("word"))
    home.plugin("q", registering("hidden"))
    home.file("config.yaml", "plugins: {disabled: [q]}\n")
    answer = home.why(name)
    assert (answer.state, answer.claims) == ("unknown", ())
    assert answer.suggestions[:1] == (() if meant is None else (meant,))
    told = "\n".join(answer.ways)
    for way in ("plugins install SPEC", f"{home.path}/plugins/<id>/", f"{home.path}/tools/{name}.py", "mcp_servers",
                f"{home.project}/.mibyan/plugins"):  # fmt: skip
        assert way in told


@pytest.mark.parametrize(
    ("name", "word"), [("files", "mibyan toolsets show files"), ("planning", "toolsets show planning")]
)
def test_plugins_W5_the_name_of_something_else(home: Home, name: str, word: str) -> None:
    """A toolset's or a plugin's name is told as such."""
    assert any(word in way for way in home.why(name).ways)


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "größe", "\x1b[31m", "\u202eevil", "a/../b"])
def test_plugins_W5_any_text_is_answered(home: Home, name: str) -> None:
    """Whatever is asked about: an answer in one line, without control characters; what can't be a name is told."""
    answer = home.why(name)
    assert answer.state == "unknown"
    assert "registry.R1" in answer.sentence
    assert answer.sentence.isprintable()


def test_plugins_W5_safe_mode_is_told(home: Home) -> None:
    """In safe mode nobody looked for the others: the answer says so."""
    home.plugin("p", registering("word"))
    answer = home.why("word", safe_mode=True)
    assert any("--safe-mode" in question for question in answer.open_questions)


def test_plugins_W5_a_cloned_distribution(home: Home, site: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """plugins.F3: a dist-info that came with the project isn't searched; why tells where it is and what to do."""
    monkeypatch.syspath_prepend(home.project)
    site("wheel", registering("word"), place=home.project)
    (claim,) = home.why("word").claims
    assert (claim.state, claim.rule) == ("near_miss", "plugins.F3")
    assert claim.origin == f"{home.project}/wheel/__init__.py:2"
    assert f"mibyan plugins install -e {home.project}" in claim.fix


def test_plugins_W5_a_learned_plugin_is_not_run_either(home: Home) -> None:
    """plugins.M4: once a plugin is learned its tools are told as before, with file and line, without importing it."""
    home.plugin("p", registering("word", more=", check_fn=lambda: 'no moon'") + "    print('somebody ran me')\n")
    first = home.why("word")
    assert first.state == "unavailable"
    again = home.why("word")
    assert (again.state, again.claims[0].origin) == ("unchecked", first.claims[0].origin)
    assert home.why("word", Asked(load=True)).claims[0].reason == "no moon"


def test_plugins_W5_what_blocks_its_calls(home: Home) -> None:
    """plugins.M2: a tool that is there and can't be called, since a policy can't be used: which one, and the way out."""
    home.plugin("p", registering("word"))
    home.plugin("guard", "raise ValueError('no guard')\n", {"role": "policy"})
    answer = home.why("word")
    assert answer.state == "ready"
    (told,) = answer.obstacles
    assert "'guard'" in told
    assert "mibyan plugins disable guard" in told


def test_plugins_W5_the_second_start_tells_the_same(home: Home) -> None:
    """plugins.M4: what was learned is told as what was imported: who, in which state, where, by which line, the way out."""
    home.plugin("a", registering("word"))
    home.plugin("b", registering("word", "others"), {"after": ["a"]})
    home.plugin("c", registering("word", more=", override=True"), {"after": ["b"]})
    home.plugin("d", registering("word", more=", override=True"), {"after": ["c"]})
    home.plugin("e", registering("tool_call"))
    home.plugin("f", registering("word") + "    raise ValueError('oops')\n")
    home.file("tools/g.py", "import mibyan\nmibyan.registry.register('word', 'words', {}, lambda args: 'x')\n")
    home.file("config.yaml", "plugins:\n  entries:\n    c:\n      allow_tool_override: true\n")

    def told(name: str) -> list[dict[str, Any]]:
        return [claim.to_dict() for claim in home.why(name).claims]

    for name, count in (("word", 6), ("tool_call", 1)):
        first = told(name)
        assert len(first) == count
        assert told(name) == first


def test_plugins_F3_a_shadowed_copy_is_a_candidate(home: Home, site: Callable) -> None:
    """plugins.L1: of two plugins with one id the second is told too, by what it is shadowed and where it is."""
    site("twin", registering("word"))
    home.plugin("twin", registering("word"))
    first, second = home.why("word").claims
    assert (first.state, first.source, second.state, second.source) == ("ready", "pip", "shadowed", "user")
    assert second.origin == f"{home.path}/plugins/twin/__init__.py:2"
    assert "comes first" in second.reason


def test_plugins_L6_what_the_project_turns_off(home: Home) -> None:
    """The project's own line is named, and that it must be changed: the home's command wouldn't help."""
    home.plugin("p", registering("word"))
    (home.project / ".mibyan" / "config.yaml").write_text("plugins:\n  disabled: [p]\n")
    (claim,) = home.why("word").claims
    line = f"{home.project}/.mibyan/config.yaml:2: plugins.disabled[0]"
    assert (claim.state, claim.decided_by, claim.fix) == ("disabled", line, f"take 'p' from {line}")
    home.file("config.yaml", "plugins: {disabled: [P]}\n")
    (claim,) = home.why("word").claims
    assert (claim.decided_by, claim.fix) == (
        f"{home.path}/config.yaml:1: plugins.disabled[0]",
        "`mibyan plugins enable p`",
    )


def test_plugins_L6_what_a_host_turns_off(home: Home) -> None:
    """What code says on top of the file is named as such."""
    home.plugin("p", registering("word"))
    (claim,) = home.why("word", config={"plugins": {"disabled": ["p"]}}).claims
    assert claim.decided_by == "Runtime(config=...): plugins.disabled[0]"


def test_plugins_F6_a_tool_file_with_a_mistake(home: Home) -> None:
    """A file that isn't Python: the plugin that it would be failed, at the line that names the tool, and why."""
    home.file("tools/words.py", "import mibyan\nmibyan.registry.register('word', 'words', {}, print\n")
    (claim,) = home.why("word").claims
    assert (claim.state, claim.plugin) == ("failed", "tools.words")
    assert claim.origin == f"{home.path}/tools/words.py:2"
    assert "not Python" in claim.reason
    assert f"mend {home.path}/tools/words.py" in claim.fix


def test_plugins_W5_a_definition_whose_function_cannot_be_found(home: Home, site: Callable) -> None:
    """A frozen tool without a target, or with one that leads nowhere: the line of the manifest that defines it."""
    folder = home.plugin("p", "", frozen("other"))
    (folder / "plugin.yaml").write_text(
        "manifest_version: 1\nid: p\ntools:\n  - {name: words, toolset: t, schema: {description: d}}\n"
        "  - name: word\n    toolset: t\n    target: nowhere:word\n    schema: {description: d}\n"
    )
    site("wheel", "", frozen("word"))
    told = {claim.plugin: claim.origin for claim in home.why("word").claims}
    assert told["p"] == f"{folder}/plugin.yaml:5"
    assert told["wheel"].endswith("wheel-1.0.dist-info/extra_metadata/mibyan.json:1")
