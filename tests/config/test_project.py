"""A project's config.yaml only narrows (api, Files)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.config import InvalidConfigError, LoadedConfig, Settings, load_config
from mibyan.config.project import narrow
from mibyan.config.settings import settings_from_data
from mibyan.config.yamlfile import Document

HOME = """\
plugins: {disabled: [a]}
mcp_servers: {known: {command: c}}
dispatch: {timeout: 100}
"""


@pytest.fixture
def load(tmp_path: Path):
    def load(project: str, home: str = HOME) -> LoadedConfig:
        (tmp_path / "home").mkdir(exist_ok=True)
        (tmp_path / "project" / ".mibyan").mkdir(parents=True, exist_ok=True)
        (tmp_path / "home" / "config.yaml").write_text(home)
        (tmp_path / "project" / ".mibyan" / "config.yaml").write_text(project)
        return load_config(tmp_path / "home", tmp_path / "project")

    return load


def test_narrows(load):
    """Deny lists grow, known servers go off, numbers sink."""
    loaded = load("""\
plugins: {disabled: [b, a]}
toolsets: {disabled: [web]}
approvals: {deny: ['rm *']}
mcp_servers: {known: {enabled: off}}
dispatch: {timeout: 50, max_workers: 8}
processes: {max_results: 0}
agent: {max_turns: 3, delegation: {max_depth: 0}, memory: {max_chars: 100}}
""")
    settings = loaded.settings
    assert settings.plugins.disabled == ("a", "b")
    assert settings.toolsets.disabled == ("web",)
    assert settings.approvals.deny == ("rm *",)
    assert settings.mcp_servers["known"].enabled is False
    assert (settings.dispatch.timeout, settings.dispatch.max_workers) == (50, 8)
    assert settings.processes.max_results == 0
    assert (settings.agent.max_turns, settings.agent.delegation.max_depth) == (3, 0)
    assert settings.agent.memory.max_chars == 100


def test_places(load, tmp_path):
    """Each key is found in the file that says it, items of a list that both make by their number."""
    loaded = load("\nplugins:\n  disabled: [b]\ndispatch: {timeout: 50}\n")
    assert loaded.project_path == tmp_path / "project" / ".mibyan" / "config.yaml"
    assert loaded.where("plugins.disabled[0]") == "config.yaml:1"
    assert loaded.where("plugins.disabled[1]") == ".mibyan/config.yaml:3"
    assert loaded.where("plugins.disabled") == "config.yaml:1"
    assert loaded.where("dispatch.timeout") == ".mibyan/config.yaml:4"
    assert loaded.is_written("dispatch.timeout")


def test_without_a_file(tmp_path):
    """A project without config.yaml changes nothing."""
    (tmp_path / "p" / ".mibyan").mkdir(parents=True)
    assert load_config(tmp_path, tmp_path / "p") == load_config(tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plugins: {enabled: [x]}", "plugins.enabled': a project's config only narrows"),
        ("plugins: {autoload: false}", "plugins.autoload': a project's config only narrows"),
        ("plugins: {entries: {x: {allow_tool_override: true}}}", "plugins.entries.x.allow_tool_override': a project's config only narrows"),
        ("approvals: {mode: off}", "approvals.mode': a project's config only narrows"),
        ("command_allowlist: [rm]", "command_allowlist': a project's config only narrows"),
        ("redaction: {live: off}", "redaction.live': a project's config only narrows"),
        ("terminal: {cwd: x}", "terminal.cwd': a project's config only narrows"),
        ("terminal: {}", "terminal': a project's config only narrows"),
        ("files: {roots: [/]}", "files.roots': a project's config only narrows"),
        ("dispatch: {timeout: 101}", "dispatch.timeout': a project can only lower it: expected at most 100, got 101"),
        ("dispatch: {hook_timeout: 31}", "dispatch.hook_timeout': a project can only lower it: expected at most 30, got 31"),
        ("dispatch: {validate: off}", "dispatch.validate': a project can only lower numbers here"),
        ("agent: {base_url: x}", "agent.base_url': a project can only lower numbers here"),
        ("agent: {delegation: {max_depth: 3}}", "agent.delegation.max_depth': a project can only lower it"),
        ("mcp_servers: {known: {enabled: on}}", "mcp_servers.known.enabled': a project can only say 'enabled: false'"),
        ("mcp_servers: {known: {command: x}}", "mcp_servers.known.command': a project can only say 'enabled: false'"),
        ("mcp_servers: {known: {}}", "mcp_servers.known': a project can only say 'enabled: false'"),
        ("mcp_servers: {knwn: {enabled: off}}", "has none of this name (did you mean 'known'?)"),
        ("plugns: {}", "plugns': there is no such key (did you mean 'plugins'?)"),
        ("plugins: {disabled: x}", "plugins.disabled': expected a list"),
        ("hooks: {pre_tool_call: [{}]}", "hooks.pre_tool_call[0]': it needs a 'command'"),
        ("- x", "expected a mapping"),
    ],
)  # fmt: skip
def test_anything_else_is_an_error(text, expected, load):
    """A key that doesn't narrow is an error with the project's file and line."""
    with pytest.raises(InvalidConfigError) as caught:
        load("\n" + text)
    (problem,) = caught.value.problems
    assert str(problem).startswith(".mibyan/config.yaml:2: ")
    assert expected in str(problem)
    assert "/project/.mibyan/config.yaml" in str(caught.value)


@pytest.mark.parametrize("text", ["", "plugins:\n", "dispatch: {}\n", "agent: {delegation: {}}\n", "mcp_servers: {}\n"])
def test_empty_sections(text, load):
    """A section that could narrow may be empty."""
    assert load(text).settings == load("").settings


def test_hooks_are_inert(load):
    """plugins.S1: a project's hooks stay apart until somebody who has checked the trust asks for them."""
    home = HOME + "hooks: {pre_tool_call: [{command: mine}]}\n"
    loaded = load("hooks: {pre_tool_call: [{command: theirs}], on_session_end: [{command: bye}]}", home)
    assert [hook.command for hook in loaded.settings.hooks["pre_tool_call"]] == ["mine"]
    assert [hook.command for hook in loaded.project_hooks["pre_tool_call"]] == ["theirs"]
    trusted = loaded.with_project_hooks()
    assert [hook.command for hook in trusted.settings.hooks["pre_tool_call"]] == ["mine", "theirs"]
    assert [hook.command for hook in trusted.settings.hooks["on_session_end"]] == ["bye"]
    assert trusted.project_hooks == {}


