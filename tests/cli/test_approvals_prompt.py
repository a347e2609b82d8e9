"""A person at a real pseudo-terminal is asked about real shell commands by a real `mibyan call` (terminal.P1, P2, P3)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Done, Terminal

PROMPT = "[o/s/a/D"

#: Three commands of three conversations at once; each is asked about, and none hears the others' answers.
SEVERAL = """
import json, sys, threading
from mibyan import Runtime, ToolCall
from mibyan.cli.asking import approvals_answered
with Runtime() as rt, approvals_answered(rt.approvals, yes=False):
    statuses = {}
    def work(name):
        statuses[name] = rt.execute(ToolCall("terminal", {"command": f"rm -rf {name}"}), session=rt.session(name)).status
    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two", "three")]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print(json.dumps(statuses))
"""

#: Two commands of one conversation, one after the other.
TWICE = """
from mibyan import Runtime, ToolCall
from mibyan.cli.asking import approvals_answered
with Runtime() as rt, approvals_answered(rt.approvals, yes=False):
    session = rt.session("s")
    print(*(rt.execute(ToolCall("terminal", {"command": f"rm -rf {name}"}), session=session).status for name in ("one", "two")))
"""


@pytest.fixture
def victims(home: Path) -> list[Path]:
    """Folders in the working directory that a command would delete."""
    found = [Path.cwd() / name for name in ("victim", "one", "two", "three")]
    for folder in found:
        folder.mkdir()
    return found


def asked(terminal: Callable[..., Terminal], *more: str, command: str = "rm -rf victim") -> Terminal:
    """A call that stands at its question."""
    screen = terminal("call", "terminal", f"command={command}", "--json", *more)
    screen.expect(PROMPT)
    return screen


def status(done: Done) -> str:
    return str(done.data["status"])


@pytest.mark.parametrize("typed", ["once", "S"])
def test_a_yes_runs_it_and_nothing_is_kept(terminal: Callable, victims: list[Path], home: Path, typed: str) -> None:
    """terminal.P1: once is this call, session this conversation; config.yaml isn't touched."""
    screen = asked(terminal)
    assert victims[0].exists()
    screen.type(f"{typed}\n")
    done = screen.end()
    assert (done.code, status(done), victims[0].exists()) == (0, "ok", False)
    assert not (home / "config.yaml").exists()


def test_the_question_tells_what_counts(terminal: Callable, victims: list[Path]) -> None:
    """terminal.P2: the very command, every finding, what always would write, and the default."""
    screen = asked(terminal, command="sudo rm -rf victim; git push --force")
    screen.type("\n")
    shown = screen.end().err
    for part in (
        "terminal wants to run:\n    sudo rm -rf victim; git push --force\n", "recursive delete (recursive_delete)", "(git_destructive)",
        "always: adds to command_allowlist: recursive_delete, git_destructive", "deny: it doesn't run",
    ):  # fmt: skip
        assert part in shown
    assert victims[0].exists()


def test_always_is_kept_until_it_is_revoked(
    terminal: Callable, program: Callable, run: Callable, victims: list[Path], home: Path
) -> None:
    """terminal.P3: the rule stands in config.yaml beside the comments; other processes see it, and its revocation."""
    config = home / "config.yaml"
    config.write_text("# mine\ndispatch: {timeout: 60}  # enough\n")
    screen = asked(terminal)
    screen.type("always\n")
    assert status(screen.end()) == "ok"
    text = config.read_text()
    assert text.startswith("# mine\ndispatch: {timeout: 60}  # enough\n")
    assert "recursive_delete" in text
    assert program("call", "terminal", "command=rm -rf one").code == 0
    assert run("approvals", "test", "rm -rf two").code == 0
    assert run("approvals", "revoke", "recursive_delete").code == 0
    assert run("call", "terminal", "command=rm -rf two").code == 3
    assert [folder.exists() for folder in victims] == [False, False, True, True]


@pytest.mark.parametrize(
    ("typed", "told"),
    [("deny\n", ""), ("\x04", "the input has ended"), ("once\x04\x04", "the input has ended"), ("\x03", "Ctrl-C")],
    ids=repr,
)
def test_all_but_a_yes_is_a_denial(terminal: Callable, victims: list[Path], typed: str, told: str) -> None:
    """terminal.P1: the command isn't run, the call ends with 3, the model is told not to try again."""
    screen = asked(terminal)
    screen.type(typed)
    done = screen.end()
    assert (done.code, status(done), victims[0].exists()) == (3, "denied", True)
    assert told in done.err
    assert "Don't retry or rephrase" in done.data["error"]


def test_garbage_is_asked_again_and_then_denied(terminal: Callable, victims: list[Path]) -> None:
    """What is no answer is never a yes; three tries, then it is denied."""
    screen = asked(terminal)
    for number, typed in enumerate((b"\xff\xfe\n", b"rm -rf /\n", b"o" * 3000 + b"\n"), 1):
        screen.expect_times(PROMPT, number)
        screen.type(typed.decode("latin-1"))
    done = screen.end()
    assert (done.code, victims[0].exists(), "no answer in 3 tries" in done.err) == (3, True, True)


