"""The rules about Python code: their examples are tests (terminal.X2)."""

from __future__ import annotations

import re

import pytest

from mibyan.approvals import CommandContext, evaluate_code
from mibyan.approvals.python.rules import PYTHON_RULES

CONTEXT = CommandContext(cwd="/work/space", home="/home/me")
MATCHES = [(rule.id, code) for rule in PYTHON_RULES.values() for code in rule.matches]
MISSES = [(rule.id, code) for rule in PYTHON_RULES.values() for code in rule.misses]


def ids_of(code: str, context: CommandContext = CONTEXT) -> set[str]:
    return {finding.id for finding in evaluate_code(code, context).findings}


@pytest.mark.parametrize(("rule", "code"), MATCHES, ids=ascii)
def test_X2_what_falls_under_a_rule(rule, code):
    """terminal.X2: a rule finds its examples, at its level."""
    levels = {finding.level for finding in evaluate_code(code, CONTEXT).findings if finding.id == rule}
    assert levels == {PYTHON_RULES[rule].level}


@pytest.mark.parametrize(("rule", "code"), MISSES, ids=ascii)
def test_X2_what_doesn_t(rule, code):
    """terminal.X2: a rule doesn't find code that is only like its examples."""
    assert rule not in ids_of(code)


def test_X2_every_rule_is_told():
    """terminal.J5: every rule has an id, a few words, a category and examples."""
    for rule in PYTHON_RULES.values():
        assert re.fullmatch(r"[a-z_]+", rule.id)
        assert rule.description
        assert rule.category
        assert rule.matches
        assert rule.misses
