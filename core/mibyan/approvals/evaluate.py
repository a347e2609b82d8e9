"""`evaluate_command`: the verdict about a shell command (terminal.J1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mibyan.approvals.judge import Judge
from mibyan.approvals.kept import KeptVerdicts
from mibyan.approvals.normal import normalised, without_nul
from mibyan.approvals.shell.parser import PATIENCE, Parser
from mibyan.approvals.verdict import LEVELS, CommandContext, Finding, Verdict, worst
from mibyan.records import replace

if TYPE_CHECKING:
    from collections.abc import Iterable

_DEFAULT: Final = CommandContext()
_kept = KeptVerdicts(512, 20_000)


def evaluate_command(command: str, context: CommandContext | None = None) -> Verdict:
    """Judge a shell command; nothing of it is run.

    Args:
        command: What bash would get.
        context: Where it would run.

    Returns:
        The verdict with every finding, the worst first. What can't be read or seen is `dangerous`, never `safe`.

    Raises:
        TypeError: `command` isn't a text.
    """
    if not isinstance(command, str):
        msg = f"A command is a text, not {type(command).__name__}."
        raise TypeError(msg)
    key = (command, context or _DEFAULT)
    found = _kept.get(key)
    if found is None:
        found = _judged(command, key[1])
        _kept.keep(key, found)
    return found


def detect_dangerous_command(
    command: str, context: CommandContext | None = None
) -> tuple[bool, str | None, str | None]:
    """Whether a command needs an approval, by which rule, and what that says (seed 000, *The DANGEROUS_PATTERNS approval flow*).

    Args:
        command: What bash would get.
        context: Where it would run.

    Returns:
        Whether it isn't safe; the id and the description of the worst finding, `None` if there is none.
    """
    findings = evaluate_command(command, context).findings
    return (True, findings[0].id, findings[0].description) if findings else (False, None, None)


def _judged(command: str, context: CommandContext) -> Verdict:
    written, shown = without_nul(command), normalised(command)
    parser = Parser(PATIENCE)
    findings = _findings(written, context, parser, whole=None if len(written) == len(command) else len(command))
    if shown != written:
        findings += _findings(shown, context, parser, whole=len(command))
    found = {(one.id, one.level): one for one in reversed(findings)}
    order = sorted(
        (one for one in findings if found.get((one.id, one.level)) is one or one.span != found[one.id, one.level].span),
        key=lambda one: (-LEVELS.index(one.level), one.span, one.id),
    )
    return Verdict(worst(one.level for one in order), tuple(dict.fromkeys(order)), command)


def _findings(text: str, context: CommandContext, parser: Parser, *, whole: int | None) -> list[Finding]:
    judge = Judge(context, parser)
    judge.judge(text)
    if whole is not None:
        return [replace(one, span=(0, whole)) for one in judge.findings.values()]
    return list(_in_characters(text, judge.findings.values()))


def _in_characters(text: str, findings: Iterable[Finding]) -> Iterable[Finding]:
    if text.isascii():
        yield from findings
        return
    raw = text.encode("utf-8", "surrogatepass")
    for one in findings:
        start, end = (len(raw[:offset].decode("utf-8", "replace")) for offset in one.span)
        yield replace(one, span=(start, end))
