"""A hundred plugins, half frozen, half learned: what only looks runs none of their code, a call runs one's (plugins.M4, L8)."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from .many import Many

LOOKS = [
    ["tools", "list", "--json"], ["tools", "schema"], ["tools", "schema", "--format", "anthropic", "--enable", "words_3"],
    ["tools", "show", "word_p017"], ["tools", "why", "word_p041"], ["toolsets", "list"], ["toolsets", "show", "words_7"],
    ["plugins", "list"], ["plugins", "list", "--json"], ["plugins", "show", "p003"], ["doctor"],
]  # fmt: skip


@pytest.mark.thorough
def test_plugins_M4_a_hundred_plugins(tmp_path: Path) -> None:
    """Of 50 frozen and 50 learned plugins, wheels and folders, no listing runs any code, and a call that of one plugin.

    What is run is told by the interpreter itself: an audit hook notes each code object of a plugin's file.
    """
    many = Many(tmp_path)
    kinds = itertools.cycle([("wheel", True), ("wheel", False), ("folder", True), ("folder", False)])
    for number, (kind, frozen) in zip(range(100), kinds, strict=False):
        many.add(f"p{number:03}", kind, frozen=frozen)
    many.write()
    run = many.runner()
    learned = {f"p{number:03}" for number in range(1, 100, 2)}
    first, ran = run("-m", "mibyan", "tools", "list", "--json")
    assert ran == learned, "what is frozen isn't run even at the first look, and the log isn't blind"
    for words in LOOKS:
        printed, ran = run("-m", "mibyan", *words)
        assert ran == set(), words
        if words == ["tools", "list", "--json"]:
            assert printed == first
    names = {one["name"] for one in json.loads(first)["tools"]}
    assert {f"word_p{number:03}" for number in range(100)} <= names
    for plugin_id in ("p040", "p042", "p041", "p043"):  # a wheel and a folder, frozen; a wheel and a folder, learned
        printed, ran = run("-m", "mibyan", "call", f"word_{plugin_id}", "text=hi", "times:=2")
        assert (printed, ran) == (f"{plugin_id}:hihi\n", {plugin_id})
    listed = {one["id"]: one for one in json.loads(run("-m", "mibyan", "plugins", "list", "--json")[0])["plugins"]}
    assert all(listed[f"p{number:03}"]["schema_tokens"] > 20 for number in range(100))
    imported = {name for name, one in listed.items() if one["import_ms"] is not None}
    # `execute_code` tells which tools scripts can call: that built-in is asked for what the model sees.
    assert imported - {"code"} == {*learned, "p040", "p042"}
