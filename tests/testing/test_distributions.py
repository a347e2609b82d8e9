"""Fabricated distributions are what an installer would have left (plugins.W2)."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys

import pytest

import mibyan
from mibyan.testing import Workbench

TOOL = "import mibyan\n\n@mibyan.tool(toolset='x')\ndef {0}() -> str:\n    '''Say it.'''\n    return {0!r}\n"


def states(bench: Workbench) -> dict[str, str]:
    runtime = bench.runtime()
    runtime.definitions()
    return {one.id: one.state for one in runtime.plugins.all_records() if one.source != "builtin"}


def test_dist_W2_importlib_metadata_finds_all_of_it(bench: Workbench) -> None:
    """Name, version, requirements, entry points, files with their digests."""
    made = bench.write_distribution(
        "Mibyan-Plugin.Weather", "1.2", {"mibyan.plugins": {"weather": "mibyan_plugin_weather:register"}, "other": {"a": "b"}},
        source="def register(ctx): pass", files={"mibyan_plugin_weather/data.txt": "data"}, requires=("click>=8",),
    )  # fmt: skip
    found = importlib.metadata.distribution("mibyan-plugin-weather")
    assert (found.version, found.metadata["Name"], found.requires) == ("1.2", "Mibyan-Plugin.Weather", ["click>=8"])
    assert {(one.group, one.name, one.value) for one in found.entry_points} == {
        ("mibyan.plugins", "weather", "mibyan_plugin_weather:register"), ("other", "a", "b"),
    }  # fmt: skip
    assert found.files is not None
    assert {str(file) for file in found.files} == {str(path.relative_to(made.site)) for path in made.files}
    for file in found.files:
        if file.hash is not None:
            assert file.hash.mode == "sha256"
            assert file.size == file.locate().stat().st_size
    assert made.id == "weather"
    assert made.modules == ("mibyan_plugin_weather",)


@pytest.mark.parametrize("place", ["mibyan.json", "plugin.yaml"])
@pytest.mark.parametrize("editable", [False, True])
def test_dist_W2_a_manifest_counts_wherever_it_lies(bench: Workbench, place: str, editable: bool) -> None:
    """In the dist-info or as package data, editable or not; an editable one's code lies elsewhere."""
    manifest = {"id": "weather", "version": "7", "requires": {"bins": ["no-such-program"]}}
    made = bench.write_distribution(
        "mibyan-plugin-weather", source=TOOL.format("f"), manifest=manifest, manifest_file=place, editable=editable
    )
    plugin = bench.load(bench.runtime(), "weather", check=False)
    assert plugin.state == "needs"
    assert "no-such-program" in plugin.reason
    assert plugin.record.candidate.editable is editable
    assert (made.code == made.site) is not editable
    assert (made.code / "mibyan_plugin_weather" / "__init__.py").exists()
    assert str(made.code) in sys.path
    if editable:
        said = json.loads((made.info / "direct_url.json").read_text())
        assert said == {"url": made.code.as_uri(), "dir_info": {"editable": True}}
        assert importlib.import_module("mibyan_plugin_weather").__file__.startswith(str(made.code))


def test_dist_W2_what_finding_has_to_cope_with(bench: Workbench) -> None:
    """Shadowed, without METADATA, in the wrong group, two entry points, of one id: each is what it is on a machine."""
    bench.write_distribution("mibyan-plugin-twice", "1.0", source=TOOL.format("first"))
    bench.write_distribution("mibyan-plugin-twice", "2.0", source=TOOL.format("second"), place="behind")
    bench.write_distribution("mibyan-plugin-leftover", source=TOOL.format("left"), metadata="")
    bench.write_distribution("mibyan-plugin-wrong", entry_points={"mibyan.plugin": {"wrong": "wrong"}})
    bench.write_distribution("mibyan-plugin-many", entry_points={"many": "many", "more": "more"}, files={"many.py": ""})
    bench.write_distribution("rivals", source=TOOL.format("one"))
    bench.write_distribution("mibyan-plugin-rivals", source=TOOL.format("two"))
    runtime = bench.runtime()
    runtime.definitions()
    found = [(one.id, one.state, one.version) for one in runtime.plugins.all_records() if one.source != "builtin"]
    assert sorted(found) == [
        ("many", "failed", "1.0"), ("rivals", "failed", "1.0"), ("rivals", "failed", "1.0"),
        ("twice", "active", "1.0"), ("twice", "shadowed", "2.0"),
    ]  # fmt: skip
    assert {(note.kind, note.origin.rpartition("/")[2]) for note in runtime.plugins.notes} == {
        ("leftover", "mibyan_plugin_leftover-1.0.dist-info"), ("near_miss", "mibyan_plugin_wrong-1.0.dist-info"),
    }  # fmt: skip
    assert runtime.call("first") == "first"


def test_dist_W2_one_that_comes_later_is_found_by_the_next_look(bench: Workbench) -> None:
    """A runtime that has loaded gets what is made afterwards, and keeps what it had."""
    runtime = bench.runtime()
    early = bench.load(runtime, bench.write_plugin(TOOL.format("early"), "early").name)
    generation = runtime.registry.generation
    bench.write_distribution("mibyan-plugin-late", source=TOOL.format("late"))
    assert runtime.registry.generation == generation
    late = bench.load(runtime, "late")
    assert (early.state, late.state, late.record.source) == ("active", "active", "pip")
    assert runtime.call("late") == "late"
    assert runtime.call("early") == "early"
    assert states(bench) == {"early": "ready", "late": "ready"}


def test_dist_W2_a_closed_runtime_loads_nothing(bench: Workbench) -> None:
    """The message says so, and what to do."""
    runtime = bench.runtime()
    runtime.close()
    bench.write_plugin(TOOL.format("late"), "late")
    with pytest.raises(mibyan.MibyanError, match=r"closed\nMake a new Runtime"):
        bench.load(runtime, "late")


def test_dist_W2_a_runtime_of_somebody_else_is_refused(bench: Workbench) -> None:
    """Its plugins would be those of the machine."""
    with mibyan.Runtime(home=bench.home) as other, pytest.raises(mibyan.MibyanError, match="wasn't made by"):
        bench.load(other, "terminal")
