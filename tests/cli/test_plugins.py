"""`mibyan plugins`: what was found, and what is wanted of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import add_plugin

KEYS = {
    "id", "source", "version", "state", "reason", "origin", "tools", "hooks", "overrides", "import_ms", "schema_tokens",
}  # fmt: skip


def by_id(done) -> dict:
    return {one["id"]: one for one in done.data["plugins"]}


def test_list_imports_nothing(run: Callable, bench: Path) -> None:
    """plugins.L8: plugins list tells what was found and imports none; --load tells what became of each."""
    done = run("plugins", "list", "--json")
    assert done.code == 0
    assert done.data.keys() == {"plugins", "problems"}
    assert all(one.keys() >= KEYS for one in done.data["plugins"])
    assert by_id(done)["bench"]["state"] == "found"
    assert "greeting" not in done.err
    loaded = by_id(run("plugins", "list", "--load", "--json"))
    assert loaded["bench"]["state"] == "active"
    assert loaded["bench"]["tools"][:2] == ["echo", "fails"]
    assert loaded["bench"]["hooks"] == ["pre_tool_call"]
    assert loaded["bench"]["import_ms"] > 0
    assert loaded["bench"]["schema_tokens"] > 20
    assert loaded["terminal"]["state"] == "ready"


def test_list_for_people(run: Callable, bench: Path) -> None:
    """`plugins list` in a pipe: a line a plugin, and below it why one isn't usable and what to do."""
    add_plugin(bench, "broken", "", "manifest_version: one\n")
    out = run("plugins", "list").out
    table, _, below = out.partition("\n\n")
    assert table.splitlines()[0].split()[:4] == ["ID", "SOURCE", "VERSION", "STATE"]
    assert "broken: failed: " in below
    assert "manifest_version" in below


def test_states_and_strict(run: Callable, project: Path, home: Path) -> None:
    """A project's plugin is untrusted; --strict makes that 3, what the operator has turned off isn't counted."""
    done = run("plugins", "list", "--json")
    assert (done.code, by_id(done)["deploy"]["state"]) == (0, "untrusted")
    assert [problem["fix"] for problem in done.data["problems"]] == [
        "look at it and allow it: `mibyan plugins trust deploy`"
    ]
    assert run("plugins", "list", "--strict").code == 3
    (home / "config.yaml").write_text("plugins: {disabled: [deploy]}\n")
    assert run("plugins", "list", "--strict").code == 0


BROKEN = ["- a list\n", "plugins: {disabled: bench}\n", "dispatch: {timeot: 3}\n", "a: [\n", "\x00"]


@pytest.mark.parametrize("content", BROKEN)
def test_with_a_broken_configuration_plugins_are_off(run: Callable, bench: Path, content: str) -> None:
    """api.md: with a configuration error `plugins` goes on with plugins off and says so; --load loads none."""
    (bench / "config.yaml").write_text(content)
    done = run("plugins", "list", "--load", "--json")
    assert done.code == 0
    assert {one["state"] for one in done.data["plugins"]} == {"disabled"}
    assert "with plugins off" in done.err
    assert "config.yaml" in done.err
    assert "greeting" not in done.err


def test_disable_and_enable(run: Callable, bench: Path) -> None:
    """`plugins disable` and enable: in any spelling, in config.yaml, with its comments kept; twice changes nothing."""
    config = bench / "config.yaml"
    config.write_text("# mine\ndispatch:\n  timeout: 20  # seconds\n")
    done = run("plugins", "disable", "Bench")
    assert (done.code, done.out) == (0, "")
    assert "Disabled bench" in done.err
    assert config.read_text().startswith("# mine\ndispatch:\n  timeout: 20  # seconds\n")
    assert by_id(run("plugins", "list", "--json"))["bench"]["state"] == "disabled"
    assert run("call", "echo").code == 1
    assert "already" in run("plugins", "disable", "bench").err
    assert run("plugins", "enable", "bench", "--json").data["id"] == "bench"
    assert run("call", "echo").code == 0


def test_enable_without_autoload(run: Callable, bench: Path) -> None:
    """autoload: false: enable adds the id to plugins.enabled."""
    (bench / "config.yaml").write_text("plugins: {autoload: false}\n")
    assert by_id(run("plugins", "list", "--json"))["bench"]["state"] == "disabled"
    assert run("plugins", "enable", "bench").code == 0
    assert by_id(run("plugins", "list", "--json"))["bench"]["state"] == "found"


