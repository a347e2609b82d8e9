"""What a session gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

TOOLSETS = ("a", "b", "c", "d")
LISTS = st.lists(st.sampled_from((*TOOLSETS, "ab", "circle", "nope")), max_size=4)
CUSTOM = {
    "ab": {"includes": ("a", "b")},
    "circle": {"includes": ("circle", "ab"), "tools": ("c_1",)},
}


def simple(world: Any) -> Any:
    """A tool or two in each of four toolsets."""
    for toolset in TOOLSETS:
        world.add(f"{toolset}_1", toolset)
        world.add(f"{toolset}_2", toolset)
    return world


def messages(caplog: Any) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_none_is_everything(full: Any) -> None:
    """registry.T4: without lists, platform or config a session gets every registered tool."""
    full.add("odd", "safe")
    selection = full.resolver.select()
    assert selection.names == frozenset(full.store.snapshot.entries)
    assert (selection.unknown, selection.notes, selection.denied) == ((), (), ())


@pytest.mark.parametrize("nothing", [[], (), set(), frozenset(), iter([])])
def test_an_empty_list_is_nothing(full: Any, nothing: Any) -> None:
    """registry.T4: `[]` is nothing."""
    assert full.resolver.select(nothing).names == frozenset()


@pytest.mark.parametrize("argument", ["enabled", "disabled"])
@pytest.mark.parametrize(
    ("value", "words"),
    [("web", r"write \['web'\]"), (b"web", "bytes"), ({"web": 1}, "dict"), (3, "int"), (["web", 3], "3 isn't text"),
     ([["web"]], "isn't text"), ([None], "isn't text")],
)  # fmt: skip
def test_what_isnt_a_list_of_text(full: Any, argument: str, value: Any, words: str) -> None:
    """registry.T4: a bare string is a TypeError with a hint, anything else that isn't a list of text one with a reason."""
    with pytest.raises(TypeError, match=words) as caught:
        full.resolver.select(**{argument: value})
    assert f"{argument}_toolsets" in str(caught.value)


@pytest.mark.parametrize("value", [3, b"cli", ["cli"]])
def test_a_platform_is_text(full: Any, value: Any) -> None:
    """A platform that isn't text is a TypeError that says so."""
    with pytest.raises(TypeError, match="platform"):
        full.resolver.select(platform=value)


@given(st.none() | LISTS, LISTS, LISTS)
def test_deny_wins(make_world: Callable[..., Any], enabled: list[str] | None, disabled: list[str], config: list[str]) -> None:  # fmt: skip
    """registry.T4: disabled toolsets, the config's too, are taken away last, also from enabled ones; nothing else is."""
    world = simple(make_world(disabled=tuple(config), custom=CUSTOM))
    resolve = lambda names: {tool for name in names for tool in world.resolver.resolve(name)}
    everything = set(world.store.snapshot.entries)
    expected = (everything if enabled is None else resolve(enabled)) - resolve(disabled) - resolve(config)
    selection = world.resolver.select(enabled, disabled)
    assert selection.names == expected
    assert {tool for tool, _ in selection.denied} == (
        (everything if enabled is None else resolve(enabled)) & (resolve(disabled) | resolve(config))
    )


@given(st.none() | LISTS, LISTS, st.randoms())
def test_order_and_repetition_dont_matter(
    make_world: Callable[..., Any], enabled: list[str] | None, disabled: list[str], random: Any
) -> None:
    """registry.T4: lists are sets of names: shuffled and doubled they select the same."""
    resolver = simple(make_world(custom=CUSTOM)).resolver
    again = None if enabled is None else random.sample(enabled * 2, len(enabled) * 2)
    denied = random.sample(disabled * 2, len(disabled) * 2)
    one, other = resolver.select(enabled, disabled), resolver.select(again, denied)
    assert one.names == other.names
    assert sorted(one.unknown) == sorted(other.unknown)


@pytest.mark.parametrize("old", ["web_tools", "file_tools", "terminal_tools"])
def test_legacy_names_in_both_lists(full: Any, old: str) -> None:
    """registry.T2: legacy names are understood in both lists."""
    tools = set(full.resolver.resolve(old))
    assert tools
    assert full.resolver.select([old]).names == tools
    assert full.resolver.select(None, [old]).names == full.store.snapshot.entries.keys() - tools
    assert full.resolver.select([old]).unknown == full.resolver.select(None, [old]).unknown == ()


