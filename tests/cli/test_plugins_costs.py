"""`mibyan plugins list` and `show`: what plugins cost (plugins.W4): tokens of their tools, milliseconds of their imports."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import add_plugin

FROZEN = """\
manifest_version: 1
id: {id}
hooks: {hooks}
overrides: {overrides}
tools:
  - {{name: {tool}, toolset: words, schema: {{description: "{description}", parameters: {{type: object, properties: {{}}}}}}, target: "{id}:run"}}
"""
CODE = "def run(args): return 'ran'\n"
HOOKS = """
import mibyan
@mibyan.hookimpl
def post_tool_call(status): ...
@mibyan.hookimpl
def pre_tool_call(args): ...
"""


def frozen(
    home: Path, plugin_id: str, tool: str, description: str = "Runs.", overrides: str = "[]", hooks: str = "[]"
) -> None:
    manifest = FROZEN.format(id=plugin_id, tool=tool, description=description, overrides=overrides, hooks=hooks)
    add_plugin(home, plugin_id, CODE if hooks == "[]" else CODE + HOOKS, manifest)


def by_id(done) -> dict:
    return {one["id"]: one for one in done.data["plugins"]}


def rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.split("\n\n", maxsplit=1)[0].splitlines()[1:]]


def test_plugins_W4_the_costs_of_frozen_plugins_are_known_before_any_load(run: Callable, home: Path) -> None:
    """Tokens by the manifest, no import milliseconds; both are the same after a load that imports nothing."""
    frozen(home, "alpha", "one", "a" * 400)
    before = by_id(run("plugins", "list", "--json"))["alpha"]
    assert (before["state"], before["import_ms"]) == ("found", None)
    assert before["schema_tokens"] > 100
    run("tools", "list")
    after = by_id(run("plugins", "list", "--json"))["alpha"]
    assert (after["state"], after["import_ms"]) == ("ready", None)
    assert after["schema_tokens"] == before["schema_tokens"]


def test_plugins_W4_the_import_of_the_last_load(run: Callable, home: Path) -> None:
    """A call imports a frozen plugin: from then on the list has its milliseconds, and a later look keeps them."""
    frozen(home, "alpha", "one")
    assert run("call", "one").out == "ran\n"
    told = by_id(run("plugins", "list", "--json"))["alpha"]
    assert (told["state"], told["import_ms"] > 0) == ("active", True)
    run("tools", "list")
    assert by_id(run("plugins", "list", "--json"))["alpha"]["import_ms"] == told["import_ms"]


def test_plugins_W4_a_learned_plugin_keeps_its_costs(run: Callable, bench: Path) -> None:
    """A plugin without a manifest's definitions: nothing is known before its first load, then all is."""
    assert by_id(run("plugins", "list", "--json"))["bench"]["schema_tokens"] == 0
    run("tools", "list")
    told = run("plugins", "show", "bench", "--json").data
    assert sorted(told["tool_tokens"]) == told["tools"]
    assert all(tokens > 10 for tokens in told["tool_tokens"].values())
    assert told["schema_tokens"] == sum(told["tool_tokens"].values())
    loaded = by_id(run("plugins", "list", "--load", "--json"))["bench"]
    assert loaded["schema_tokens"] == told["schema_tokens"]


def test_plugins_W4_totals(run: Callable, home: Path) -> None:
    """Below the table: how many can be used, their tools and tokens, the slowest import; what is off doesn't count."""
    frozen(home, "alpha", "one", "a" * 4_000)
    frozen(home, "beta", "two")
    frozen(home, "gamma", "three", "c" * 40_000)
    (home / "config.yaml").write_text("plugins: {disabled: [gamma]}\n")
    told = r"^(\d+) of (\d+) plugins can be used: (\d+) tools, whose definitions are about ([\d,]+) tokens(.*)\.$"
    out = run("plugins", "list").out
    usable, found, tools, tokens, rest = re.search(told, out, re.MULTILINE).groups()
    counted = [one for one in by_id(run("plugins", "list", "--json")).values() if one["state"] != "disabled"]
    assert (int(found) - int(usable), int(usable)) == (1, len(counted))
    assert int(tools) == sum(len(one["tools"]) for one in counted)
    assert int(tokens.replace(",", "")) == sum(one["schema_tokens"] for one in counted)
    assert rest == ""
    run("call", "two")
    slowest = re.search(told, run("plugins", "list").out, re.MULTILINE)[5]
    assert re.fullmatch(r"; slowest import: beta, [\d.]+ ms", slowest)


