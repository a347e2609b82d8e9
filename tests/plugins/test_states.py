"""The states of plugins (plugins.L1): what is asked before a plugin's code is touched, and what is said about it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from mibyan._version import __version__
from mibyan.errors import PluginError
from mibyan.plugins.loader import PluginLoader
from mibyan.plugins.rows import row
from mibyan.plugins.state import PluginRecord

from .world import World, answer, decisions, frozen_tool, tool, tools

STOP = "raise BaseException('imported')\n"


def state(loader: PluginLoader, plugin_id: str) -> tuple[str, str, str | None]:
    """State, reason and hint; the report says the same, and a survey of a fresh loader too where nothing is loaded."""
    record = loader.get(plugin_id)
    if record.state != "found":
        assert [d.reason for d in decisions(loader, plugin_id)] == [record.reason]
    return record.state, record.reason, record.hint


def surveyed(world: World, plugin_id: str, **services: Any) -> PluginRecord:
    """What a survey says of a plugin."""
    return next(record for record in world.loader(**services).survey() if record.id == plugin_id)


@pytest.mark.parametrize(
    ("config", "services", "reason", "hint"),
    [
        ("plugins: {disabled: [My.Plugin]}", {}, "it is in `plugins.disabled`", "`mibyan plugins enable my_plugin`"),
        (
            "plugins: {disabled: [my_plugin], enabled: [my_plugin]}",
            {"also": ("my_plugin",)},
            "it is in `plugins.disabled`",
            "enable",
        ),
        ("plugins: {autoload: false}", {}, "`plugins.autoload` is false", "`mibyan plugins enable my_plugin`"),
        ("", {"no": ("my-plugin",)}, "--no-plugin turns it off", "--no-plugin"),
        ("", {"also": ("no:my-plugin",)}, "--no-plugin turns it off", "--no-plugin"),
    ],
)
@pytest.mark.parametrize("kind", ["folder", "wheel", "frozen"])
def test_disabled_plugins_are_never_imported(
    world: World, config: str, services: dict[str, Any], reason: str, hint: str, kind: str
) -> None:
    """plugins.L6: the deny list wins over everything; a disabled plugin does nothing at all."""
    if kind == "wheel":
        plugin_id = world.wheel("my_plugin", STOP)
        hint = hint.replace("my_plugin", "my-plugin")
    else:
        world.folder("my_plugin", STOP, {"tools": [frozen_tool("word")]} if kind == "frozen" else None)
        plugin_id = "my_plugin"
    world.config(config)
    loader = world.load(**services)
    assert state(loader, plugin_id)[0] == "disabled"
    assert reason in state(loader, plugin_id)[1]
    assert hint in str(state(loader, plugin_id)[2])
    assert tools(loader) == {}
    assert surveyed(world, plugin_id, **services).state == "disabled"
    with pytest.raises(PluginError, match="is disabled"):
        loader.activate(plugin_id)
    assert not any(decision.problem for decision in decisions(loader, plugin_id))


def test_enabled_and_named_plugins_load_without_autoload(world: World) -> None:
    """plugins.F3, L6: `autoload: false` loads `enabled` and what `--plugin` names."""
    for name in ("a", "b", "c"):
        world.folder(name, tool(name))
    world.config("plugins: {autoload: false, enabled: [a]}")
    assert sorted(tools(world.load(also=("b",)))) == ["a", "b"]


def test_safe_mode_has_no_other_plugins(world: World) -> None:
    """plugins.L6: in safe mode only what is built in is even looked for."""
    world.folder("a", STOP)
    assert world.load(safe_mode=True).all_records() == ()


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (f">={__version__}", True),
        ("", True),
        (">=0", True),
        (">=99", False),
        (f"!={__version__}", False),
        ("<0.0.1", False),
    ],
)
def test_a_plugin_for_another_mibyan_is_never_imported(world: World, wanted: str, fits: bool) -> None:
    """plugins.M3: `requires_mibyan` is checked before any import, with a message in words."""
    world.folder("a", tool("word") if fits else STOP, {"requires_mibyan": wanted})
    loader = world.load()
    if fits:
        assert state(loader, "a")[0] == "active"
        return
    assert state(loader, "a")[:2] == ("incompatible", f"it works with Mibyan {wanted}, this is {__version__}")
    assert surveyed(world, "a").state == "incompatible"


def test_what_can_t_run_shadows_nothing(world: World) -> None:
    """plugins.L1: a disabled, untrusted or incompatible plugin doesn't take another's place; one that fails does."""
    world.wheel("my_plugin", STOP, {"requires_mibyan": ">=99"})
    world.folder("my-plugin", tool("word"))
    loader = world.load()
    assert [(record.source, record.state) for record in loader.all_records()] == [
        ("pip", "incompatible"),
        ("user", "active"),
    ]
    assert loader.get("my-plugin").source == loader.records()["my-plugin"].source == "user"


def test_the_second_of_one_id_is_shadowed(world: World) -> None:
    """plugins.L1: the first in order is loaded; the other says by what it is shadowed."""
    world.wheel("my_plugin", tool("word"))
    world.folder("my-plugin", STOP)
    loader = world.load()
    first, second = loader.all_records()
    assert (first.state, second.state) == ("active", "shadowed")
    assert "mibyan plugins disable" not in (second.hint or "")  # which would turn off the other one too
    assert first.origin in second.reason
    assert loader.records()["my-plugin"].source == "pip"
    assert loader.get("my-plugin").source == "pip"


@pytest.mark.parametrize(
    ("requires", "expected", "words"),
    [
        (["base"], "active", ""),
        (["Base >=1,<3"], "active", ""),
        (["later"], "active", ""),
        (["base >=3"], "incompatible", "it works with the plugin 'base' >=3, this is 2.0"),
        (["unversioned >=1"], "incompatible", "one that doesn't say its version"),
        (["absent"], "needs", "it needs the plugin 'absent', which isn't installed"),
        (["off"], "needs", "it needs the plugin 'off', which is disabled: it is in `plugins.disabled`"),
        (["broken"], "needs", "it needs the plugin 'broken', which has failed: "),
        (["zbroken"], "needs", "it needs the plugin 'zbroken', which has failed: "),
        (["zneedy"], "needs", "it needs the plugin 'zneedy', which lacks something: "),
        (["base", "absent"], "needs", "'absent'"),
    ],
)
@pytest.mark.parametrize("frozen", [False, True])
def test_required_plugins_must_be_ready(
    world: World, requires: list[str], expected: str, words: str, frozen: bool
) -> None:
    """plugins.M3: `requires_plugins` in any spelling, with ranges; also where the other one comes later and fails."""
    world.folder("base", tool("base"), {"version": "2.0"})
    world.folder("later", tool("later"))
    world.folder("unversioned", tool("unversioned"))
    world.folder("off", STOP)
    for name in ("broken", "zbroken"):
        world.folder(name, STOP)
    world.folder("zneedy", tool("zneedy"), {"requires_plugins": ["zbroken"]})
    manifest = {"requires_plugins": requires, **({"tools": [frozen_tool("mine")]} if frozen else {})}
    world.folder("mine", tool("mine"), manifest)
    world.config("plugins: {disabled: ['off']}")
    loader = world.load()
    record = loader.get("mine")
    assert record.state == ("ready" if frozen and expected == "active" else expected)
    assert words in record.reason or expected == "active"
    assert ("mine" in tools(loader)) is (expected == "active")
    assert record.hint or expected == "active"


def test_a_circle_of_requirements_loads(world: World) -> None:
    """Two plugins that require one another are both there."""
    world.folder("a", tool("a"), {"requires_plugins": ["b"]})
    world.folder("b", tool("b"), {"requires_plugins": ["a"]})
    assert sorted(tools(world.load())) == ["a", "b"]


@pytest.mark.parametrize(
    ("requires", "words"),
    [
        ({"env": ["NO_SUCH_VARIABLE_XYZ"]}, "environment variable NO_SUCH_VARIABLE_XYZ is not set"),
        ({"bins": ["no-such-program-xyz"]}, "program 'no-such-program-xyz' is not on PATH"),
        ({"modules": ["no_such_module_xyz"]}, "module 'no_such_module_xyz' is not installed"),
    ],
)
def test_what_a_whole_plugin_needs_must_be_there(world: World, requires: dict[str, list[str]], words: str) -> None:
    """plugins.L1 `needs`: an unfrozen plugin isn't imported without it; a frozen one's tools are there, unavailable."""
    world.folder("plain", STOP, {"requires": requires})
    world.folder("frozen", STOP, {"requires": requires, "tools": [frozen_tool("word")]})
    loader = world.load()
    for name in ("plain", "frozen"):
        assert state(loader, name)[:2] == ("needs", words)
    assert list(tools(loader)) == ["word"]
    assert tools(loader)["word"].requires


def test_what_was_missing_may_come_later(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frozen plugin's tool works once its variable is set: availability is decided at each call (registry.V1)."""
    world.folder("lazy", tool("word"), {"requires": {"env": ["COMES_LATER_XYZ"]}, "tools": [frozen_tool("word")]})
    loader = world.load()
    monkeypatch.setenv("COMES_LATER_XYZ", "1")
    assert answer(loader, "word") == "word"
    assert loader.get("lazy").state == "active"


