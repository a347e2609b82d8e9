"""What a command would do, with where it runs and what it reads."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

from mibyan.approvals import CommandContext, Finding, Verdict, evaluate_command

if TYPE_CHECKING:
    from pathlib import Path

    from mibyan.approvals import OperatorRule

#: Characters of a standard input that are judged.
MAX_READ = 100_000


def judged(command: str, cwd: Path | None, workdir: Any, stdin: Any, rules: tuple[OperatorRule, ...]) -> Verdict:
    """The verdict about a command of this machine, which is never isolated.

    Args:
        command: The command.
        cwd: The working directory; `None`: it doesn't exist any more.
        workdir: The directory that the call asks for, if it does.
        stdin: The text for its standard input, if there is any: an interpreter would run it.
        rules: The operator's and plugins' own.
    """
    home = os.path.expanduser("~")  # noqa: PTH111 - as the shell has it
    where = _directory(cwd, workdir, home)
    context = CommandContext(where, home if home.startswith("/") else None, isolated=False, rules=rules)
    verdict = evaluate_command(command, context)
    if not isinstance(stdin, str) or not stdin:
        return verdict
    # Of a long text it only counts that it isn't looked at.
    writer = f"printf %s {shlex.quote(stdin)}" if len(stdin) <= MAX_READ else 'cat "$MIBYAN_STDIN"'
    whole = f"{writer} | {{\n{command}\n}}"
    fed = evaluate_command(whole, context)
    alone = {finding.id for finding in verdict.findings}
    # What it reads adds to what the command alone does; places in it mean nothing to a reader of the command.
    added = tuple(finding for finding in fed.findings if finding.id not in alone)
    worst = max((verdict.level, fed.level), key=("safe", "dangerous", "hardline").index)
    findings = (*verdict.findings, *(_of_all(finding, command) for finding in added))
    return Verdict(worst, findings, whole)


def _of_all(finding: Finding, command: str) -> Finding:
    return Finding(finding.id, finding.level, finding.description, finding.category, (0, len(command)))


def _directory(cwd: Path | None, workdir: Any, home: str) -> str | None:
    """The absolute directory that the command would run in."""
    where = None if cwd is None else str(cwd)
    if isinstance(workdir, str) and workdir:
        workdir = home + workdir[1:] if workdir == "~" or workdir.startswith("~/") else workdir
        where = workdir if workdir.startswith("/") else None if where is None else f"{where}/{workdir}"
    # Where links lead counts: the command would delete what is there.
    return None if where is None else os.path.realpath(where)