def test_silence_is_a_denial_of_its_own_kind(terminal: Callable, victims: list[Path], home: Path) -> None:
    """terminal.P1: nobody answers in time; that is told apart from a denial."""
    (home / "config.yaml").write_text("approvals: {timeout: 0.7}\n")
    done = asked(terminal).end()
    assert (done.code, status(done), victims[0].exists()) == (3, "denied", True)
    assert "silence isn't consent" in done.data["error"]


def test_what_is_typed_before_the_question_answers_nothing(terminal: Callable, victims: list[Path]) -> None:
    """Nobody has seen the question yet."""
    screen = terminal("call", "terminal", "command=rm -rf victim", "--json")
    screen.type("once\nonce\n")
    screen.expect(PROMPT)
    screen.type("deny\n")
    done = screen.end()
    assert (done.code, victims[0].exists()) == (3, True)


def test_a_terminal_that_changes_its_size(terminal: Callable, victims: list[Path]) -> None:
    """It is asked on twenty columns too, and goes on when the window changes."""
    screen = terminal("call", "terminal", "command=rm -rf victim", columns=20)
    screen.expect(PROMPT)
    screen.resize(33)
    screen.type("x\n")
    screen.expect_times(PROMPT, 2)
    screen.resize(90)
    screen.type("once\n")
    done = screen.end()
    assert (done.code, victims[0].exists()) == (0, False)


def test_several_at_once_are_asked_one_after_the_other(terminal: Callable, victims: list[Path]) -> None:
    """terminal.P2: each question gets exactly its own answer, whatever the order in which they came."""
    screen = terminal(script=SEVERAL)
    answers = {"one": "once", "two": "deny", "three": "session"}
    for number in range(1, 4):
        screen.expect_times(PROMPT, number)
        name = screen.shown.rpartition("terminal wants to run:\n    rm -rf ")[2].split()[0]
        assert screen.shown.count("wants to run:") == number
        screen.type(f"{answers[name]}\n")
    done = screen.end()
    assert json.loads(done.out) == {"one": "ok", "two": "denied", "three": "ok"}
    assert [folder.exists() for folder in victims[1:]] == [False, True, False]


def test_a_session_is_not_asked_twice(terminal: Callable, victims: list[Path]) -> None:
    """terminal.P3: `session` opens the same rule for the rest of the conversation."""
    screen = terminal(script=TWICE)
    screen.expect(PROMPT)
    screen.type("session\n")
    done = screen.end()
    assert (done.out, done.err.count("wants to run:")) == ("ok ok\n", 1)


def test_a_safe_command_needs_nobody(program: Callable, home: Path) -> None:
    """terminal.J1: no terminal, no --yes, no question."""
    done = program("call", "terminal", "command=echo 'rm -rf /'", "--json")
    assert (done.code, done.data["data"]["output"].strip()) == (0, "rm -rf /")


def test_without_a_person_what_is_dangerous_is_denied(run: Callable, victims: list[Path]) -> None:
    """terminal.P2: with the key that would change it; --yes grants it for this call."""
    done = run("call", "terminal", "command=rm -rf victim", "--json")
    assert (done.code, status(done), victims[0].exists()) == (3, "denied", True)
    for key in ("--yes", "command_allowlist", "approvals.mode"):
        assert key in done.data["error"]
    assert run("call", "terminal", "command=rm -rf victim", "--yes").code == 0
    assert not victims[0].exists()


@pytest.mark.parametrize("more", [[], ["--yes"]])
def test_what_is_hardline_is_never_asked(terminal: Callable, home: Path, more: list[str]) -> None:
    """terminal.J1, P4: blocked with every finding told, though somebody is there, and whatever the operator has allowed."""
    (home / "config.yaml").write_text(
        "approvals: {mode: off}\ncommand_allowlist: [root_delete, shutdown, recursive_delete]\n"
    )
    done = terminal("call", "terminal", "command=shutdown -h now; rm -rf /nonexistent-root/ /", "--json", *more).end()
    assert (done.code, status(done), "wants to run" in done.err) == (3, "blocked", False)
    for rule in ("shutdown", "root_delete"):
        assert rule in done.data["error"]


def test_what_is_denied_is_denied_with_yes_too(run: Callable, victims: list[Path], home: Path) -> None:
    """terminal.J5: the line that says so is told."""
    config = home / "config.yaml"
    config.write_text("approvals:\n  mode: off\n  deny:\n    - '*victim*'\n")
    done = run("call", "terminal", "command=ls victim", "--yes", "--json")
    assert (done.code, status(done)) == (3, "blocked")
    assert f"{config}:4" in done.data["error"]


def test_secrets_and_tricks_are_not_shown(terminal: Callable, victims: list[Path]) -> None:
    """terminal.P2: the command is redacted, and what hides or commands the terminal is written out."""
    secret = "sk-" + "a1B2" * 8
    screen = asked(terminal, command=f"rm -rf victim; echo {secret} \u202e \u200b \x1b[2J")
    screen.type("deny\n")
    shown = screen.end().err
    assert secret not in shown
    assert not set(shown) & {"\x1b", "\u202e", "\u200b"}
    assert "\\u202e" in shown


def test_a_redirected_side_is_no_person(program: Callable, victims: list[Path]) -> None:
    """Answers in a pipe are no answers."""
    done = program("call", "terminal", "command=rm -rf victim", stdin="once\n")
    assert (done.code, victims[0].exists()) == (3, True)
    assert "wants to run" not in done.err