def test_legacy_names_in_the_config(make_world: Callable[..., Any]) -> None:
    """registry.T2: and in the config's lists, platforms and custom toolsets."""
    custom = {"mine": {"includes": ("web_tools",)}}
    world = make_world(enabled=("file_tools", "mine"), disabled=("browser_tools",), custom=custom,
                       platforms={"cli": ("terminal_tools", "file_tools")}).add_builtins()  # fmt: skip
    assert world.resolver.select().names == {"read_file", "write_file", "web_search", "web_extract"}
    assert world.resolver.select(platform="cli").names == {"read_file", "write_file"}
    assert world.resolver.select().unknown == ()


# The config and the platform ---------------------------------------------------------------------------------------


def test_the_configs_enabled_counts_where_the_caller_says_nothing(make_world: Callable[..., Any]) -> None:
    """api.md `toolsets.enabled`: it stands in for `None`, not for a list; `[]` in the config is nothing."""
    world = make_world(enabled=("web",)).add_builtins()
    assert world.resolver.select().names == {"web_search", "web_extract"}
    assert world.resolver.select(["files"]).names == {"read_file", "write_file"}
    assert make_world(enabled=()).add_builtins().resolver.select().names == frozenset()


def test_the_configs_disabled_always_counts(make_world: Callable[..., Any]) -> None:
    """registry.T4: also against the caller's own list."""
    world = make_world(disabled=("terminal",)).add_builtins()
    assert world.resolver.select(["terminal", "web"]).names == {"web_search", "web_extract"}
    assert not {"terminal", "process"} & world.resolver.select(["all"]).names


def test_a_platform_starts_from_its_list(make_world: Callable[..., Any]) -> None:
    """registry.T3: `platform_toolsets.P`, else `mibyan-P`; the caller's list stands before both."""
    world = make_world(platforms={"telegram": ("web", "clarify"), "void": ()}).add_builtins()
    select = world.resolver.select
    assert select(platform="telegram").names == {"web_search", "web_extract", "clarify"}
    assert select(platform="void").names == frozenset()
    assert select(platform="webhook").names == {"web_search", "web_extract"}
    assert select(platform="cli").names == set(world.resolver.resolve("mibyan-cli"))
    assert select(["memory"], platform="telegram").names == {"memory"}
    assert select(None, ["web"], platform="telegram").names == {"clarify"}


def test_two_lists_of_the_operators_narrow_each_other(make_world: Callable[..., Any]) -> None:
    """`toolsets.enabled` and a platform's list: a session on the platform gets what is in both, and it is said."""
    world = make_world(enabled=("web", "files"), platforms={"telegram": ("web", "terminal")}).add_builtins()
    selection = world.resolver.select(platform="telegram")
    assert selection.names == {"web_search", "web_extract"}
    assert "toolsets.enabled" in selection.notes[0]


def test_an_unknown_platform_is_nothing(full: Any, caplog: Any) -> None:
    """registry.T5: a platform without list or preset starts from nothing, with a suggestion."""
    selection = full.resolver.select(platform="telegam")
    assert selection.names == frozenset()
    assert selection.unknown == (("mibyan-telegam", "mibyan-telegram"),)
    assert len(caplog.records) == 1


# What is denied ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mibyan-cli", "vibeos-cli", "mibyan-api-server"])
def test_denying_a_preset_takes_what_it_adds_beyond_core(full: Any, name: str) -> None:
    """registry.T4: and says so, in the notes and in the report."""
    full.add("forecast", "weather", owner=full.plugin("weather"))
    selection = full.resolver.select(None, [name])
    assert selection.names == full.store.snapshot.entries.keys() - {"forecast"}
    assert selection.denied == (("forecast", name),)
    [note] = selection.notes
    assert "only what it adds beyond core: forecast" in note
    assert [decision.reason for decision in full.about(f"toolset:{name}")] == [note]


@pytest.mark.parametrize("name", ["mibyan-webhook", "mibyan-cron", "coding"])
def test_denying_what_adds_nothing_takes_nothing(full: Any, name: str) -> None:
    """registry.T4: a posture bundle or a preset within core takes nothing, and says so."""
    selection = full.resolver.select(None, [name])
    assert selection.names == full.store.snapshot.entries.keys()
    assert selection.notes[0].endswith("beyond core: nothing.")


def test_denying_a_composite_takes_what_it_expands_to(make_world: Callable[..., Any]) -> None:
    """registry.T4: and the report lists it."""
    world = make_world(custom={"mine": {"includes": ("web",), "tools": ("memory",)}}).add_builtins()
    selection = world.resolver.select(["web", "memory", "files", "vision"], ["mine", "safe"])
    assert selection.names == {"read_file", "write_file"}
    assert [decision.reason for decision in world.log] == list(selection.notes)
    assert selection.notes[0] == "Denying 'mine' takes all that it expands to: memory, web_extract, web_search."
    assert "image_generate" in selection.notes[1]


