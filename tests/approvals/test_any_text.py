"""Any text gets an answer, the same each time, in bounded time (terminal.J4, J7)."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mibyan.approvals import CommandContext, evaluate_command
from mibyan.approvals.evaluate import _judged
from mibyan.approvals.shell.parser import Parser, UnparsableError
from mibyan.approvals.verdict import LEVELS

from .collection import rows

CONTEXTS = (
    CommandContext(),
    CommandContext(cwd="/"),
    CommandContext(cwd="/home/u", home="/home/u"),
    CommandContext(isolated=True),
)

PIECES = (
    "$(", ")", "`", '"', "'", "\\", "\n", "<<EOF\n", "EOF\n", "{", "}", "((", "))", "[[", "]]", "${x", "${!x}", "${x@P}", "$[", ";", "&&", "||", "|", "&", ">", "<(", "if ",
    "then ", "fi", "for i in ", "do ", "done", "case x in ", "esac", "f(){ ", "};", "coproc ", "rm -rf /", "reboot", "$IFS", "~", "*", "{a,b}", "#", "# \\\n", "\x00", "\x01",
    "\x1b[31m", "\r\n", "\u200b", "\u2028", "\ud800", "\udc80", "ｒｍ", "declare -n a=b;", "X=1 ", '"$@"', "$1", "eval ", "bash -c ", "xargs -I{} ", "find -exec ", "sudo ", "env ",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES) | st.sampled_from([command for _, _, command in rows()]), max_size=10).map(
    "".join
)
COMMANDS = st.sampled_from([command for _, _, command in rows()])


def parses(code: str) -> bool:
    try:
        Parser().parse(code)
    except UnparsableError:
        return False
    return True


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(TEXTS, st.sampled_from(CONTEXTS))
@example("find -exec /binm {} \\\n;", CONTEXTS[0])
@example("xargs -I{}EOF\n rm -rf {}<<< /", CONTEXTS[0])
@example("for i in f! \udc80[[# \\\nétrap X=1 sudo ", CONTEXTS[0])
def test_J4_any_text_has_one_answer(text, context):
    """terminal.J4: never an exception; the same again; places are in the text."""
    verdict = _judged(text, context)
    assert verdict == _judged(text, context)
    assert verdict.level in LEVELS
    assert [one for one in verdict.findings if not 0 <= one.span[0] <= one.span[1] <= len(text)] == []
    assert (verdict.level == "safe") == (verdict.findings == ())


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(COMMANDS, COMMANDS)
def test_J7_a_command_beside_another_is_as_bad_as_the_worse(first, second):
    """terminal.J7: what is added lowers nothing."""
    both = f"{first}\n{second}"
    if (
        parses(first)
        and parses(second)
        and parses(both)
        and "\\" not in first[-1:]
        and "<<" not in first
        and "exit" not in first
    ):
        worse = max(LEVELS.index(evaluate_command(one).level) for one in (first, second))
        assert LEVELS.index(evaluate_command(both).level) >= worse


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(TEXTS)
def test_J7_quoted_text_is_data(text):
    """terminal.J7: whatever a text is, it can be echoed."""
    text = "".join(char for char in text if char >= " " or char == "\n")
    assert evaluate_command(f"echo {shlex.quote(text)}").level == "safe" or any(
        "\ud800" <= char <= "\uffff" for char in text
    )


@pytest.mark.parametrize(
    "text",
    ["$(" * 20_000, "`" * 20_001, "(" * 20_000, "{ " * 20_000, "${x:-" * 5000, "$((" * 5000, "[[ ( " * 2000, "if " * 5000, "<<A " * 2000, "{a," * 5000, "bash -c " * 300, "sudo " * 3000, "x" * 1_000_001,
     "bash -c '" * 30, "echo " + "{a,b}" * 40, "f(){ f; f; };f;" * 20, "while :; do " * 200 + "done;" * 200, "x=$x$x;" * 60, "eval " * 2000 + "x"],
    ids=lambda text: ascii(text[:12]),
)  # fmt: skip
def test_J4_what_is_nested_without_end_is_dangerous_or_answered(text):
    """terminal.J4: nothing recurses or grows without bound, and what can't be read isn't safe."""
    verdict = evaluate_command(text)
    assert verdict.level != "hardline"
    if not parses(text):
        assert verdict.findings[0].id == "unparsable"


def test_J4_many_commands():
    """terminal.J4: a long script is judged as one."""
    assert evaluate_command("echo a\n" * 2_000 + "reboot").level == "hardline"


def test_J4_there_is_a_limit_to_what_is_looked_at(monkeypatch):
    """terminal.J4: a loop in a loop in a loop ends, and isn't safe."""
    monkeypatch.setattr("mibyan.approvals.shell.walk._MOST_CALLS", 100)
    text = "for a in {1..9}; do for b in {1..9}; do for c in {1..9}; do echo a; done; done; done"
    assert [one.id for one in evaluate_command(text).findings] == ["unparsable"]
