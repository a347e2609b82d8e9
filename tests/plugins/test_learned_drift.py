"""A learned plugin that registers something else when it is imported: the code counts, it is told and learned anew (plugins.M4, R12)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.config.load import load_config
from mibyan.filecache import CacheFile
from mibyan.hooks.table import HookTable
from mibyan.plugins.candidate import Candidate
from mibyan.plugins.learned import SHAPE, Conditions, Learned, ModuleStates
from mibyan.plugins.loader import LoaderServices, PluginLoader
from mibyan.plugins.manage import import_learned
from mibyan.plugins.recalling import DamagedError, Recall
from mibyan.tools.owner import Owner
from mibyan.tools.store import RegistryStore

from .test_learned import COUNTED, again, imports, one
from .world import World, answer, decisions, tool, tools, write

__all__ = ["imports"]

#: A plugin that registers what a file in its user's home says, which nobody could know.
MOODY = """
import json, os, threading
with open(os.path.expanduser("~/mood.json")) as file:
    SAID = json.load(file)
def register(ctx):
    if SAID.get("works"):
        stop = threading.Event()
        threading.Thread(target=stop.wait, args=(60,), daemon=True).start()
        ctx.on_unload(stop.set)
    for name, (toolset, description, override) in SAID.get("tools", {}).items():
        ctx.register_tool(name, toolset, {"description": description}, lambda args, name=name: name, override=override)
    for name in SAID.get("hooks", ()):
        ctx.register_hook(name, lambda: None)
    for name in SAID.get("commands", ()):
        ctx.register_command(name, lambda text: text)
    for name in SAID.get("services", ()):
        ctx.provide(name, lambda: "made")
    for name, toolset in SAID.get("aliases", {}).items():
        ctx.registry.register_toolset_alias(name, toolset)
"""


def says(name: str, toolset: str = "words", description: str = "d", *, override: bool = False) -> dict[str, Any]:
    return {name: (toolset, description, override)}


class Moods:
    """What the moody plugin is going to register."""

    def __init__(self, world: World) -> None:
        self._world = world

    def set(self, **mood: Any) -> None:
        write(self._world.home / "mood.json", json.dumps(mood))


@pytest.fixture
def mood(world: World, monkeypatch: pytest.MonkeyPatch) -> Moods:
    monkeypatch.setenv("HOME", str(world.home))
    return Moods(world)


def told(loader: PluginLoader, plugin_id: str = "lazy") -> str:
    return " ".join(one.reason for one in decisions(loader, plugin_id) if one.kind == "warning")


def learned_before(world: World, mood: Moods, **first: Any) -> None:
    """The plugin was learned in one mood."""
    mood.set(**first)
    one(world, MOODY)


def test_a_tool_that_came(world: World, mood: Moods) -> None:
    """What the code has in addition is registered, under the same policy as ever, and there at the next start."""
    learned_before(world, mood, tools=says("word"))
    mood.set(tools=says("word") | says("more"))
    second = again(world)
    assert sorted(tools(second)) == ["word"]
    assert answer(second, "word") == "word"
    assert (sorted(tools(second)), answer(second, "more")) == (["more", "word"], "more")
    assert "it now has the tool 'more'" in told(second)
    assert again(world).get("lazy").tools == ("more", "word")


def test_a_tool_that_went(world: World, mood: Moods) -> None:
    """What the code no longer has is taken back: its call is answered, and another's claim to the name comes true."""
    learned_before(world, mood, tools=says("word") | says("gone"))
    world.folder("z", tool("gone", answer="z"))
    mood.set(tools=says("word"))
    second = again(world)
    assert second.get("lazy").tools == ("gone", "word")
    assert answer(second, "word") == "word"
    assert answer(second, "gone") == "z"
    assert "no longer has the tool 'gone'" in told(second)
    assert again(world).get("lazy").tools == ("word",)


def test_a_call_of_the_tool_that_went_is_answered(world: World, mood: Moods) -> None:
    learned_before(world, mood, tools=says("word") | says("gone"))
    mood.set(tools=says("word"))
    second = again(world)
    assert answer(second, "gone") == "no gone"
    assert (second.get("lazy").state, sorted(tools(second))) == ("active", ["word"])