def test_denying_a_plain_toolset_needs_no_words(full: Any) -> None:
    """registry.T4: what everybody expects is no note."""
    selection = full.resolver.select(None, ["web"])
    assert selection.notes == ()
    assert selection.denied == (("web_extract", "web"), ("web_search", "web"))


@pytest.mark.parametrize("name", ["all", "*", "core"])
def test_denying_everything(full: Any, name: str) -> None:
    """registry.T4: `all`, `*` and `core` are composites."""
    assert full.resolver.select(None, [name]).names == frozenset()


# Unknown names -----------------------------------------------------------------------------------------------------


def test_unknown_names_never_mean_everything(full: Any, caplog: Any) -> None:
    """registry.T5: in either list: a WARNING with a suggestion, a record, and no tool more or less."""
    selection = full.resolver.select(["webb"], ["terminall"])
    assert selection.names == frozenset()
    assert selection.unknown == (("webb", "web"), ("terminall", "terminal"))
    assert messages(caplog) == [
        "Unknown toolset 'webb'; did you mean 'web'?", "Unknown toolset 'terminall'; did you mean 'terminal'?",
    ]  # fmt: skip
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    assert [(d.kind, d.subject, d.problem) for d in full.log] == [
        ("unknown", "toolset:webb", True), ("unknown", "toolset:terminall", True),
    ]  # fmt: skip


def test_one_warning_a_session(full: Any, caplog: Any) -> None:
    """registry.T5: a session is told once, each session; the report has one entry."""
    first: set[str] = set()
    second: set[str] = set()
    for warned in (first, first, second, second, None, None):
        full.resolver.select(["webb"], warned=warned)
        full.resolver.select(["webb", "web"], warned=warned)
    assert messages(caplog) == ["Unknown toolset 'webb'; did you mean 'web'?"] * 3
    assert first == second == {"webb"}
    assert len(full.about("toolset:webb")) == 1


def test_unknown_names_in_the_config(make_world: Callable[..., Any]) -> None:
    """registry.T5: the record says where the name stands and what would mend it."""
    world = make_world(enabled=("webb",), disabled=("zzzz",), platforms={"cli": ("flies",)},
                       custom={"mine": {"includes": ("terminall",)}}).add_builtins()  # fmt: skip
    world.resolver.select()
    world.resolver.select(["mine"])
    world.resolver.select(platform="cli")
    said = {decision.subject: (decision.reason, decision.fix) for decision in world.log}
    assert "stands in toolsets.enabled" in said["toolset:webb"][0]
    assert "stands in toolsets.disabled" in said["toolset:zzzz"][0]
    assert "toolsets list" in said["toolset:zzzz"][1]
    assert "stands in platform_toolsets.cli" in said["toolset:flies"][0]
    assert "stands in mine's includes" in said["toolset:terminall"][0]
    assert "'terminal'" in said["toolset:terminall"][1]


@given(st.lists(st.text(max_size=20), max_size=3), st.lists(st.text(max_size=20), max_size=3))
def test_any_text_is_a_name(make_world: Callable[..., Any], enabled: list[str], disabled: list[str]) -> None:
    """registry.T5: whatever the text, a selection is made, and each name is known or told."""
    world = simple(make_world())
    selection = world.resolver.select(enabled, disabled)
    told = {name for name, _ in selection.unknown}
    for name in (*enabled, *disabled):
        assert (world.resolver.get(name) is None) == (name in told)


def test_a_name_with_control_characters_is_shown_harmlessly(full: Any, caplog: Any) -> None:
    """A name comes from outside: its control characters don't reach the log, and it is cut."""
    full.resolver.select(["\x1b[31mweb\n" + "x" * 10_000])
    [message] = messages(caplog)
    assert "\x1b" not in message
    assert len(message) < 400


# What is remembered ------------------------------------------------------------------------------------------------


def test_a_selection_is_remembered_until_the_registry_changes(full: Any) -> None:
    """The same lists give the same object until a registration; then the new tool is in it."""
    first = full.resolver.select(["web"], ["files"])
    assert full.resolver.select(["web"], ["files"]) is first
    full.add("web_news", "web")
    assert "web_news" in full.resolver.select(["web"], ["files"]).names
    full.resolver.forget()
    assert full.resolver.select(["web"], ["files"]).names == {"web_news", "web_search", "web_extract"}


def test_memory_is_bounded(full: Any) -> None:
    """Thousands of different lists don't pile up."""
    for number in range(2_000):
        full.resolver.select([f"nope{number}"], warned=set())
        full.resolver.resolve(f"nope{number}")
        full.resolver.get(f"nope{number}")
    state = full.resolver._state
    assert len(state.selections) <= 256
    assert len(state.expansions) <= 256
    assert len(state.catalogue._known) < 100
