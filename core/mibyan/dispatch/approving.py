"""A call's approval: what its hooks and its tool ask and judge, and what became of that (terminal.P1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.dispatch import answers
from mibyan.dispatch.arguments import copy_arguments
from mibyan.dispatch.policy import read_approval
from mibyan.dispatch.steps import NonsenseError, Outcome, Step, StepFailed, Steps, StepTimeout
from mibyan.hooks.decisions import Ask, Block
from mibyan.records import record

if TYPE_CHECKING:
    from mibyan.approvals.broker import Approvals
    from mibyan.approvals.requests import Question
    from mibyan.approvals.verdict import Verdict
    from mibyan.dispatch.arguments import Prepared
    from mibyan.dispatch.call import Call
    from mibyan.dispatch.handlers import HandlerSteps
    from mibyan.dispatch.policy import Ballot
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.results import ToolResult

#: Times that a call is judged anew because what was found has changed meanwhile.
_ROUNDS = 3


class Refused(Exception):  # noqa: N818 - becomes the answer
    """A step refused the call; carries the answer."""

    def __init__(self, answer: ToolResult) -> None:
        super().__init__(answer.error)
        self.answer = answer


@record
class Approved:
    """What a call was approved for: the very verdict, and the findings that a person granted for this call."""

    verdict: Verdict | None = None
    granted: frozenset[str] = frozenset()
    #: Whether a person was waited for.
    waited: bool = False


class ApprovalSteps:
    """The approval of calls of one runtime.

    Args:
        approvals: Decides, and asks.
        handlers: Say what a tool may know about its call.
    """

    def __init__(self, approvals: Approvals, handlers: HandlerSteps) -> None:
        self._approvals = approvals
        self._handlers = handlers

    def approve(self, call: Call, entry: ToolEntry, ballot: Ballot | None, prepared: Prepared) -> Steps:
        """Have a call approved with the arguments that will run: one question about all that needs a yes.

        Returns:
            What it was approved for.

        Raises:
            Refused: It isn't.
        """
        asks = [] if ballot is None else list(ballot.asks)
        said = None if entry.approval is None else (yield from self._said(call, entry, prepared))
        if isinstance(said, Ask):
            asks.append((str(entry.owner.id), said))
            said = None
        return (yield from self._settle(call, asks, said, prepared, frozenset()))

    def confirm(self, call: Call, entry: ToolEntry, prepared: Prepared, approved: Approved, *, moved: bool) -> Steps:
        """Judge once more what was judged, where time has passed since: what runs is what was approved.

        Args:
            call: The call.
            entry: Its tool.
            prepared: The arguments that will run.
            approved: What it was approved for.
            moved: Whether other calls ran meanwhile.
        """
        for _ in range(_ROUNDS):
            if approved.verdict is None or not (moved or approved.waited):
                return
            said = yield from self._said(call, entry, prepared)
            if said == approved.verdict:
                return
            call.note("judged_again")
            asks = [(str(entry.owner.id), said)] if isinstance(said, Ask) else []
            verdict = None if isinstance(said, Ask) else said
            approved = yield from self._settle(call, asks, verdict, prepared, approved.granted)
        raise Refused(answers.blocked(call, f"Blocked: what {entry.name} would do keeps changing.", "approvals"))

    def _said(self, call: Call, entry: ToolEntry, prepared: Prepared) -> Steps:
        """What the tool's own approval says: `None`, an `Ask` or a `Verdict`; a `Block` ends the call."""
        context = self._handlers.context(call, entry)
        outcome = yield Step(entry.approval, (copy_arguments(prepared.args), context), owner=entry.owner,  # type: ignore[arg-type]
                             label=f"the approval of {entry.name}", finish=read_approval)  # fmt: skip
        if isinstance(outcome.error, StepFailed | NonsenseError):
            message = f"Blocked: the approval check of {entry.name} failed ({outcome.error})."
            raise Refused(answers.blocked(call, message, entry.owner.id))
        said = _value(outcome)
        if isinstance(said, Block):
            raise Refused(answers.blocked(call, said.message, entry.owner.id))
        return said

    def _settle(
        self,
        call: Call,
        asks: list[tuple[str, Ask]],
        verdict: Verdict | None,
        prepared: Prepared,
        granted: frozenset[str],
    ) -> Steps:
        if not asks and (verdict is None or (verdict.level == "safe" and not self._approvals.denies)):
            return Approved(verdict, granted)
        ruling = yield from self.rule(call, asks, verdict, prepared, granted)
        if ruling.kind == "block":
            found = [] if verdict is None else [finding.to_dict() for finding in verdict.findings]
            raise Refused(answers.blocked(call, ruling.message, ruling.by, findings=found or None))
        if ruling.kind == "run":
            if ruling.granted:
                call.note("approval", granted=True, how="granted", by=dict(ruling.granted))
            return Approved(verdict, granted)
        yield from self._ask(call, ruling.question)
        return Approved(verdict, granted | {finding.id for finding in ruling.question.findings}, waited=True)

    def rule(
        self, call: Call, asks: list[tuple[str, Ask]], verdict: Verdict | None, prepared: Prepared,
        granted: frozenset[str] = frozenset(),
    ) -> Steps:  # fmt: skip
        """What is decided about a call before anybody is asked."""
        from mibyan.approvals.policy import Subject

        subject = Subject(call.session, call.session.id, call.name, prepared.args, tuple(asks), verdict, granted)
        # It may read config.yaml and start the parser: not on an event loop.
        return _value((yield Step(self._approvals.rule, (subject,), label=f"the approval of {call.name}")))

    def _ask(self, call: Call, question: Question) -> Steps:
        """Ask a person; the broker says when silence is a denial, also where its channel never comes back."""
        outcome = yield Step(self._approvals.decide, (question,), label=f"the approval of {call.name}", person=True,
                             limit=self._approvals.patience)  # fmt: skip
        if isinstance(outcome.error, StepTimeout):
            approval = self._approvals.expire(question)
        else:
            if outcome.error is not None:
                self._approvals.abandon(question)
            approval = _value(outcome)
        call.note("approval", request=question.request.id, granted=approval.granted, how=approval.how)
        if not approval.granted:
            raise Refused(answers.denied(call, approval.message))


def _value(outcome: Outcome) -> Any:
    """The value of a step.

    Raises:
        BaseException: What ended the call.
        StepFailed: The step's code raised.
    """
    if outcome.error is not None:
        raise outcome.error
    return outcome.value