@pytest.mark.parametrize(
    "change", [says("word", description="other"), says("word", "elsewhere"), says("word", override=True)]
)
def test_a_tool_that_changed(world: World, mood: Moods, change: dict[str, Any]) -> None:
    """R12: the generation grows, since a definition changed; the new one answers."""
    world.config("plugins: {entries: {lazy: {allow_tool_override: true}}}")
    learned_before(world, mood, tools=says("word"))
    mood.set(tools=change)
    second = again(world)
    before = second._services.store.generation
    assert answer(second, "word") == "word"
    entry = tools(second)["word"]
    assert [entry.toolset, entry.schema["description"]] == list(change["word"][:2])
    assert second._services.store.generation > before or change["word"][2]
    assert "has another definition of the tool 'word'" in told(second)
    third = again(world)
    assert tools(third)["word"].toolset == change["word"][0]
    assert answer(third, "word") == "word"
    assert told(third) == ""


def test_an_override_that_came_needs_the_opt_in(world: World, mood: Moods) -> None:
    """R5: what the code does now is decided now: without the opt-in its import fails, and the other's tool stays."""
    world.folder("a", tool("taken", answer="a"))
    learned_before(world, mood, tools=says("word"))
    mood.set(tools=says("word") | says("taken", override=True))
    second = again(world)
    with pytest.raises(Exception, match="opt-in"):
        second.activate("lazy")
    assert (second.get("lazy").state, sorted(tools(second)), answer(second, "taken")) == ("failed", ["taken"], "a")
    assert again(world).get("lazy").state == "failed"


def test_hooks_commands_services(world: World, mood: Moods) -> None:
    """What else was announced and isn't there goes; what came is there."""
    learned_before(world, mood, tools=says("word"), hooks=["post_tool_call", "on_session_end"], commands=["say"],
                   services=["speech"], aliases={"w": "words"})  # fmt: skip
    mood.set(tools=says("word"), hooks=["post_tool_call", "pre_tool_call"], commands=["tell"], services=["sound"])
    second = again(world)
    assert second.get("lazy").hooks == ("on_session_end", "post_tool_call")
    hooks = second._services.hooks
    assert len(hooks.chain("on_session_end").plain) == 0
    assert second.get("lazy").hooks == ("post_tool_call", "pre_tool_call")
    assert len(hooks.chain("pre_tool_call").plain) == len(hooks.chain("post_tool_call").plain) == 1
    assert (list(second.offers.commands), list(second.provided)) == (["tell"], ["sound"])
    for words in (
        "no longer has the command 'say'",
        "no longer has the alias 'w'",
        "has the service 'sound'",
        "and 2 more",
    ):
        assert words in told(second)
    third = again(world)
    assert (list(third.offers.commands), list(third.provided)) == (["tell"], ["sound"])


def test_who_drifts_again_is_imported_each_time(world: World, mood: Moods, imports: list[str]) -> None:
    """Randomness: one drift is learned anew; a second under the same conditions ends that, until the content changes."""
    learned_before(world, mood, tools=says("a"))
    for number, name in enumerate("bc"):
        mood.set(tools=says(name))
        loader = again(world)
        assert loader.get("lazy").state == "ready"
        loader.activate("lazy")
        assert ("it isn't learned" in loader.get("lazy").reason) == (number == 1)
    for _ in range(2):
        loader = again(world)
        assert loader.get("lazy").state == "active"
        assert "it registers something else each time" in loader.get("lazy").reason
    write(world.home / "plugins" / "lazy" / "__init__.py", COUNTED.format("lazy") + MOODY + "#\n")
    assert [again(world).get("lazy").state for _ in range(2)] == ["active", "ready"]


def test_who_becomes_unlearnable_is_forgotten(world: World, mood: Moods) -> None:
    """A thread that it starts this time and didn't last time: from now on it is imported at each start."""
    learned_before(world, mood, tools=says("word"))
    mood.set(tools=says("word"), works=True)
    second = again(world)
    assert answer(second, "word") == "word"
    assert "it started threads that go on" in second.get("lazy").reason
    mood.set(tools=says("word"))
    assert [again(world).get("lazy").state for _ in range(2)] == ["active", "ready"]


