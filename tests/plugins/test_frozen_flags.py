"""What a manifest says of a frozen tool counts before its code is imported, each flag of it (plugins.M2, M4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mibyan import Runtime, ToolCall
from mibyan.plugins.manifest_model import ToolFlags, keys_of

from .world import write

SCHEMA = {"description": "The weather.", "parameters": {"type": "object", "properties": {"days": {"type": "integer"}}}}
#: A manifest with every flag, each with a value that isn't its default.
WHOLE: dict[str, Any] = {"tools": [{"name": "forecast", "toolset": "weather", "schema": SCHEMA, "flags": {
    "description": "For people.", "emoji": "🌦", "aliases": ["weather_now"], "is_async": True, "timeout": 2.5,
    "max_result_size_chars": 100, "read_only": True, "destructive": True, "idempotent": True, "open_world": False,
    "parallel": True, "interactive": True, "thread": "dedicated", "loop": "runtime", "check_ttl": 3.0, "check_grace": 4.0,
    "cache": True, "defer": True, "untrusted_output": True, "handled_by": "agent", "validate": False,
}}]}  # fmt: skip
FLAGS = WHOLE["tools"][0]["flags"]
CODE = """
import mibyan

def forecast(args):
    return {"days": args["days"]}

def check():
    return "the station is closed"
"""


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Callable[..., Runtime]]:
    """Makes a runtime over a home with one frozen plugin, whose tools are given."""
    made: list[Runtime] = []

    def make(source: str, tools: list[dict[str, Any]], **manifest: Any) -> Runtime:
        folder = tmp_path / "home" / "plugins" / "weather"
        write(folder / "plugin.yaml", json.dumps({"tools": tools, **manifest}, ensure_ascii=False))
        write(folder / "__init__.py", source)
        made.append(Runtime(home=tmp_path / "home"))
        return made[-1]

    yield make
    for one in made:
        one.close()


def frozen(**more: Any) -> dict[str, Any]:
    return {"name": "forecast", "toolset": "weather", "schema": SCHEMA, **more}


def test_plugins_M2_every_flag_reaches_the_tool(runtime: Callable[..., Runtime]) -> None:
    """Nothing is imported for it: the code would raise."""
    assert sorted(FLAGS) == sorted(keys_of(ToolFlags))
    rt = runtime("raise RuntimeError('imported')", WHOLE["tools"])
    entry = rt.registry.get_entry("forecast")
    assert entry is not None, rt.report().problems
    assert {name: getattr(entry, name) for name in FLAGS} == {**FLAGS, "aliases": ("weather_now",)}
    assert rt.plugins.get("weather").state == "ready"


@pytest.mark.parametrize(("flags", "days"), [({}, 3), ({"validate": False}, "3")])
def test_plugins_M4_flags_decide_about_the_call(
    runtime: Callable[..., Runtime], flags: dict[str, Any], days: object
) -> None:
    """`validate: false` hands the arguments over as they came; without it text becomes a number."""
    rt = runtime(CODE, [frozen(target="weather:forecast", flags=flags)])
    assert rt.execute(ToolCall("forecast", {"days": "3"})).data == {"days": days}


def test_plugins_M4_a_check_decides(runtime: Callable[..., Runtime]) -> None:
    """`check` names a function, which is imported when somebody asks whether the tool is there."""
    rt = runtime(CODE, tools=[{**frozen(target="weather:forecast"), "check": "weather:check"}])
    assert rt.plugins.get("weather").state == "ready"
    assert rt.definitions() == [one for one in rt.definitions() if one["function"]["name"] != "forecast"]
    answer = rt.execute(ToolCall("forecast", {"days": 3}))
    assert (answer.error_type, "the station is closed" in answer.text) == ("tool_unavailable", True)


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        ({"tools": [{"requires": {"env": ["A_VARIABLE_OF_TEST"]}}]}, "A_VARIABLE_OF_TEST"),
        ({"tools": [{"requires": {"bins": ["a-program-of-test"]}}]}, "a-program-of-test"),
        ({"tools": [{"requires": {"modules": ["a_module_of_test"]}}]}, "a_module_of_test"),
    ],
)
def test_registry_V1_what_a_frozen_tool_requires(
    runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch, needs: dict[str, Any], said: str
) -> None:
    """The tool is unavailable with that reason, its neighbour isn't, and nothing is imported."""
    tools = [
        {"name": "forecast", "toolset": "weather", "schema": SCHEMA, **needs["tools"][0]},
        {**frozen(), "name": "storms"},
    ]
    rt = runtime("raise RuntimeError('imported')", tools)
    names = [one["function"]["name"] for one in rt.definitions(["weather"])]
    assert names == ["storms"]
    assert said in rt.execute(ToolCall("forecast", {})).text
    assert rt.plugins.get("weather").state == "ready"
    monkeypatch.setenv("A_VARIABLE_OF_TEST", "set")
    names = [one["function"]["name"] for one in rt.definitions(["weather"])]
    assert names == (["forecast", "storms"] if "env" in needs["tools"][0]["requires"] else ["storms"])


def test_requires_env_is_for_people(runtime: Callable[..., Runtime]) -> None:
    """Seed 000: names of variables that a tool mentions don't decide anything."""
    rt = runtime("raise RuntimeError('imported')", tools=[{**frozen(), "requires_env": ["A_VARIABLE_OF_TEST"]}])
    entry = rt.registry.get_entry("forecast")
    assert entry is not None
    assert list(entry.requires_env) == ["A_VARIABLE_OF_TEST"]
    assert [one["function"]["name"] for one in rt.definitions(["weather"])] == ["forecast"]


def test_terminal_environments_are_told_in_order(runtime: Callable[..., Runtime]) -> None:
    """`mibyan_terminal_environments`: what a plugin gives is asked for like any hook, its plugin imported then."""
    source = (
        "import mibyan\n@mibyan.hookimpl\ndef mibyan_terminal_environments():\n    return {'cloud': 'weather:Cloud'}\n"
    )
    rt = runtime(source, [], hooks=["mibyan_terminal_environments"])
    assert rt.plugins.get("weather").state == "ready"
    chain = rt.hooks.chain("mibyan_terminal_environments")
    assert [one.function() for one in chain.plain] == [{"cloud": "weather:Cloud"}]
    assert rt.plugins.get("weather").state == "active"
