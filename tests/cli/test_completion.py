"""`mibyan completion`: the scripts in real shells, and what they ask for."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mibyan.cli.completing import _rejoined, _unquoted, items
from mibyan.cli.completion_scripts import SCRIPTS

from .conftest import PATIENCE, Done, add_plugin

#: A plugin that ends whoever runs it, and greets.
LOUD = "print('a greeting')\nraise SystemExit(7)\n"
FROZEN = (
    "manifest_version: 1\nid: weather\n"
    'tools: [{name: forecast, toolset: weather, schema: {description: "The weather.\\nMore.", parameters: {type: object, '
    "properties: {city: {type: string, description: Where.}, days: {type: integer}}}}, target: 'weather:forecast'}]\n"
)


@pytest.fixture
def weather(home: Path) -> Path:
    """A home with a frozen plugin that must not be run."""
    add_plugin(home, "weather", LOUD, FROZEN)
    return home


def values(*words: str) -> list[str]:
    return [item.value for item in items(words[:-1], words[-1])]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["to"], ["tools", "toolsets"]),
        (["tools", "sh"], ["show"]),
        (["tools", "show", "fore"], ["forecast"]),
        (["--safe-mode", "tools", "show", "fore"], []),
        (["--json", "tools", "--debug", "why", "fore"], ["forecast"]),
        (["call", "forecast", ""], ["city=", "days:="]),
        (["call", "forecast", "city=Rome", ""], ["days:="]),
        (["call", "nothing", ""], []),
        (["toolsets", "show", "weat"], ["weather"]),
        (["toolsets", "show", "file"], ["file_tools", "files"]),
        (["tools", "list", "--enable", "files,weat"], ["files,weather"]),
        (["tools", "list", "--enable", "files,file"], ["files,file_tools"]),
        (["tools", "list", "--enable=weat"], ["weather"]),
        (["tools", "schema", "--format", "open"], ["openai", "openai-responses"]),
        (["tools", "why", "x", "--platform", "tele"], ["telegram"]),
        (["plugins", "show", "wea"], ["weather"]),
        (["plugins", "enable", ""], []),
        (["plugins", "disable", "wea"], ["weather"]),
        (["--plugin", "wea"], ["weather"]),
        (["tools", "list", "--no-plugin", "wea"], ["weather"]),
        (["config", "get", "dispatch.ti"], ["dispatch.timeout"]),
        (["config", "set", "plugins.entries.weather.al"], ["plugins.entries.weather.allow_tool_override"]),
        (["tools", "list", "--hom"], ["--home"]),
        (["tools", "list", "--en"], ["--enable"]),
        (["tools", "show", "x", ""], []),
        (["tools", "show", "--json", "--", "fore"], ["forecast"]),
        (["tools", "list", "--enable", "files", "--en"], ["--enable"]),
        (["tools", "schema", "--format", "mcp", "--for"], []),
        (["tools", "list", "--he"], ["--help"]),
        (["tools", "list", "--nothing=x", "--no-p"], ["--no-plugin"]),
        (["tools", "list", "--nothing="], []),
        (["toolsets", ""], ["list", "show"]),
        (["completion", ""], ["bash", "fish", "zsh"]),
        (["no-such-command", ""], []),
        ([""], ["call", "tools", "toolsets", "plugins", "config", "completion"]),
    ],
)
def test_what_a_word_may_become(weather: Path, words: list[str], expected: list[str]) -> None:
    """Commands, options wherever they may stand, names from manifests, keys; nothing of a plugin is run."""
    found = values(*words)
    assert found == expected if words != [""] else set(expected) <= set(found)


def test_plugins_by_what_may_be_done_with_them(weather: Path, project: Path) -> None:
    """`enable` offers what is off, `trust` what is the project's."""
    (weather / "config.yaml").write_text("plugins: {disabled: [weather]}\n")
    assert values("plugins", "enable", "") == ["weather"]
    assert "weather" not in values("plugins", "disable", "")
    assert values("plugins", "trust", "") == ["deploy"]
    assert "forecast" not in values("call", "fore")
    assert values("tools", "why", "fore") == ["forecast"]
    assert "ship" not in values("call", "")


def test_names_of_earlier_loads(run: Callable, bench: Path) -> None:
    """plugins.L9: what an unfrozen plugin registered when it was last loaded is completed without loading it."""
    assert values("call", "ech") == []
    run("tools", "list")
    assert values("call", "ech") == ["echo"]


