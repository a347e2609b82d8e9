"""A plugin without frozen definitions is imported once; what it registered is recalled at the next start (plugins.M4)."""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mibyan import filecache
from mibyan.errors import PluginError
from mibyan.plugins.gates import operator_entry
from mibyan.plugins.loader import PluginLoader
from mibyan.tools.availability import Availability
from mibyan.tools.entry import ToolEntry
from mibyan.tools.origin import place_of

from .world import World, answer, decisions, tool, tools, write

#: The beginning of a plugin whose imports are counted in `sys.imports_of_test`.
COUNTED = "import sys\nsys.imports_of_test.append({0!r})\n"


@pytest.fixture(autouse=True)
def imports(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What counted plugins have been imported."""
    seen: list[str] = []
    monkeypatch.setattr(sys, "imports_of_test", seen, raising=False)
    return seen


def fresh(world: World) -> None:
    """As in another process: what wheels' modules did at their import is to be done again."""
    from mibyan.plugins.recording import RECORDINGS

    for loader in world.loaders:
        loader.close()
    for name, module in sys.modules.copy().items():
        if str(getattr(module, "__file__", "")).startswith(str(world.site)):
            del sys.modules[name]
    RECORDINGS.of("")
    importlib.invalidate_caches()


def again(world: World, **services: Any) -> PluginLoader:
    """Load as another process would."""
    fresh(world)
    return world.load(**services)


def one(world: World, source: str, **more: Any) -> PluginLoader:
    """A loader that has imported one folder plugin `lazy`."""
    world.folder("lazy", COUNTED.format("lazy") + source, **more)
    return world.load()


def learned_file(world: World) -> Path:
    return world.home / "cache" / "learned.bin"


# Who is learned ---------------------------------------------------------------------------------------------------


def place(world: World, kind: str, source: str) -> str:
    """A plugin of some kind, with a tool `word`; its id."""
    if kind == "wheel":
        return world.wheel("learnt_wheel", source)
    if kind == "module":
        write(world.site / "learnt_module.py", source)
        world.config("plugins: {modules: [learnt_module]}")
        return "learnt_module"
    if kind in {"file", "project file"}:
        registers = "import mibyan\nmibyan.registry.register('word', 'words', {}, lambda args: 'word')\n"
        path = world.tool_file("clock", source + registers, project=kind == "project file")
        if kind == "file":
            return "tools.clock"
        world.trust("project-tools", path.parent)
        return "project-tools.clock"
    root = world.folder("plain", source, project=kind == "project")
    if kind == "project":
        world.trust("plain", root)
    return "plain"


STYLES = {
    "ctx": tool("word"),
    "typed": "import mibyan\n@mibyan.tool(toolset='words')\ndef word() -> str:\n    return 'word'\n",
    "facade": "import mibyan\nmibyan.registry.register('word', 'words', {'description': 'd'}, lambda args: 'word')\n",
    "hook": "import mibyan\n@mibyan.hookimpl\ndef mibyan_register(ctx):\n"
            "    ctx.register_tool('word', 'words', {}, lambda args: 'word')\n",
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("kind", ["wheel", "module", "folder", "project", "file", "project file"])
def test_the_second_start_imports_nothing_and_a_call_what_it_needs(
    world: World, imports: list[str], kind: str, style: str
) -> None:
    """M4: pip, user, project and tools-directory plugins are imported once, then when they are used."""
    plugin_id = place(world, kind, COUNTED.format("it") + ("" if "file" in kind else STYLES[style]))
    world.folder("other", COUNTED.format("other") + tool("other"))
    first = world.load()
    eager = tools(first)["word"]
    assert (sorted(imports), first.get(plugin_id).state) == (["it", "other"], "active")
    second = again(world)
    record = second.get(plugin_id)
    assert (record.state, record.tools, record.import_ms) == ("ready", ("word",), None)
    assert record.reason.startswith("what it offers was learned on 20")
    lazy = tools(second)["word"]
    assert (lazy.schema, lazy.toolset, lazy.origin, lazy.handler) == (
        eager.schema,
        eager.toolset,
        place_of(eager),
        None,
    )
    assert len(imports) == 2
    before = second._services.store.generation
    assert answer(second, "word") == "word"
    assert (imports[2:], second.get(plugin_id).state) == (["it"], "active")
    # registry.R12
    assert second._services.store.generation == before
    assert again(world).get(plugin_id).state == "ready"
    assert imports[3:] == []


def test_a_hundred_plugins_of_all_kinds(world: World, imports: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """M4: the second start imports none of them, and reads none of their sources."""
    monkeypatch.setattr(filecache, "_TICK", 0)  # the test's files have only just been written
    for number in range(100):
        source = COUNTED.format(number) + tool(f"word_{number}")
        registers = f"import mibyan\nmibyan.registry.register('word_{number}', 'words', {{}}, print)\n"
        if number % 3 == 0:
            world.wheel(f"many_{number}", source)
        elif number % 3 == 1:
            world.folder(f"many_{number}", source)
        else:
            world.tool_file(f"many_{number}", COUNTED.format(number) + registers)
    assert len(world.load().records()) == 100
    assert len(imports) == 100
    opened: list[str] = []
    second = _opening(world, opened)
    assert {record.state for record in second.records().values()} == {"ready"}
    assert len(tools(second)) == 100
    assert len(imports) == 100
    assert [
        path for path in opened if path.endswith(".py") and not path.startswith(str(Path(os.__file__).parent))
    ] == []
    assert answer(second, "word_42") == "word_42"
    assert imports[100:] == [42]


def _opening(world: World, opened: list[str]) -> PluginLoader:
    """Load; the paths that are opened meanwhile."""
    fresh(world)
    with pytest.MonkeyPatch.context() as patch:
        real = os.open

        def note(path: Any, *rest: Any, **more: Any) -> int:
            opened.append(str(path))
            return real(path, *rest, **more)

        patch.setattr(os, "open", note)
        return world.load()


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import threading, time\nt = threading.Thread(target=time.sleep, args=(2,), name='clockwork', daemon=True)\nt.start()\n",
         "it started threads that go on: clockwork"),
        ("import os\nos.environ['LEARNT_BY_TEST'] = '1'\n", "its import changes the process: the environment variable LEARNT_BY_TEST"),
        ("import logging\nlogging.getLogger().addHandler(logging.NullHandler())\n", "its import changes the process: root handlers"),
        ("import sys\nsys.excepthook = lambda *a: None\n", "its import changes the process: sys.excepthook"),
        ("import mibyan\nmibyan.registry.get_entry('x')\n", "it looked at the registry while it registered"),
        ("import mibyan\nmibyan.get_tool_definitions\n", None),
    ],
)  # fmt: skip
def test_what_does_more_than_register_is_imported_each_time(
    world: World, imports: list[str], source: str, why: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an import at first use would leave out, or what depends on others, isn't learned, and the list says why."""
    monkeypatch.setenv("LEARNT_BY_TEST", "0")
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    loader = one(world, source + tool("word"))
    reason = loader.get("lazy").reason
    assert ("it isn't learned" in reason) == (why is not None)
    assert (why or "imported in") in reason
    loader.close()
    monkeypatch.setenv("LEARNT_BY_TEST", "0")
    assert again(world).get("lazy").state == ("ready" if why is None else "active")
    assert len(imports) == (1 if why is None else 2)


@pytest.mark.parametrize("look", ["ctx.registry.get_entry('x')", "ctx.registry.snapshot", "ctx.dispatch_tool('x')",
                                  "ctx.registry.get_all_tool_names()", "ctx.registry.get_schema('x')"])  # fmt: skip
def test_who_looks_at_others_is_imported_each_time(world: World, imports: list[str], look: str) -> None:
    """What is registered because of what others have registered isn't the plugin's content."""
    one(world, tool("word") + f"    {look}\n")
    assert again(world).get("lazy").state == "active"
    assert len(imports) == 2


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("from pathlib import Path\nwith Path(__file__).with_name('log.txt').open('a') as log: log.write('x')\n",
         "its files have changed while it was being imported"),
        ("import os, sys\nsys.path.insert(0, os.path.expanduser('~/vendored'))\nimport learnt_vendored\n",
         "it imports 'learnt_vendored' from a folder that it adds to sys.path itself"),
    ],
)  # fmt: skip
def test_what_changes_what_it_depends_on_is_imported_each_time(
    world: World, imports: list[str], monkeypatch: pytest.MonkeyPatch, source: str, why: str
) -> None:
    """A plugin that writes into its own folder, or that finds modules where nobody else would."""
    monkeypatch.setenv("HOME", str(world.site / "somewhere"))
    write(world.site / "somewhere" / "vendored" / "learnt_vendored.py", "")
    assert why in one(world, source + tool("word")).get("lazy").reason
    assert again(world).get("lazy").state == "active"


