"""`Approvals`: the one broker between what needs a yes and the person who may give it.

Library code never prompts: a runtime has no channel until its host sets one, and then what needs approval is denied.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from mibyan.approvals.asking import Asking, Channel, Observe, Waiting
from mibyan.approvals.requests import ANSWERS, Approval, ApprovalRequest, Question
from mibyan.report import Decision, DecisionLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mibyan.approvals.allowlist import Allowlist
    from mibyan.approvals.channel import ApprovalQueue
    from mibyan.approvals.deciding import Deciding
    from mibyan.approvals.operator_rules import OperatorRule
    from mibyan.approvals.policy import Ruling, Subject
    from mibyan.config.load import LoadedConfig

_NOT_AGAIN: Final = "Don't retry or rephrase it; go on without it or ask the user."

#: What would have let a call through that was denied, by how it was.
_FIXES: Final = {
    "no_channel": "`mibyan call NAME … --yes` grants once; a host sets `Runtime.approvals.notify(callback)`; `command_allowlist` "
    "in config.yaml allows for good, `mibyan config set approvals.mode off` everything that isn't hardline.",
    "deny": "Answer `once`, `session` or `always` when it asks again.",
    "timeout": "Answer in time, or allow more of it: `mibyan config set approvals.timeout SECONDS`.",
}
_WHY: Final = {
    "deny": "it was denied",
    "no_channel": "nobody is there to approve it (no approval channel is set; `mibyan call --yes` grants once, a host sets "
    "Runtime.approvals.notify, command_allowlist or approvals.mode in config.yaml allow without asking)",
}


class Approvals:
    """The questions of one runtime.

    Args:
        timeout: Seconds after which silence is a denial.
        config: What the operator said; `None`: the defaults.
        log: Where denials are recorded.
        run_async: Starts the awaitable that an async channel gives, without waiting for it.
        clean: Takes secrets out of a text.
        observe: Runs the hooks around a question.
        patience: Seconds that hooks may take beside the person.
    """

    def __init__(
        self,
        timeout: float = 300.0,
        *,
        config: LoadedConfig | None = None,
        log: DecisionLog | None = None,
        run_async: Callable[[Awaitable[Any]], None] | None = None,
        clean: Callable[[str], str] = str,
        observe: Observe | None = None,
        patience: Callable[[], float] = float,
    ) -> None:
        self._timeout = timeout
        self._config = config
        self._decisions = DecisionLog() if log is None else log
        self._clean = clean
        self._hooks_patience = patience
        self._made: Deciding | None = None
        self._lock = threading.Lock()
        self._channel: Channel | None = None
        self._queue: ApprovalQueue | None = None
        #: By what is asked, oldest first.
        self._waiting: dict[tuple[Any, ...], Waiting] = {}
        self._closed = False
        self._rules: tuple[OperatorRule, ...] | None = None
        self._asking = Asking(
            timeout, channel=lambda: None if self._closed else self._channel, deciding=self._deciding, run_async=run_async,
            observe=observe, clean=clean,
        )  # fmt: skip

    # For hosts ---------------------------------------------------------------------------------------------------

    @property
    def patience(self) -> float:
        """Seconds after which nobody waits for a decision any more, not even for a channel that never comes back."""
        settings = None if self._config is None else self._config.settings.approvals
        model = settings.smart_timeout if settings is not None and settings.mode == "smart" else 0.0
        return self._timeout + model + self._hooks_patience() + 1.0

    @property
    def allowlist(self) -> Allowlist:
        """What was allowed for good: `command_allowlist` of config.yaml, as it is now."""
        return self._deciding().allowlist

    def notify(self, callback: Channel | None) -> None:
        """Set the channel: a callback that is told of each `ApprovalRequest`, sync or async; `None` takes it away.

        It answers with `resolve`, now or later, or by returning one of the four answers. An async one runs on the
        runtime's own event loop; a host that has a loop of its own takes `queue()`. Taking it away denies what is waiting.

        Raises:
            TypeError: It isn't callable.
        """
        if callback is not None and not callable(callback):
            msg = f"notify takes a callable, not {type(callback).__name__}."
            raise TypeError(msg)
        self._set_channel(callback, None)

    def queue(self) -> ApprovalQueue:
        """Make a queue of questions the channel, in the place of the one that there was."""
        from mibyan.approvals.channel import ApprovalQueue

        made = ApprovalQueue(self)
        self._set_channel(made.put, made)
        return made

    def pending(self, session_id: str | None = None) -> list[ApprovalRequest]:
        """The questions that wait for an answer, oldest first; of one session if its id is given."""
        with self._lock:
            requests = [held.question.request for held in self._waiting.values() if held.told and held.said is None]
        return [request for request in requests if session_id is None or request.session_id == session_id]

    def is_open(self, request_id: str) -> bool:
        """Whether a question still waits for its answer."""
        return any(request.id == request_id for request in self.pending())

    def resolve(self, request_id: str, answer: str, *, glob: str | None = None) -> bool:
        """Answer a question, from any thread or task; never raises.

        Args:
            request_id: The request's `id`.
            answer: `once`: this call; `session`: what was found, for the rest of the conversation; `always`: for good, in
                `command_allowlist`; `deny`; anything else is a denial.
            glob: With `always`: what is allowed for good is not the rules but the commands that this glob covers; it must
                cover the one that was asked about, else it is a denial.

        Returns:
            Whether it was still waiting.
        """
        if not isinstance(request_id, str):
            return False
        with self._lock:
            held = next((one for one in self._waiting.values() if one.question.request.id == request_id), None)
        if held is None:
            return False
        kept = glob if isinstance(glob, str) and answer == "always" else None
        fine = isinstance(answer, str) and answer in ANSWERS and (glob is None or kept is not None)
        return held.say(answer if fine else "deny", kept)

    def granted(self, session: Any) -> frozenset[str]:
        """What a session was allowed until its end: rules' ids and `plugin:key` of questions, and commands."""
        return frozenset(grant.rpartition("\0")[2] for grant in self._deciding().grants.of(session))

    def revoke(self, session: Any) -> bool:
        """Take back all that a session was allowed; whether there was anything."""
        return self._deciding().grants.revoke(session)

    # For the pipeline --------------------------------------------------------------------------------------------

    @property
    def denies(self) -> bool:
        """Whether there are commands that the operator denies (`approvals.deny`), so that safe ones are looked at too."""
        return self._config is not None and bool(self._config.settings.approvals.deny)

    def configured_rules(self) -> tuple[OperatorRule, ...]:
        """The operator's own rules about commands (`approvals.rules`), checked when they are first needed.

        Raises:
            ConfigError: One isn't right; the message has its file and line.
        """
        if self._config is None or not self._config.settings.approvals.rules:
            return ()
        if self._rules is None:
            from mibyan.approvals.operator_rules import configured_rules

            self._rules = configured_rules(self._config)
        return self._rules

    @staticmethod
    def make_rule(*args: Any, **options: Any) -> OperatorRule:
        """A rule for a plugin; see `operator_rule`."""
        from mibyan.approvals.operator_rules import operator_rule

        return operator_rule(*args, **options)

    def rule(self, subject: Subject) -> Ruling:
        """What is decided about a call before anybody is asked."""
        ruling = self._deciding().policy.rule(subject)
        if ruling.kind == "block":
            self._decisions.add(Decision("blocked", f"tool:{subject.tool_name}", ruling.message, decided_by=ruling.by))
        return ruling

    def decide(self, question: Question) -> Approval:
        """Ask, and wait for the answer on this thread; who asks the same at the same time waits for the same answer."""
        with self._lock:
            if question.is_over:
                return self._told(question.request, "cancelled")
            held = self._waiting.get(question.key)
            leads = held is None or held.said is not None
            if held is None or leads:
                held = self._waiting[question.key] = Waiting(question)
            held.waiters.add(question)
        try:
            if leads:
                self._asking.lead(held)
            else:
                held.answered.wait(self.patience)
        finally:
            if leads:
                held.let_go("cancelled")
            self._left(held, question)
        return self._told(question.request, held.answer or "timeout")

    def abandon(self, question: Question) -> None:
        """Whoever asked doesn't wait any more; the question stays open for others who asked the same."""
        with self._lock:
            question.is_over = True
            held = self._waiting.get(question.key)
            over = held is not None and question in held.waiters and all(one.is_over for one in held.waiters)
        if held is not None and over:
            held.say("cancelled")

    def expire(self, question: Question) -> Approval:
        """Nobody waits for this answer any more: silence was a denial."""
        self.abandon(question)
        return self._told(question.request, "timeout")

    def close(self) -> None:
        """Deny what is waiting and everything to come."""
        self._closed = True
        self.notify(None)

    def after_fork(self) -> None:
        """In a child process: who waits for an answer waits in the parent."""
        self._lock = threading.Lock()
        self._waiting = {}
        if self._made is not None:
            self._made.after_fork()

    def leave(self, queue: ApprovalQueue) -> None:
        """For a queue: take it away, if it is the channel."""
        if self._queue is queue:
            self.notify(None)

    # ---------------------------------------------------------------------------------------------------------------

    def _deciding(self) -> Deciding:
        if self._made is None:
            from mibyan.approvals.deciding import Deciding

            made = Deciding(self._config, self._clean)
            with self._lock:
                self._made = self._made or made
        return self._made

    def _set_channel(self, channel: Channel | None, queue: ApprovalQueue | None) -> None:
        with self._lock:
            former, self._channel, self._queue = self._queue, channel, queue
            waiting = list(self._waiting.values()) if channel is None else []
        if former is not None:
            former.end()
        for held in waiting:
            held.say("deny")

    def _left(self, held: Waiting, question: Question) -> None:
        with self._lock:
            held.waiters.discard(question)
            if not held.waiters and self._waiting.get(question.key) is held:
                del self._waiting[question.key]

    def _told(self, request: ApprovalRequest, how: str) -> Approval:
        """What became of a question; a denial is recorded."""
        if how in {"once", "session", "always", "smart"}:
            return Approval(granted=True, how=how)
        why = _WHY.get(how, "whoever asked was interrupted")
        if how == "timeout":
            why = f"nobody answered within {self._timeout:g} s, and silence isn't consent"
        message = f"{request.tool_name} wasn't approved: {why}. {_NOT_AGAIN}"
        self._decisions.add(
            Decision("denied", f"tool:{request.tool_name}", f"Denied ({how}): {why}.", fix=_FIXES.get(how))
        )
        return Approval(granted=False, how=how, message=message)