def test_a_plugin_can_be_turned_off_though_the_configuration_has_an_error(run: Callable, bench: Path) -> None:
    """What was wrong stays as it was; which plugins are on can be changed as long as that can be told."""
    config = bench / "config.yaml"
    config.write_text("plugins: {disabled: [bench]}\ndispatch: {timeot: 3}\n")
    assert run("plugins", "enable", "bench").code == 0
    assert config.read_text() == "plugins: {disabled: []}\ndispatch: {timeot: 3}\n"
    assert run("plugins", "disable", "bench").code == 0
    assert config.read_text() == "plugins: {disabled: [bench]}\ndispatch: {timeot: 3}\n"


@pytest.mark.parametrize("command", ["enable", "disable"])
@pytest.mark.parametrize(
    "content", ["- a list\n", "plugins: {disabled: bench}\n", "plugins: [bench]\n", "a: [\n", "\x00"]
)
def test_what_cannot_be_told_is_not_changed(run: Callable, bench: Path, command: str, content: str) -> None:
    """A config.yaml of which the deny list can't be read: 2, and not a byte is changed."""
    config = bench / "config.yaml"
    config.write_text(content)
    done = run("plugins", command, "bench")
    assert (done.code, done.out) == (2, "")
    assert "nothing was changed" in done.err
    assert config.read_text() == content


@pytest.mark.parametrize("command", ["show", "enable", "disable", "trust", "untrust"])
@pytest.mark.parametrize("name", ["bensh", "", "a\udcff\x1b[31m", "x" * 10_000])
def test_an_unknown_id(run: Callable, bench: Path, project: Path, command: str, name: str) -> None:
    """plugins.F2: unknown ids are errors, in a sentence of bounded length that can't command the terminal."""
    done = run("plugins", command, name)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("mibyan: error: ")
    assert "\x1b" not in done.err
    assert len(done.err) < 1000
    assert not (bench / "config.yaml").exists()


def test_show(run: Callable, project: Path) -> None:
    """`plugins show ID`: its state and why, and what its manifest says; nothing is imported."""
    told = run("plugins", "show", "Deploy", "--json").data
    assert told.keys() >= KEYS
    assert told["manifest"]["permissions"] == ["network"]
    shown = run("plugins", "show", "deploy").out
    for part in ("state         untrusted", "permissions   network", "tools         ship"):
        assert part in shown


def test_trust_asks_nobody_without_a_terminal(program: Callable, project: Path, home: Path) -> None:
    """plugins.S1: without a terminal and --yes trust is denied: 3, after it was shown what would be trusted."""
    done = program("plugins", "trust", "deploy", stdin="y\n")
    assert (done.code, done.out) == (3, "")
    for part in ("__init__.py", "plugin.yaml", "network", "Tools: ship", "--yes"):
        assert part in done.err
    assert not (home / "trust.json").exists()


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("n\n", 3), ("\x04", 3), ("\x03", 130)], ids=repr)
def test_trust_asks_on_a_terminal(terminal: Callable, project: Path, home: Path, typed: str, code: int) -> None:
    """plugins.S1: trust shows files, permissions and tools, asks, and keeps nothing without a yes."""
    screen = terminal("plugins", "trust", "deploy")
    screen.expect("Trust deploy, these very files? [y/N] ")
    for part in ("__init__.py", "network", "Tools: ship"):
        assert part in screen.shown
    screen.type(typed)
    assert screen.end().code == code
    assert (home / "trust.json").exists() is (code == 0)


def test_trusted_until_a_byte_changes(run: Callable, project: Path) -> None:
    """plugins.S1: trusted it runs; one changed byte and it is untrusted again; untrust takes it back."""
    assert run("call", "ship").code == 3
    assert run("plugins", "trust", "deploy", "--yes").code == 0
    assert run("call", "ship").out == "shipped\n"
    again = run("plugins", "trust", "deploy")
    assert (again.code, "trusted already" in again.err) == (0, True)
    source = project / ".mibyan" / "plugins" / "deploy" / "__init__.py"
    source.write_text(source.read_text() + "\n")
    done = run("call", "ship")
    assert (done.code, "changed since it was trusted" in done.err) == (3, True)
    assert run("plugins", "trust", "deploy", "--yes", "--json").data["id"] == "deploy"
    assert run("call", "ship").code == 0
    assert run("plugins", "untrust", "deploy").code == 0
    assert run("call", "ship").code == 3


