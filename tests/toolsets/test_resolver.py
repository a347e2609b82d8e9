"""What toolset names stand for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

CORE = Path(__file__).parents[2] / "core"

NODES = ("a", "b", "c", "d", "e", "f")
TOOLS = ("t1", "t2", "t3", "t4")

#: Any custom toolsets: circles, diamonds, self-reference and unknown includes among them.
graphs = st.dictionaries(
    st.sampled_from(NODES),
    st.fixed_dictionaries({
        "tools": st.lists(st.sampled_from(TOOLS), max_size=3).map(tuple),
        "includes": st.lists(st.sampled_from((*NODES, "nowhere")), max_size=4).map(tuple),
    }),
)  # fmt: skip


def naive(graph: dict[str, Any], name: str) -> tuple[str, ...]:
    """The reference: go round until nothing is added."""
    reached = {name}
    while True:
        more = {include for node in reached for include in graph.get(node, {"includes": ()})["includes"]}
        if more <= reached:
            return tuple(sorted({tool for node in reached for tool in graph.get(node, {"tools": ()})["tools"]}))
        reached |= more


@pytest.mark.parametrize("name", ["web", "web_tools"])
def test_a_builtin_toolset_holds_what_is_registered_under_it(full: Any, name: str) -> None:
    """registry.T1, T2: a built-in toolset, by today's name and the legacy one."""
    assert full.resolver.resolve(name) == ("web_extract", "web_search")


def test_a_tool_registered_under_a_legacy_name_is_in_todays_toolset(full: Any) -> None:
    """registry.T2: legacy names are read wherever a toolset's name is, in a registration too."""
    full.add("old_search", "web_tools")
    assert "old_search" in full.resolver.resolve("web")
    assert "old_search" in full.resolver.resolve("core")
    assert full.resolver.resolve("web_tools") == full.resolver.resolve("web")


@pytest.mark.parametrize("name", ["cronjob", "cronjob_tools", "tts", "tts_tools"])
def test_empty_until_a_plugin_fills_it(full: Any, name: str) -> None:
    """registry.T2: `cronjob` and `tts` are known, and empty until a plugin fills them."""
    assert full.resolver.get(name) is not None
    assert full.resolver.resolve(name) == ()
    full.add("filled", name.removesuffix("_tools"), owner=full.plugin("p"))
    assert full.resolver.resolve(name) == ("filled",)


@pytest.mark.parametrize("name", ["all", "*"])
def test_everything(full: Any, name: str) -> None:
    """registry.T2: `all` and `*` are everything."""
    full.add("odd", "no such bundle")
    assert full.resolver.resolve(name) == tuple(sorted(full.store.snapshot.entries))


@pytest.mark.parametrize("name", ["nope", "", " web", "WEB", "mibyan-nope", "vibeos-nope", "mibyan-web", "mcp-nope"])
def test_unknown_names_are_empty(full: Any, name: str) -> None:
    """registry.T5: an unknown name stands for nothing, never for everything."""
    assert full.resolver.get(name) is None
    assert full.resolver.resolve(name) == ()
    assert full.resolver.explain(name) == []


@pytest.mark.parametrize("name", [None, 3, ["web"], b"web"])
def test_names_that_arent_text(full: Any, name: Any) -> None:
    """A look-up never raises, whatever it is asked for."""
    assert full.resolver.get(name) is None
    assert full.resolver.resolve(name) == ()
    assert full.resolver.explain(name) == []
    assert full.resolver.suggest(name) is None


@given(graphs)
def test_resolve_is_reachability(make_world: Callable[..., Any], graph: dict[str, Any]) -> None:
    """registry.T2: sorted, each once, for circles, diamonds, self-reference and unknown includes."""
    resolver = make_world(custom=graph).resolver
    for name in NODES:
        assert resolver.resolve(name) == naive(graph, name)
        assert resolver.resolve(name) == naive(graph, name), "the second time it is remembered"


