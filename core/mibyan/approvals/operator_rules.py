"""`OperatorRule`: a rule of an operator or a plugin: a regular expression on a decoded simple command (terminal.J5)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mibyan.config.checks import RULE_ID
from mibyan.errors import ConfigError, MibyanError
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mibyan.approvals.verdict import Level
    from mibyan.config.load import LoadedConfig


@record
class OperatorRule:
    """One rule; made by `operator_rule`, which checks it."""

    id: str
    level: Level
    description: str
    pattern: re.Pattern[str]
    category: str = "own"

    def matches(self, command: str) -> bool:
        """Whether a simple command falls under it: its words, decoded, with single blanks between."""
        return self.pattern.search(command) is not None


def operator_rule(
    rule_id: str,
    pattern: str,
    description: str,
    *,
    level: Level = "dangerous",
    matches: Iterable[str] = (),
    misses: Iterable[str] = (),
) -> OperatorRule:
    """A rule, checked by its examples.

    Args:
        rule_id: Small letters, digits and `_.-`; grants name it.
        pattern: A regular expression, searched for in each simple command that would run.
        description: A few words for people.
        level: `dangerous` or `hardline`.
        matches: Commands that must fall under it.
        misses: Commands that mustn't.

    Raises:
        MibyanError: It isn't right, or an example says otherwise.
    """
    from mibyan.approvals.evaluate import evaluate_command
    from mibyan.approvals.rules.book import RULES
    from mibyan.approvals.verdict import CommandContext

    if not RULE_ID.fullmatch(rule_id) or rule_id in RULES:
        raise MibyanError(
            f"the rule {rule_id!r} needs a name of its own",
            hint="Small letters, digits, _ . and -; no built-in rule's.",
        )
    if level not in {"dangerous", "hardline"}:
        raise MibyanError(f"the rule {rule_id!r} has the level {level!r}", hint="It is dangerous or hardline.")
    try:
        rule = OperatorRule(rule_id, level, description, re.compile(pattern))
    except re.error as error:
        raise MibyanError(f"the pattern of the rule {rule_id!r} is no regular expression: {error}") from None
    context = CommandContext(rules=(rule,))
    for wanted, examples in ((True, matches), (False, misses)):
        for example in examples:
            found = any(finding.id == rule_id for finding in evaluate_command(example, context).findings)
            if found is not wanted:
                word = "doesn't match" if wanted else "matches"
                raise MibyanError(f"the rule {rule_id!r} {word} its example {example!r}")
    return rule


def configured_rules(config: LoadedConfig) -> tuple[OperatorRule, ...]:
    """The operator's own rules, `approvals.rules` of config.yaml, each checked by its examples.

    Raises:
        ConfigError: One isn't right; the message has its file and line.
    """
    found: list[OperatorRule] = []
    for number, rule in enumerate(config.settings.approvals.rules):
        try:
            found.append(operator_rule(rule.id, rule.pattern, rule.description, level=rule.level,
                                       matches=rule.matches, misses=rule.misses))  # fmt: skip
        except MibyanError as error:
            key = ("approvals", "rules", number)
            line = config.line_of(key) or f"approvals.rules[{number}]"
            raise ConfigError(f"{line}: {error.message}", origin=config.where(key), hint=error.hint) from None
    return tuple(found)
