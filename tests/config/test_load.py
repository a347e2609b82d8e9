"""Loading: the home's file, what code overrides, where each key is written, and every broken file as a sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mibyan.config import InvalidConfigError, LoadedConfig, Settings, default_config, load_config
from mibyan.errors import ConfigError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def load(home: Path, text: str | bytes, overrides: object = None) -> LoadedConfig:
    (home / "config.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    return load_config(home, overrides=overrides)


def refused(home: Path, overrides: object = None) -> InvalidConfigError:
    with pytest.raises(ConfigError) as caught:
        load_config(home, overrides=overrides)
    assert isinstance(caught.value, InvalidConfigError)
    assert caught.value.problems
    return caught.value


def test_nothing_written(home):
    """A home without config.yaml, or that doesn't exist, has the defaults, and nothing is made."""
    for place in (home, home / "nope"):
        loaded = load_config(place)
        assert loaded.settings == Settings()
        assert loaded.written == frozenset()
        assert loaded.where("dispatch.timeout") == "config.yaml"
    assert list(home.iterdir()) == []
    assert default_config(home) == load_config(home)


def test_written_keys(home):
    """Each written key knows that it is written, and its line; a default isn't written, whatever its value."""
    loaded = load(home, "dispatch:\n  timeout: 300\nplugins:\n  entries:\n    a.b:\n      config: {x: [1]}\n")
    assert loaded.settings.dispatch.timeout == 300
    assert loaded.is_written("dispatch.timeout")
    assert loaded.is_written("dispatch")
    assert not loaded.is_written("dispatch.hook_timeout")
    assert loaded.where("dispatch.timeout") == "config.yaml:2"
    assert loaded.where("dispatch.hook_timeout") == "config.yaml:1"
    assert loaded.where(("plugins", "entries", "a.b")) == "config.yaml:5"
    assert loaded.where("plugins.entries.'a.b'.config.x[0]") == "config.yaml:6"
    assert "plugins.entries.'a.b'" in loaded.written


def test_value(home):
    """`config get`: what counts at a key, written or default; an unknown key is an error with a suggestion."""
    loaded = load(home, "dispatch: {timeout: 5}")
    assert loaded.value("dispatch.timeout") == 5
    assert loaded.value("dispatch")["max_workers"] == 8
    assert loaded.value("platform_toolsets.cli[0]") == "mibyan-cli"
    for key in ("dispatch.timeot", "platform_toolsets.cli[7]", "dispatch.timeout.x"):
        with pytest.raises(ConfigError, match="there is no key"):
            loaded.value(key)
    with pytest.raises(ConfigError, match=r"did you mean 'dispatch\.timeout'"):
        loaded.value("dispatch.timeot")


def test_paths_are_relative_to_the_file(home, own_home):
    """A relative path is relative to the folder of config.yaml; ~ is the user's home."""
    loaded = load_config(home)
    assert loaded.resolve("a/../b") == home / "b"
    assert loaded.resolve("~/x") == own_home / "x"
    assert loaded.resolve("/x") == Path("/x")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"- a", "config.yaml:1: expected a mapping"),
        (b"text", "config.yaml:1: expected a mapping"),
        (b"\x00\x01\x02", "config.yaml:1: a control character"),
        (b"a: caf\xe9", "config.yaml:1: it isn't UTF-8"),
        (b"plugins: {disabled: foo}", "config.yaml:1: key 'plugins.disabled': expected a list"),
        (b"dispatch: 1\ndispatch: 2", "config.yaml:2: key 'dispatch': written twice"),
        (b"mcp_servers: {a: {}}", "config.yaml:1: key 'mcp_servers.a': it needs a 'command'"),
    ],
)
def test_broken_files(content, expected, home):
    """Every broken file is a ConfigError with the path, the problems and what to do; defaults still can be had."""
    (home / "config.yaml").write_bytes(content)
    error = refused(home)
    assert str(home / "config.yaml") in str(error)
    with pytest.raises(ConfigError, match=expected):
        load_config(home)
    assert error.hint
    assert default_config(home).settings == Settings()


@pytest.mark.parametrize("kind", ["folder", "loop", "dangling", "fifo", "home-is-a-file"])
def test_unreadable(kind, home):
    """What can't be read is a ConfigError at once: a folder, a loop of links, a FIFO nobody writes to."""
    path = home / "config.yaml"
    match kind:
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path)
        case "dangling":
            path.symlink_to("nowhere")
        case "fifo":
            os.mkfifo(path)
        case _:
            path = home / "file" / "config.yaml"
            path.parent.write_text("")
    error = refused(path.parent)
    assert len(error.problems) == 1
    assert str(path) in str(error)


