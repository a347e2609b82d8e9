"""`mibyan.explain.toolset`: the tools of a toolset, by which way each gets in, and what keeps others out."""

from __future__ import annotations

from typing import Any

import pytest

from mibyan.explain.toolset import Member, explain_toolset, where_missing

from .conftest import LOUD, Home, frozen, registering


def members(home: Home, name: str, **given: Any) -> dict[str, Member]:
    with home.runtime(**given) as runtime:
        return {member.name: member for member in explain_toolset(runtime, name)}


def test_each_member_has_its_way_and_its_place(home: Home) -> None:
    """registry.T2: by way of which toolsets, of which plugin, at which file and line; nothing is imported for it."""
    home.plugin("p", LOUD, frozen("word", "p:word"))
    found = members(home, "mibyan-cli")
    assert (found["word"].state, found["word"].via, found["word"].plugin) == ("available", "mibyan-cli > words", "p")
    assert found["word"].origin == f"{home.path}/plugins/p/__init__.py:3"
    assert found["read_file"].via == "mibyan-cli > core > files"
    assert found["read_file"].origin.rpartition(":")[2].isdigit()


def test_a_denial_names_its_line(home: Home) -> None:
    """registry.T4: deny wins, and the line that denies is named, whichever list enables the tool."""
    home.plugin("p", registering("word"))
    home.file("config.yaml", "toolsets:\n  enabled: [words, files]\n  disabled:\n    - web\n    - words\n")
    word = members(home, "words")["word"]
    assert (word.state, word.rule) == ("denied", "registry.T4")
    assert word.decided_by == f"{home.path}/config.yaml:5: toolsets.disabled[1]"
    assert word.fix == "Remove 'words' from toolsets.disabled, so that it says `toolsets.disabled: [web]`."


def test_what_is_not_enabled_names_its_line(home: Home) -> None:
    """What `toolsets.enabled` doesn't list is another thing than what is denied."""
    home.plugin("p", registering("word"))
    home.file("config.yaml", "toolsets: {enabled: [files]}\n")
    word = members(home, "words")["word"]
    assert (word.state, word.decided_by) == ("not enabled", f"{home.path}/config.yaml:1: toolsets.enabled")
    assert word.fix == "Add 'words' to toolsets.enabled, so that it says `toolsets.enabled: [files, words]`."


@pytest.mark.parametrize("name", ["words", "all", "mibyan-cli"])
def test_what_plugins_would_add_that_are_not_loaded(home: Home, name: str) -> None:
    """Tools of plugins that are off belong to the answer, with the command that turns the plugin on."""
    home.plugin("p", registering("word"))
    home.plugin("q", registering("hidden"))
    home.plugin("r", LOUD, {**frozen("ahead", "r:word"), "requires_mibyan": ">=99"})
    home.file("config.yaml", "plugins:\n  disabled: [q]\n")
    found = members(home, name)
    assert (found["word"].state, found["hidden"].state, found["ahead"].state) == ("available", "absent", "absent")
    assert found["hidden"].fix == "`mibyan plugins enable q`"
    assert found["hidden"].decided_by == f"{home.path}/config.yaml:2: plugins.disabled[0]"
    assert found["ahead"].origin == f"{home.path}/plugins/r/__init__.py:3"
    assert found["hidden"].to_dict()["state"].startswith("absent: plugin 'q' is disabled")


def test_what_a_preset_keeps_out(home: Home) -> None:
    """registry.T3: a preset that takes read-only tools only says which it leaves out, and by which rule."""
    home.plugin("p", registering("post", "web") + "    ctx.register_tool('get', 'web', {}, print, read_only=True)\n")
    found = members(home, "mibyan-webhook")
    assert (found["get"].state, found["post"].state, found["post"].rule) == ("available", "kept out", "registry.T3")
    assert "read-only tools only" in found["post"].why
    assert {member.state for member in members(home, "web").values()} == {"available"}


def test_names_that_nobody_has(home: Home) -> None:
    """A custom toolset's tool that isn't registered, and an include that nobody knows: each with what was meant."""
    home.plugin("p", registering("word"))
    home.file("config.yaml", "toolsets: {custom: {mine: {tools: [wrod, word], includes: [fiels, words]}}}\n")
    with home.runtime() as runtime:
        found = {member.name: member for member in explain_toolset(runtime, "mine")}
        missing = where_missing(runtime.toolsets.expansion("mine"), runtime.toolsets.suggest)
    assert (found["wrod"].state, found["word"].via) == ("not registered", "mine")
    assert "did you mean 'word'?" in found["wrod"].why
    assert missing == [{"name": "fiels", "included_by": "mine", "suggestion": "files"}]


def test_a_member_of_a_plugin_that_lost_it(home: Home) -> None:
    """A tool that a toolset names and a failed plugin would have: why it isn't registered."""
    home.plugin("p", registering("word") + "    raise ValueError('oops')\n")
    home.file("config.yaml", "toolsets: {custom: {mine: {tools: [word]}}}\n")
    word = members(home, "mine")["word"]
    assert (word.state, word.plugin, word.fix) == ("not registered", "p", "mibyan plugins disable p")
    assert "oops" in word.why
