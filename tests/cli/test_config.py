"""`mibyan config`: where the configuration is, what it says, and edits that lose nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from mibyan.config.settings import Settings

WRITTEN = """\
# The operator's own words.
dispatch:
  timeout: 20  # seconds
plugins:
  disabled: [weather]
"""


def test_path(run: Callable, home: Path, tmp_path: Path) -> None:
    """`config path`: the home's file, whether or not it exists."""
    assert run("config", "path").out == f"{home / 'config.yaml'}\n"
    told = run("config", "path", "--json", "--home", str(tmp_path / "new")).data
    assert told == {"path": str(tmp_path / "new" / "config.yaml"), "exists": False, "project": None}
    assert not (tmp_path / "new").exists()


def test_show(run: Callable, home: Path) -> None:
    """`config show`: everything that counts, as YAML that reads back, with the place of what is written."""
    (home / "config.yaml").write_text(WRITTEN)
    shown = run("config", "show")
    assert shown.code == 0
    assert "  timeout: 20  # config.yaml:3" in shown.out.splitlines()
    data = run("config", "show", "--json").data
    assert yaml.safe_load(shown.out) == data
    assert data == Settings.from_data({"dispatch": {"timeout": 20}, "plugins": {"disabled": ["weather"]}}).to_data()


@pytest.mark.parametrize(
    ("key", "plain", "value"),
    [
        ("dispatch.timeout", "20\n", 20),
        ("dispatch.max_workers", "8\n", 8),
        ("dispatch.validate", "true\n", True),
        ("terminal.backend", "local\n", "local"),
        ("plugins.disabled", "- weather\n", ["weather"]),
        ("plugins.disabled[0]", "weather\n", "weather"),
        ("plugins.enabled", "[]\n", []),
        ("toolsets.enabled", "null\n", None),
        ("namespace", "collisions: reject\n", {"collisions": "reject"}),
    ],
)
def test_get(run: Callable, home: Path, key: str, plain: str, value: object) -> None:
    """`config get KEY`: the value that counts, written or default; text as it is, else YAML; --json."""
    (home / "config.yaml").write_text(WRITTEN)
    assert run("config", "get", key).out == plain
    assert run("config", "get", key, "--json").data == value


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("dispatch.timeot", "did you mean 'dispatch.timeout'?"),
        ("", "isn't a key"),
        ("a b", "isn't a key"),
        ("\udcff", "udcff"),
    ],
)
def test_a_key_that_there_is_not(run: Callable, home: Path, key: str, said: str) -> None:
    """An unknown key, and what isn't one: 2 and a sentence, for reading and for writing."""
    for words in (["get", key], ["set", key, "1"]):
        done = run("config", *words)
        assert (done.code, done.out) == (2, "")
        assert said in done.err
    assert not (home / "config.yaml").exists()


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("dispatch.timeout", "5", 5),
        ("dispatch.timeout", "2.5", 2.5),
        ("dispatch.validate", "off", False),
        ("plugins.disabled", "[a, b]", ["a", "b"]),
        ("plugins.disabled", '["a"]', ["a"]),
        ("agent.model", "gpt large", "gpt large"),
        ("agent.model", "*gpt", "*gpt"),
        ("agent.model", "'5'", "5"),
        ("agent.model", "null", None),
        ("web.searxng_url", "http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("plugins.entries.'a.b'.allow_tool_override", "true", True),
        ("mcp_servers.x", '{"command": "x", "args": ["-y"]}', None),
    ],
)
def test_set(run: Callable, home: Path, key: str, text: str, value: object) -> None:
    """`config set KEY VALUE`: a YAML or JSON value; comments and everything else stay."""
    file = home / "config.yaml"
    file.write_text(WRITTEN)
    done = run("config", "set", key, text)
    assert (done.code, done.out) == (0, "")
    assert "# The operator's own words." in file.read_text()
    assert "# seconds" in file.read_text()
    assert run("config", "validate").code == 0
    if not key.startswith("mcp"):
        assert run("config", "get", key, "--json").data == value


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("dispatch.timeout", "soon", "expected a number"),
        ("dispatch.timeout", "-1", "greater than 0"),
        ("dispatch", "5", "expected a mapping"),
        ("agent.model", "5", "put quotes around it"),
        ("plugins.disabled", "weather", "expected a list"),
        ("plugins.bridge", "{}", "did you mean 'plugins.bridges'?"),
        ("terminal.backend.x", "1", "backend"),
        ("approvals.mode", "smrt", "did you mean 'smart'?"),
    ],
)
def test_an_edit_that_would_be_wrong_is_not_written(run: Callable, home: Path, key: str, text: str, said: str) -> None:
    """`config set` validates before it writes: 2, and not a byte is changed."""
    file = home / "config.yaml"
    file.write_text(WRITTEN)
    done = run("config", "set", key, text)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert file.read_text() == WRITTEN