@pytest.mark.parametrize(("key", "first"), [("tokens", "alpha"), ("import", "beta"), ("tools", "files")])
def test_plugins_W4_the_dearest_first(run: Callable, home: Path, key: str, first: str) -> None:
    """--sort: by tokens, import or tools, for people and as JSON; among equals the order stays."""
    frozen(home, "alpha", "one", "a" * 40_000)
    frozen(home, "beta", "two")
    run("call", "two")
    listed = [one["id"] for one in run("plugins", "list", "--json", "--sort", key).data["plugins"]]
    assert listed[0] == first
    assert [row[0] for row in rows(run("plugins", "list", f"--sort={key}").out)] == listed
    usual = [one["id"] for one in run("plugins", "list", "--json").data["plugins"]]
    assert sorted(listed) == sorted(usual)
    if key == "import":
        assert listed[1:] == [one for one in usual if one != "beta"]


def test_plugins_W4_a_key_that_there_isn_t(run: Callable, home: Path) -> None:
    """2, and the keys that there are; a key that commands a terminal doesn't."""
    done = run("plugins", "list", "--sort", "a\x1b[31m")
    assert (done.code, done.out) == (2, "")
    assert "tokens, import, tools" in done.err
    assert "\x1b" not in done.err


def test_plugins_W4_show_names_what_there_is(run: Callable, home: Path) -> None:
    """`plugins show`: each tool with its tokens, the hooks by name, each override with the plugin that had the tool."""
    frozen(home, "alpha", "one")
    frozen(home, "beta", "one", overrides="[one, nobodys]", hooks="[post_tool_call, pre_tool_call]")
    (home / "config.yaml").write_text("plugins: {entries: {beta: {allow_tool_override: true}}}\n")
    told = run("plugins", "show", "beta", "--json").data
    assert told["displaced"] == {"nobodys": None, "one": "alpha"}
    shown = run("plugins", "show", "beta").out
    assert re.search(rf"^tools +one \({told['schema_tokens']} tokens\)$", shown, re.MULTILINE)
    assert re.search(r"^hooks +post_tool_call\n +pre_tool_call$", shown, re.MULTILINE)
    assert re.search(r"^overrides +nobodys\n +one \(of plugin alpha\)$", shown, re.MULTILINE)
    assert "import " not in shown
    run("call", "one")
    assert re.search(r"^import +[\d.]+ ms$", run("plugins", "show", "beta").out, re.MULTILINE)


def test_plugins_W4_a_name_that_somebody_else_has_is_told(run: Callable, home: Path) -> None:
    """A plugin that works but hasn't all the names that it wants: `list`, `show` and `doctor` say so without loading it."""
    add_plugin(home, "alpha", CODE, FROZEN.format(id="alpha", tool="one", description="A.", overrides="[]", hooks="[]"))
    taker = "import mibyan\n@mibyan.tool(toolset='x')\ndef one() -> str:\n    'Runs.'\n    return ''\n"
    add_plugin(home, "bold", taker, "manifest_version: 1\nid: bold\n")
    run("tools", "list")
    for told in (run("plugins", "list", "--json"), run("plugins", "list", "--load", "--json")):
        assert {one: row["rejected"] for one, row in by_id(told).items() if row["rejected"]} == {"bold": ["one"]}
    sentence = "1 tool of it rejected, as others have the names: one\n    mibyan tools why one\n"
    assert sentence in run("plugins", "list").out
    assert re.search(r"^rejected +one$", run("plugins", "show", "bold").out, re.MULTILINE)
    findings = run("doctor", "--json").data["findings"]
    assert [one["fix"] for one in findings if "'bold'" in one["what"]] == ["mibyan tools why one"]
    told = run("plugins", "list", "--load").out
    assert told.count("tools why one") + told.count("allow_tool_override") == 1, told


OFFERS = """
import mibyan
def say(text): return text
def register(ctx):
    ctx.register_command("say", say, "Say it.", args_hint="TEXT")
"""


def test_show_tells_all_that_a_plugin_offers_and_needs(run: Callable, home: Path) -> None:
    """Commands, skills, terminal backends, settings, what it needs: by the manifest, or as it was learned."""
    add_plugin(
        home,
        "alpha",
        OFFERS,
        """\
manifest_version: 1
id: alpha
commands: [{name: say, description: Say it., args_hint: TEXT}]
cli: [talk]
skills: [skills/read]
environments: {box: "box:make"}
config_schema: {type: object, properties: {loud: {type: boolean}}}
requires: {env: [LOUD_KEY], bins: [sh]}
tools: []
""",
    )
    shown = re.sub(" +", " ", run("plugins", "show", "alpha").out)
    for line in ("commands say TEXT: Say it.", "cli talk", "skills skills/read", "environments box", "settings loud",
                 "needs variables LOUD_KEY", "needs programs sh"):  # fmt: skip
        assert f"\n{line}\n" in shown
    add_plugin(home, "beta", OFFERS, "manifest_version: 1\nid: beta\n")
    assert run("plugins", "show", "beta", "--json").data["commands"] == []
    run("tools", "list")
    learned = run("plugins", "show", "beta", "--json").data
    assert learned["commands"] == [{"name": "say", "description": "Say it.", "args_hint": "TEXT"}]
