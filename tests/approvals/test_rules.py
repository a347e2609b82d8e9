"""The rules: their examples are tests (terminal.J5)."""

from __future__ import annotations

import re

import pytest

from mibyan.approvals import DANGEROUS_PATTERNS, evaluate_command
from mibyan.approvals.rules.book import RULES
from mibyan.approvals.verdict import CommandContext

MATCHES = [(rule.id, command) for rule in RULES.values() for command in rule.matches]
MISSES = [(rule.id, command) for rule in RULES.values() for command in rule.misses]


def ids_of(command: str, context: CommandContext | None = None) -> set[str]:
    return {finding.id for finding in evaluate_command(command, context).findings}


@pytest.mark.parametrize(("rule", "command"), MATCHES, ids=ascii)
def test_J5_what_falls_under_a_rule(rule, command):
    """terminal.J5: a rule finds its examples, at its level."""
    levels = {finding.level for finding in evaluate_command(command).findings if finding.id == rule}
    assert levels == {RULES[rule].level}


@pytest.mark.parametrize(("rule", "command"), MISSES, ids=ascii)
def test_J5_what_doesn_t(rule, command):
    """terminal.J5: a rule doesn't find the commands that are only like its examples."""
    assert rule not in ids_of(command)


def test_J5_every_rule_is_told():
    """terminal.J5: every rule has an id, a few words, a category and examples."""
    for rule in RULES.values():
        assert re.fullmatch(r"[a-z_]+", rule.id)
        assert rule.description
        assert rule.category
        assert rule.matches


def test_J5_the_seeds_view():
    """terminal.J5: `DANGEROUS_PATTERNS` has a regular expression for each rule, which its first example matches."""
    told = {description: pattern for pattern, description in DANGEROUS_PATTERNS}
    assert told.keys() == {rule.description for rule in RULES.values()}
    assert [rule.id for rule in RULES.values() if not re.search(told[rule.description], rule.matches[0])] == []
    assert "recursive delete" in told


@pytest.mark.parametrize("rule", [rule.id for rule in RULES.values() if rule.filesystem])
def test_P4_what_harms_only_its_own_file_system_is_waived_in_a_container(rule):
    """terminal.P4: where the file system can be thrown away."""
    for command in RULES[rule].matches:
        assert rule not in ids_of(command, CommandContext(isolated=True))


@pytest.mark.parametrize("rule", [rule.id for rule in RULES.values() if not rule.filesystem])
def test_P4_all_else_counts_in_a_container_too(rule):
    """terminal.P4: and nothing else is waived."""
    for command in RULES[rule].matches:
        assert rule in ids_of(command, CommandContext(isolated=True))
