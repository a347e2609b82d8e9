"""The definitions a model is shown."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mibyan.schema import formats
from mibyan.tools.entry import Requirements

CORE = Path(__file__).parents[2] / "core"


def function(world: Any, name: str, **options: Any) -> dict[str, Any]:
    return {d["function"]["name"]: d["function"] for d in world.builder.build(**options)}[name]


def messages(caplog: Any) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_shape_and_order(world: Any) -> None:
    """registry.D1, D3: `{"type": "function", "function": …}`, sorted by name, the registration's order doesn't matter."""
    for name in ("b", "a", "C", "_", "a1"):
        world.add(name)
    built = world.builder.build()
    assert world.names() == ["C", "_", "a", "a1", "b"]
    assert built[2] == {
        "type": "function",
        "function": {"name": "a", "description": "Does a.", "parameters": {"type": "object", "properties": {}}},
    }


@pytest.mark.parametrize("name", ["openai", "openai-responses", "anthropic", "gemini", "mcp"])
def test_formats(world: Any, name: str) -> None:
    """registry.D1: the provider's format comes last; each definition is what `render` makes of the tool."""
    entry = world.add("a", read_only=True)
    assert world.builder.build(format=name) == [formats.render(entry.schema, name, annotations=entry.annotations)]


@pytest.mark.parametrize("name", ["opnai", "", "OPENAI", None, 3, ["openai"]])
@pytest.mark.parametrize("count", [0, 1])
def test_unknown_formats(world: Any, name: Any, count: int) -> None:
    """An unknown format is a ValueError with a suggestion or the list, also where there is nothing to show."""
    for number in range(count):
        world.add(f"t{number}")
    for build in (world.builder.build, lambda **options: world.builder.build_named(["t0"], **options)):
        with pytest.raises(ValueError, match="openai"):
            build(format=name)


def test_toolset_filter(full: Any) -> None:
    """registry.D1: enabled and disabled toolsets; `None` everything, `[]` nothing."""
    assert full.names(["web", "files"], ["files"]) == ["web_extract", "web_search"]
    assert full.names([]) == []
    assert len(full.names()) == len(full.store.snapshot.entries)
    assert full.names(platform="webhook") == ["web_extract", "web_search"]


@pytest.mark.parametrize("value", ["web", ("web", 3), [["web"]], (["web"],), {"web": 1}, 3])
@pytest.mark.parametrize("argument", ["enabled", "disabled"])
def test_lists_that_arent(full: Any, argument: str, value: Any) -> None:
    """registry.T4: a bare string is a TypeError, and so is what can't even be looked up; each time."""
    for _ in range(2):
        with pytest.raises(TypeError, match=f"{argument}_toolsets"):
            full.builder.build(**{argument: value})


def test_unknown_toolsets_warn_once_a_session(full: Any, caplog: Any) -> None:
    """registry.T5: one WARNING a session, whether the definitions were remembered or not."""
    first: set[str] = set()
    second: set[str] = set()
    for warned in (first, first, second, second):
        assert full.builder.build(["webb"], warned=warned) == []
    assert messages(caplog) == ["Unknown toolset 'webb'; did you mean 'web'?"] * 2


# Availability ------------------------------------------------------------------------------------------------------


def test_what_isnt_available_isnt_shown(world: Any) -> None:
    """registry.D1, V1, V2: checks that say no, raise, or tell why; requirements that aren't met."""
    world.add("yes", check_fn=lambda: True)
    world.add("no", check_fn=lambda: False)
    world.add("why", check_fn=lambda: "no key")
    world.add("exits", check_fn=sys.exit)
    world.add("needs", requires=Requirements(env=("MIBYAN_TEST_ABSENT",)))
    assert world.names() == ["yes"]


def test_a_check_is_asked_once_in_each_pass(world: Any) -> None:
    """registry.V2, D3: a shared check runs once a pass, and again in the next: the pass's outcome is remembered, not the check's."""
    asked: list[bool] = []

    def check() -> bool:
        asked.append(True)
        return len(asked) != 2

    for name in ("a", "b", "c"):
        world.add(name, check_fn=check)
    world.add("always")
    assert world.names() == ["a", "always", "b", "c"]
    assert world.names() == ["always"]
    assert world.names() == ["a", "always", "b", "c"]
    assert len(asked) == 3


