"""`mibyan.cli.main`: what stands before and after every command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from mibyan import __version__
from mibyan.cli.commands import COMMANDS
from mibyan.cli.root import root

PATIENCE = 60.0


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["--version"], f"mibyan {__version__}\n"),
        (["--home", "/nonexistent", "--version"], f"mibyan {__version__}\n"),
        (["--debug", "--version", "tools"], f"mibyan {__version__}\n"),
        (["--json", "--version"], f'{{"version": "{__version__}"}}\n'),
    ],
)
def test_version(run: Callable, words: list[str], printed: str) -> None:
    """`--version` before the command prints the version, whatever else stands there."""
    done = run(*words)
    assert (done.code, done.out, done.err) == (0, printed, "")


def test_version_is_answered_before_anything_heavy_is_imported() -> None:
    """architecture, "what is heavy is lazy": `--version` imports neither click nor pluggy nor pydantic."""
    script = (
        "import sys\nfrom mibyan.cli.main import main\nmain(['--version'])\n"
        "heavy = {'click', 'pluggy', 'pydantic', 'yaml', 'rich', 'logging', 'asyncio', 'inspect'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.splitlines()[1:] == ["[]"], done.stderr


def test_listing_tools_to_a_pipe_needs_no_rich(home) -> None:
    """architecture, "what is heavy is lazy": rich is for terminals, and a listing without a config.yaml needs no YAML."""
    script = (
        "import sys\nfrom mibyan.cli.main import main\ncode = main(['tools', 'list', '--safe-mode'])\n"
        "print(sorted({'rich', 'yaml', 'pydantic', 'asyncio'} & set(sys.modules)), code, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stderr.splitlines()[-1] == "[] 0"
    assert "terminal" in done.stdout


OPTIONS_EVERYWHERE = [
    ["--json", "--home", "{home}", "config", "path"],
    ["config", "--json", "--home", "{home}", "path"],
    ["config", "path", "--json", "--home", "{home}"],
    ["--home", "{home}", "config", "path", "--json"],
    ["--json", "config", "--home={home}", "path", "--debug"],
    ["--home", "/elsewhere", "config", "path", "--json", "--home", "{home}"],
]


@pytest.mark.parametrize("words", OPTIONS_EVERYWHERE, ids=" ".join)
def test_options_stand_before_between_or_after_the_command(run: Callable, tmp_path, words: list[str]) -> None:
    """api.md: the options of mibyan are accepted before or after the command; of two the later counts."""
    done = run(*(word.format(home=tmp_path / "h") for word in words))
    assert (done.code, done.data["path"]) == (0, str(tmp_path / "h" / "config.yaml"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tolls", "list"], "Did you mean 'tools'?"),
        (["tools", "lst"], "Did you mean 'list'?"),
        (["zzzzzz"], "There are: call, tools, toolsets, plugins, command, approvals, config, doctor, completion."),
        (["tools", "list", "--enabel", "x"], "--enable"),
        (["--strikt", "tools", "list"], "--strict"),
        (["tools", "list", "surplus"], "surplus"),
        (["tools", "show"], "NAME"),
        (["--home"], "--home"),
        (["a\udcff\x1b[31m\u202e"], r"a�\\x1b[31m\\u202e"),
    ],
)
def test_a_word_that_is_wrong_ends_with_2_and_what_was_meant(run: Callable, home, words: list[str], said: str) -> None:
    """api.md: usage ends with 2; the message says what was probably meant, and can't command the terminal."""
    done = run(*words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert done.err.startswith("mibyan: error: ")
    assert "\x1b" not in done.err


@pytest.mark.parametrize("words", [[], ["tools"], ["plugins"], ["config"], ["toolsets", "--json"]], ids=" ".join)
def test_without_a_command_the_help_is_shown(run: Callable, home, words: list[str]) -> None:
    """A group without a command is a usage error; its help goes to standard error."""
    done = run(*words)
    assert (done.code, done.out) == (2, "")
    assert "Commands:" in done.err


def test_h_works_whoever_asked_for_the_help_first(run: Callable, home) -> None:
    """`-h` is understood though a context of somebody else's (the reference's generator) saw the command before."""
    import click

    from mibyan.cli.root import root

    for name in COMMANDS:
        command = root.get_command(click.Context(root), name)
        command.get_help(click.Context(command, parent=click.Context(root, info_name="mibyan"), info_name=name))
        assert run(name, "-h").out.startswith(f"Usage: mibyan {name}")


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help(run: Callable, home, name: str) -> None:
    """`--help` and `-h` print the help to standard output; commands point to the options of mibyan itself."""
    words = [name] if name else []
    long, short = run(*words, "--help"), run(*words, "-h")
    assert (long.code, long.err) == (0, "")
    assert long.out == short.out
    assert ("--safe-mode" in long.out) is (not name)
    assert ("mibyan --help" in long.out) is bool(name)


def test_every_command_has_a_sentence() -> None:
    """Every command says what it does, and none takes an option's name from mibyan itself."""
    context = root.make_context("mibyan", ["tools"], resilient_parsing=True)
    groups = [root.get_command(context, name) for name in root.list_commands(context)]
    commands = [command for group in groups for command in (group, *getattr(group, "commands", {}).values())]
    assert len(commands) > 20
    for command in commands:
        assert command.get_short_help_str(), command.name
        flags = [flag for parameter in command.params for flag in parameter.opts]
        assert len(flags) == len(set(flags)), command.name


def test_an_unforeseen_fault_is_a_sentence(run: Callable, home, monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback but with --debug; a fault of Mibyan's own ends with 1 and says so."""

    def broken(*_args, **_kwargs):
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr("mibyan.config.schema.json_schema", broken)
    done = run("config", "schema")
    assert (done.code, done.out) == (1, "")
    assert "internal fault: ZeroDivisionError" in done.err
    assert "Traceback" not in done.err
    assert "Traceback" in run("config", "schema", "--debug").err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (PermissionError(13, "x", "/some/file"), 2, "/some/file: permission denied"),
        (SystemExit(0), 1, "SystemExit"),
        (KeyboardInterrupt(), 130, "mibyan: interrupted"),
        (RecursionError("deep"), 1, "RecursionError: deep"),
    ],
)
def test_whatever_is_raised_becomes_an_exit_code(
    run: Callable, home, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str
) -> None:
    """Whatever a command ends with, what is left is a line and an exit code."""

    def broken(*_args, **_kwargs):
        raise error

    monkeypatch.setattr("mibyan.config.schema.json_schema", broken)
    done = run("config", "schema")
    assert (done.code, done.out) == (code, "")
    assert said in done.err


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "mibyan: interrupted"), (signal.SIGTERM, 143, "mibyan: ended by signal 15")],
)
def test_a_signal_ends_a_call_cleanly(bench, tmp_path, number: int, code: int, said: str) -> None:
    """Ctrl-C ends with 130 and one line, also while a tool is stuck; `kill` likewise with 143."""
    trace = tmp_path / "begun"
    os.mkfifo(trace)
    words = ["call", "stuck", "--trace", "/dev/null", "--plugin", "bench"]
    script = f"""
import sys
from mibyan.cli import loaded
before = loaded.enforce_strictness
def told(*args):
    before(*args)
    open({str(trace)!r}, "w").close()
from mibyan.cli.commands import call
call.enforce_strictness = told
from mibyan.cli.main import main
sys.exit(main({words!r}))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        trace.read_text()  # until the call is about to begin
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait(timeout=PATIENCE)
    assert process.returncode == code
    assert out == ""
    assert [line for line in err.splitlines() if "greeting" not in line] == [said]


def test_python_m_mibyan(program: Callable, home) -> None:
    """`python -m mibyan` is the command line."""
    done = program("config", "path", "--json")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["path"] == str(home / "config.yaml")


def test_the_help_of_a_group_cuts_no_sentence(run: Callable) -> None:
    """Each command's line is its whole first sentence; so are those of `mibyan` itself."""
    for words in ((), ("plugins",), ("tools",), ("config",), ("toolsets",)):
        _, commands, shown = run(*words, "--help").out.partition("Commands:")
        assert commands
        assert "..." not in shown
    assert "or why it doesn't." in " ".join(run("plugins", "--help").out.split())
