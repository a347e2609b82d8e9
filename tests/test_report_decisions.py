"""`Runtime.report()`: every decision is a record with the rule, the line that decided and what would change it (plugins.W5)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from mibyan import Runtime
from mibyan.report import Decision

MANIFEST = "manifest_version: 1\nid: {}\n"
TOOL = "def register(ctx):\n    ctx.register_tool({!r}, {!r}, {{'description': 'd'}}, lambda args: 'x'{})\n"
CONFIG = """\
plugins:
  disabled:
    - switched-off
  entries:
    taker:
      allow_tool_override: [wanted]
toolsets:
  disabled: [noise]
  enabled: [words, noise, late, tied]
"""


def plugin(home: Path, name: str, source: str, manifest: str = "") -> None:
    folder = home / "plugins" / name
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text(MANIFEST.format(name) + manifest)
    (folder / "__init__.py").write_text(source)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Decision]]:
    """A runtime in which everything has been decided once; its home and the records, oldest first."""
    home, project = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("project")
    (home / "config.yaml").write_text(CONFIG)
    plugin(home, "first", TOOL.format("wanted", "words", ""))
    plugin(home, "second", TOOL.format("wanted", "others", ""), "after: [first]\n")
    plugin(home, "taker", TOOL.format("wanted", "words", ", override=True"), "after: [second]\n")
    plugin(home, "grasping", TOOL.format("wanted", "words", ", override=True"), "after: [taker]\n")
    plugin(home, "usurper", TOOL.format("tool_search", "words", ""))
    plugin(home, "switched-off", TOOL.format("off", "words", ""))
    plugin(home, "ahead", TOOL.format("ahead", "words", ""), 'requires_mibyan: ">=99"\n')
    plugin(home, "poor", TOOL.format("poor", "words", ""), "requires: {env: [MIBYAN_TEST_NEVER_SET]}\n")
    plugin(home, "alone", TOOL.format("alone", "words", ""), "requires_plugins: [nowhere]\n")
    plugin(home, "broken", TOOL.format("lost", "words", "") + "    raise ValueError('oops')\n")
    plugin(home, "noise", TOOL.format("loud", "noise", ""))
    plugin(home, "late", TOOL.format("absent", "late", ", check_fn=lambda: 'the moon is wrong'"))
    plugin(home, "tied", TOOL.format("locked", "tied", ", approval=lambda args, context: mibyan.Ask('why?')"))
    (home / "plugins" / "tied" / "__init__.py").write_text(
        "import mibyan\n" + (home / "plugins" / "tied" / "__init__.py").read_text()
    )
    plugin(home, "aside", TOOL.format("aside", "unasked", ""))
    plugin(home, "guard", "raise ValueError('no guard')\n", "role: policy\n")
    (home / "tools").mkdir()
    (home / "tools" / "near.py").write_text(
        "import mibyan\nif True:\n    mibyan.registry.register('near', 't', {}, print)\n"
    )
    plugin(project / ".mibyan", "guest", TOOL.format("guest", "words", ""))
    with Runtime(home, project) as runtime:
        runtime.definitions()
        runtime.definitions(["wrods"])
        decisions = dict.fromkeys(runtime.report().decisions)
        runtime.plugins.unload("guard")  # until then no call comes to be approved
        runtime.call("locked", {})
        decisions |= dict.fromkeys(runtime.report().decisions)
    return home, list(decisions)


@dataclass(frozen=True)
class Case:
    """What is expected of one record; `{home}` in a text is the home."""

    kind: str
    subject: str
    rule: str | None
    fix: str
    line: str | None = None
    origin: str | None = None


CASES = [
    Case("loaded", "plugin:first", "plugins.L2", "mibyan plugins disable first"),
    Case("disabled", "plugin:switched-off", "plugins.L6", "mibyan plugins enable switched-off",
         "{home}/config.yaml:3: plugins.disabled[0]"),
    Case("untrusted", "plugin:guest", "plugins.S1", "mibyan plugins trust guest"),
    Case("incompatible", "plugin:ahead", "plugins.M3", "pip install 'mibyan>=99'"),
    Case("needs", "plugin:poor", "registry.V1", "export MIBYAN_TEST_NEVER_SET="),
    Case("needs", "plugin:alone", "plugins.M3", "mibyan plugins install nowhere"),
    Case("failed", "plugin:broken", "plugins.L2", "mibyan plugins disable broken"),
    Case("failed", "tool:lost", "plugins.L2", "mibyan plugins disable broken", origin="plugins/broken/__init__.py:2"),
    Case("failed", "plugin:grasping", "plugins.L2", "allow_tool_override: true"),
    Case("rejected", "tool:wanted", "registry.R5", "allow_tool_override: true", origin="grasping/__init__.py:2"),
    Case("rejected", "tool:tool_search", "registry.R11", "another name", origin="usurper/__init__.py:2"),
    Case("overridden", "tool:wanted", "registry.R5", "plugins.entries.taker.allow_tool_override: false",
         "{home}/config.yaml:6: plugins.entries.taker.allow_tool_override", "taker/__init__.py:2"),
    Case("hidden", "tool:loud", "registry.T4", "Remove 'noise' from toolsets.disabled",
         "{home}/config.yaml:8: toolsets.disabled[0]", "noise/__init__.py:2"),
    Case("hidden", "toolset:unasked", "registry.T4", "Add 'unasked' to toolsets.enabled",
         "{home}/config.yaml:9: toolsets.enabled"),
    Case("unavailable", "tool:absent", "registry.V2", "the moon is wrong", origin="late/__init__.py:2"),
    Case("denied", "tool:locked", None, "--yes"),
    Case("blocked", "hook:pre_tool_call", "plugins.M2", "mibyan plugins disable guard"),
    Case("unknown", "toolset:wrods", "registry.T5", "Write 'words'"),
    Case("skipped", "path:{home}/tools/near.py", "plugins.F6", "at its top level"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.subject.rpartition('/')[2]}")
def test_plugins_W5_a_decision_tells_its_rule_its_line_and_what_changes_it(report, case: Case) -> None:
    """plugins.W5: what was decided, by which rule, in which line of the configuration, and the words that change it."""
    home, decisions = report
    wanted = (case.kind, case.subject.format(home=home), case.rule)
    decision = next(one for one in decisions if (one.kind, one.subject, one.rule) == wanted)
    assert case.fix in decision.fix
    assert decision.decided_by == (case.line and case.line.format(home=home))
    assert (case.origin or "") in (decision.origin or "")


def test_plugins_W5_no_decision_leaves_its_reader_without_a_way_out(report) -> None:
    """Every record has a reason and what would change it, and is JSON."""
    _, decisions = report
    assert [one for one in decisions if not one.fix or not one.reason] == []
    assert json.loads(json.dumps([one.to_dict() for one in decisions]))


def test_plugins_W5_a_rejection_says_who_has_the_name(report) -> None:
    """registry.R4: the record of the plugin that came second names the command that frees the name."""
    _, decisions = report
    (second,) = [one for one in decisions if one.plugin_id == "second" and one.kind == "rejected"]
    assert (second.rule, second.subject) == ("registry.R4", "tool:wanted")
    assert "`mibyan plugins disable first` frees the name" in second.fix
    assert "plugins.entries.second.allow_tool_override: [wanted]" in second.fix
    assert second.origin.endswith("second/__init__.py:2")


def test_plugins_W5_last_wins_names_its_line(tmp_path: Path) -> None:
    """registry.R10: with `last_wins` the record names the line that says so."""
    (tmp_path / "config.yaml").write_text("namespace:\n  collisions: last_wins\n")
    plugin(tmp_path, "a", TOOL.format("wanted", "words", ""))
    plugin(tmp_path, "b", TOOL.format("wanted", "others", ""))
    with Runtime(tmp_path) as runtime:
        (decision,) = [one for one in runtime.report().decisions if one.kind == "replaced"]
    assert (decision.plugin_id, decision.rule) == ("b", "registry.R10")
    assert decision.decided_by == f"{tmp_path}/config.yaml:2: namespace.collisions"
    assert decision.fix == "namespace: {collisions: reject}"


def test_plugins_W5_what_a_format_cannot_say_is_told_once(tmp_path: Path) -> None:
    """registry.D4: a tool that a provider can't take is left out there, with a record."""
    schema = {"description": "d", "parameters": {"type": "object", "properties": {"größe": {"type": "string"}}}}
    with Runtime(tmp_path, safe_mode=True) as runtime:
        runtime.registry.register("odd", "odds", schema, print)
        assert [len(runtime.definitions(["odds"], format=form)) for form in ("openai", "anthropic", "anthropic")] == [
            1,
            0,
            0,
        ]
        (told,) = runtime.report().about("tool:odd")
    assert (told.kind, told.rule, told.problem) == ("skipped", "registry.D4", True)
    assert "'anthropic'" in told.reason
    assert "größe" in told.reason
    assert "mibyan tools show odd" in told.fix


