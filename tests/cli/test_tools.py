"""`mibyan tools` and `mibyan toolsets`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mibyan.schema.formats import FORMATS

from .conftest import add_plugin


def names(objects: list[dict]) -> list[str]:
    return [one["name"] for one in objects]


def test_list_as_json(run: Callable, bench: Path) -> None:
    """`tools list --json`: everything that is available, sorted; what isn't stands apart with its reason."""
    done = run("tools", "list", "--json")
    assert done.code == 0
    assert done.data.keys() == {"tools", "unavailable", "problems"}
    assert {"echo", "terminal", "read_file"} <= set(names(done.data["tools"]))
    assert names(done.data["tools"]) == sorted(names(done.data["tools"]))
    assert [(one["name"], one["reason"]) for one in done.data["unavailable"]] == [
        ("tides", "the moon is in the wrong place")
    ]
    (echo,) = [one for one in done.data["tools"] if one["name"] == "echo"]
    assert (echo["toolset"], echo["plugin"], echo["source"], echo["aliases"]) == ("bench", "bench", "user", ["repeat"])
    assert (echo["available"], echo["reason"], echo["hints"]) == (True, None, ["read-only"])


def test_list_for_people(run: Callable, bench: Path) -> None:
    """`tools list` in a pipe: aligned text, a line a tool, and what isn't available below."""
    done = run("tools", "list", "--enable", "bench")
    first, _, second = done.out.partition("\n\n")
    assert first.splitlines()[0].split() == ["NAME", "TOOLSET", "PLUGIN", "DESCRIPTION"]
    assert [line.split()[0] for line in first.splitlines()[1:]] == [
        "echo",
        "fails",
        "forbidden",
        "noisy",
        "risky",
        "stuck",
    ]
    assert len({line.index("bench") for line in first.splitlines()[1:]}) == 1
    assert "tides" in second
    assert "the moon is in the wrong place" in second


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--enable", "bench", "--disable", "bench"], []),
        (["--enable", ""], []),
        (["--enable", "files,terminal"], ["patch", "read_file", "search_files", "terminal", "write_file"]),
        (["--enable", "files", "--enable", "terminal", "--disable", "files"], ["terminal"]),
        (["--enable", " terminal , "], ["terminal"]),
    ],
)
def test_toolsets_are_chosen(run: Callable, bench: Path, words: list[str], expected: list[str]) -> None:
    """--enable A,B and --disable C: denial wins; an empty list is nothing."""
    assert names(run("tools", "list", *words, "--json").data["tools"]) == expected
    schema = run("tools", "schema", *words)
    assert [one["function"]["name"] for one in schema.data] == expected


@pytest.mark.parametrize("command", ["list", "schema"])
def test_an_unknown_toolset(run: Callable, bench: Path, command: str) -> None:
    """registry.T5: one warning with a suggestion, never "everything"; with --strict exit 3."""
    lenient = run("tools", command, "--enable", "bensh", "--json")
    assert lenient.code == 0
    assert lenient.err.splitlines()[-1] == "mibyan: warning: Unknown toolset 'bensh'; did you mean 'bench'?"
    assert lenient.err.count("bensh") == 1
    strict = run("tools", command, "--enable", "bensh", "--strict", "--json")
    assert (strict.code, strict.out) == (3, lenient.out)


def test_an_unknown_toolset_in_the_configuration(run: Callable, bench: Path) -> None:
    """--strict: names in config.yaml count too, for every command that has loaded plugins."""
    (bench / "config.yaml").write_text("toolsets: {disabled: [wheather]}\n")
    for words in (["tools", "list"], ["tools", "schema"], ["toolsets", "list"], ["call", "echo"]):
        assert run(*words).code == 0
        assert run(*words, "--strict").code == 3