def test_both_files_are_told(load):
    """When both files are broken, the problems of both are told at once."""
    with pytest.raises(InvalidConfigError) as caught:
        load("nope: 1", home="nope: 2")
    assert [problem.where for problem in caught.value.problems] == ["config.yaml:1", ".mibyan/config.yaml:1"]


@given(
    data=st.fixed_dictionaries(
        {},
        optional={
            "dispatch": st.dictionaries(
                st.sampled_from(["timeout", "max_workers", "hook_timeout"]), st.integers(1, 500)
            ),
            "plugins": st.fixed_dictionaries({"disabled": st.lists(st.sampled_from("abc"))}),
            "approvals": st.fixed_dictionaries({}, optional={"deny": st.just(["x"]), "timeout": st.just(5)}),
            "agent": st.fixed_dictionaries({}, optional={"max_turns": st.integers(1, 90), "model": st.just("m")}),
        },
    )
)
def test_never_widens(data):
    """Whatever a project says: what was denied stays denied, and no number grows."""
    own = settings_from_data({"plugins": {"disabled": ["a", "z"]}})
    narrowed = settings_from_data(narrow(own, Document("f", data), data)[0])
    assert set(narrowed.plugins.disabled) >= {"a", "z"}
    assert narrowed.dispatch.timeout <= own.dispatch.timeout
    assert narrowed.dispatch.max_workers <= own.dispatch.max_workers
    assert narrowed.agent.max_turns <= own.agent.max_turns
    assert narrowed.approvals.mode == Settings().approvals.mode