def test_filtered_tools_arent_probed(world: Any) -> None:
    """registry.D1: the toolset filter comes first: what it takes away isn't asked anything."""
    world.add("a", "shown")
    world.add(
        "b", "other", check_fn=lambda: pytest.fail("probed"), dynamic_schema_overrides=lambda: pytest.fail("asked")
    )
    assert world.names(["shown"]) == ["a"]


def test_the_report_tells_what_was_hidden(full: Any) -> None:
    """registry.D1: unless it is to be quiet, the report has what was denied and what is unavailable, and why."""
    full.add("docker", "bench", check_fn=lambda: "the daemon isn't running")
    full.builder.build(None, ["web"])
    assert [decision for decision in full.log if decision.kind in ("hidden", "unavailable")] == []
    for _ in range(2):
        full.builder.build(None, ["web"], quiet=False)
    told = [(d.kind, d.subject, d.reason) for d in full.log if d.kind in ("hidden", "unavailable")]
    assert told == [
        ("hidden", "tool:web_extract", "Denied with the toolset 'web'."),
        ("hidden", "tool:web_search", "Denied with the toolset 'web'."),
        ("unavailable", "tool:docker", "Unavailable: the daemon isn't running."),
    ]


def test_nothing_is_printed(full: Any, capfd: Any) -> None:
    """registry.D3: printing belongs to the command line, never to the library."""
    full.add("no", check_fn=lambda: False)
    full.builder.build(["nope"], quiet=False)
    full.builder.build(quiet=False)
    assert capfd.readouterr() == ("", "")


# A tool's own overrides --------------------------------------------------------------------------------------------


def test_overrides_are_merged_shallowly(world: Any) -> None:
    """registry.D1: `dynamic_schema_overrides` replaces whole keys of the schema, here and now."""
    before = {"type": "object", "properties": {"a": {"type": "string"}}}
    after = {"type": "object", "properties": {"b": {"type": "integer"}}}
    world.add("t", schema={"description": "Old.", "parameters": before}, dynamic_schema_overrides=lambda: {"parameters": after})  # fmt: skip
    assert function(world, "t") == {"name": "t", "description": "Old.", "parameters": after}
    assert world.store.snapshot.entries["t"].schema["parameters"] == before


def test_overrides_are_asked_in_every_pass(world: Any) -> None:
    """registry.D1, D3: what they say is never remembered, except that the same again is the same definition."""
    said = ["one", "two", "two"]
    world.add("t", dynamic_schema_overrides=lambda: {"description": said.pop(0)})
    world.add("still")
    first, second, third = (world.builder.build() for _ in range(3))
    assert [built[1]["function"]["description"] for built in (first, second, third)] == ["one", "two", "two"]
    assert second[1] is third[1]
    assert first[0] is third[0]


def test_equal_isnt_the_same(world: Any) -> None:
    """registry.D3: `1`, `1.0` and `true` are equal to Python and differ in JSON."""
    said = [1, True, 1.0]
    part = lambda: {"parameters": {"type": "object", "properties": {"a": {"default": said.pop(0)}}}}
    world.add("t", dynamic_schema_overrides=part)
    texts = [json.dumps(world.builder.build()) for _ in range(3)]
    assert ['"default": 1}' in texts[0], '"default": true}' in texts[1], '"default": 1.0}' in texts[2]] == [True] * 3


def test_a_kept_override_may_change_in_place(world: Any) -> None:
    """registry.R3: a tool that hands out the same dict and changes it is believed each time, and changes nothing later."""
    kept = {"description": "one"}
    world.add("t", dynamic_schema_overrides=lambda: kept)
    first = function(world, "t")
    kept["description"] = "two"
    assert first["description"] == "one"
    assert function(world, "t")["description"] == "two"


class Evil(dict):
    def keys(self) -> Any:
        raise RuntimeError("no keys")

    __iter__ = items = keys


def raising(error: BaseException) -> Callable[[], Any]:
    def override() -> Any:
        raise error

    return override


async def coroutine() -> dict[str, Any]:
    return {"description": "late"}


DEEP: dict[str, Any] = {}
for _ in range(5_000):
    DEEP = {"items": DEEP}

