"""Writing what the code says into a manifest's text, whatever form the author gave it (plugins.M4)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.config.render import block
from mibyan.config.yamlfile import parse_document
from mibyan.plugins.manifest_edit import differences, merged, text_of

PATH = Path("/weather/plugin.yaml")


def tool(name: str, text: str = "It does.", **more) -> dict:
    schema = {"description": text, "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
    return {"name": name, "toolset": "weather", "schema": schema, **more}


KEYS = {
    "tools": [tool("one"), tool("two", 'Line one.\nLine two: "quoted" # no comment', flags={"read_only": True})],
    "toolsets": {"all": {"tools": ["one"]}},
    "hooks": ["pre_tool_call"],
}

FORMS = {
    "nothing": "",
    "comments": "# only a comment\n",
    "no-line-end": "id: weather",
    "flow": "{id: weather, permissions: [network]}\n",
    "flow-empty": "{}\n",
    "crlf": "id: weather  # it\r\npermissions:\r\n  - network\r\n",
    "mark": "\ufeffid: weather\n",
    "document": "---\nid: weather\n",
    "null": "id: weather\ntools:\ntoolsets:   # below\nhooks: ~\npermissions: []\n",
    "empty": "id: weather\ntools: []\ntoolsets: {}\nhooks: []\n",
    "wrong": "id: weather\ntools: 3\ntoolsets: x\nhooks: {a: b}\n",
    "wrong-items": "id: weather\ntools: [3, {name: one}, {toolset: x}]\n",
    "indentless": "id: weather\ntools:\n- name: one\n  toolset: weather\n  schema: {description: Old., parameters: {type: object, properties: {}}}\n# end\n",
    "flow-tools": "id: weather\ntools: [{name: one, toolset: old, schema: {description: Old., parameters: {}}}]\n",
    "short": "id: weather\ntoolsets: [all, rest]\n",
    "twice": "tools:\n  - {name: one}\n  - {name: one}\n  - {name: gone}\nid: weather\n",
    "deep": "id: weather\ntools:\n    -   name: two # second\n        toolset: weather\n\n    # about three\n    -   name: three\n        toolset: weather\nhooks:\n    - pre_tool_call\n",
}  # fmt: skip


def written(text: str, keys: dict = KEYS) -> tuple[str, dict]:
    data = parse_document(text.removeprefix("\ufeff"), PATH.name).data
    new = merged(data, keys)
    return text_of(PATH, text, data, new), new


@pytest.mark.parametrize("form", FORMS)
def test_M4_every_form_can_be_written_and_then_says_so(form: str) -> None:
    """plugins.M4: the file says what the code does, keeps what isn't about it, and a second time nothing changes."""
    text, new = written(FORMS[form])
    assert parse_document(text.removeprefix("\ufeff"), PATH.name).data == new
    assert new["tools"] == KEYS["tools"] or {one["name"] for one in new["tools"]} == {"one", "two"}
    assert new["hooks"] == ["pre_tool_call"]
    for line in FORMS[form].splitlines():
        if "#" in line and "name" not in line and "about three" not in line:
            assert line in text
    assert written(text) == (text, new)
    assert list(differences(new, new)) == []
    assert ("\r\n" in text) == ("\r\n" in FORMS[form])
    assert text.startswith("\ufeff") == FORMS[form].startswith("\ufeff")


def test_M4_an_anchor_that_others_share_stays() -> None:
    """plugins.M4: where a tool refers to what another key has, only the tool changes."""
    text = "id: weather\nconfig_schema: &s {type: object}\ntools:\n  - {name: one, toolset: weather, schema: *s}\n"
    result, new = written(text)
    assert parse_document(result, PATH.name).data == new
    assert new["config_schema"] == {"type": "object"}


NAMES = st.lists(st.sampled_from(["one", "two", "three", "four"]), unique=True, max_size=4)
TEXTS = st.sampled_from(["It does.", "Other: words", "- dash", "# hash", "yes", "a\nb", "\u202ex", "'", '"', "{a}", ""])


@given(NAMES, NAMES, st.lists(TEXTS, min_size=8, max_size=8), st.booleans(), st.booleans())
def test_M4_any_change_of_tools_can_be_written(
    old: list[str], new: list[str], texts: list[str], flow: bool, comments: bool
) -> None:
    """plugins.M4: from any tools to any others; comments outside of what has changed stay."""
    before = {
        "id": "weather",
        "tools": [tool(name, text, flags={"read_only": True}) for name, text in zip(old, texts, strict=False)],
    }
    lines = [json.dumps(before)] if flow else [line for key, value in before.items() for line in block([key], value, 2)]
    text = "\n".join((["# head"] if comments else []) + lines + (["# foot"] if comments else [])) + "\n"
    result, data = written(text, {"tools": [tool(name, text) for name, text in zip(new, texts[4:], strict=False)]})
    assert parse_document(result, PATH.name).data == data
    assert sorted(one["name"] for one in data["tools"]) == sorted(new)
    assert not comments or ("# head" in result and "# foot" in result)