@given(graphs, st.randoms())
def test_order_doesnt_matter(make_world: Callable[..., Any], graph: dict[str, Any], random: Any) -> None:
    """registry.T2: the order in which toolsets, tools and includes were written changes nothing."""
    names = list(graph)
    random.shuffle(names)
    shuffled = {name: {part: tuple(random.sample(graph[name][part], len(graph[name][part]))) for part in graph[name]}
                for name in names}  # fmt: skip
    one, other = make_world(custom=graph).resolver, make_world(custom=shuffled).resolver
    assert one.names() == other.names()
    assert [one.resolve(name) for name in NODES] == [other.resolve(name) for name in NODES]


@given(graphs)
def test_explain_tells_the_way(make_world: Callable[..., Any], graph: dict[str, Any]) -> None:
    """`explain` lists the tools of `resolve`, each with a way of includes that really leads to it."""
    resolver = make_world(custom=graph).resolver
    for name in graph:
        explained = resolver.explain(name)
        assert tuple(tool for tool, _ in explained) == resolver.resolve(name)
        for tool, via in explained:
            way = via.split(" > ")
            assert way[0] == name
            assert tool in graph[way[-1]]["tools"]
            assert all(after in graph[before]["includes"] for before, after in pairwise(way))


def test_a_long_chain_of_includes(make_world: Callable[..., Any]) -> None:
    """registry.T2: depth is no limit."""
    count = 5_000
    chain = {f"n{i}": {"includes": (f"n{i + 1}",)} for i in range(count)} | {f"n{count}": {"tools": ("end",)}}
    assert make_world(custom=chain).resolver.resolve("n0") == ("end",)


def test_an_absent_tool_isnt_an_error(make_world: Callable[..., Any]) -> None:
    """registry.T2: a bundle may name a tool that isn't registered; a session doesn't get it."""
    world = make_world(custom={"mine": {"tools": ("there", "absent")}})
    world.add("there")
    assert world.resolver.resolve("mine") == ("absent", "there")
    assert world.resolver.select(["mine"]).names == {"there"}
    assert world.log.report().problems == ()


def test_a_tools_alias_means_the_tool(make_world: Callable[..., Any]) -> None:
    """registry.R8: a toolset that names `todo` has `todo_list`."""
    world = make_world(custom={"mine": {"tools": ("todo", "todo_list")}})
    world.add("todo_list", "planning", owner=world.builtin, aliases=("todo",))
    assert world.resolver.resolve("mine") == ("todo_list",)


def test_a_custom_toolset_cant_take_a_builtins_name(make_world: Callable[..., Any], caplog: Any) -> None:
    """registry.T6: it is ignored, once said in the log and put into the report; its legacy and preset names neither."""
    names = ("web", "core", "all", "*", "mibyan-webhook", "vibeos-cli", "file_tools")
    world = make_world(custom={name: {"tools": ("terminal",)} for name in names}).add_builtins()
    for name in names:
        world.resolver.get(name)
        [decision] = world.about(f"toolset:{name}")
        assert (decision.kind, decision.problem) == ("rejected", True)
    assert world.resolver.resolve("web") == ("web_extract", "web_search")
    assert world.resolver.resolve("mibyan-webhook") == ("web_extract", "web_search")
    assert len(caplog.records) == len(names)


def test_the_operators_toolset_stands_before_a_plugins(make_world: Callable[..., Any]) -> None:
    """A custom toolset of the name of a registered one is the one that counts, and the report says so."""
    world = make_world(custom={"weather": {"tools": ("other",)}})
    world.add("forecast", "weather")
    assert world.resolver.resolve("weather") == ("other",)
    assert world.resolver.resolve("mibyan-cli") == ("forecast",), "a plugin's tool reaches the agent all the same"
    assert [decision.kind for decision in world.about("toolset:weather")] == ["shadowed"]