BAD_OVERRIDES = {
    "raises": raising(ValueError("x")), "exits": sys.exit, "cancelled": raising(GeneratorExit()),
    "unreadable": raising(type("Bad", (Exception,), {"__str__": lambda self: 1 / 0})()),
    "none": lambda: None, "list": lambda: [("description", "x")], "text": lambda: "description", "async": coroutine,
    "not JSON": lambda: {"description": object()}, "nan": lambda: {"x": float("nan")},
    "not text": lambda: {"description": 3}, "not a schema": lambda: {"parameters": {"type": "array"}},
    "not an object": lambda: {"parameters": 3}, "evil": lambda: Evil(description="x"), "deep": lambda: {"parameters": DEEP},
    "odd keys": lambda: {(1, 2): 3}, "takes arguments": lambda one: {"description": one},
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD_OVERRIDES)
def test_bad_overrides_leave_the_schema(world: Any, kind: str, caplog: Any) -> None:
    """registry.D1: one that raises, isn't a dict or gives nonsense leaves the static schema and one WARNING."""
    world.add("t", dynamic_schema_overrides=BAD_OVERRIDES[kind])
    world.add("other")
    for _ in range(3):
        assert function(world, "t")["description"] == "Does t."
        assert world.names() == ["other", "t"]
    assert len(caplog.records) == 1
    assert "dynamic_schema_overrides of tool 't'" in messages(caplog)[0]
    assert " at 0x" not in messages(caplog)[0]
    assert [(d.kind, d.problem) for d in world.about("tool:t")] == [("warning", True)]


def test_an_override_cant_change_the_name(world: Any, caplog: Any) -> None:
    """registry.D1: the name stays, the rest of the override counts, one WARNING."""
    world.add("t", dynamic_schema_overrides=lambda: {"name": "other", "description": "New."})
    for _ in range(2):
        assert function(world, "t")["description"] == "New."
    assert len(caplog.records) == 1
    assert "may not change the name" in messages(caplog)[0]


def test_a_new_registration_is_warned_about_anew(world: Any, caplog: Any) -> None:
    """registry.D1: once for a registration, not once for ever."""
    for _ in range(2):
        world.add("t", dynamic_schema_overrides=lambda: None)
        world.builder.build()
        world.builder.build()
    assert len(caplog.records) == 2


def test_an_interrupt_leaves(world: Any) -> None:
    """dispatch.C4: KeyboardInterrupt leaves from an override, a patch and a check alike."""
    world.add("t", dynamic_schema_overrides=raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        world.builder.build()


# Patches -----------------------------------------------------------------------------------------------------------


def test_patches_see_what_survived(full: Any) -> None:
    """registry.D1, D2: the hook is given the survivors by name, after availability and overrides, and may not change them."""
    seen: list[Any] = []

    def patch(schemas: Any, names: Any) -> Any:
        seen.append((dict(schemas), names))
        with pytest.raises(TypeError):
            schemas["x"] = 1
        with pytest.raises(TypeError):
            schemas["web_search"]["description"] = "x"
        return {"web_search": {"description": f"Beside {', '.join(n for n in names if n != 'web_search')}."}}

    full.add("gone", "web", check_fn=lambda: False)
    full.add("web_news", "web", dynamic_schema_overrides=lambda: {"description": "News."})
    full.builder = full.make_builder(patch=patch)
    assert full.names(["web"]) == ["web_extract", "web_news", "web_search"]
    [(schemas, names)] = seen
    assert names == ("web_extract", "web_news", "web_search")
    assert schemas["web_news"]["description"] == "News."
    assert function(full, "web_search", enabled=["web"])["description"] == "Beside web_extract, web_news."
    assert len(seen) == 1, "the second pass is remembered"


@pytest.mark.parametrize(
    ("answer", "words", "subject"),
    [
        ({"nobody": {"description": "x"}}, "no tool of that name", "hook:mibyan_patch_definitions"),
        ({3: {}}, "no tool of that name", "hook:mibyan_patch_definitions"),
        ({"t": 3}, "it gave int", "tool:t"),
        ({"t": None}, "it gave NoneType", "tool:t"),
        ({"t": {"description": 3}}, "description", "tool:t"),
        ({"t": {"parameters": {"type": "string"}}}, "parameters", "tool:t"),
        ({"t": {"name": "u"}}, "may not change the name", "tool:t"),
        ([1], "TypeError", "hook:mibyan_patch_definitions"),
        (3, "TypeError", "hook:mibyan_patch_definitions"),
        (Evil(t={}), "no keys", "hook:mibyan_patch_definitions"),
    ],
)  # fmt: skip
def test_bad_patches(world: Any, answer: Any, words: str, subject: str, caplog: Any) -> None:
    """registry.D1: a patch for a tool that isn't there, or with nonsense, is one WARNING; nothing else changes."""
    before = world.add("t"), world.builder.build()
    world.builder = world.make_builder(patch=lambda schemas, names: answer, patch_token=iter(range(9)).__next__)
    for _ in range(3):
        assert world.builder.build() == before[1]
    [message] = messages(caplog)
    assert words in message
    assert [(decision.kind, decision.problem) for decision in world.about(subject)] == [("warning", True)]


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(), RecursionError()])
def test_a_raising_patch(world: Any, error: BaseException, caplog: Any) -> None:
    """registry.D1: a hook that raises changes nothing and is warned about once."""
    world.add("t")
    world.builder = world.make_builder(patch=lambda *args: raising(error)())
    assert world.names() == ["t"]
    assert type(error).__name__ in messages(caplog)[0]


