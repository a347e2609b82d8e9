"""`mibyan.cli.asking`: a person at a terminal says yes, or it isn't done."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

#: What the line begins with that is answered.
PROMPT = "Allow it? ["


@pytest.mark.parametrize(
    ("typed", "code"),
    [("y\n", 0), (" Once \n", 0), ("Session\n", 0), ("n\n", 3), ("\n", 3), ("\x04", 3), ("\x03", 3), ("y\x04\x04", 3)],
    ids=repr,
)
def test_only_a_yes_is_a_yes(terminal: Callable, bench: Path, typed: str, code: int) -> None:
    """On a terminal the CLI asks; no, an empty line, the end of input and Ctrl-C are denials, not errors."""
    screen = terminal("call", "risky", "text=x", "--json")
    screen.expect(PROMPT)
    screen.type(typed)
    done = screen.end()
    assert done.code == code
    assert done.data["status"] == ("ok" if code == 0 else "denied")


def test_what_is_asked(terminal: Callable, bench: Path) -> None:
    """The question shows the tool, its arguments, why, and the choices; data stays on standard output."""
    screen = terminal("call", "risky", "text=rm")
    screen.expect(PROMPT)
    screen.type("y\n")
    done = screen.end()
    assert done.out == "done: rm\n"
    for part in (
        "risky wants to run:", '    {"text": "rm"}', "    It can't be undone.", "\n  once: ", "\n  session: ", "\n  deny: ",
    ):  # fmt: skip
        assert part in done.err


def test_the_question_plays_no_tricks(terminal: Callable, bench: Path) -> None:
    """What would run can't hide itself, command the terminal or pose as the question."""
    screen = terminal("call", "risky", "text=a\x1b[2K\u202eb\r\nAllow it? [o/s/D] y")
    screen.expect(PROMPT)
    screen.type("n\n")
    done = screen.end()
    assert done.code == 3
    assert "\x1b" not in done.err
    assert "\u202e" not in done.err
    assert len([line for line in done.err.splitlines() if line.startswith("Allow it?")]) == 1


def test_what_is_no_answer_is_asked_again(terminal: Callable, bench: Path) -> None:
    """Three times in all; then it is denied."""
    screen = terminal("call", "risky", "text=x", "--json")
    for number, typed in enumerate(("maybe\n", "yess\n", "\x1b[A\n"), 1):
        screen.expect_times(PROMPT, number)
        screen.type(typed)
    done = screen.end()
    assert (done.code, done.data["status"]) == (3, "denied")
    assert "denied: no answer in 3 tries" in done.err
    screen = terminal("call", "risky", "text=x", "--json")
    screen.expect(PROMPT)
    screen.type("maybe\n")
    screen.expect("One of: once, session")
    screen.type("once\n")
    assert screen.end().code == 0


def test_of_what_is_too_long_to_show_both_ends_are_shown(terminal: Callable, bench: Path) -> None:
    """A text of any length fits on the screen, says that it isn't all, and `view` shows more of it."""
    screen = terminal("call", "risky", "text=begin " + "x" * 50_000 + " end")
    screen.expect(PROMPT)
    assert "not all of it" in screen.shown
    assert "begin" in screen.shown
    assert 'end"' in screen.shown.replace("\n    ", "")
    assert len(screen.shown) < 8_000
    screen.type("v\n")
    screen.expect_times("Allow it? [", 2)
    screen.type("n\n")
    assert screen.end().code == 3


@pytest.mark.parametrize("columns", [20, 1])
def test_a_narrow_terminal(terminal: Callable, bench: Path, columns: int) -> None:
    """On twenty columns each line is broken where it can be read, and on one it still asks."""
    screen = terminal("call", "risky", "text=" + "abcdefghij" * 5, columns=columns)
    screen.expect("[o/s/a/D] ")
    screen.resize(40)
    screen.type("y\n")
    done = screen.end()
    assert done.code == 0
    assert "\n    ghijabcdefghijab\n" in done.err or columns == 1
    assert columns == 1 or all(len(line) <= 20 for line in done.err.splitlines() if not line.startswith("Allow"))


def test_silence_is_not_consent(terminal: Callable, bench: Path) -> None:
    """approvals.timeout: without an answer in time the call is denied."""
    (bench / "config.yaml").write_text("approvals: {timeout: 0.5}\n")
    screen = terminal("call", "risky")
    screen.expect(PROMPT)
    done = screen.end()
    assert done.code == 3
    assert "silence isn't consent" in json.loads(done.out)["error"]


def test_yes_is_not_asked(terminal: Callable, bench: Path) -> None:
    """--yes grants without a question."""
    done = terminal("call", "risky", "text=x", "--yes").end()
    assert (done.code, done.out) == (0, "done: x\n")
    assert "Allow it?" not in done.err


@pytest.mark.parametrize("lacking", ["stdin", "stderr"])
def test_without_a_terminal_nobody_is_asked(bench: Path, lacking: str) -> None:
    """A terminal on one side only has no person who sees the question and can answer it: denied at once."""
    screen, end = pty.openpty()
    ends = {"stdin": end, "stderr": end, lacking: subprocess.DEVNULL}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "mibyan", "call", "risky", "--json"], **ends, stdout=subprocess.PIPE, timeout=60
        )
    finally:
        os.close(end)
        os.close(screen)
    assert (done.returncode, json.loads(done.stdout)["status"]) == (3, "denied")


def test_ctrl_c_elsewhere_is_an_interrupt(terminal: Callable, bench: Path) -> None:
    """Ctrl-C while a tool runs ends with 130 and a line, though the terminal could be asked."""
    source = bench / "plugins" / "bench" / "__init__.py"
    source.write_text(
        source.read_text().replace("threading.Event().wait(30)", "print('it runs'); threading.Event().wait(30)")
    )
    screen = terminal("call", "stuck")
    screen.expect("it runs")
    screen.type("\x03")
    done = screen.end()
    assert (done.code, done.out) == (130, "")
    assert done.err.rstrip().endswith("mibyan: interrupted")
    assert "Traceback" not in done.err