@pytest.mark.parametrize(
    ("words", "joined"),
    [
        (["--home", "=", "x", "tools"], ["--home=x", "tools"]),
        (["tools", "--enable", "="], ["tools", "--enable="]),
        (["call", "t", "city", "=", "Rome"], ["call", "t", "city", "=", "Rome"]),
        ([], []),
    ],
)
def test_words_that_bash_has_taken_apart(words: list[str], joined: list[str]) -> None:
    """Bash takes words apart at `=`: an option's value is put together again."""
    assert _rejoined(words) == joined


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("plain", "plain"),
        ('"a b', "a b"),
        ("'a", "a"),
        ("a\\ b", "a b"),
        ("'it'\\''s'", "it's"),
        ("a\\", "a"),
        ("", ""),
    ],
)
def test_words_in_quotes(word: str, meant: str) -> None:
    """A word counts as the shell will read it, also while its quotes are open."""
    assert _unquoted(word) == meant


def asked(program: Callable[..., Done], *words: str, **environment: str) -> Done:
    return program(*words, _MIBYAN_COMPLETE="zsh", **environment)


@pytest.mark.parametrize("content", ["plugins: [\n", "- a\n", "\0", "dispatch: {timeout: never}\n"])
def test_a_broken_configuration_is_no_matter(program: Callable, weather: Path, content: str) -> None:
    """What can be completed without it is; nothing is said beside it."""
    (weather / "config.yaml").write_text(content)
    done = asked(program, "tools", "show", "fore")
    assert (done.code, done.out, done.err) == (0, "forecast\tThe weather.\n", "")


def test_nothing_is_ever_said_beside_it(program: Callable, weather: Path) -> None:
    """A home that can't be one, a folder that is a file, a manifest that is none: silence, and 0."""
    add_plugin(weather, "broken", "", "id: [")
    (weather / "tools").write_text("")
    for words in (
        ("tools", "show", ""),
        ("--home", "\x01", "tools", "show", ""),
        ("--home", str(weather / "tools"), "call", ""),
    ):
        done = asked(program, *words)
        assert (done.code, done.err) == (0, "")
    assert asked(program, "tools", "show", "", MIBYAN_HOME="~nobody-of-that-name/x").err == ""


def test_a_hostile_description_is_one_line(program: Callable, home: Path) -> None:
    """What a manifest says can't command the terminal, nor make a line of its own."""
    add_plugin(home, "evil", "", "manifest_version: 1\nid: evil\ntools: [{name: evil, toolset: t, "
               'schema: {description: "\\e[2J\\u202e\\nsecond"}}]\n')  # fmt: skip
    done = asked(program, "call", "evil")
    assert done.out == "evil\t\\x1b[2J\\u202e\n"


def test_it_costs_neither_yaml_nor_pydantic_nor_plugins(weather: Path) -> None:
    """Somebody is typing: an unchanged home is completed without what is heavy."""
    script = (
        "import sys, os\nfrom mibyan.cli.main import main\nsys.argv = ['mibyan', 'tools', 'show', 'fore']\n"
        "assert main() == 0\nheavy = {'click', 'yaml', 'pydantic', 'pluggy', 'rich', 'asyncio', 'importlib.metadata', 'mibyan.runtime'}\n"
        "print(sorted(heavy & set(sys.modules)), file=os.fdopen(2, 'w'))"
    )
    for expected in (None, "[]\n"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "_MIBYAN_COMPLETE": "bash"},
            capture_output=True,
            timeout=PATIENCE,
        )
        assert (done.returncode, done.stdout) == (0, b"forecast\tThe weather.\n")
        assert expected in {None, done.stderr.decode()}


def test_the_command_prints_the_script(run: Callable, home: Path) -> None:
    """`mibyan completion SHELL`: the script as it is; as JSON, an object; of another shell, which there are."""
    for shell, script in SCRIPTS.items():
        assert run("completion", shell).out == script
        assert run("completion", shell, "--json").data == {"shell": shell, "script": script}
    done = run("completion", "tcsh")
    assert (done.code, done.out) == (2, "")
    assert "There are: bash, zsh, fish." in done.err


# Real shells ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def program_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `mibyan` on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    file = folder / "mibyan"
    file.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mibyan "$@"\n')
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return file


def rendered(text: str) -> str:
    """What a terminal shows of a text: cursor movements carried out, control sequences left out."""
    line: list[str] = []
    lines = [line]
    at = 0
    for char in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text):
        if char == "\b":
            at = max(0, at - 1)
        elif char == "\r":
            at = 0
        elif char == "\n":
            line, at = [], 0
            lines.append(line)
        elif char.isprintable():
            line[at : at + 1] = [char]
            at += 1
    return "\n".join(map("".join, lines))