def test_the_tools_folder_of_a_project(run: Callable, project: Path) -> None:
    """plugins.S1: project-tools stands for the whole tools directory."""
    tools = project / ".mibyan" / "tools"
    tools.mkdir()
    (tools / "fixtures.py").write_text(
        "import mibyan\n\n@mibyan.tool(toolset='x')\ndef fix() -> str:\n    return 'fixed'\n"
    )
    done = run("plugins", "trust", "project-tools", "--yes")
    assert done.code == 0
    assert "fixtures.py" in done.err
    assert run("call", "fix").out == "fixed\n"


def test_a_link_that_leaves_the_folder_is_refused(run: Callable, project: Path, home: Path) -> None:
    """plugins.S1: links that leave the folder are refused, with 2 and a sentence."""
    (project / ".mibyan" / "plugins" / "deploy" / "passwords").symlink_to("/etc/passwd")
    done = run("plugins", "trust", "deploy", "--yes")
    assert (done.code, done.out) == (2, "")
    assert "'passwords' leaves the folder" in done.err
    assert not (home / "trust.json").exists()


def test_trust_without_a_project(run: Callable, bench: Path) -> None:
    """Only a project's code needs trust."""
    done = run("plugins", "trust", "bench")
    assert (done.code, done.out) == (2, "")
    assert "no project" in done.err


def test_a_name_of_a_file_plays_no_tricks(run: Callable, project: Path) -> None:
    """What is shown before trusting is harmless on a terminal, whatever the files are called."""
    (project / ".mibyan" / "plugins" / "deploy" / "a\nTools: none\x1b[2J").write_text("x")
    done = run("plugins", "trust", "deploy", "--yes")
    assert "\x1b" not in done.err
    assert [line for line in done.err.splitlines() if line.startswith("Tools:")] == ["Tools: ship"]


def test_the_home_is_never_a_project(
    run: Callable, bench: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """api.md: a folder whose .mibyan is the home isn't a project, found or named."""
    monkeypatch.chdir(own_home)
    assert by_id(run("plugins", "list", "--json"))["bench"]["source"] == "user"
    done = run("plugins", "list", "--project", str(own_home))
    assert (done.code, done.out) == (2, "")
    assert "is the home" in done.err


def test_the_project_is_the_nearest_one_above(
    run: Callable, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """api.md: the nearest folder at or above the working directory; --project counts instead."""
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert "deploy" in by_id(run("plugins", "list", "--json"))
    other = tmp_path / "other"
    other.mkdir()
    assert "deploy" not in by_id(run("plugins", "list", "--json", "--project", str(other)))
    assert run("plugins", "list", "--project", str(other / "none")).code == 2


def test_a_home_that_cannot_be_written(run: Callable, bench: Path, bound_by_modes: None) -> None:
    """A read-only home: listing works, changing is 2 with a sentence, and nothing is left behind."""
    bench.chmod(0o555)
    try:
        assert run("plugins", "list").code == 0
        assert run("call", "echo").code == 0
        done = run("plugins", "disable", "bench")
    finally:
        bench.chmod(0o755)
    assert (done.code, done.out) == (2, "")
    assert "permission denied" in done.err
    assert sorted(path.name for path in bench.iterdir()) == ["plugins"]


def test_a_home_that_is_a_file(run: Callable, tmp_path: Path, home: Path) -> None:
    """A home that is a file: 2 and a sentence, for every command."""
    file = tmp_path / "file"
    file.write_text("")
    for words in (["tools", "list"], ["config", "set", "dispatch.timeout", "5"], ["plugins", "disable", "files"]):
        done = run(*words, "--home", str(file))
        assert (done.code, done.out) == (2, ""), words
        assert str(file) in done.err
    assert json.loads(run("config", "path", "--json", "--home", str(file)).out)["exists"] is False


def test_the_line_that_keeps_a_plugin_off(run: Callable, bench: Path) -> None:
    """plugins.L6: `plugins list` and `show` name the line of the configuration that decided, and the rule."""
    (bench / "config.yaml").write_text("plugins:\n  disabled:\n    - Bench\n")
    line = f"{bench}/config.yaml:3: plugins.disabled[0]"
    (one,) = [one for one in run("plugins", "list", "--json").data["plugins"] if one["id"] == "bench"]
    assert one["decided_by"] == line
    assert line in run("plugins", "list").out
    shown = run("plugins", "show", "bench", "--json").data
    assert (shown["rule"], shown["decided_by"]) == ("plugins.L6", line)
    assert line in run("plugins", "show", "bench").out
