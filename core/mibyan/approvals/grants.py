"""`SessionGrants`: what was allowed for the rest of a conversation; and what a grant may be kept for (terminal.P3)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mibyan.approvals.verdict import Finding

#: Rules that say only that something can't be told: a grant for one of them is for that very command, not for all others.
BY_COMMAND: Final = frozenset({"opaque_exec", "unparsable", "invisible_chars", "remote_exec", "decode_exec"})
#: Characters of a command up to which it is written into config.yaml as it is.
_LONGEST: Final = 1000


class SessionGrants:
    """The grants of all sessions of a runtime, each session's its own; they end with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()

    def add(self, session: Any, grants: Iterable[str]) -> None:
        """Remember grants for a session: any object that stands for it."""
        with self._lock:
            self._of.setdefault(session, set()).update(grants)

    def of(self, session: Any) -> frozenset[str]:
        """A session's grants: rules' ids, `plugin:key` of questions, and commands as `for_command` spells them."""
        with self._lock:
            return frozenset(self._of.get(session, ()))

    def revoke(self, session: Any, grant: str | None = None) -> bool:
        """Take back one grant of a session, or all of them; whether there was any."""
        with self._lock:
            held = self._of.get(session, set())
            gone = set(held) if grant is None else held & {grant}
            held -= gone
        return bool(gone)

    def after_fork(self) -> None:
        """In a child process: the lock may have been held."""
        self._lock = threading.Lock()


def for_command(command: str) -> str:
    """The grant for one very command."""
    return f"command\0{command}"


def session_grants(findings: Iterable[Finding], command: str | None) -> frozenset[str]:
    """What `session` grants: each finding's rule; of those that say that something can't be told, the command, if there is one."""
    return frozenset(
        for_command(command or "") if finding.id in BY_COMMAND else finding.id
        for finding in findings
        if finding.id not in BY_COMMAND or command is not None
    )


def is_granted(finding: Finding, grants: frozenset[str], command: str | None) -> bool:
    """Whether a session's grants open a finding."""
    return finding.id in grants or (command is not None and for_command(command) in grants)


def lasting_entries(findings: Sequence[Finding], command: str | None) -> tuple[str, ...]:
    """What `always` writes into `command_allowlist`: the rules' ids; the command itself where a rule says that it can't be told.

    Returns:
        Nothing where that can't be written: the command is too long.
    """
    from mibyan.approvals.globs import literal

    if any(finding.id in BY_COMMAND for finding in findings):
        if command is None:
            return ()
        text = literal(command.strip())
        named = tuple(finding.id for finding in findings if ":" in finding.id)
        return (text, *named) if text.isprintable() and len(text) <= _LONGEST else ()
    return tuple(dict.fromkeys(finding.id for finding in findings))