@pytest.mark.parametrize("platform", ["cli", "telegram", "discord", "slack", "whatsapp", "signal", "email", "matrix"])
def test_platform_presets_have_plugins_tools(full: Any, platform: str) -> None:
    """registry.T3: core and every enabled plugin's toolsets: a `pip install` reaches the agent."""
    before = full.resolver.resolve("core")
    assert full.resolver.resolve(f"mibyan-{platform}") == before
    full.add("forecast", "weather", owner=full.plugin("weather"))
    full.add("speak", "tts", owner=full.plugin("voice"))
    full.add("mcp__x__y", "mcp-x", owner=full.builtin)
    expected = tuple(sorted({*before, "forecast", "speak", "mcp__x__y"}))
    assert full.resolver.resolve(f"mibyan-{platform}") == expected
    assert full.resolver.resolve(f"vibeos-{platform}") == expected


def test_cron_is_core(full: Any) -> None:
    """registry.T3: a scheduled task gets the core set, and no plugin's toolset."""
    full.add("forecast", "weather", owner=full.plugin("weather"))
    assert full.resolver.resolve("mibyan-cron") == full.resolver.resolve("core")


def test_acp_asks_nothing_and_doesnt_speak(full: Any) -> None:
    """registry.T3: curated for editors: no interactive question, no speech, no plugin's toolset."""
    full.add("speak", "tts", owner=full.plugin("voice"))
    full.add("forecast", "weather", owner=full.plugin("weather"))
    full.add("ask_in_terminal", "terminal", owner=full.plugin("asker"), interactive=True)
    expected = set(full.resolver.resolve("core")) - {"clarify", "ask_in_terminal"}
    assert set(full.resolver.resolve("mibyan-acp")) == expected
    assert {"terminal", "read_file", "delegate_task"} <= expected


def test_the_api_server_asks_nothing(full: Any) -> None:
    """registry.T3: no interactive tools, whoever registered them."""
    full.add("forecast", "weather", owner=full.plugin("weather"))
    full.add("quiz", "games", owner=full.plugin("games"), interactive=True)
    found = full.resolver.resolve("mibyan-api-server")
    assert "forecast" in found
    assert not {"clarify", "quiz"} & set(found)


@pytest.mark.parametrize(
    ("toolset", "flags", "reaches"),
    [
        ("web", {"read_only": True}, True),
        ("web", {}, False),
        ("web", {"read_only": True, "destructive": True}, False),
        ("web_tools", {"read_only": True}, True),
        ("mibyan-webhook", {"read_only": True}, False),
        ("vibeos-webhook", {"read_only": True}, False),
        ("files", {"read_only": True}, False),
        ("webhook", {"read_only": True}, False),
        ("weather", {"read_only": True}, False),
    ],
)
def test_webhook(full: Any, toolset: str, flags: dict[str, bool], reaches: bool) -> None:
    """registry.T3: untrusted input reaches read-only web tools and nothing else, whatever names a plugin chooses."""
    full.add("new", toolset, owner=full.plugin("p"), **flags)
    assert full.resolver.resolve("mibyan-webhook") == (("new",) if reaches else ()) + ("web_extract", "web_search")


def test_a_bundles_rule_holds_for_all_ways_through_it(make_world: Callable[..., Any]) -> None:
    """registry.T3: what includes the webhook set gets only what it keeps, beside what it includes itself."""
    custom = {"hook": {"includes": ("mibyan-webhook",)}, "both": {"includes": ("mibyan-webhook", "web")}}
    world = make_world(custom=custom).add_builtins()
    world.add("web_post", "web", owner=world.plugin("p"))
    assert world.resolver.resolve("hook") == ("web_extract", "web_search")
    assert world.resolver.resolve("both") == ("web_extract", "web_post", "web_search")