def test_isolation_is_never_done_in_process(world: World) -> None:
    """plugins.S2: `isolation: process` refuses to load the plugin as long as it isn't there."""
    world.folder("a", STOP)
    world.config("plugins:\n  entries:\n    a:\n      isolation: process\n")
    loader = world.load()
    assert state(loader, "a") == (
        "failed",
        "config.yaml:4: `isolation: process` isn't possible yet, so it isn't loaded",
        "plugins.entries.a.isolation: none",
    )


SCHEMA = {
    "type": "object",
    "properties": {"unit": {"enum": ["metric", "imperial"]}, "days": {"type": "integer"}},
    "required": ["unit"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("{unit: metric, days: 3}", None),
        ("{unit: nautical}", "config.yaml:1: key 'plugins.entries.my_plugin.config.unit'"),
        ("{unit: metric, days: soon}", "config.yaml:1: key 'plugins.entries.my_plugin.config.days'"),
        ("{unit: metric, dayz: 3}", "did you mean 'days'"),
        ("{}", "unit"),
    ],
)
@pytest.mark.parametrize("frozen", [False, True])
def test_a_plugin_s_settings_follow_its_schema(world: World, config: str, words: str | None, frozen: bool) -> None:
    """api.md `ctx`: settings are validated by the manifest's `config_schema`; a violation fails the plugin, with its line."""
    more = {"tools": [frozen_tool("word")]} if frozen else {}
    source = "def register(ctx):\n    unit = ctx.config['unit']\n    ctx.register_tool('word', 'words', {'description': 'says word'}, lambda a: unit)\n"
    world.folder("my_plugin", source, {"config_schema": SCHEMA, **more})
    world.config(f"plugins: {{entries: {{my_plugin: {{config: {config}}}}}}}")
    loader = world.load()
    if words is None:
        assert answer(loader, "word") == "metric"
        return
    assert state(loader, "my_plugin")[0] == "failed"
    assert words in state(loader, "my_plugin")[1]
    assert state(loader, "my_plugin")[2] == "mend plugins.entries.my_plugin.config in config.yaml"