def test_files_that_change_meanwhile(world: World, imports: list[str]) -> None:
    """A long-running process: the code that is there counts, and the next start learns it."""
    one(world, tool("word"))
    second = again(world)
    write(world.home / "plugins" / "lazy" / "__init__.py", COUNTED.format("new") + tool("other"))
    assert answer(second, "word") == "no word"
    assert answer(second, "other") == "other"
    assert "no longer has the tool 'word'" in told(second)
    third = again(world)
    assert (third.get("lazy").state, third.get("lazy").tools) == ("active", ("other",))
    assert (again(world).get("lazy").state, imports) == ("ready", ["lazy", "new", "new"])


def test_an_environment_that_changes_meanwhile(
    world: World, imports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is registered in one environment is never kept for another."""
    source = "import os\ndef register(ctx):\n    ctx.register_tool(os.environ.get('LEARNT_NAME', 'none'), 'words', {}, lambda args: 'x')\n"
    one(world, source)
    second = again(world)
    monkeypatch.setenv("LEARNT_NAME", "set")
    second.activate("lazy")
    assert second.get("lazy").tools == ("set",)
    assert (again(world).get("lazy").state, again(world).get("lazy").tools) == ("ready", ("set",))
    monkeypatch.delenv("LEARNT_NAME")
    assert (again(world).get("lazy").state, again(world).get("lazy").tools) == ("ready", ("none",))


def test_a_reload_imports(world: World, imports: list[str]) -> None:
    """L7: who reloads a plugin wants its code."""
    one(world, tool("word"))
    second = again(world)
    assert second.reload("lazy").state == "active"
    second.unload("lazy")
    assert second.get("lazy").state == "found"
    second.activate("lazy")
    assert (second.get("lazy").state, answer(second, "word"), len(imports)) == ("active", "word", 3)


def test_a_directory_that_a_host_names_is_imported(world: World, imports: list[str], tmp_path: Path) -> None:
    """`discover_builtin_tools` (seed 000) imports; what was recalled of the profile's own directory counts as loaded."""
    source = COUNTED.format("it") + "import mibyan\nmibyan.registry.register({0!r}, 'words', {{}}, lambda args: '')\n"
    world.tool_file("mine", source.format("mine"))
    write(tmp_path / "theirs" / "other.py", source.format("other"))
    world.load()
    second = again(world)
    assert second.load_tools_directory(tmp_path / "theirs") == ["tools.other"]
    assert second.load_tools_directory(world.home / "tools") == ["tools.mine"]
    assert len(imports) == 2


def test_list_load_imports_what_was_recalled(world: World, imports: list[str]) -> None:
    """L9: `plugins list --load` loads now: what was learned is checked against the code, one failure fails nobody else."""
    one(world, "import os\nif os.path.exists(os.path.expanduser('~/stop')):\n    raise ValueError\n" + tool("word"))
    world.folder("second", COUNTED.format("second") + tool("two"))
    world.folder("frozen", COUNTED.format("frozen"), {"tools": []})
    again(world)
    loader = again(world)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(world.home))
        write(world.home / "stop", "")
        import_learned(loader)
    states = {record.id: record.state for record in loader.all_records()}
    assert states == {"lazy": "failed", "second": "active", "frozen": "ready"}


# The file -------------------------------------------------------------------------------------------------------------


def kept(world: World) -> CacheFile:
    return CacheFile(world.home / "cache" / "learned.bin", SHAPE)