def test_one_bad_patch_doesnt_spoil_the_others(world: Any) -> None:
    """registry.D1: each tool's patch counts by itself."""
    for name in ("a", "b"):
        world.add(name)
    answer = {"a": {"description": 3}, "nobody": {}, "b": {"description": "New."}}
    world.builder = world.make_builder(patch=lambda schemas, names: answer)
    assert [function(world, name)["description"] for name in ("a", "b")] == ["Does a.", "New."]


def test_a_new_version_of_the_hooks_patches_anew(world: Any) -> None:
    """registry.D3: hooks that come or go are seen though the registry didn't change."""
    world.add("t")
    version, words = [0], ["one"]
    world.builder = world.make_builder(
        patch=lambda schemas, names: {"t": {"description": words[0]}}, patch_token=lambda: version[0]
    )
    assert function(world, "t")["description"] == "one"
    words[0] = "two"
    assert function(world, "t")["description"] == "one"
    version[0] += 1
    assert function(world, "t")["description"] == "two"


# What can't be expressed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [None, ValueError("x"), SystemExit(3)])
def test_a_tool_without_words_in_a_format(world: Any, monkeypatch: Any, fault: Any, caplog: Any) -> None:
    """registry.D4: it is left out of that format with a reason, and never spoils the request."""
    render = formats.render

    def picky(schema: Any, name: str, **options: Any) -> Any:
        if schema["name"] == "odd" and name == "gemini":
            if fault is None:
                return None
            raise fault
        return render(schema, name, **options)

    monkeypatch.setattr(formats, "render", picky)
    world.add("odd")
    world.add("plain")
    for _ in range(2):
        assert [definition["name"] for definition in world.builder.build(format="gemini")] == ["plain"]
    assert world.builder.show(format="gemini").names == ("plain",)
    assert world.names() == ["odd", "plain"]
    assert [(d.kind, d.problem) for d in world.about("tool:odd")] == [("skipped", True)]
    assert len(caplog.records) == 1


# By name -----------------------------------------------------------------------------------------------------------


def test_definitions_of_named_tools(world: Any) -> None:
    """api.md `registry.get_definitions(names)`: sorted, each once, aliases understood, unknown and unavailable left out."""
    world.add("b", aliases=("bee",))
    world.add("a")
    world.add("c", check_fn=lambda: False)
    built = world.builder.build_named(["b", "bee", "a", "nope", "c"])
    assert [definition["function"]["name"] for definition in built] == ["a", "b"]
    assert built == world.builder.build_named({"a", "b"}) == world.builder.build(["bench"])
    assert world.builder.build_named([]) == []
    with pytest.raises(TypeError, match="names"):
        world.builder.build_named("a")


# What callers may do -----------------------------------------------------------------------------------------------


def test_what_is_returned_is_the_callers(world: Any) -> None:
    """registry.R3: the list is fresh, the definitions are read-only; json, pickle, dict and deepcopy work."""
    world.add("a")
    first = world.builder.build()
    first.append(None)
    [definition] = world.builder.build()
    with pytest.raises(TypeError):
        definition["function"] = None
    with pytest.raises(TypeError):
        definition["function"]["parameters"]["properties"]["x"] = {}
    mine = copy.deepcopy(definition)
    mine["function"]["parameters"]["properties"]["x"] = {}
    assert pickle.loads(pickle.dumps(definition)) == dict(definition) == json.loads(json.dumps(definition))
    assert world.builder.build() == [definition]


# What is remembered ------------------------------------------------------------------------------------------------