def test_settings_without_a_schema_are_handed_over(world: World) -> None:
    """Settings of a plugin that says nothing about them are its own matter; any spelling of the id is found."""
    source = (
        "def register(ctx):\n    ctx.register_tool('word', 'words', {'description': 'd'}, lambda a: dict(ctx.config))\n"
    )
    world.folder("my_plugin", source)
    world.config("plugins: {entries: {my-plugin: {config: {any: [1, {x: y}]}}}}")
    assert answer(world.load(), "word") == {"any": [1, {"x": "y"}]}


def test_a_bad_manifest_is_one_record(world: World) -> None:
    """plugins.F5: what can't be read is that plugin's failure and nothing else."""
    (world.folder("bad", STOP) / "plugin.yaml").write_text("tools: 3\n")
    world.folder("good", tool("word"))
    loader = world.load()
    assert (loader.get("bad").state, loader.get("good").state) == ("failed", "active")
    assert "tools" in loader.get("bad").reason


def test_notes_are_in_the_report(world: World) -> None:
    """architecture: what was passed over is a record too, an unknown id with a suggestion."""
    world.folder("weather", tool("word"))
    world.config("plugins: {disabled: [wether]}")
    world.tool_file("near", "def setup():\n    registry.register('x')\n")
    loader = world.load()
    told = {decision.kind: decision for decision in loader._services.log.report().problems}
    assert "did you mean 'weather'" in told["unknown"].reason
    assert "inside the function 'setup'" in told["skipped"].reason
    assert {note.kind for note in loader.notes} == {"unknown", "near_miss"}


def test_a_survey_imports_nothing(world: World) -> None:
    """plugins.L8: everything that finding and reading manifests can tell, in order; a loaded loader tells what it knows."""
    world.folder("plain", STOP)
    world.folder(
        "frozen", STOP, {"version": "1.2", "tools": [frozen_tool("b"), frozen_tool("a")], "hooks": ["post_tool_call"]}
    )
    world.folder("needy", STOP, {"requires_plugins": ["absent"]})
    world.wheel("wheel_surveyed", STOP)
    world.tool_file("clock", STOP + "registry.register('x')\n")
    loader = world.loader()
    records = {record.id: record for record in loader.survey()}
    assert {name: record.state for name, record in records.items()} == {
        "wheel-surveyed": "found", "frozen": "found", "needy": "needs", "plain": "found", "tools.clock": "found",
    }  # fmt: skip
    assert (records["frozen"].tools, records["frozen"].hooks) == (("a", "b"), ("post_tool_call",))
    assert "wheel_surveyed" not in sys.modules
    loader.load()
    assert {record.id: record.state for record in loader.survey()}["plain"] == "failed"


def test_rows_are_json(world: World) -> None:
    """api.md: `{id source version state reason origin tools hooks overrides import_ms schema_tokens}`, loaded or not."""
    world.folder(
        "frozen", tool("word"), {"version": "1.2", "tools": [frozen_tool("word")], "hooks": ["post_tool_call"]}
    )
    world.folder("plain", tool("other"))
    surveyed_row = row(surveyed(world, "frozen"))
    loader = world.load()
    snapshot = loader._services.store.snapshot
    rows = {record.id: row(record, snapshot) for record in loader.all_records()}
    assert set(rows["frozen"]) >= {
        "id", "source", "version", "state", "reason", "origin", "tools", "hooks", "overrides", "import_ms", "schema_tokens",
    }  # fmt: skip
    assert rows["frozen"]["tools"] == ["word"]
    assert rows["plain"]["schema_tokens"] > 10
    assert (surveyed_row["state"], surveyed_row["tools"]) == ("found", ["word"])
    assert surveyed_row["schema_tokens"] > 5