@pytest.mark.parametrize("form", FORMATS)
def test_schema_is_a_bare_array(run: Callable, bench: Path, form: str) -> None:
    """`tools schema --format F`: a bare array of what `Runtime.definitions` gives, with --json and without."""
    from mibyan import Runtime

    done = run("tools", "schema", "--format", form)
    with Runtime(home=bench) as runtime:
        expected = runtime.definitions(format=form)
    assert done.data == json.loads(json.dumps(expected))
    assert run("tools", "schema", "--format", form, "--json").out == done.out
    assert "tides" not in done.out


def test_an_unknown_format(run: Callable, bench: Path) -> None:
    """A format that there isn't: 2, and the one that was meant."""
    done = run("tools", "schema", "--format", "antropic")
    assert (done.code, done.out) == (2, "")
    assert "Did you mean 'anthropic'?" in done.err


def test_schema_is_the_same_bytes_in_every_process(program: Callable, home: Path, tmp_path: Path) -> None:
    """`tools schema`: byte-identical in two processes, with another hash seed and plugin folders made in another order."""
    source = "import mibyan\n\n@mibyan.tool(toolset='t')\ndef {}(x: int = 1) -> int:\n    'It is {}.'\n    return x\n"
    for name in ("one", "two", "three"):
        add_plugin(home, name, source.format(name, name))
    other = tmp_path / "other"
    for name in ("three", "two", "one"):
        shutil.copytree(home / "plugins" / name, other / "plugins" / name)
    first = program("tools", "schema", "--format", "openai", PYTHONHASHSEED="1")
    second = program("tools", "schema", "--format", "openai", "--home", str(other), PYTHONHASHSEED="2")
    assert first.code == second.code == 0
    assert first.out == second.out
    assert '"three"' in first.out


def test_show(run: Callable, bench: Path) -> None:
    """`tools show NAME`: where it is from, whether it is available, its parameters; an alias will do."""
    told = run("tools", "show", "repeat", "--json").data
    assert told["name"] == "echo"
    assert told["schema"]["parameters"]["properties"]["text"]["description"] == "Any text."
    shown = run("tools", "show", "echo").out
    for part in (
        "toolset      bench",
        "plugin       bench (user)",
        "available    yes",
        "aliases      repeat",
        "Any text.",
    ):
        assert part in shown
    assert "no: the moon is in the wrong place" in run("tools", "show", "tides").out


@pytest.mark.parametrize("name", ["ecko", "", "x" * 100_000, "a\udcff"])
def test_show_what_there_is_not(run: Callable, bench: Path, name: str) -> None:
    """`tools show` of an unknown name: 2, in a sentence of bounded length, with a suggestion where there is one."""
    done = run("tools", "show", name)
    assert (done.code, done.out) == (2, "")
    assert ("did you mean 'echo'?" in done.err) is (name == "ecko")
    assert len(done.err) < 500


def test_a_plugin_that_fails_is_one_line(run: Callable, bench: Path) -> None:
    """A plugin that can't be loaded costs a line on standard error; the others' tools are there. --strict: 3."""
    add_plugin(bench, "broken", "raise RuntimeError('out of\\nluck')\n")
    done = run("tools", "list", "--json")
    assert done.code == 0
    assert "echo" in names(done.data["tools"])
    (line,) = [line for line in done.err.splitlines() if "broken" in line]
    assert line.startswith("mibyan: error: Plugin 'broken'")
    assert "out of luck" in line
    assert "Traceback" not in done.err
    assert [problem["plugin_id"] for problem in done.data["problems"]] == ["broken"]
    assert "Traceback" in run("tools", "list", "--debug").err
    assert run("tools", "list", "--strict").code == 3


def test_toolsets_list(run: Callable, bench: Path) -> None:
    """`toolsets list`: every toolset with the registered tools it stands for."""
    done = run("toolsets", "list", "--json")
    assert done.data.keys() == {"toolsets", "aliases", "problems"}
    by_name = {one["name"]: one for one in done.data["toolsets"]}
    assert by_name["files"]["tools"] == ["patch", "read_file", "search_files", "write_file"]
    assert by_name["bench"]["kind"] == "registry"
    lines = run("toolsets", "list").out.splitlines()
    assert lines[0].split() == ["NAME", "KIND", "TOOLS", "DESCRIPTION"]
    assert len(lines) == 1 + len(by_name)