SETTINGS = """
config_schema:
  type: object
  properties: {unit: {enum: [metric, imperial]}, key: {type: string}, days: {type: integer, maximum: 14}, places: {type: array, items: {type: string}}}
  required: [unit, key]
  additionalProperties: false
"""


@pytest.fixture
def weather(home: Path) -> Path:
    """A plugin with settings of its own; importing it would fail."""
    base = home / "plugins" / "weather"
    base.mkdir(parents=True)
    (base / "__init__.py").write_text("raise SystemExit('never import it')\n")
    (base / "plugin.yaml").write_text("version: '1'" + SETTINGS)
    return home / "config.yaml"


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("plugins.entries.weather.config.unit", "kelvin", "metric"),
        ("plugins.entries.weather.config.days", "15", "14"),
        ("plugins.entries.weather.config.days", "three", "integer"),
        ("plugins.entries.weather.config.dayz", "3", "days"),
        ("plugins.entries.weather.config", "{unit: metric, key: x, days: 15}", "plugins.entries.weather.config.days"),
        ("plugins.entries.weather", "{config: {unit: kelvin}}", "plugins.entries.weather.config.unit"),
        ("plugins.entries.Weather.config.unit", "kelvin", "metric"),
        ("plugins.entries.weather.config.places", "[a, 5]", "plugins.entries.weather.config.places[1]"),
    ],
)
def test_a_plugin_s_own_settings_are_checked(run: Callable, weather: Path, key: str, text: str, said: str) -> None:
    """plugins.M2: `config set` asks the plugin's schema before it writes; 2, and nothing is changed."""
    weather.write_text(WRITTEN.replace("[weather]", "[]"))
    done = run("config", "set", key, text)
    assert (done.code, done.out) == (2, "")
    assert "wasn't changed" in done.err
    assert said in done.err
    assert "disabled: []" in weather.read_text()
    assert "entries" not in weather.read_text()


def test_a_plugin_s_own_settings_are_set_one_after_the_other(run: Callable, weather: Path) -> None:
    """What isn't there yet doesn't hinder what is right; what was wrong before can be mended; others' are nobody's."""
    for key, text in (("unit", "metric"), ("days", "3"), ("key", "x"), ("places", "[a, b]")):
        assert run("config", "set", f"plugins.entries.weather.config.{key}", text).code == 0
    weather.write_text("plugins: {entries: {weather: {config: {unit: kelvin, days: 99}}}}\n")
    assert run("config", "set", "plugins.entries.weather.config.unit", "metric").code == 0
    assert run("config", "set", "plugins.entries.weather.config.days", "98").code == 2
    assert run("config", "set", "plugins.entries.nobody.config.unit", "kelvin").code == 0
    weather.write_text("plugins: {entries: {weather: {source: pip, config: {unit: kelvin}}}}\n")
    assert run("config", "set", "plugins.entries.weather.config.unit", "rankine").code == 0
    weather.write_text("plugins: {disabled: 5}\n")  # Nobody can tell which plugins there are.
    assert run("config", "set", "plugins.disabled", "[]").code == 0


@pytest.mark.parametrize("text", ["1" + "0" * 5000, "-" + "9" * 5000, "0x" + "f" * 5000])
@pytest.mark.parametrize("key", ["dispatch.max_workers", "plugins.entries.x.config.y"])
def test_numbers_without_end(run: Callable, home: Path, key: str, text: str) -> None:
    """A number of thousands of digits is told as that, in one short line; nothing is written."""
    done = run("config", "set", key, text)
    assert done.code == 2
    assert "digits; put quotes around it if it is text" in done.err
    assert len(done.err) < 300
    assert not (home / "config.yaml").exists()
    assert run("config", "set", "plugins.entries.x.config.y", f"'{text}'").code == 0