class Screen:
    """An interactive shell on a terminal of its own."""

    def __init__(self, *command: str) -> None:
        self._screen, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
        self.shown = ""
        self._process = subprocess.Popen(
            command,
            stdin=end,
            stdout=end,
            stderr=end,
            start_new_session=True,
            env={**os.environ, "TERM": "dumb", "PS1": "> "},
        )
        os.close(end)

    def type(self, text: str, shown: str) -> None:
        """Type something, and wait until something is shown."""
        self.shown = ""
        os.write(self._screen, text.encode())
        until = time.monotonic() + PATIENCE
        while shown not in rendered(self.shown):
            left = until - time.monotonic()
            assert left > 0, f"{shown!r} isn't shown, but {self.shown!r}"
            if select.select([self._screen], [], [], left)[0]:
                self.shown += os.read(self._screen, 65536).decode("utf-8", "replace")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._screen)


@pytest.fixture
def screen() -> Iterator[Callable[..., Screen]]:
    made: list[Screen] = []

    def start(*command: str) -> Screen:
        made.append(Screen(*command))
        return made[-1]

    yield start
    for one in made:
        one.close()


def test_in_bash(screen: Callable, weather: Path, program_on_path: Path, tmp_path: Path) -> None:
    """Bash on a terminal: a name is completed with a blank behind it, `key=` without, a list after its comma, folders."""
    (tmp_path / "work" / "a folder").mkdir()
    bash = screen(shutil.which("bash") or "bash", "--norc", "--noprofile", "-i")
    bash.type("bind 'set enable-bracketed-paste off'; eval \"$(mibyan completion bash)\"; echo re''ady\n", "ready")
    bash.type("mibyan tools show fore\t.", "mibyan tools show forecast .")
    bash.type("\x15mibyan call forecast ci\tRome", "city=Rome")
    bash.type("\x15mibyan tools list --enable=weat\t.", "--enable=weather .")
    bash.type("\x15mibyan tools list --enable files,weat\t.", "files,weather .")
    bash.type("\x15mibyan --home a\t.", "a\\ folder/.")
    bash.type("\x15mibyan config get dispatch.ti\t.", "dispatch.timeout .")


def test_in_bash_without_a_terminal(shell: Callable, weather: Path, program_on_path: Path) -> None:
    """The function itself, as any bash calls it: several values, and what must be quoted."""
    line = (
        "source <(mibyan completion bash); COMP_WORDS=(mibyan tools list --enable = fil) COMP_CWORD=5;"
        ' _mibyan_completion mibyan fil =; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = shell(f"unset -f mibyan; {line}")
    assert done.out.splitlines() == ["file_tools", "files"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh isn't installed")
def test_in_zsh(screen: Callable, weather: Path, program_on_path: Path) -> None:
    """Zsh on a terminal: names, `key=` without a blank, the value of `--option=`."""
    zsh = screen("zsh", "-f", "-i")
    zsh.type("autoload -Uz compinit; compinit -u -D; eval \"$(mibyan completion zsh)\"; echo re''ady\n", "ready")
    zsh.type("mibyan tools show fore\t.", "forecast .")
    zsh.type("\x15mibyan call forecast ci\tRome", "city=Rome")
    zsh.type("\x15mibyan tools list --enable=weat\t.", "--enable=weather .")
    zsh.type("\x15mibyan config get dispatch.ti\t.", "dispatch.timeout .")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish isn't installed")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mibyan tools sh", ["show\tShow one tool: its origin, availability, parameters, and who else wants its nam…"]),
        ("mibyan tools show fore", ["forecast\tThe weather."]),
        ("mibyan call forecast ", ["city=\tWhere.", "days:="]),
        ("mibyan tools list --enable=weat", ["--enable=weather\tweather"]),
        ("mibyan --home deep", ["deep/\tDirectory"]),
        ("mibyan tools show zzz", []),
    ],
)
def test_in_fish(weather: Path, program_on_path: Path, line: str, expected: list[str]) -> None:
    """fish: what it offers for a line."""
    Path("deep").mkdir()
    script = f"mibyan completion fish | source; complete -C '{line}'"
    done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert [shown.rstrip("\t") for shown in done.stdout.splitlines()] == expected
    assert done.stderr == ""
