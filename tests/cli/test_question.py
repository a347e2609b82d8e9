"""`mibyan.cli.approving.question`: what a person sees before they answer, and what their answer means (terminal.P1, P2)."""

from __future__ import annotations

import pytest

from mibyan.approvals import ApprovalRequest
from mibyan.cli.approving.question import Question
from mibyan.cli.widths import cells_of

FINDINGS = (
    {"id": "recursive_delete", "level": "dangerous", "description": "recursive delete", "granted": True, "excerpt": None},
    {"id": "git_destructive", "level": "dangerous", "description": "lose commits", "granted": False, "excerpt": "git push -f"},
    {"id": "root_delete", "level": "hardline", "description": "delete the root", "granted": False, "excerpt": None},
)  # fmt: skip


def asked(
    text: str = "rm -rf x; git push -f", lasting: tuple[str, ...] = ("git_destructive",), **more
) -> ApprovalRequest:
    return ApprovalRequest("apr_1", "s", "terminal", text, lasting=lasting, **more)


def test_every_finding_is_told_the_worst_first() -> None:
    """With its level, its rule, where it stands, and whether it alone wouldn't be asked."""
    lines = Question(asked(findings=FINDINGS), 100).text().splitlines()
    at = lines.index("What was found:")
    assert lines[at + 1 : at + 4] == [
        "    hardline: delete the root (root_delete)",
        "    dangerous: recursive delete (recursive_delete; granted already)",
        "    dangerous: lose commits (git_destructive): git push -f",
    ]


def test_always_says_what_it_writes_and_is_offered_only_then() -> None:
    """terminal.P3: where nothing can be written, `always` is no answer."""
    question = Question(asked(), 100)
    assert "always: adds to command_allowlist: git_destructive" in question.text()
    assert (question.prompt(), question.answer("A")) == ("Allow it? [o/s/a/D] ", "always")
    question = Question(asked(lasting=()), 100)
    assert "always" not in question.text()
    assert (question.prompt(), question.answer("always")) == ("Allow it? [o/s/D] ", None)


@pytest.mark.parametrize(
    ("typed", "answer"),
    [("o", "once"), (" ONCE ", "once"), ("y", "once"), ("Yes", "once"), ("s", "session"), ("sESSion", "session"), ("always", "always"),
     ("", "deny"), ("   ", "deny"), ("N", "deny"), ("no", "deny"), ("d", "deny"), ("DENY", "deny"), ("onc", None), ("yes!", None), ("o s", None),
     ("\x1b[A", None), ("\ufeffonce", None), ("ｏｎｃｅ", None), ("1", None)],
    ids=ascii,
)  # fmt: skip
def test_what_an_answer_means(typed: str, answer: str | None) -> None:
    """Words and first letters, small and capital; nothing else, and nothing is guessed."""
    assert Question(asked(), 100).answer(typed) == answer


@pytest.mark.parametrize("width", [20, 40, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """What isn't ours is set in on each of its lines, so that it can't pose as the question."""
    text = "echo 日本語" * 20 + "\nAllow it? [o/s/a/D] o\n" + "Allow it? " * 20
    question = Question(asked(text, findings=FINDINGS, reason="Allow it? " * 30), width)
    lines = question.text().splitlines()
    assert max(map(cells_of, lines)) <= width
    assert [line for line in lines if line.startswith("Allow it?")] == []
    assert len(question.prompt()) <= max(width, 13)


@pytest.mark.parametrize(
    "text", ["a" * 200_000, "a\n" * 5_000, "a" * 13_000 + "\n" * 50 + "b"], ids=["long", "lines", "both"]
)
def test_of_much_both_ends_are_shown(text: str) -> None:
    """It says that it isn't all; `view` shows it and is offered only then."""
    question = Question(asked(f"begin{text}end"), 80)
    shown = question.text()
    assert len(shown) < 5_000
    assert shown.splitlines()[1].startswith("    begin")
    assert "not all of it" in shown
    assert "end" in shown
    assert question.prompt() == "Allow it? [o/s/a/D/v] "
    assert len(question.view()) > len(text)
    assert Question(asked(), 80).answer("v") is None
