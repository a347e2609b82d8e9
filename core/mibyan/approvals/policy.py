"""`ApprovalPolicy`: whether a call runs, is refused, or needs a person's yes (terminal.J1, J2, P3, P4)."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from mibyan.approvals.grants import SessionGrants, is_granted, lasting_entries
from mibyan.approvals.requests import ApprovalRequest, Question
from mibyan.approvals.showing import digest, shown_call, shown_finding, shown_reason
from mibyan.approvals.verdict import Finding, Verdict
from mibyan.records import record
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mibyan.approvals.allowlist import Allowlist
    from mibyan.hooks.decisions import Ask

Mode: TypeAlias = Literal["manual", "smart", "off"]
_LONGEST_KEY: Final = 120


@record
class Subject:
    """A call that somebody wants approved."""

    #: Stands for the conversation.
    session: Any
    session_id: str
    tool_name: str
    #: The arguments that will run.
    args: Mapping[str, Any]
    #: What hooks and the tool itself ask, each with the plugin whose question it is.
    asks: tuple[tuple[str, Ask], ...] = ()
    #: What was found about it; `None`: nothing was judged.
    verdict: Verdict | None = None
    #: The ids of findings that a person has granted for this very call.
    granted: frozenset[str] = frozenset()


@record
class Ruling:
    """What is decided about a subject before anybody is asked."""

    kind: Literal["run", "block", "ask"]
    #: For the model, when it is blocked.
    message: str = ""
    #: Who blocks: `approvals`, or the line of `approvals.deny`.
    by: str = ""
    question: Question | None = None
    #: By finding's id what opens it: a line of the allowlist, `session`, `call`, or `approvals.mode: off`.
    granted: Mapping[str, str] | None = None


@record
class PolicySettings:
    """What the operator said."""

    mode: Mode = "manual"
    #: Globs of commands that are refused, each with the line that says so.
    deny: tuple[tuple[str, str], ...] = ()


class ApprovalPolicy:
    """Decides what is decided without a person, and makes the question about the rest.

    Args:
        settings: What the operator said.
        allowlist: What was allowed for good.
        grants: What sessions were allowed.
        timeout: Seconds that a person has.
        clean: Takes secrets out of a text.
    """

    def __init__(
        self,
        settings: PolicySettings | None = None,
        *,
        allowlist: Allowlist,
        grants: SessionGrants,
        timeout: float = 300.0,
        clean: Callable[[str], str] = str,
    ) -> None:
        self._settings = settings or PolicySettings()
        self._allowlist = allowlist
        self._grants = grants
        self._timeout = timeout
        self._clean = clean

    def rule(self, subject: Subject) -> Ruling:
        """Decide: what is hardline or denied is blocked, what is granted runs, the rest is asked, with all findings."""
        verdict = subject.verdict
        command = None if verdict is None else verdict.command or None
        findings = () if verdict is None else _findings(verdict)
        if hardline := [finding for finding in findings if finding.level == "hardline"]:
            return Ruling("block", self._never(subject, hardline), "approvals")
        inner = () if verdict is None else verdict.inner
        if (line := self._denied_by((command, *inner) if command else inner)) is not None:
            message = f"{subject.tool_name} was blocked: the operator denies this command ({line})."
            return Ruling("block", f"{message} No answer can allow it; don't retry or rephrase it.", line)
        needs = (*findings, *(self._asked(subject, who, ask) for who, ask in subject.asks))
        granted = self._granted(subject, needs, command)
        if all(need.id in granted for need in needs):
            return Ruling("run", granted=granted)
        if self._settings.mode == "off":
            return Ruling("run", granted={need.id: granted.get(need.id, "approvals.mode: off") for need in needs})
        return Ruling("ask", question=self._question(subject, findings, needs, granted), granted=granted)

    def _granted(self, subject: Subject, needs: Sequence[Finding], command: str | None) -> dict[str, str]:
        """What opens needs, by id."""
        if not needs:
            return {}
        session = self._grants.of(subject.session) if subject.session is not None else frozenset()
        opened = {need.id: "session" for need in needs if is_granted(need, session, command)}
        opened |= {need.id: "call" for need in needs if need.id in subject.granted}
        if any(need.id not in opened for need in needs):
            allowed = self._allowlist.reasons(needs, command)
            # A glob is about commands: what a hook asks is opened by its own key only.
            opened |= {
                name: entry.place
                for name, entry in allowed.items()
                if name not in opened and (":" not in name or entry.text == name)
            }
        return opened

    def _denied_by(self, commands: Sequence[str]) -> str | None:
        if not self._settings.deny or not commands:
            return None
        from mibyan.approvals.globs import denies
        from mibyan.approvals.simple_commands import simple_commands

        read = [(command, simple_commands(command).texts) for command in commands]
        denied = (
            line for glob, line in self._settings.deny for command, simple in read if denies(glob, command, simple)
        )
        return next(denied, None)

    def _never(self, subject: Subject, hardline: Sequence[Finding]) -> str:
        what = "; ".join(dict.fromkeys(f"{one_line(self._clean(each.description))} ({each.id})" for each in hardline))
        return (
            f"{subject.tool_name} was blocked: {what}. Nobody can approve it, in no mode and by no allowlist. "
            "Don't retry or rephrase it."
        )

    def _asked(self, subject: Subject, who: str, ask: Ask) -> Finding:
        """A question of a hook or of the tool itself, as a finding: what it is granted by is `plugin:key`."""
        key = ask.key
        if key is None or not key.isprintable() or not 0 < len(key) <= _LONGEST_KEY:
            exactly = digest(f"{subject.tool_name}\n{ask.reason}\n{key}", subject.args)
            key = f"{subject.tool_name}#{exactly[:16]}"
        return Finding(f"{who}:{key}", "dangerous", ask.reason, "policy", (0, 0))

    def _question(
        self, subject: Subject, findings: Sequence[Finding], needs: tuple[Finding, ...], granted: Mapping[str, str]
    ) -> Question:
        command = subject.verdict.command or None if subject.verdict is not None else None
        found = tuple(
            shown_finding(finding, command, granted=finding.id in granted, clean=self._clean) for finding in findings
        )
        reasons = dict.fromkeys(shown_reason(ask.reason, self._clean) for _, ask in subject.asks)
        request = ApprovalRequest(
            f"apr_{os.urandom(8).hex()}", subject.session_id, subject.tool_name,
            shown_call(command, subject.args, self._clean), found, "\n".join(reasons), time.time() + self._timeout,
            digest(subject.tool_name, subject.args), lasting_entries(needs, command),
        )  # fmt: skip
        return Question(request, subject.session, needs, command, wants_person=bool(subject.asks))


def _findings(verdict: Verdict) -> tuple[Finding, ...]:
    """A verdict's findings; one that says how bad it is and not why has one of its own."""
    if verdict.level == "safe" or any(finding.level == verdict.level for finding in verdict.findings):
        return verdict.findings
    return (
        *verdict.findings,
        Finding("unexplained", verdict.level, f"{verdict.level}, as the tool says", "tool", (0, 0)),
    )
