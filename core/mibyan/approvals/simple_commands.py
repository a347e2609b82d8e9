"""`simple_commands`: what a command would run, program by program, as globs of commands are matched against it."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from mibyan.approvals.judge import Judge
from mibyan.approvals.normal import normalised, without_nul
from mibyan.approvals.shell.parser import PATIENCE, Parser
from mibyan.approvals.verdict import CommandContext
from mibyan.records import record


@record
class SimpleCommands:
    """The simple commands in a shell command, those that others run for it too."""

    #: Their words, decoded, with single blanks between.
    texts: tuple[str, ...]
    #: Whether that is all of them; not if it can't be read, or runs what can't be seen.
    complete: bool


@lru_cache(maxsize=128)
def simple_commands(command: str) -> SimpleCommands:
    """The simple commands in `command`, which is what bash would get; nothing of it is run."""
    complete = True
    found: list[str] = []
    parser = Parser(PATIENCE)
    context = CommandContext(rules=(_Listing(found),))  # type: ignore[arg-type]
    for text in dict.fromkeys((without_nul(command), normalised(command))):
        judge = Judge(context, parser)
        judge.judge(text)
        complete = complete and not any(finding.id in _UNTOLD for finding in judge.findings.values())
    return SimpleCommands(tuple(dict.fromkeys(found)), complete)


_UNTOLD: Final = frozenset({"unparsable", "opaque_exec"})


class _Listing:
    """A rule that no command falls under: it keeps what it is asked about."""

    def __init__(self, found: list[str]) -> None:
        self._found = found

    def matches(self, command: str) -> bool:
        """Keep a simple command."""
        self._found.append(command)
        return False