def altered(world: World, change: Any) -> None:
    """Write into what is kept, as somebody might who may write there."""
    content = kept(world).read()
    for several in content.values():
        for one_ in several:
            change(one_)
    assert kept(world).write(content)


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one["acts"][0].pop("kind"),
        lambda one: one["acts"][0].update(schema=3),
        lambda one: one["acts"][0].update(name="not a name!"),
        lambda one: one["acts"][0].update(flags={"timeout": -1}),
        lambda one: one["acts"][0].update(flags={"unheard_of": 1}),
        lambda one: one["acts"][0].update(code={"handler": 0}),
        lambda one: one["acts"][0].update(code=[1]),
        lambda one: one.update(acts=[1]),
        lambda one: one.update(acts=(*one["acts"], {"kind": "service"})),
        lambda one: one.update(acts=(*one["acts"], {"kind": "alias", "name": "x"})),
        lambda one: one.update(
            acts=(*one["acts"], {"kind": "toolset", "name": "x", "tools": 3, "includes": (), "description": ""})
        ),
        lambda one: one.update(acts=({},)),
        lambda one: one.update(told=({"x": 1},)),
        lambda one: one.update(hooks="post_tool_call"),
        lambda one: one.update(time="now"),
        lambda one: one.update(drifts=None),
        lambda one: one.update(more=1),
        lambda one: one.pop("conditions"),
        lambda one: one["conditions"].update(modules=(("a",),)),
        lambda one: one["conditions"].update(salt="text"),
        lambda one: one["conditions"].update(salt=b"x" * 100),
        lambda one: one["conditions"].update(variables=7),
    ],
)
def test_what_isn_t_what_mibyan_writes_is_nothing(world: World, imports: list[str], change: Any) -> None:
    """A damaged part is as if nothing was learned: the plugin is imported, and learned anew."""
    one(world, tool("word"))
    altered(world, change)
    assert (again(world).get("lazy").state, len(imports)) == ("active", 2)
    third = again(world)
    assert (third.get("lazy").state, answer(third, "word")) == ("ready", "word")


@pytest.mark.parametrize("content", [None, 7, [], {"lazy": 3}, {3: ({},), "x": ()}, {"x": ({},)}])
def test_another_shape_of_the_file_is_an_empty_one(world: World, content: Any) -> None:
    one(world, tool("word"))
    kept(world).write(content)
    assert again(world).get("lazy").state == "active"
    assert again(world).get("lazy").state == "ready"


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5) | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def sample() -> dict[str, Any]:
    """What was learned of a plugin with a tool, as data."""
    act = {"kind": "tool", "name": "word", "toolset": "words", "schema": {"description": "d"}, "made_of": None,
           "override": False, "description": "d", "emoji": "", "is_async": False, "requires_env": (), "origin": None,
           "flags": {"aliases": ("w",)}, "code": {"check_fn": 0}}  # fmt: skip
    conditions = Conditions("c", b"s" * 16, b"", ("A",), ("B_",), b"", (("yaml", ""),))
    return Learned(conditions, (act, {"kind": "service", "name": "s"}), ("post_tool_call",), (), 1.0).to_data()


@given(st.data())
def test_whatever_is_kept_nothing_but_damage_comes_of_it(data: st.DataObject) -> None:
    """Any part replaced by anything: it is sound, or it is damaged, and never a surprise."""
    kept_ = sample()
    places = [(kept_, key) for key in kept_] + [(kept_["conditions"], key) for key in kept_["conditions"]]
    places += [(kept_["acts"][0], key) for key in kept_["acts"][0]]
    holder, key = data.draw(st.sampled_from(places))
    holder[key] = data.draw(PLAIN)
    found = Learned.from_data(kept_)
    if found is None:
        return
    found.conditions.hold("c", {"a": 1}, {"A": "1", "B_C": "2"}, ModuleStates())
    store = RegistryStore()
    services = LoaderServices(store, HookTable(), load_config(Path("/nowhere")), Path("/nowhere"))
    candidate = Candidate("lazy", "user", "/nowhere/plugin.yaml")
    with suppress(DamagedError):
        recall = Recall(found, candidate, Owner("lazy"), lambda: None, services)
        recall.tools()
        assert found.says_the_same(found)
        assert all(entry.activate is not None for entry in (one.entry for one in recall.tools().values()))


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_file_that_others_may_write_to_is_an_empty_one(world: World) -> None:
    one(world, tool("word"))
    (world.home / "cache" / "learned.bin").chmod(0o666)
    assert again(world).get("lazy").state == "active"