def test_unchanged_definitions_are_the_same_objects(full: Any) -> None:
    """registry.D3: remembered per lists and format; a registration changes only what it concerns."""
    before = full.builder.build(["web", "files"])
    assert all(one is other for one, other in zip(before, full.builder.build(["web", "files"]), strict=True))
    assert full.builder.build(["web"])[0] is before[1]
    full.add("web_news", "web")
    after = full.builder.build(["web", "files"])
    assert [definition["function"]["name"] for definition in after] == [
        "read_file", "web_extract", "web_news", "web_search", "write_file",
    ]  # fmt: skip
    assert [after[0], after[1], after[3], after[4]] == [before[0], before[1], before[2], before[3]]
    assert after[1] is before[1]


def test_a_replaced_tool_is_shown_anew(world: Any) -> None:
    """registry.R4, D3: after a reload the new schema counts; after a removal the tool is gone."""
    world.add("t")
    assert function(world, "t")["description"] == "Does t."
    world.add("t", schema={"description": "New."})
    assert function(world, "t")["description"] == "New."
    world.store.deregister("t", world.host)
    assert world.names() == []


def test_memory_is_bounded(world: Any) -> None:
    """registry.D3: ever new lists and ever changing checks don't pile up; nothing of an old registry is kept."""
    world.add("t", check_fn=lambda: True)
    for number in range(10):
        world.add(f"flips{number}", check_fn=lambda: bool(os.urandom(1)[0] & 1))
    for number in range(500):
        world.builder.build(None, [f"nope{number}"], warned=set())
        world.builder.build()
    state = world.builder._state
    assert len(state.plans) <= 128
    assert all(len(plan.outcomes) <= 8 for plan in state.plans.values())
    for name in list(world.store.snapshot.entries):
        world.store.deregister(name, world.host)
    world.builder.build()
    assert world.builder._state.rendered["openai"] == {}
    world.builder.forget()
    assert world.builder._state is None


def test_the_lists_used_last_are_the_ones_remembered(full: Any) -> None:
    """registry.D3: bounded by use: what is asked for again and again stays."""
    plan = lambda: full.builder._state.plans.get((("web",), None, None, "openai"))
    full.builder.build(["web"])
    kept = plan()
    for number in range(300):
        full.builder.build([f"nope{number}"], warned=set())
        full.builder.build(["web"])
    assert plan() is kept
    for number in range(300):
        full.builder.build([f"nope{number}"], warned=set())
    assert plan() is None


def test_many_threads(full: Any) -> None:
    """registry.R9: builders and writers at once: no error, sorted, unique, each list a state that was."""
    faults: list[BaseException] = []
    done = threading.Event()
    always = set(full.names())

    def read(number: int) -> None:
        try:
            while not done.is_set():
                names = full.names(None, [f"nope{number}"], warned={f"nope{number}"})
                assert names == sorted(set(names))
                assert always <= set(names) <= {*always, "one", "two"}
        except BaseException as error:
            faults.append(error)

    readers = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for reader in readers:
        reader.start()
    for _ in range(50):
        owner = full.plugin("p")
        full.add("one", owner=owner)
        full.add("two", owner=owner, check_fn=lambda: True)
        full.store.remove_owner(owner)
    done.set()
    for reader in readers:
        reader.join()
    assert faults == []


SCRIPT = """
import json, random, sys
sys.path[:0] = [{core!r}, {here!r}]
from conftest import World
world = World().add_builtins()
names = [f"tool{{i}}" for i in range(40)]
random.Random(int(sys.argv[1])).shuffle(names)
for name in names:
    world.add(name, schema={{"description": name, "strict": True, "parameters": {{"type": "object", "properties": {{
        "b": {{"type": "string", "enum": ["y", "x"]}}, "a": {{"type": "integer"}}}}, "required": ["b", "a"]}}}},
        dynamic_schema_overrides=(lambda: {{"description": "now"}}) if len(name) % 2 else dict)
world.builder = world.make_builder(patch=lambda schemas, names: {{n: {{"description": "x"}} for n in set(names) if "3" in n}})
for format in ("openai", "openai-responses", "anthropic", "gemini", "mcp"):
    print(json.dumps(world.builder.build({{"all"}}, {{"web", "files"}}, format=format)))
"""


def test_every_process_gives_the_same_bytes(tmp_path: Path) -> None:
    """registry.D3: byte-identical in any process, under any hash seed, in whatever order tools were registered."""
    script = tmp_path / "say.py"
    script.write_text(SCRIPT.format(core=str(CORE), here=str(Path(__file__).parent)), encoding="utf-8")
    said = [
        subprocess.run(
            [sys.executable, str(script), seed],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert said[0].count(b"tool39") >= 5
    assert said[0] == said[1] == said[2]
