"""`allowances`: what was allowed for good, with what each entry means and why one allows nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from mibyan.records import record
from mibyan.text import one_line, suggest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mibyan.approvals.allowlist import AllowEntry
    from mibyan.approvals.rules.book import Rule
    from mibyan.config.settings import ApprovalSettings, CommandRule

#: What looks like a rule's id: a word of small letters with `_`.
_LIKE_A_RULE: Final = re.compile(r"[a-z]+(?:_[a-z]+)+")
#: What the problem of an entry ends with without which all would be the same.
_NEEDLESS: Final = ("says so already", "runs without it")


@record
class Allowance:
    """An entry of `command_allowlist`."""

    entry: AllowEntry
    #: What it allows, in one sentence.
    meaning: str
    #: Why it allows nothing, or nothing more; `None`: it does.
    problem: str | None = None

    @property
    def is_needless(self) -> bool:
        """Whether its problem is only that nothing would change without it."""
        return self.problem is not None and self.problem.endswith(_NEEDLESS)

    def to_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return {**self.entry.to_dict(), "meaning": self.meaning, "problem": self.problem}


def allowances(entries: Sequence[AllowEntry], settings: ApprovalSettings) -> list[Allowance]:
    """The entries with their meaning, in their order.

    Args:
        entries: What the allowlist says.
        settings: What the operator says else: rules of their own, and what is denied.
    """
    rules = known_rules(settings)
    return [
        Allowance(entry, meaning(entry, rules), _problem(entry, entries[:number], settings.deny, rules))
        for number, entry in enumerate(entries)
    ]


def known_rules(settings: ApprovalSettings) -> Mapping[str, Rule | CommandRule]:
    """The rules that can be known without importing a plugin, by id: the built-in ones and the operator's."""
    from mibyan.approvals.rules.book import RULES

    return {**{rule.id: rule for rule in settings.rules}, **RULES}


def meaning(entry: AllowEntry, rules: Mapping[str, Rule | CommandRule]) -> str:
    """What an entry allows."""
    if entry.text in rules:
        return rules[entry.text].description
    if entry.kind == "key":
        plugin, _, key = entry.text.partition(":")
        return f"what {plugin} asks about as {key}"
    if _LIKE_A_RULE.fullmatch(entry.text):
        return "nothing that is known"
    return "this very command" if _command(entry.text) is not None else "commands that it covers as a whole"


def _command(text: str) -> str | None:
    """The only command that an entry covers; `None` for a glob of several."""
    from mibyan.approvals.globs import is_pattern, literal

    if not is_pattern(text):
        return text
    command = re.sub(r"\[([*?\[])\]", r"\1", text)
    return command if literal(command) == text else None


def _problem(
    entry: AllowEntry, before: Sequence[AllowEntry], deny: Sequence[str], rules: Mapping[str, Rule | CommandRule]
) -> str | None:
    earlier = next((one for one in before if one.text == entry.text), None)
    if earlier is not None:
        return f"{earlier.place} says so already"
    return next(_of_kind(entry, deny, rules), None)


def _of_kind(entry: AllowEntry, deny: Sequence[str], rules: Mapping[str, Rule | CommandRule]) -> Iterator[str]:
    if entry.text in rules:
        if rules[entry.text].level == "hardline":
            yield "never counts: no grant opens what can't be undone"
        return
    if entry.kind == "key":
        return
    if _LIKE_A_RULE.fullmatch(entry.text):
        meant = suggest(entry.text, rules)
        told = f"; did you mean {meant!r}?" if meant else ", unless a plugin brings it"
        yield f"no rule has this name{told}"
        return
    yield from _of_command(entry.text, deny)


def _of_command(text: str, deny: Sequence[str]) -> Iterator[str]:
    """Why a glob, or a very command, allows nothing."""
    from mibyan.approvals.evaluate import evaluate_command
    from mibyan.approvals.globs import denies

    command = _command(text)
    if command is None:
        if not text.strip("*?[]! \t"):
            yield "never matches: a glob must name each program that would run"
        return
    glob = next((one for one in deny if denies(one, command)), None)
    if glob is not None:
        yield f"never counts: approvals.deny has {one_line(glob, 80)!r}"
    level = evaluate_command(command).level
    if level == "hardline":
        yield "never counts: no grant opens what can't be undone"
    elif level == "safe":
        yield "isn't needed: the command runs without it"
