"""The registry as its users see it, many of them at once (registry.R7 to R9)."""

from __future__ import annotations

import threading

import pytest

from mibyan import MibyanError
from mibyan.tools.registry import ToolRegistry

SCHEMA = {"description": "d"}
SOON = 30.0


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry()


def test_what_can_be_asked(registry):
    """Seed 000: names sorted, toolsets by tool, emoji with a default, the schema; unknown names are told as such."""
    registry.register("b", "two", SCHEMA, print, emoji="🌦", aliases=["beta"], requires_env="KEY")
    registry.register("a", "one", SCHEMA, print)
    assert registry.get_all_tool_names() == ["a", "b"]
    assert registry.get_tool_to_toolset_map() == {"a": "one", "b": "two"}
    assert (registry.get_toolset_for_tool("beta"), registry.get_toolset_for_tool("z")) == ("two", None)
    assert (registry.get_emoji("b"), registry.get_emoji("a"), registry.get_emoji("z", "?")) == ("🌦", "⚡", "?")
    assert registry.get_schema("beta")["name"] == "b"
    assert registry.get_schema("z") is None
    assert registry.get_available_toolsets()["two"] == {"available": True, "tools": ["b"], "requirements": ["KEY"]}


@pytest.mark.parametrize("name", ["z", "", None, 5, [], object()])
def test_an_unknown_name_has_no_entry(registry, name):
    """`get_entry` of what isn't a tool's name is `None`, whatever it is."""
    assert registry.get_entry(name) is None


def test_registry_R7_the_last_tool_takes_the_aliases_with_it(registry):
    """registry.R7: removing a toolset's last tool drops the toolset's aliases; a removed tool's aliases go with it."""
    registry.register("a", "one", SCHEMA, print, aliases=["alpha"])
    registry.register("b", "one", SCHEMA, print)
    assert registry.register_toolset_alias("uno", "one")
    assert registry.deregister("a")
    assert registry.get_entry("alpha") is None
    assert registry.is_toolset_available("uno")
    assert registry.deregister("b")
    assert not registry.is_toolset_available("uno")
    assert registry.snapshot.toolset_aliases == {}
    assert registry.deregister("b") is False


@pytest.mark.parametrize("names", [("", "one"), ("uno", ""), (None, "one"), ("uno", 5), ("  ", "one")])
def test_a_toolset_alias_has_two_names(registry, names):
    """Both names are non-empty texts."""
    with pytest.raises(TypeError, match="two non-empty names"):
        registry.register_toolset_alias(*names)


@pytest.mark.parametrize("use", [lambda r: r.dispatch("x", {}), lambda r: r.get_definitions(["x"])])
def test_a_registry_made_by_hand_has_no_runtime(registry, use):
    """What needs a runtime says so in a sentence, with what to do."""
    with pytest.raises(MibyanError, match="needs a runtime"):
        use(registry)


def test_registry_R9_the_generation_grows_with_each_change(registry):
    """registry.R9: one more with each mutation, none for what changes nothing."""
    seen = [registry.generation]
    registry.register("a", "one", SCHEMA, print, aliases=["alpha", "beta"])
    seen.append(registry.generation)
    registry.register("a", "one", SCHEMA, print)
    seen.append(registry.generation)
    registry.deregister("nope")
    seen.append(registry.generation)
    registry.deregister("a")
    seen.append(registry.generation)
    assert [number - seen[0] for number in seen] == [0, 1, 2, 2, 3]


def test_registry_R9_thousands_at_once_lose_nothing(registry):
    """registry.R9: concurrent registrations lose nothing, and readers always see a consistent snapshot."""
    writers, each, wrong, stop = 8, 250, [], threading.Event()
    barrier = threading.Barrier(writers + 2)

    def write(who):
        barrier.wait(SOON)
        for number in range(each):
            registry.register(f"t{who}_{number}", f"set{who}", SCHEMA, print, aliases=[f"a{who}_{number}"])

    def read():
        barrier.wait(SOON)
        generation = -1
        while not stop.is_set():
            snapshot = registry.snapshot
            counted = sum(len(names) for names in snapshot.toolsets.values())
            if counted != len(snapshot.entries) or snapshot.generation < generation:
                wrong.append(snapshot)
            if any(target not in snapshot.entries for target in snapshot.aliases.values()):
                wrong.append(snapshot)
            generation = snapshot.generation

    threads = [threading.Thread(target=write, args=(who,)) for who in range(writers)]
    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in (*threads, *readers):
        thread.start()
    for thread in threads:
        thread.join(SOON)
    stop.set()
    for thread in readers:
        thread.join(SOON)
    assert wrong == []
    assert len(registry.snapshot.entries) == len(registry.snapshot.aliases) == registry.generation == writers * each


def test_registry_R9_a_snapshot_is_of_its_moment(registry):
    """registry.R9: a snapshot doesn't change, and is the same object until something does."""
    registry.register("a", "one", SCHEMA, print)
    before = registry.snapshot
    assert registry.snapshot is before
    registry.register("b", "two", SCHEMA, print)
    assert (list(before.entries), dict(before.toolsets)) == (["a"], {"one": ("a",)})
    assert registry.snapshot is not before
    with pytest.raises(TypeError):
        before.entries["c"] = None