def test_a_tool_under_a_bundles_name_isnt_in_the_bundle(full: Any, caplog: Any) -> None:
    """registry.T6: a registration doesn't change a bundle; the tool is in `all` and the plugins' presets, and it is said."""
    full.add("sly", "safe", owner=full.plugin("p"))
    assert "sly" not in full.resolver.resolve("safe")
    assert "sly" in full.resolver.resolve("all")
    assert "sly" in full.resolver.resolve("mibyan-cli")
    assert "sly" not in full.resolver.resolve("mibyan-cron")
    [decision] = full.about("toolset:safe")
    assert decision.problem
    assert [record.getMessage() for record in caplog.records] == [decision.reason]


@pytest.mark.parametrize("toolset", ["irc", "mibyan-irc"])
@pytest.mark.parametrize("name", ["mibyan-irc", "vibeos-irc"])
def test_a_plugin_platform_has_a_preset(full: Any, toolset: str, name: str) -> None:
    """registry.T3: `mibyan-<platform>` of a plugin platform is core plus that platform's tools."""
    assert full.resolver.get(name) is None
    full.add("forecast", "weather", owner=full.plugin("weather"))
    full.add("irc_send", toolset, owner=full.plugin("irc"))
    assert full.resolver.resolve(name) == tuple(sorted({*full.resolver.resolve("core"), "irc_send"}))
    assert full.resolver.get("mibyan-irc").kind == "preset"


def test_a_plugins_declared_toolset(full: Any) -> None:
    """api.md `ctx.register_toolset`: its tools and includes, with what the plugin registered under its name."""
    owner = full.plugin("research")
    full.add("cite", "research", owner=owner)
    full.declare("research", owner, tools=["read_file"], includes=["web"])
    assert full.resolver.resolve("research") == ("cite", "read_file", "web_extract", "web_search")
    assert full.resolver.get("research").kind == "plugin"


@pytest.mark.parametrize("name", ["web", "mibyan-webhook", "file_tools", "weather"])
def test_a_plugin_cant_declare_anothers_toolset(full: Any, name: str, caplog: Any) -> None:
    """registry.T6, R8: neither a built-in's nor another plugin's toolset grows by a declaration; the report names both."""
    full.add("forecast", "weather", owner=full.plugin("weather"))
    before = full.resolver.resolve(name)
    full.declare(name, full.plugin("sly"), tools=["terminal"])
    assert full.resolver.resolve(name) == before
    [decision] = full.about(f"toolset:{name}")
    assert (decision.kind, decision.plugin_id, decision.problem) == ("rejected", "sly", True)
    assert len(caplog.records) == 1


def test_registered_aliases(full: Any) -> None:
    """registry.R8, T1: an alias of the registry means its toolset; a circle of aliases means nothing."""
    full.add("forecast", "weather")
    assert full.store.alias_toolset("wetter", "weather", full.host) is None
    full.store.alias_toolset("one", "two", full.host)
    full.store.alias_toolset("two", "one", full.host)
    assert full.resolver.resolve("wetter") == ("forecast",)
    assert full.resolver.get("wetter").kind == "alias"
    assert full.resolver.aliases()["wetter"] == "weather"
    assert full.resolver.resolve("one") == ()
    assert full.resolver.select(disabled=["one"]).names == frozenset(full.store.snapshot.entries)


def test_mcp_servers_are_known_before_they_answer(make_world: Callable[..., Any]) -> None:
    """registry.T1, mcp.M2: `mcp-<server>` and its short name are known, and empty until the server is ready."""
    world = make_world(mcp=("github", "web")).add_builtins()
    assert world.resolver.get("mcp-github").kind == "mcp"
    assert world.resolver.resolve("github") == ()
    world.add("mcp__github__issues", "mcp-github", owner=world.builtin)
    assert world.resolver.resolve("github") == world.resolver.resolve("mcp-github") == ("mcp__github__issues",)
    assert world.resolver.resolve("web") == ("web_extract", "web_search"), "a built-in's name isn't a server's"
    assert world.resolver.select(["github"]).unknown == ()