def test_what_is_kept_grants_nothing(world: World) -> None:
    """Tampered with: no override without the opt-in, no reserved name, no code but the plugin's own, no trust."""
    world.folder("a", tool("taken", answer="a"))
    one(world, tool("word"))
    world.folder("local", tool("local"), project=True)
    world.trust("local", world.project / ".mibyan" / "plugins" / "local")
    again(world)

    def change(kept_: dict[str, Any]) -> None:
        if kept_["acts"][0]["name"] == "word":
            kept_["acts"][0].update(name="taken", override=True)

    altered(world, change)
    second = again(world)
    assert (second.get("lazy").state, answer(second, "taken")) == ("failed", "a")
    assert again(world).get("lazy").tools == ("word",)
    altered(world, lambda kept_: kept_["acts"][0].update(name="memory") if kept_["acts"][0]["name"] == "word" else None)
    assert "memory" not in tools(again(world))
    write(world.project / ".mibyan" / "plugins" / "local" / "__init__.py", "raise SystemExit\n")
    assert again(world).get("local").state == "untrusted"


def test_threads_that_use_one_plugin_import_it_once(world: World, imports: list[str]) -> None:
    one(world, tool("word"))
    second = again(world)
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(answer(second, "word"))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (answers, len(imports)) == (["word"] * 6, 2)


def test_processes_that_learn_at_once_lose_nothing_for_good(world: World, imports: list[str]) -> None:
    """What another process has written meanwhile stays; what a race loses is learned by the next start."""
    world.folder("a", tool("a"))
    first = world.load()
    world.folder("b", tool("b"))
    write(world.home / "plugins" / "a" / "more.py", "")
    one_, other = world.loader(), world.loader(no=("a",))
    one_.load()
    other.load()
    first.close()
    assert {record.state for record in again(world).all_records()} == {"ready"}


def test_what_is_gone_is_dropped(world: World) -> None:
    """The file doesn't grow with plugins that aren't there any more."""
    root = world.folder("lazy", tool("word"))
    world.load()
    for path in sorted(root.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    root.rmdir()
    world.folder("other", tool("other"))
    again(world)
    assert [key.partition("\0")[0] for key in kept(world).read()] == ["other"]


def test_a_secret_in_a_definition_is_not_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin may write a secret into a description; then it isn't learned, and the file has none."""
    monkeypatch.setenv("LEARNT_API_KEY", "sk-0123456789abcdef")
    source = "import os\ndef register(ctx):\n    ctx.register_tool('word', 'words', {'description': os.environ['LEARNT_API_KEY']}, print)\n"
    reason = one(world, source).get("lazy").reason
    assert "the value of the variable LEARNT_API_KEY stands in what it registers" in reason
    found = world.home / "cache" / "learned.bin"
    assert not found.exists() or b"sk-0123456789abcdef" not in found.read_bytes()


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_sets_have_one_order(world: World, seed: str) -> None:
    """A registration that names things in sets is the same in each process, and no drift."""
    source = """
        def register(ctx):
            ctx.register_tool("word", "words", {"description": "d"}, lambda args: "word", None, {"KEY_A", "KEY_B", "KEY_C"})
            ctx.register_toolset("bundle", {"word", "other", "third"}, frozenset({"x", "y", "z"}))
    """
    world.folder("lazy", source)
    script = (
        "import sys\nfrom mibyan.runtime import Runtime\nrt = Runtime(home=sys.argv[1])\nrt.registry\n"
        "rt.plugins.activate('lazy')\nprint([d.reason for d in rt.report().problems], rt.registry.get_entry('word').requires_env)\n"
    )
    told = {
        subprocess.run([sys.executable, "-c", script, str(world.home)], capture_output=True, text=True, check=True,
                       env={**os.environ, "PYTHONHASHSEED": each}).stdout
        for each in ("0", seed)
    }  # fmt: skip
    assert told == {"[] ('KEY_A', 'KEY_B', 'KEY_C')\n"}


def test_another_python_learns_for_itself(world: World, imports: list[str]) -> None:
    """What one interpreter, platform or Mibyan has learned doesn't hold for another; both are kept."""
    one(world, tool("word"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mibyan.plugins.contents.LOADED_BY", "another")
        assert [again(world).get("lazy").state for _ in range(2)] == ["active", "ready"]
    assert (again(world).get("lazy").state, len(imports)) == ("ready", 2)


def test_no_source_is_read_for_a_first_use(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of a learned plugin costs its import and no look through its sources."""
    one(world, tool("word"))
    second = again(world)
    monkeypatch.setitem(sys.modules, "mibyan.plugins.literals", None)  # importing it raises
    assert answer(second, "word") == "word"
    assert "isn't learned" not in second.get("lazy").reason