def test_modules_of_its_own_are_its_files(world: World, imports: list[str]) -> None:
    """What a plugin finds in its own folder, by whatever way, is content."""
    root = world.folder("lazy", COUNTED.format("lazy") + "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\n"
                        "import learnt_neighbour\n" + tool("word"), learnt_neighbour="")  # fmt: skip
    assert [again(world).get("lazy").state for _ in range(2)] == ["active", "ready"]
    write(root / "learnt_neighbour.py", "x = 1\n")
    assert again(world).get("lazy").state == "active"


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the interpreter asks a module for its __spec__ itself then")
def test_whatever_stands_in_sys_modules(world: World, imports: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's object in the place of a module that the sources import: it is asked with care."""

    class Strange:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError if name == "__spec__" else AttributeError(name)

    monkeypatch.setitem(sys.modules, "learnt_strange", Strange())
    one(world, "import learnt_strange\n" + tool("word"))
    assert again(world).get("lazy").state == "ready"


def test_editable_installs_are_not_learned(world: World, imports: list[str]) -> None:
    """M4: the code of an editable install may change at any time."""
    plugin_id = world.wheel("learnt_edit", COUNTED.format("it") + tool("word"))
    write(world.site / "learnt_edit-1.0.dist-info" / "direct_url.json", '{"dir_info": {"editable": true}}')
    assert "it is an editable install" in world.load().get(plugin_id).reason
    assert again(world).get(plugin_id).state == "active"
    assert imports == ["it", "it"]


def test_policies_are_not_learned(world: World, imports: list[str]) -> None:
    """What a policy forbids mustn't hang on a file that says that it forbids nothing."""
    source = "import mibyan\n@mibyan.hookimpl\ndef pre_tool_call(): return mibyan.Block('no')\n"
    assert "it is a policy" in one(world, source, manifest={"role": "policy"}).get("lazy").reason
    assert again(world).get("lazy").state == "active"
    assert len(imports) == 2


def test_what_fails_is_not_learned(world: World, imports: list[str]) -> None:
    """A plugin that fails is tried at each start, and learned once it works."""
    root = world.folder("lazy", COUNTED.format("it") + "raise ValueError('not on this system')\n")
    for _ in range(2):
        assert again(world).get("lazy").state == "failed"
    write(root / "__init__.py", COUNTED.format("it") + tool("word"))
    assert [again(world).get("lazy").state for _ in range(2)] == ["active", "ready"]
    assert len(imports) == 3


def test_a_module_that_was_there_before_is_not_learned(world: World, imports: list[str]) -> None:
    """What a wheel's module registers it has decided when it was imported, perhaps in another environment."""
    plugin_id = world.wheel("learnt_before", COUNTED.format("it") + tool("word"))
    __import__("learnt_before")
    assert "its module had been imported before" in world.load().get(plugin_id).reason
    assert again(world).get(plugin_id).state == "active"
    # A further runtime of the same process recalls; its first use finds the module imported, and that isn't drift.
    further = world.load()
    assert further.get(plugin_id).state == "ready"
    assert answer(further, "word") == "word"
    assert again(world).get(plugin_id).state == "ready"


@pytest.mark.parametrize("extra", ["", "import os\nos.environ['LEARNT_BY_TEST'] = '1'\n"])
def test_a_plugin_that_another_one_imports(
    world: World, imports: list[str], monkeypatch: pytest.MonkeyPatch, extra: str
) -> None:
    """A plugin that another one uses as a library is learned by the same start, unless that one changes what it finds."""
    monkeypatch.setenv("LEARNT_BY_TEST", "0")
    library = world.wheel("learnt_zz", COUNTED.format("zz") + STYLES["typed"])
    user = world.wheel("learnt_aa", COUNTED.format("aa") + extra + "import learnt_zz\n" + tool("other"))
    first = world.load()
    assert {name: entry.owner.id for name, entry in tools(first).items()} == {"word": library, "other": user}
    monkeypatch.setenv("LEARNT_BY_TEST", "0")
    second = again(world)
    states = ("active", "active") if extra else ("ready", "ready")
    assert (second.get(user).state, second.get(library).state) == states
    assert (answer(second, "other"), answer(second, "word")) == ("other", "word")
    assert {name: entry.owner.id for name, entry in tools(second).items()} == {"word": library, "other": user}
    assert sorted(imports) == ["aa", "aa", "zz", "zz"]


# What is recalled ---------------------------------------------------------------------------------------------------

EVERYTHING = """
import mibyan
def check(): return "not today"
def other(): return True
def register(ctx):
    ctx.register_tool(
        "whole", "words", {"description": "for the model", "parameters": {"type": "object", "properties": {"a": {"enum": [1, 2.5, None, "é"]}}},
                           "strict": True},
        lambda args: "whole", check, ["KEY_A", "KEY_B"], True, "for people", "W", aliases=("w", "wh"), timeout=3,
        max_result_size_chars=70, read_only=True, destructive=True, idempotent=True, open_world=False, parallel=True,
        interactive=True, thread="dedicated", loop="runtime", check_ttl=5, check_grace=6, cache=True, defer=True,
        untrusted_output=True, validate=False,
        dynamic_schema_overrides=lambda: {"description": "changed"}, approval=lambda args, context: None,
        reads=lambda args: ["r"], writes=lambda args: ["w"],
    )
    ctx.register_tool("plain", "words", {"description": "p"}, lambda args: "plain", check_fn=check)
    ctx.register_tool("late", "words", {"description": "p"}, lambda args: "late", check_fn=other, timeout=lambda args: 7)
    ctx.register_tool("agents", "words", {"description": "p"}, lambda args: "", handled_by="agent")
    ctx.register_tool("gone", "words", {"description": "p"}, lambda args: "")
    ctx.registry.deregister("gone")
    ctx.registry.register_toolset_alias("wordy", "words")
    ctx.register_toolset("bundle", ["whole"], ["words"], "both")
    ctx.register_command("say", lambda text: text.upper(), "says it", "TEXT")
    ctx.provide("speech", lambda: "made")
    ctx.register_skill("skill")
    ctx.register_hook("post_tool_call", lambda: None)
    ctx.register_hook("pre_tool_cal", lambda: None)
@mibyan.hookimpl
def on_session_end(): pass
@mibyan.hookimpl
def mibyan_unload(): pass
"""

#: Attributes of an entry that are the same whether it was recalled or imported; code parts are compared by being there.
CODE = {"handler", "activate", "owner", "bind", "schema_source", "check_fn", "dynamic_schema_overrides", "approval",
        "reads", "writes"}  # fmt: skip


def plain(entry: ToolEntry) -> dict[str, Any]:
    values = {field.name: getattr(entry, field.name) for field in dataclasses.fields(entry)}
    parts = {name: callable(values[name]) for name in CODE - {"handler", "activate", "owner", "bind", "schema_source"}}
    return {
        **{k: (v if not callable(v) else "code") for k, v in values.items() if k not in CODE},
        **parts,
        "schema": entry.schema,
        "origin": place_of(entry),
    }


def offered(loader: PluginLoader) -> dict[str, Any]:
    """All that a loader's plugins offer, as data."""
    store = loader._services.store
    return {
        "tools": {name: plain(entry) for name, entry in tools(loader).items()},
        "aliases": (dict(store.snapshot.aliases), dict(store.snapshot.toolset_aliases)),
        "toolsets": {name: (t.tools, t.includes, t.description, t.origin) for name, t in store.declared_toolsets.items()},
        "commands": [(o.name, o.description, o.args_hint) for o in loader.offers.commands.values()],
        "skills": [(o.name, o.value) for o in loader.offers.skills.values()],
        "services": list(loader.provided),
        "hooks": loader.get("lazy").hooks,
        "told": [(d.kind, d.subject, d.reason) for d in loader._services.log if d.kind != "loaded"],
    }  # fmt: skip


def test_everything_that_a_plugin_offers_is_recalled(world: World, imports: list[str]) -> None:
    """Every flag of a tool, toolsets, aliases, hooks, commands, services, skills, and what the report said."""
    write(world.home / "plugins" / "lazy" / "skill" / "SKILL.md", "# skill")
    first = offered(one(world, EVERYTHING))
    second = again(world)
    assert second.get("lazy").state == "ready", second.get("lazy").reason
    found = offered(second)
    hidden = {"mibyan_unload"}
    assert found["hooks"] == tuple(name for name in first["hooks"] if name not in hidden)
    assert {**found, "hooks": ()} == {**first, "hooks": ()}
    assert ("unknown", "hook:pre_tool_cal") in {told[:2] for told in found["told"]}
    assert len(imports) == 1


def test_a_service_imports_its_plugin(world: World, imports: list[str]) -> None:
    """What a learned plugin provides is known by its name, whatever the plugin is called."""
    write(world.home / "plugins" / "lazy" / "skill" / "SKILL.md", "# skill")
    one(world, EVERYTHING)
    second = again(world)
    assert (list(second.provided), len(imports)) == (["speech"], 1)
    assert second.provided["speech"]() == "made"
    assert second.offers.command("say").value("a") == "A"
    assert len(imports) == 2


def test_a_hook_imports_its_plugin_when_it_fires(world: World, imports: list[str]) -> None:
    """M4: a learned plugin's hooks are known by name."""
    one(world, "import mibyan\n@mibyan.hookimpl\ndef post_tool_call(): pass\n")
    second = again(world)
    hooks = second._services.hooks
    assert not hooks.chain("pre_tool_call")
    assert second.get("lazy").hooks == ("post_tool_call",)
    assert len(imports) == 1
    assert [each.owner.id for each in hooks.chain("post_tool_call").plain] == ["lazy"]
    assert (len(imports), second.get("lazy").state) == (2, "active")


def test_checks_are_asked_and_shared_checks_once(world: World, imports: list[str]) -> None:
    """A check is code: asking it imports its plugin; tools that share it share one probe, before the import and after."""
    counted = EVERYTHING.replace(
        "def check(): return", 'def check():\n    sys.imports_of_test.append("probe")\n    return'
    )
    write(world.home / "plugins" / "lazy" / "skill" / "SKILL.md", "# skill")
    one(world, counted)
    second = again(world)
    verdicts = Availability().verdicts(tools(second).values())
    assert imports == ["lazy", "lazy", "probe"]
    assert {name: verdict.reason for name, verdict in verdicts.items() if not verdict.available} == {
        "whole": "not today",
        "plain": "not today",
    }
    assert Availability().verdicts(tools(second).values())["plain"].reason == "not today"


def test_parts_that_are_code_are_the_plugin_s(world: World, imports: list[str]) -> None:
    """Overrides of the schema, time-outs and resources are asked of the code, which is imported for it."""
    write(world.home / "plugins" / "lazy" / "skill" / "SKILL.md", "# skill")
    one(world, EVERYTHING)
    lazy = tools(again(world))
    assert lazy["whole"].dynamic_schema_overrides() == {"description": "changed"}
    assert (lazy["whole"].reads({}), lazy["whole"].writes({}), lazy["whole"].approval({}, None)) == (["r"], ["w"], None)
    assert lazy["late"].timeout({}) == 7
    assert len(imports) == 2


def test_what_was_deregistered_stays_away(world: World) -> None:
    """registry.R12: an import supplies what is still there."""
    one(world, tool("word") + "    ctx.register_tool('gone', 'words', {}, lambda args: 'gone')\n")
    second = again(world)
    store = second._services.store
    store.deregister("gone", tools(second)["gone"].owner)
    before = store.generation
    assert (answer(second, "word"), answer(second, "gone")) == ("word", "no gone")
    assert store.generation == before
    assert again(world).get("lazy").tools == ("gone", "word")


def test_a_name_that_another_holds_comes_to_the_plugin_with_its_handler(world: World) -> None:
    """registry.R4: a claim that was rejected is a claim all the same, recalled or imported."""
    world.folder("a", tool("word", answer="a"))
    one(world, tool("word", answer="mine") + "    ctx.register_tool('own', 'words', {}, lambda args: 'own')\n")
    second = again(world)
    told = [d.reason for d in second._services.log if d.kind == "rejected"]
    assert len(told) == 1
    assert (answer(second, "word"), answer(second, "own")) == ("a", "own")
    second.unload("a")
    assert answer(second, "word") == "mine"
    third = again(world)
    third.unload("a")
    assert (third.get("lazy").state, answer(third, "word")) == ("ready", "mine")


# When it holds ------------------------------------------------------------------------------------------------------

DEPENDS = """
import os
def register(ctx):
    ctx.register_tool("word", "words", {"description": ctx.config.get("mood", "none")}, lambda args: "word")
    if os.environ.get("LEARNT_MORE"):
        ctx.register_tool("more", "words", {}, lambda args: "more")
    for name in os.environ:
        if name.startswith("LEARNT_TOOL_"):
            ctx.register_tool(os.environ[name], "words", {}, lambda args: "x")
try:
    import learnt_optional
except ImportError:
    pass
"""


@pytest.fixture
def depends(world: World, imports: list[str]) -> Callable[..., tuple[list[str], int]]:
    """Load a plugin that depends on all that it may depend on; its tools, and how often it was imported."""
    world.folder("lazy", COUNTED.format("lazy") + DEPENDS, helper="x = 1\n")

    def load() -> tuple[list[str], int]:
        before = len(imports)
        found = tools(again(world))
        return [*sorted(found), str(found["word"].schema["description"])], len(imports) - before

    return load


def test_it_holds_for_the_environment_it_names(depends: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """M4: variables whose names, or the beginning of them, stand in the sources count, others don't; several cases are kept."""
    assert depends() == (["word", "none"], 1)
    monkeypatch.setenv("SOMETHING_ELSE", "1")
    assert depends() == (["word", "none"], 0)
    monkeypatch.setenv("LEARNT_MORE", "1")
    assert depends() == (["more", "word", "none"], 1)
    assert depends() == (["more", "word", "none"], 0)
    monkeypatch.setenv("LEARNT_MORE", "2")
    assert depends()[1] == 1
    monkeypatch.delenv("LEARNT_MORE")
    assert depends() == (["word", "none"], 0)
    monkeypatch.setenv("LEARNT_TOOL_A", "x")
    assert depends() == (["word", "x", "none"], 1)
    monkeypatch.delenv("LEARNT_TOOL_A")
    assert depends() == (["word", "none"], 0)


def test_it_holds_for_the_plugin_s_own_configuration(world: World, depends: Callable[..., Any]) -> None:
    """M4: the section of that plugin counts, the rest of config.yaml doesn't."""
    assert depends() == (["word", "none"], 1)
    world.config("dispatch: {timeout: 7}\nplugins: {entries: {other: {config: {mood: bad}}}}")
    assert depends() == (["word", "none"], 0)
    world.config("plugins: {entries: {lazy: {config: {mood: good}}}}")
    assert depends() == (["word", "good"], 1)
    assert depends() == (["word", "good"], 0)
    world.config("plugins: {entries: {lazy: {config: {mood: better}}}}")
    assert depends() == (["word", "better"], 1)
    world.config("")
    assert depends() == (["word", "none"], 0)


def test_it_holds_for_the_plugin_s_files(world: World, depends: Callable[..., Any]) -> None:
    """M4: one changed, added or removed file and it is imported anew; a touched one isn't a changed one."""
    root = world.home / "plugins" / "lazy"
    assert depends()[1] == 1
    os.utime(root / "helper.py", (1, 1))
    assert depends()[1] == 0
    status = (root / "helper.py").stat()
    for change in (
        lambda: write(root / "helper.py", "x = 2\n"),
        lambda: write(root / "words.txt", "a"),
        lambda: write(root / ".env", "A=1"),
        (root / "words.txt").unlink,
        lambda: write(root / "plugin.yaml", "version: '2'"),
    ):
        change()
        assert depends()[1] == 1
        assert depends()[1] == 0
    write(root / "helper.py", "x = 3\n")
    os.utime(root / "helper.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert depends()[1] == 1


def test_it_holds_for_the_modules_it_imports(world: World, depends: Callable[..., Any]) -> None:
    """A module of somebody else's that the sources import, or try to: whether it is there, and which it is."""
    assert depends()[1] == 1
    write(world.site / "learnt_unrelated.py", "")
    assert depends()[1] == 0
    write(world.site / "learnt_optional.py", "")
    assert depends()[1] == 1
    assert depends()[1] == 0
    write(world.site / "learnt_optional.py", "x = 1\n")
    assert depends()[1] == 1
    (world.site / "learnt_optional.py").unlink()
    # That was so before: it is known what comes of it.
    assert depends()[1] == 0


def test_it_holds_for_a_file_of_a_tools_directory_and_what_it_imports(world: World, imports: list[str]) -> None:
    """A new or changed neighbour concerns those that import it, or may look at all files there."""
    register = "import mibyan\nmibyan.registry.register({0!r}, 'words', {{}}, lambda args: 'x')\n"
    write(world.home / "tools" / "helper.py", "from . import deeper\n")
    write(world.home / "tools" / "deeper.py", "")
    sources = {"one": "", "two": "from . import helper\n", "three": "try:\n    from .extra import x\nexcept ImportError: pass\n",
               "four": "from pathlib import Path\nHERE = Path(__file__)\n"}  # fmt: skip
    for name, source in sources.items():
        world.tool_file(name, COUNTED.format(name) + source + register.format(name))

    def imported() -> set[str]:
        del imports[:]
        again(world)
        return set(imports)

    assert imported() == {"one", "two", "three", "four"}
    assert imported() == set()
    write(world.home / "tools" / "deeper.py", "x = 1\n")
    assert imported() == {"two", "four"}
    write(world.home / "tools" / "extra.py", "x = 1\n")
    assert imported() == {"three", "four"}
    world.tool_file("one", COUNTED.format("one") + "#\n" + register.format("one"))
    assert imported() == {"one", "four"}
    assert imported() == set()


def test_it_holds_for_a_project_s_trusted_bytes(world: World, imports: list[str]) -> None:
    """S1: a changed file is untrusted whatever was learned; nothing is ever kept in the project."""
    root = world.folder("local", COUNTED.format("it") + tool("word"), project=True)
    world.trust("local", root)
    before = {path.relative_to(world.project) for path in world.project.rglob("*")}
    assert [again(world).get("local").state for _ in range(2)] == ["active", "ready"]
    write(root / "more.py", "")
    assert (again(world).get("local").state, tools(world.loaders[-1])) == ("untrusted", {})
    world.trust("local", root)
    assert [again(world).get("local").state for _ in range(2)] == ["active", "ready"]
    assert {path.relative_to(world.project) for path in world.project.rglob("*")} == {
        *before,
        Path(".mibyan/plugins/local/more.py"),
    }


def test_the_operator_decides_each_time(world: World, imports: list[str]) -> None:
    """R5, L6: an opt-in that was taken back fails the plugin as if it was imported; a disabled plugin isn't recalled."""
    world.folder("a", tool("word", answer="a"))
    world.config("plugins: {entries: {lazy: {allow_tool_override: true}}}")
    source = tool("word", "other", "mine").replace("lambda args: 'mine')", "lambda args: 'mine', override=True)")
    assert one(world, source).get("lazy").overrides == ("word",)
    second = again(world)
    assert (second.get("lazy").state, second.get("lazy").overrides, answer(second, "word")) == (
        "ready",
        ("word",),
        "mine",
    )
    world.config("")
    third = again(world)
    assert (third.get("lazy").state, answer(third, "word")) == ("failed", "a")
    assert "override=True needs the operator's opt-in" in third.get("lazy").reason
    world.config("plugins: {disabled: [lazy]}")
    assert (again(world).get("lazy").state, again(world, safe_mode=True).all_records()) == ("disabled", ())


def test_a_runtime_without_a_home_learns_nothing(world: World, imports: list[str], tmp_path: Path) -> None:
    """A home that isn't there isn't made."""
    world.wheel("learnt_homeless", COUNTED.format("it") + tool("word"))
    for _ in range(2):
        assert again(world, home=tmp_path / "absent").get("learnt-homeless").state == "active"
    assert not (tmp_path / "absent").exists()


def test_operator_entries_reach_the_conditions(world: World) -> None:
    """The section that counts is the one that the plugin gets as `ctx.config`, in whatever spelling its id is written."""
    world.wheel(
        "learnt_spelt",
        "def register(ctx):\n    ctx.register_tool('word', 'words', {'description': ctx.config.get('a', '')}, print)\n",
    )
    world.load()
    world.config("plugins: {entries: {Learnt_Spelt: {config: {a: b}}}}")
    loader = again(world)
    assert loader.get("learnt-spelt").state == "active"
    assert operator_entry(loader._services.config, loader.get("learnt-spelt").candidate)[1].config == {"a": "b"}
    assert tools(loader)["word"].schema["description"] == "b"


# Secrets, damage ----------------------------------------------------------------------------------------------------


def test_values_are_kept_as_digests(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the environment's values nor the configuration's are in what is learned, which is the user's alone."""
    monkeypatch.setenv("LEARNT_KEY", "sk-very-secret-value")
    world.config("plugins: {entries: {lazy: {config: {token: hunter2-config-secret}}}}")
    one(world, "import os\nKEY = os.environ.get('LEARNT_KEY')\n" + tool("word"))
    time.sleep(0.05)  # of what was written within the clock's last ticks nothing is kept
    assert again(world).get("lazy").state == "ready"
    for path in (learned_file(world), world.home / "cache" / "contents.bin", world.home / "cache" / "plugins.json"):
        content = path.read_bytes()
        assert b"sk-very-secret-value" not in content
        assert b"hunter2-config-secret" not in content
    assert learned_file(world).stat().st_mode & 0o777 == 0o600
    assert b"LEARNT_KEY" in learned_file(world).read_bytes()


def test_a_home_that_can_t_be_written_to_is_told(world: World, imports: list[str]) -> None:
    """A read-only home: nothing is learned, nothing is wrong, and there is a sentence for `doctor`."""
    from mibyan.plugins.lessons import problem

    write(world.home / "cache", "a file where the folder should be")
    world.folder("lazy", tool("word"))
    for _ in range(2):
        assert again(world).get("lazy").state == "active"
    assert "isn't a folder" in str(problem(world.home))
    (world.home / "cache").unlink()
    assert problem(world.home) is None


def test_an_interrupted_first_use_can_be_tried_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """plugins.L2: KeyboardInterrupt leaves; what was recalled is there as before."""
    one(
        world,
        "import os\nif os.path.exists(os.path.expanduser('~/stop')):\n    raise KeyboardInterrupt\n" + tool("word"),
    )
    monkeypatch.setenv("HOME", str(world.home))
    write(world.home / "stop", "")
    second = again(world)
    with pytest.raises(KeyboardInterrupt):
        answer(second, "word")
    assert (second.get("lazy").state, second.get("lazy").tools) == ("ready", ("word",))
    (world.home / "stop").unlink()
    assert answer(second, "word") == "word"


def test_a_first_use_that_fails_says_why_and_is_forgotten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recalled plugin whose import fails is failed, with everything of it gone; the next start imports it."""
    one(
        world,
        "import os\nif os.path.exists(os.path.expanduser('~/stop')):\n    raise ValueError('no luck')\n" + tool("word"),
    )
    monkeypatch.setenv("HOME", str(world.home))
    write(world.home / "stop", "")
    second = again(world)
    with pytest.raises(PluginError, match="no luck"):
        second.activate("lazy")
    assert (second.get("lazy").state, tools(second)) == ("failed", {})
    assert [decision.kind for decision in decisions(second, "lazy")] == ["failed"]
    assert again(world).get("lazy").state == "failed"
