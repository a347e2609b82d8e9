"""Words that are read without click are read as click reads them (architecture, "What is heavy is lazy")."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.cli.byclick import run_by_click
from mibyan.cli.commands import COMMANDS
from mibyan.cli.declaring import Command
from mibyan.cli.exits import UsageError
from mibyan.cli.invocation import Invocation
from mibyan.cli.options import OPTIONS, Options
from mibyan.cli.reading import read
from mibyan.cli.root import root
from mibyan.records import as_dict

#: What comes of words: the command's words, its arguments, the options of mibyan; `None`: a mistake, or help.
Understood = tuple[str, dict[str, Any], dict[str, Any]] | None


class _Reached(Exception):
    """A command's body would run now."""


def by_declaration(words: list[str]) -> Understood:
    options = Options()
    reading = read(words, options)
    return None if reading is None else (reading.path, reading.values, as_dict(options))


def by_click(words: list[str], monkeypatch: pytest.MonkeyPatch) -> Understood:
    seen: list[Any] = []

    def run(command: Command, invocation: Invocation, values: dict[str, Any]) -> None:
        path = click.get_current_context().command_path
        seen.append((path, dict(values), as_dict(invocation.options)))
        raise _Reached

    with monkeypatch.context() as patch:
        patch.setattr(Command, "run", run)
        with contextlib.suppress(_Reached, UsageError):
            run_by_click(words, Invocation())
    return seen[0] if seen else None


ORDINARY = [
    "tools list",
    "tools list --json",
    "--json tools list",
    "tools --json list",
    "--home /x tools list --project /y",
    "--home=/x tools list --project=/y",
    "tools list --enable a,b --enable c --disable d",
    "tools list --enable=a --strict --debug --safe-mode --locked",
    "--plugin a tools --plugin b list --plugin c --no-plugin d",
    "--home /a tools --home /b list --home /c",
    "tools schema --format anthropic",
    "tools schema --enable files",
    "tools show terminal --json",
    "tools why terminal --platform cli --load",
    "toolsets list",
    "toolsets show files --json",
    "plugins list",
    "plugins list --load --json",
    "plugins show files",
    "plugins trust deploy --yes",
    "call now",
    "call now a=1 b:=2 --yes",
    "call now --timeout 5 a=1",
    "call --timeout=5 now a=1 --json --trace /t",
    "call now -",
    "call now [1,2]",
    "call --yes now",
    "completion bash",
    "doctor --json --strict",
]


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_words_need_no_click(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    understood = by_declaration(line.split())
    assert understood is not None
    assert understood == by_click(line.split(), monkeypatch)


@pytest.mark.parametrize(
    "words",
    [
        [], ["tools"], ["--json"], ["tools", "lst"], ["nothing"], ["tools", "--help"], ["tools", "list", "-h"], ["config", "show"],
        ["tools", "list", "extra"], ["tools", "show"], ["tools", "list", "--enable"], ["tools", "list", "--enable", "--json"],
        ["tools", "list", "--jso"], ["tools", "list", "--json=1"], ["call", "now", "--", "-x"], ["call", "now", "-x"],
        ["call", "", "a=1"], ["call", "now", ""], ["--home", "", "tools", "list"], ["--home", "-x", "tools", "list"],
        ["tools", "schema", "--format", "nothing"], ["call", "now", "--timeout", "never"], ["tools", "list", "--home"],
        ["-", "tools"], ["--version"], ["tools", "list", "-"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_is_out_of_the_ordinary_is_left_to_click(words: list[str]) -> None:
    assert by_declaration(words) is None


WORDS = st.lists(
    st.sampled_from([
        *COMMANDS, "list", "show", "schema", "why", "enable", "trust", *(option.flag for option in OPTIONS), "--enable",
        "--disable", "--format", "--load", "--yes", "--timeout", "--platform", "--enable=a", "--home=/x", "--format=mcp",
        "--json=x", "--help", "-h", "-j", "--", "-", "", " ", "-5", "5", "a,b", "openai", "mcp", "a=1", "b:=2", "{}", "now",
        "--version", "é", "\udcff", "=", "--=", "--home=", "--ho", "/x", "@x", "+x", "%",
    ]),
    max_size=9,
)  # fmt: skip
COMMAND_LINES = st.sampled_from(
    [["tools", "list"], ["tools", "schema"], ["tools", "show"], ["tools", "why"], ["call"], ["plugins", "list"], ["toolsets", "show"]]
)  # fmt: skip


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """Words of every kind, mostly with a command somewhere among them."""
    command, others = draw(COMMAND_LINES), draw(WORDS)
    at = sorted(draw(st.lists(st.integers(0, len(others)), min_size=len(command), max_size=len(command))))
    for place, word in zip(reversed(at), reversed(command), strict=True):
        others.insert(place, word)
    return others


@given(lines() | WORDS)
def test_whatever_is_read_without_click_is_what_click_reads(words: list[str]) -> None:
    """The declarations alone may give up, but never say anything else than click."""
    understood = by_declaration(words)
    if understood is not None:
        with pytest.MonkeyPatch.context() as patch:
            assert understood == by_click(words, patch)


def test_every_declared_command_is_clicks_too() -> None:
    """One declaration, two readers: the same options and arguments, the same help."""
    from importlib import import_module

    from mibyan.cli.declaring import Argument, Group

    seen = 0
    for name, place in COMMANDS.items():
        module, _, attribute = place.partition(":")
        declared = getattr(import_module(module), attribute)
        for sub in declared.commands.values() if isinstance(declared, Group) else [declared]:
            if not isinstance(sub, Command):
                continue
            context = click.Context(root, info_name="mibyan")
            made: Any = root.get_command(context, name)
            made = made.get_command(context, sub.name) if isinstance(declared, Group) else made
            own = [one for one in made.params if not str(one.name).startswith("mibyan_")]
            assert [one.name for one in own] == [one.name for one in sub.parameters]
            assert [isinstance(one, click.Argument) for one in own] == [
                isinstance(one, Argument) for one in sub.parameters
            ]
            assert made.help.split("\n", 1)[0] == sub.body.__doc__.split("\n", 1)[0]
            seen += 1
    assert seen > 10


def test_reading_imports_no_click() -> None:
    code = (
        "import sys; from mibyan.cli.reading import read; from mibyan.cli.options import Options\n"
        "read(['tools', 'list', '--json'], Options()); print('click' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