def test_names_and_kinds(make_world: Callable[..., Any]) -> None:
    """`names` is sorted and without aliases; each name has its kind, and each alias its target."""
    world = make_world(custom={"mine": {"tools": ("x",), "description": "Mine."}}, mcp=("srv",)).add_builtins()
    world.add("forecast", "weather", owner=world.plugin("weather"))
    world.declare("pack", world.plugin("pack"), includes=["web"])
    names = world.resolver.names()
    assert list(names) == sorted(names)
    kinds = {name: world.resolver.get(name).kind for name in names}
    assert {name: kinds[name] for name in ("web", "core", "coding", "mibyan-cli", "mine", "weather", "pack", "mcp-srv")} == {
        "web": "builtin", "core": "composite", "coding": "posture", "mibyan-cli": "preset", "mine": "custom",
        "weather": "registry", "pack": "plugin", "mcp-srv": "mcp",
    }  # fmt: skip
    aliases = world.resolver.aliases()
    assert not aliases.keys() & set(names)
    assert all(world.resolver.get(alias).kind == "alias" for alias in aliases)
    assert world.resolver.get("mine").description == "Mine."


@pytest.mark.parametrize(
    ("name", "meant"),
    [("webb", "web"), ("file", "files"), ("mibyan-telegramm", "mibyan-telegram"), ("web_search", "web"),
     ("old_search", "web"), ("terminal_tool", "terminal_tools"), ("qqqqqq", None)],
)  # fmt: skip
def test_suggestions(full: Any, name: str, meant: str | None) -> None:
    """registry.T5: the likely name; for a tool's name its toolset; nothing for what resembles nothing."""
    full.add("old_search", "web_tools")
    assert full.resolver.suggest(name) == meant


def test_a_registration_is_seen_at_once(full: Any) -> None:
    """registry.R9: what is remembered ends with the snapshot it was worked out from."""
    owner = full.plugin("weather")
    assert full.resolver.resolve("weather") == ()
    full.add("forecast", "weather", owner=owner)
    assert full.resolver.resolve("weather") == ("forecast",)
    full.store.remove_owner(owner)
    assert full.resolver.resolve("weather") == ()


def test_resolving_while_tools_come_and_go(full: Any) -> None:
    """registry.R9: readers and a writer at once: no error, and always a state that was."""
    owner = full.plugin("p")
    faults: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                assert full.resolver.resolve("weather") in ((), ("forecast",))
                assert full.resolver.select(["weather"], ["web"]).names <= {"forecast"}
        except BaseException as error:
            faults.append(error)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for _ in range(100):
        full.add("forecast", "weather", owner=owner)
        full.store.deregister("forecast", owner)
    done.set()
    for reader in readers:
        reader.join()
    assert faults == []


def test_every_process_says_the_same(tmp_path: Path) -> None:
    """architecture: determinism: names, expansions, explanations and notes under two hash seeds."""
    script = tmp_path / "say.py"
    script.write_text(
        "import json, sys\n"
        f"sys.path[:0] = [{str(CORE)!r}, {str(Path(__file__).parent)!r}]\n"
        "from conftest import World\n"
        "w = World(custom={'m': {'includes': ('n', 'web'), 'tools': ('x',)}, 'n': {'includes': ('m', 'files')}}).add_builtins()\n"
        "w.add('forecast', 'weather', owner=w.plugin('p'))\n"
        "s = w.resolver.select({'m', 'nope', 'weather', 'nada', 'web'}, {'mibyan-cli', 'n', 'zero'})\n"
        "print(json.dumps([w.resolver.names(), [w.resolver.explain(n) for n in w.resolver.names()],\n"
        "    sorted(s.names), s.unknown, s.notes, s.denied, [d.to_dict() for d in w.log]]))\n",
        encoding="utf-8",
    )
    said = [
        subprocess.run(
            [sys.executable, str(script)], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert json.loads(said[0])[2] == []