def test_toolsets_show(run: Callable, bench: Path) -> None:
    """`toolsets show NAME`: each tool, whether it is there, and the toolsets that lead to it."""
    told = run("toolsets", "show", "core", "--json").data
    (member,) = [one for one in told["members"] if one["name"] == "read_file"]
    assert (member["state"], member["via"], member["plugin"]) == ("available", "core > files", "files")
    assert run("toolsets", "show", "files", "--json").data["aliases"] == ["file_tools"]
    shown = run("toolsets", "show", "bench").out
    assert "unavailable: the moon is in the wrong place" in shown
    assert "BY WAY OF" in shown


def test_toolsets_show_a_denial(run: Callable, bench: Path) -> None:
    """`toolsets show` of what the configuration denies: the line that does, once for all tools, and what to change."""
    (bench / "config.yaml").write_text("toolsets:\n  disabled: [file_tools]\n")
    told = run("toolsets", "show", "files", "--json").data
    assert told["denied_by"] == [f"{bench}/config.yaml:2: toolsets.disabled[0]"]
    assert {one["state"] for one in told["members"]} == {"denied"}
    shown = run("toolsets", "show", "files").out
    assert shown.count("Remove 'file_tools' from toolsets.disabled") == 1
    assert "patch, read_file, search_files, write_file: the toolset 'file_tools' is denied" in shown


@pytest.mark.parametrize(("name", "meant"), [("fiels", "files"), ("", None), ("echo", "bench")])
def test_toolsets_show_what_there_is_not(run: Callable, bench: Path, name: str, meant: str | None) -> None:
    """`toolsets show` of an unknown name: 2 and the toolset that was meant; of a tool's name its toolset."""
    done = run("toolsets", "show", name)
    assert (done.code, done.out) == (2, "")
    assert (f"did you mean {meant!r}?" in done.err) is (meant is not None)


def test_toolsets_show_what_a_plugin_that_is_off_would_bring(run: Callable, bench: Path) -> None:
    """`toolsets show` of what only a disabled plugin would bring: 2, that plugin, the line that disables it, the way out."""
    (bench / "config.yaml").write_text("plugins:\n  disabled: [bench]\n")
    done = run("toolsets", "show", "bench")
    assert (done.code, done.out) == (2, "")
    assert f"{bench}/config.yaml:2: plugins.disabled[0]" in done.err
    assert "plugin 'bench', which would bring it, is disabled" in done.err
    assert "`mibyan plugins enable bench`" in done.err


COMMANDS = [
    ["tools", "list"],
    ["tools", "schema"],
    ["tools", "show", "terminal"],
    ["toolsets", "list"],
    ["toolsets", "show", "core"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    "content",
    [
        "- a\n- list\n",
        "dispatch: [\n",
        "a: 1\na: 2\n",
        "plugins: {disabled: bench}\n",
        "\x00",
        "x: !!python/object:os.system {}\n",
    ],
)
def test_a_broken_configuration_ends_a_listing(run: Callable, home: Path, words: list[str], content: str) -> None:
    """api.md: a configuration error ends these with 2; the message names the file."""
    (home / "config.yaml").write_text(content)
    done = run(*words)
    assert (done.code, done.out) == (2, "")
    assert "config.yaml" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("place", ["plugins", "tools"])
def test_a_place_for_plugins_that_cannot_be_read_is_said(run: Callable, home: Path, place: str) -> None:
    """A place whose plugins aren't loaded is a warning of the command that needs them: a policy may have been there."""
    (home / place).write_text("")
    done = run("tools", "list")
    assert done.code == 0
    assert f"warning: {home / place} can't be searched for {place}" in done.err
    assert "plugins there aren't loaded" in done.err
