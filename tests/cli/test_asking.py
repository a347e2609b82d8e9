"""`mibyan.cli.asking`: a person at a terminal says yes, or it isn't done."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("typed", "code"),
    [("y\n", 0), ("YES\n", 0), (" yes \n", 0), ("n\n", 3), ("\n", 3), ("maybe\n", 3), ("yess\n", 3), ("\x04", 3), ("\x03", 3), ("y\x04\x04", 3)],
    ids=repr,
)  # fmt: skip
def test_only_a_yes_is_a_yes(terminal: Callable, bench: Path, typed: str, code: int) -> None:
    """On a terminal the CLI asks; no, anything else, the end of input and Ctrl-C are denials, not errors."""
    screen = terminal("call", "risky", "text=x", "--json")
    screen.expect("[y/N] ")
    screen.type(typed)
    done = screen.end()
    assert done.code == code
    assert done.data["status"] == ("ok" if code == 0 else "denied")


def test_what_is_asked(terminal: Callable, bench: Path) -> None:
    """The question shows the tool, its arguments and why; data stays on standard output."""
    screen = terminal("call", "risky", "text=rm")
    screen.expect("[y/N] ")
    screen.type("y\n")
    done = screen.end()
    assert done.out == "done: rm\n"
    for part in ("risky wants to run:", '    {"text": "rm"}', "    It can't be undone.", "Allow it this once? [y/N] "):
        assert part in done.err


def test_the_question_plays_no_tricks(terminal: Callable, bench: Path) -> None:
    """What would run can't hide itself, command the terminal or pose as the question."""
    screen = terminal("call", "risky", "text=a\x1b[2K\u202eb\r\nAllow it this once? [y/N] y")
    screen.expect("once? [y/N] ")
    screen.type("n\n")
    done = screen.end()
    assert done.code == 3
    assert "\x1b" not in done.err
    assert "\u202e" not in done.err
    assert [line for line in done.err.splitlines() if line.startswith("Allow it this once?")] == [
        "Allow it this once? [y/N] n"
    ]


def test_of_what_is_too_long_to_show_the_rest_is_counted(terminal: Callable, bench: Path) -> None:
    """A text of any length fits on the screen, and says how much of it isn't shown."""
    screen = terminal("call", "risky", "text=" + "x" * 50_000)
    screen.expect("[y/N] ")
    assert "characters aren't shown" in screen.shown
    assert len(screen.shown) < 10_000
    screen.type("n\n")
    assert screen.end().code == 3


def test_silence_is_not_consent(terminal: Callable, bench: Path) -> None:
    """approvals.timeout: without an answer in time the call is denied."""
    (bench / "config.yaml").write_text("approvals: {timeout: 0.5}\n")
    screen = terminal("call", "risky")
    screen.expect("[y/N] ")
    done = screen.end()
    assert done.code == 3
    assert "silence isn't consent" in json.loads(done.out)["error"]


def test_yes_is_not_asked(terminal: Callable, bench: Path) -> None:
    """--yes grants without a question."""
    done = terminal("call", "risky", "text=x", "--yes").end()
    assert (done.code, done.out) == (0, "done: x\n")
    assert "[y/N]" not in done.err


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
