"""`mibyan tools why` and what `tools show` says of a name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import add_plugin

WORD = "import mibyan\n\n@mibyan.tool(toolset='{}')\ndef word() -> str:\n    'Says a word.'\n    return 'x'\n"


def test_why_as_json(run: Callable, bench: Path) -> None:
    """`tools why NAME --json`: one document, whoever has the name first, each with place, rule, line and way out."""
    add_plugin(bench, "late", WORD.format("late"))
    add_plugin(bench, "later", WORD.format("later"))
    add_plugin(bench, "shut", WORD.format("shut"))
    (bench / "config.yaml").write_text("plugins:\n  disabled: [shut]\n")
    done = run("tools", "why", "word", "--json")
    assert done.code == 0
    assert list(done.data) == [
        "name", "state", "sentence", "candidates", "left_out", "unknown", "suggestions", "ways", "obstacles", "decisions",
    ]  # fmt: skip
    assert [(one["plugin"], one["state"], one["rule"]) for one in done.data["candidates"]] == [
        ("late", "ready", "registry.R4"), ("later", "rejected", "registry.R4"), ("shut", "disabled", "plugins.L6"),
    ]  # fmt: skip
    assert done.data["candidates"][2]["decided_by"] == f"{bench}/config.yaml:2: plugins.disabled[0]"
    assert all(one["origin"].endswith(f"{one['plugin']}/__init__.py:3") for one in done.data["candidates"])
    assert done.data["decisions"][0]["kind"] == "rejected"


def test_why_for_people(run: Callable, home: Path) -> None:
    """`tools why NAME`: a sentence, then each candidate with what a reader needs to change it."""
    add_plugin(home, "shut", WORD.format("shut"))
    (home / "config.yaml").write_text("plugins:\n  disabled: [shut]\n")
    done = run("tools", "why", "word")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "'word' isn't there: plugin 'shut' is disabled: it is in `plugins.disabled`."
    for part in ("1. plugin shut (user): disabled", f"{home}/plugins/shut/__init__.py:3", "(plugins.L6)",
                 f"{home}/config.yaml:2: plugins.disabled[0]", "`mibyan plugins enable shut`"):  # fmt: skip
        assert part in done.out


def test_why_in_a_session(run: Callable, bench: Path) -> None:
    """--enable, --disable, --platform and --format are a session's: the same name is there, or hidden."""
    assert run("tools", "why", "echo", "--json").data["state"] == "ready"
    assert run("tools", "why", "echo", "--disable", "bench", "--json").data["state"] == "hidden"
    assert run("tools", "why", "echo", "--enable", "files", "--json").data["state"] == "hidden"
    assert run("tools", "why", "echo", "--platform", "webhook", "--json").data["state"] == "hidden"
    assert run("tools", "why", "echo", "--format", "gemini", "--json").data["state"] == "ready"
    assert run("tools", "why", "tides", "--load", "--json").data["state"] == "unavailable"
    assert run("tools", "why", "echo", "--format", "gemni").code == 2
    assert run("tools", "why", "echo", "--enable", "bensh", "--strict").code == 3


def test_why_of_a_name_that_nobody_has(run: Callable, bench: Path) -> None:
    """An answer all the same: 0, a suggestion, and where such a tool could come from."""
    done = run("tools", "why", "ecko")
    assert done.code == 0
    assert "Did you mean 'echo'?" in done.out
    assert "Where such a tool could come from:" in done.out
    assert f"{bench}/tools/ecko.py" in done.out


def test_why_does_not_run_a_frozen_plugin(run: Callable, home: Path) -> None:
    """plugins.M4: a frozen plugin that would end the program isn't imported; its function is found all the same."""
    add_plugin(
        home, "loud", "raise SystemExit(7)\n\ndef word(args): ...\n",
        'id: loud\nmanifest_version: 1\ntools: [{name: word, toolset: t, schema: {description: d}, target: "loud:word"}]\n',
    )  # fmt: skip
    for command in ("why", "show"):
        done = run("tools", command, "word")
        assert done.code == 0
        assert f"{home}/plugins/loud/__init__.py:3" in done.out
    loaded = run("tools", "why", "word", "--load", "--json")
    assert (loaded.code, loaded.data["state"]) == (0, "absent")
    assert loaded.data["candidates"][0]["state"] == "rolled_back"


def test_show_tells_who_else_wants_the_name(run: Callable, bench: Path) -> None:
    """`tools show`: below the tool those that don't have its name; as JSON in "candidates"."""
    add_plugin(bench, "late", WORD.format("late"))
    add_plugin(bench, "later", WORD.format("later"))
    shown = run("tools", "show", "word").out
    assert "Who else wants the name:\n\n1. plugin later (user): rejected" in shown
    assert f"origin       {bench}/plugins/late/__init__.py:3" in shown
    told = run("tools", "show", "word", "--json").data
    assert [one["plugin"] for one in told["candidates"]] == ["late", "later"]
    assert told["origin"] == f"{bench}/plugins/late/__init__.py:3"


def test_show_says_why_a_tool_is_not_there(run: Callable, bench: Path) -> None:
    """`tools show` of a name that somebody wants and nobody has: 2, who that is, and the command that changes it."""
    add_plugin(bench, "shut", WORD.format("shut"))
    (bench / "config.yaml").write_text("plugins:\n  disabled: [shut]\n")
    done = run("tools", "show", "word")
    assert (done.code, done.out) == (2, "")
    assert f"{bench}/plugins/shut/__init__.py:3 has one" in done.err
    assert "`mibyan plugins enable shut`" in done.err
    assert "`mibyan tools why word`" in done.err


def test_show_says_that_a_tool_is_hidden(run: Callable, bench: Path) -> None:
    """`tools show` of a tool that the configuration hides: it says so, and what to change."""
    (bench / "config.yaml").write_text("toolsets: {disabled: [bench]}\n")
    assert "Remove 'bench' from toolsets.disabled" in run("tools", "show", "echo").out


@pytest.mark.parametrize("name", ["\x1b[2Jevil", "\u202egnp", "a\nb"])
def test_a_hostile_name_is_shown_as_it_is_written(run: Callable, bench: Path, name: str) -> None:
    """What could play tricks on a terminal is made visible, in the answer and in the error."""
    for words in (("tools", "why", name), ("tools", "show", name)):
        done = run(*words)
        assert not set(done.out + done.err) & set("\x1b\u202e")


@pytest.mark.parametrize("name", ["ecko", "tides"])
def test_a_call_that_finds_no_tool_says_where_to_ask(run: Callable, bench: Path, name: str) -> None:
    """`mibyan call` of what isn't there or isn't available: on standard error the command that tells why."""
    assert f"`mibyan tools why {name}`" in run("call", name).err
    assert "tools why" not in run("call", "echo", "text=x").err
