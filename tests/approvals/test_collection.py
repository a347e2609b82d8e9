"""Verdicts about a collection of commands (terminal.J7), and what mustn't change them."""

from __future__ import annotations

import shlex
from collections import Counter
from functools import cache

import pytest

from mibyan.approvals import evaluate_command
from mibyan.approvals.shell.parser import Parser, UnparsableError
from mibyan.approvals.verdict import LEVELS

from .collection import rows

#: Tests that a collection is spread over, so that they run side by side.
PARTS = 16


def test_J7_the_collection(capsys):
    """terminal.J7: no hardline row is safe, no safe one hardline, and at least 99 in a hundred are told exactly."""
    found = [(level, level_of(command), command) for level, _, command in rows()]
    table = Counter((wanted, got) for wanted, got, _ in found)
    with capsys.disabled():
        print(
            "\n"
            + "\n".join(f"    {wanted:10}" + "".join(f"{table[wanted, got]:6}" for got in LEVELS) for wanted in LEVELS)
        )
    wrong = [one for one in found if one[0] != one[1]]
    assert [one for one in wrong if {one[0], one[1]} == {"safe", "hardline"}] == []
    assert len(wrong) <= len(found) // 100, wrong


@pytest.mark.parametrize("part", range(PARTS))
def test_J3_more_commands(part):
    """terminal.J3: commands of the same kinds, spelt otherwise."""
    found = [
        (level, evaluate_command(command), command) for level, _, command in rows("more_commands.tsv")[part::PARTS]
    ]
    assert [(level, verdict.findings, command) for level, verdict, command in found if level != verdict.level] == []


@cache
def parses(code: str) -> dict | None:
    try:
        return Parser().parse(code)
    except UnparsableError:
        return None


def is_simple(tree: dict) -> bool:
    """Whether a script is one simple command without assignments."""
    statements = tree.get("Stmts") or []
    command = (statements[0].get("Cmd") or {}) if len(statements) == 1 else {}
    return command.get("Type") == "CallExpr" and not command.get("Assigns") and not statements[0].get("Negated")


WRAPPERS = {
    "sudo": "sudo {}", "env": "env A=1 {}", "subshell": "({}\n)", "block": "{{ {}\n}}", "and": "true && {}", "if": "if true; then {}\nfi",
    "bash": "bash -c {quoted}",
}  # fmt: skip
SIMPLE = {"sudo", "env"}
AS_DATA = {
    "echo": "echo {quoted}", "commit": "git commit -m {quoted}", "grep": "grep -F -- {quoted} f", "document": ": <<'E_N_D'\n{}\nE_N_D",
    "comment": "{commented}",
}  # fmt: skip


def filled(form: str, command: str) -> str:
    commented = "\n".join("# " + line for line in command.split("\n"))
    return form.format(command, quoted=shlex.quote(command), commented=commented)


@cache
def level_of(command: str) -> str:
    return evaluate_command(command).level


@pytest.mark.thorough
@pytest.mark.parametrize("name", WRAPPERS)
def test_J7_a_wrapper_lowers_nothing(name):
    """terminal.J7: what is dangerous is it in brackets, after another command, and run by another program, too."""
    lowered = []
    for index, (_, _, command) in enumerate(rows()):
        if index % len(WRAPPERS) not in {list(WRAPPERS).index(name), 0}:
            continue
        tree = parses(command)
        if tree is None or (name in SIMPLE and not is_simple(tree)):
            continue
        wrapped = filled(WRAPPERS[name], command)
        if parses(wrapped) is None:
            continue
        before, after = level_of(command), evaluate_command(wrapped).level
        if LEVELS.index(after) < LEVELS.index(before):
            lowered.append((before, after, wrapped))
    assert lowered == []


@pytest.mark.thorough
@pytest.mark.parametrize("name", AS_DATA)
def test_J7_data_is_data(name):
    """terminal.J7: a command that is only text is safe."""
    found = []
    for index, (_, _, command) in enumerate(rows()):
        if index % len(AS_DATA) not in {list(AS_DATA).index(name), 0} or parses(command) is None:
            continue
        quoted = filled(AS_DATA[name], command)
        if parses(quoted) is not None and (verdict := evaluate_command(quoted)).level != "safe":
            found.append((quoted, verdict.findings))
    assert found == []