def test_plugins_W5_a_load_that_goes_well_leaves_no_old_failure(tmp_path: Path) -> None:
    """What was rolled back and came with the next load is no failure any more."""
    source = TOOL.format("word", "words", "")
    plugin(tmp_path, "once", source + "    raise ValueError\n")
    with Runtime(tmp_path) as runtime:
        assert {one.subject for one in runtime.report().decisions if one.kind == "failed"} == {
            "plugin:once",
            "tool:word",
        }
        (tmp_path / "plugins" / "once" / "__init__.py").write_text(source)
        runtime.plugins.reload("once")
        assert [one for one in runtime.report().decisions if one.kind == "failed"] == []
        assert runtime.call("word", {}) == "x"


@pytest.mark.parametrize(
    ("body", "rule"), [("return mibyan.Block('no')", "dispatch.H1"), ("raise ValueError", "dispatch.H2")]
)
def test_plugins_W5_a_hook_that_blocks_is_told_once(tmp_path: Path, body: str, rule: str) -> None:
    """dispatch.H1, H2: whose hook blocks calls of which tool, however often, and the command that ends it."""
    plugin(tmp_path, "word", TOOL.format("word", "words", ""))
    plugin(tmp_path, "guard", f"import mibyan\n@mibyan.hookimpl\ndef pre_tool_call(tool_name):\n    {body}\n")
    with Runtime(tmp_path) as runtime:
        results = [runtime.call("word", {"number": number}) for number in range(3)]
        (told,) = [one for one in runtime.report().about("tool:word") if one.kind == "blocked"]
    assert all("error" in result for result in results)
    assert (told.plugin_id, told.rule, told.fix) == ("guard", rule, "mibyan plugins disable guard")