def test_unset(run: Callable, home: Path) -> None:
    """`config unset KEY`: the default counts again."""
    file = home / "config.yaml"
    file.write_text(WRITTEN)
    assert run("config", "unset", "dispatch.timeout").code == 0
    assert run("config", "get", "dispatch.timeout").out == "300\n"
    before = file.read_text()
    for key in ("dispatch.timeout", "there.is.none"):
        done = run("config", "unset", key)
        assert (done.code, "is not written there" in done.err) == (0, True)
    assert file.read_text() == before


def test_validate(run: Callable, home: Path, project: Path) -> None:
    """`config validate`: both files; every problem with its line; 2 when there is one."""
    file, theirs = home / "config.yaml", project / ".mibyan" / "config.yaml"
    assert run("config", "validate").code == 0
    assert run("config", "validate", "--json").data == {"valid": True, "problems": []}
    file.write_text("dispatch:\n  timeot: 3\nplugin: {}\n")
    theirs.write_text("dispatch: {timeout: 9000}\n")
    done = run("config", "validate")
    assert (done.code, done.out) == (2, "")
    for part in ("config.yaml:2: key 'dispatch.timeot'", "config.yaml:3: key 'plugin'", "did you mean"):
        assert part in done.err
    told = run("config", "validate", "--json")
    assert (told.code, told.data["valid"]) == (2, False)
    assert {(one["line"], one["key"]) for one in told.data["problems"]} == {(2, "dispatch.timeot"), (3, "plugin")}
    file.unlink()
    assert ".mibyan/config.yaml:1: key 'dispatch.timeout'" in run("config", "validate").err


@pytest.mark.parametrize(
    "content", [b"- a list\n", b"a: [\n", b"\xff\xfe", b"\x00", b"a: &x [*x]\n", b"dispatch: {timeot: 1}\n"]
)
def test_a_broken_file_does_not_stop_config(run: Callable, home: Path, content: bytes) -> None:
    """api.md: with a configuration error `config` goes on with the defaults and says so; only validate ends with 2."""
    file = home / "config.yaml"
    file.write_bytes(content)
    for words in (["path"], ["show"], ["get", "dispatch.timeout"], ["schema"]):
        done = run("config", *words)
        assert done.code == 0, words
        assert "Traceback" not in done.err
    assert run("config", "get", "dispatch.timeout", "--json").data == 300
    assert "with plugins off" in run("config", "show").err
    assert run("config", "validate").code == 2
    assert file.read_bytes() == content


def test_get_tells_what_is_written_though_another_key_is_wrong(run: Callable, home: Path) -> None:
    """A mistake in one key doesn't hide what another one says, and an edit can mend it."""
    (home / "config.yaml").write_text("dispatch: {timeout: 7, timeot: 3}\n")
    assert run("config", "get", "dispatch.timeout").out == "7\n"
    assert run("config", "unset", "dispatch.timeot").code == 0
    assert run("config", "validate").code == 0


def test_schema(run: Callable, home: Path) -> None:
    """`config schema`: a JSON Schema that takes what `config show` gives and refuses an unknown key."""
    schema = run("config", "schema").data
    check = jsonschema_rs.validator_for(schema)
    assert check.is_valid(json.loads(run("config", "show", "--json").out))
    assert not check.is_valid({"dispatch": {"timeot": 3}})


@pytest.mark.parametrize("environment", [{"HOME": "", "MIBYAN_HOME": None}, {"HOME": "", "MIBYAN_HOME": ""}], ids=str)
def test_no_home(program: Callable, environment: dict[str, str | None]) -> None:
    """A home that can't be told: 2, and what to set."""
    for words in (["config", "path"], ["tools", "list"], ["plugins", "list"]):
        done = program(*words, **environment)
        assert (done.code, done.out) == (2, "")
        assert "MIBYAN_HOME" in done.err
        assert "Traceback" not in done.err


def test_a_working_directory_that_is_gone(shell: Callable, home: Path, tmp_path: Path) -> None:
    """A working directory that was removed is no project; what needs no directory works."""
    done = shell(
        f"mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir {tmp_path}/gone && mibyan config path && mibyan --home x config path"
    )
    assert (done.code, done.out) == (2, f"{home / 'config.yaml'}\n")
    assert "the working directory is gone" in done.err
    assert "Traceback" not in done.err
