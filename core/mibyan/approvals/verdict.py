"""`Verdict`: what a command would do, in findings; and the context in which it is judged (terminal.J1, J2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from mibyan.records import record
from mibyan.text import plain_text

if TYPE_CHECKING:
    from mibyan.approvals.operator_rules import OperatorRule

#: How bad a command is: it runs, it asks first, it is refused whatever anybody says.
Level: TypeAlias = Literal["safe", "dangerous", "hardline"]

#: The levels, the mildest first.
LEVELS: Final[tuple[Level, ...]] = ("safe", "dangerous", "hardline")


@record
class Finding:
    """One thing that a command would do."""

    #: The rule's stable id, such as `recursive_delete`.
    id: str
    level: Level
    #: In a few words, such as "recursive delete".
    description: str
    #: What kind of harm it is, such as `files`.
    category: str
    #: Where it stands in the command as given: from and to, in characters.
    span: tuple[int, int]

    def to_dict(self) -> dict[str, object]:
        """As JSON types."""
        return {
            "id": self.id,
            "level": self.level,
            "description": self.description,
            "category": self.category,
            "span": list(self.span),
        }


@record
class Verdict:
    """What was found about a command: all of it, the worst first."""

    level: Level
    findings: tuple[Finding, ...] = ()
    #: What was judged: globs of `approvals.deny` and `command_allowlist` are matched against it.
    command: str = ""
    #: Shell commands inside of what was judged, a script's: globs of `approvals.deny` are matched against them too.
    inner: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """As JSON types."""
        return {"level": self.level, "findings": [finding.to_dict() for finding in self.findings]}


@record
class CommandContext:
    """Where a command would run."""

    #: The working directory, absolute; `None`: not known.
    cwd: str | None = None
    #: The home directory; `None`: this user's.
    home: str | None = None
    #: Whether its file system is its own and can be thrown away (a container without mounts of the host): then what
    #: harms only that file system counts for nothing (terminal.P4).
    isolated: bool = False
    #: Rules of operators and plugins beside the built-in ones.
    rules: tuple[OperatorRule, ...] = ()


def plain_verdict(verdict: Verdict) -> Verdict:
    """A verdict that a tool gave, in plain types: none of its own methods is called; as bad as the worst in it.

    Raises:
        TypeError: Something in it has the wrong type.
    """
    findings = tuple(_plain_finding(finding) for finding in tuple(verdict.findings))
    inner = tuple(verdict.inner)
    if verdict.level not in LEVELS or not all(isinstance(text, str) for text in (verdict.command, *inner)):
        msg = "Verdict(level, findings, command, inner) takes a level, findings, a text and texts"
        raise TypeError(msg)
    level = worst((plain_text(verdict.level), *(finding.level for finding in findings)))
    return Verdict(level, findings, plain_text(verdict.command), tuple(map(plain_text, inner)))


def _plain_finding(finding: object) -> Finding:
    if not isinstance(finding, Finding):
        msg = f"a Verdict has findings, not {type(finding).__name__}"
        raise TypeError(msg)
    texts = (finding.id, finding.level, finding.description, finding.category)
    if not all(isinstance(text, str) for text in texts) or finding.level not in LEVELS[1:]:
        msg = "Finding(id, level, description, category, span) takes texts, and dangerous or hardline as its level"
        raise TypeError(msg)
    name, level, description, category = map(plain_text, texts)
    start, end = finding.span
    return Finding(name, level, description, category, (int(start), int(end)))  # type: ignore[arg-type]


def worst(levels: object) -> Level:
    """The highest of some levels; `safe` if there is none."""
    found = set(levels)  # type: ignore[call-overload]
    return next((level for level in reversed(LEVELS) if level in found), "safe")