def test_many_problems_are_bounded(home):
    """`problems` has everything, the message the first fifty."""
    (home / "config.yaml").write_text("".join(f"k{n}: 1\n" for n in range(500)))
    error = refused(home)
    assert len(error.problems) == 500
    assert "and 450 more" in str(error)
    assert len(str(error).splitlines()) < 60


class TestOverrides:
    def test_laid_over(self, home):
        """Code's settings win key by key, and count as written."""
        loaded = load(home, "dispatch: {timeout: 5, hook_timeout: 6}\nplugins: {disabled: [a]}", {
            "dispatch": {"timeout": 7}, "plugins": {"disabled": ["b"]}, "files": {"roots": (Path("/x"),)},
        })  # fmt: skip
        assert (loaded.settings.dispatch.timeout, loaded.settings.dispatch.hook_timeout) == (7, 6)
        assert loaded.settings.plugins.disabled == ("b",)
        assert loaded.settings.files.roots == ("/x",)
        assert loaded.where("dispatch.timeout") == "Runtime(config=...)"
        assert loaded.where("dispatch.hook_timeout") == "config.yaml:1"
        assert loaded.is_written("files.roots")

    @pytest.mark.parametrize(
        ("overrides", "expected"),
        [
            ([1], "expected a mapping, got a list"),
            ("x", "expected a mapping, got a str"),
            ({"dispatch": {"timeout": float("nan")}}, "nan isn't a finite number"),
            ({"dispatch": {"timeout": -1}}, "expected a number greater than 0"),
            ({"dispatch": {"timeout": object()}}, "a object can't be a setting"),
            ({"dispatch": {"timout": 1}}, "did you mean 'dispatch.timeout'"),
            ({1: 2}, "key '1': there is no such key"),
            ({"agent": {"model": "\ud800"}}, "half characters"),
            ({"mcp_servers": {"a": {}}}, "it needs a 'command'"),
        ],
    )
    def test_bad(self, overrides, expected, home):
        """Code's mistakes are told like a file's, and not blamed on the file."""
        error = refused(home, overrides)
        assert expected in str(error)
        assert all(problem.where == "Runtime(config=...)" for problem in error.problems)

    def test_cycle(self, home):
        """A mapping that contains itself is an error, not a recursion."""
        cycle: dict = {}
        cycle["plugins"] = cycle
        assert "levels inside one another" in str(refused(home, cycle))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mcp_servers:\n  a: {}\n", "config.yaml:2: key 'mcp_servers.a': it needs a 'command' (a program to start) or a 'url' (an address)"),
        ("mcp_servers:\n  a: {command: c, url: u}\n", "config.yaml:2: key 'mcp_servers.a': it has a 'command' and a 'url'; only one can count"),
        ("mcp_servers:\n  a: {url: u, transport: stdio}\n", "config.yaml:2: key 'mcp_servers.a': 'transport: stdio' doesn't go with a url"),
        ("plugins:\n  entries:\n    a:\n      sandbox: bwrap\n", "config.yaml:4: key 'plugins.entries.a.sandbox': a sandbox needs 'isolation: process' beside it"),
        ("hooks:\n  pre_tool_call:\n  - matcher: x\n", "config.yaml:3: key 'hooks.pre_tool_call[0]': it needs a 'command'"),
        ("hooks:\n  pre_tool_call:\n  - {command: x, matcher: '('}\n", "config.yaml:3: key 'hooks.pre_tool_call[0]': its matcher isn't a regular expression: missing ), unterminated subpattern at position 0"),
    ],
)  # fmt: skip
def test_keys_that_need_one_another(text, expected, home):
    """Rules about several keys are told where they are broken."""
    (home / "config.yaml").write_text(text)
    assert [str(problem) for problem in refused(home).problems] == [expected]


def test_the_line_of_a_key(tmp_path: Path) -> None:
    """`line_of` gives the whole path of the file, the line and the key; nothing for what nobody has written."""
    home, project = tmp_path / "home", tmp_path / "project"
    (project / ".mibyan").mkdir(parents=True)
    home.mkdir()
    (home / "config.yaml").write_text("dispatch:\n  timeout: 3\n")
    (project / ".mibyan" / "config.yaml").write_text("toolsets:\n  disabled: [web]\n")
    config = load_config(home, project, overrides={"agent": {"max_turns": 3}})
    assert config.line_of("dispatch.timeout") == f"{home}/config.yaml:2: dispatch.timeout"
    assert config.line_of(("toolsets", "disabled", 0)) == f"{project}/.mibyan/config.yaml:2: toolsets.disabled[0]"
    assert config.line_of("agent.max_turns") == "Runtime(config=...): agent.max_turns"
    assert config.line_of("dispatch.max_workers") is None
