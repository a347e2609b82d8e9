"""`Approvals`: the one broker between what needs a yes and the person who may give it.

Library code never prompts: a runtime has no channel until its host sets one, and then what needs approval is denied.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from mibyan.records import field, record
from mibyan.report import Decision, DecisionLog
from mibyan.schema.jsontext import to_json
from mibyan.text import bounded, describe_exception, visible

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from mibyan.hooks.decisions import Ask

log = logging.getLogger("mibyan.approvals")

#: The answers that a person can give; anything else is a denial.
ANSWERS: Final = ("once", "session", "always", "deny")

_NOT_AGAIN: Final = "Don't retry or rephrase it; go on without it or ask the user."


@record
class ApprovalRequest:
    """A question to a person."""

    id: str
    session_id: str
    tool_name: str
    #: What would be done, as it would be done, with control and bidirectional characters made visible.
    text: str
    #: What was found about it: `{"id", "level", "description", ...}`.
    findings: tuple[Mapping[str, Any], ...] = ()
    reason: str = ""
    #: Moment of `time.time()` after which silence is a denial.
    expires: float = 0.0


@record
class Approval:
    """What became of a question."""

    granted: bool
    #: `once`, `session`, `always`, `deny`, `timeout`, `no_channel`, `failed` or `closed`.
    how: str
    #: For the model, when it wasn't granted.
    message: str = ""


@record(frozen=False, eq=False)
class _Waiting:
    request: ApprovalRequest
    answered: threading.Event = field(default_factory=threading.Event)
    answer: str | None = None


#: Told of each request; it answers by `resolve`, now or later, from any thread.
Channel: TypeAlias = Callable[[ApprovalRequest], Any]


#: What would have let a call through that was denied, by how it was.
_FIXES = {
    "no_channel": "`mibyan call NAME … --yes` grants once; a host sets `Runtime.approvals.notify(callback)`.",
    "deny": "Answer `once`, `session` or `always` when it asks again.",
    "timeout": "Answer in time, or allow more of it: `mibyan config set approvals.timeout SECONDS`.",
}


class Approvals:
    """The questions of one runtime.

    Args:
        timeout: Seconds after which silence is a denial.
        log: Where denials are recorded.
        run_async: Starts the awaitable that an async channel gives, without waiting for it.
        clean: Takes secrets out of a text.
    """

    def __init__(
        self,
        timeout: float = 300.0,
        *,
        log: DecisionLog | None = None,
        run_async: Callable[[Awaitable[Any]], None] | None = None,
        clean: Callable[[str], str] = str,
    ) -> None:
        self._timeout = timeout
        self._decisions = DecisionLog() if log is None else log
        self._run_async = run_async
        self._clean = clean
        self._lock = threading.Lock()
        self._channel: Channel | None = None
        self._waiting: dict[str, _Waiting] = {}
        self._closed = False

    @property
    def patience(self) -> float:
        """Seconds after which nobody waits for a decision any more, not even for a channel that never comes back."""
        return self._timeout + 1.0

    def notify(self, callback: Channel | None) -> None:
        """Set the channel: a callback that is told of each `ApprovalRequest`, sync or async; `None` takes it away.

        Raises:
            TypeError: It isn't callable.
        """
        if callback is not None and not callable(callback):
            msg = f"notify takes a callable, not {type(callback).__name__}."
            raise TypeError(msg)
        with self._lock:
            self._channel = callback
            waiting = list(self._waiting.values()) if callback is None else []
        for held in waiting:
            self._settle(held, "deny")

    def pending(self, session_id: str | None = None) -> list[ApprovalRequest]:
        """The questions that wait for an answer, oldest first; of one session if its id is given."""
        with self._lock:
            requests = [held.request for held in self._waiting.values() if held.answer is None]
        return [request for request in requests if session_id is None or request.session_id == session_id]

    def resolve(self, request_id: str, answer: str) -> bool:
        """Answer a question, from any thread or task; never raises.

        Args:
            request_id: The request's `id`.
            answer: `once`, `session`, `always` or `deny`; anything else is a denial.

        Returns:
            Whether it was still waiting.
        """
        with self._lock:
            held = self._waiting.get(request_id) if isinstance(request_id, str) else None
        return held is not None and self._settle(
            held, answer if isinstance(answer, str) and answer in ANSWERS else "deny"
        )

    def request(self, session_id: str, tool_name: str, args: Mapping[str, Any], ask: Ask) -> ApprovalRequest:
        """The question whether a tool may run with these arguments."""
        command = args.get("command")
        text = command if isinstance(command, str) and set(args) == {"command"} else to_json(dict(args))
        return ApprovalRequest(
            f"apr_{os.urandom(8).hex()}", session_id, tool_name, visible(text), (), visible(bounded(ask.reason, 2000)),
            time.time() + self._timeout,
        )  # fmt: skip

    def decide(self, request: ApprovalRequest) -> Approval:
        """Ask and wait for the answer on this thread."""
        channel = self._channel
        if channel is None or self._closed:
            return self._denied(request, "no_channel",
                                "nobody is there to approve it (no approval channel is set; `mibyan call --yes` grants "
                                "once, a host sets Runtime.approvals.notify)")  # fmt: skip
        held = _Waiting(request)
        with self._lock:
            self._waiting[request.id] = held
        try:
            self._tell(channel, held)
            held.answered.wait(self._timeout)
        finally:
            with self._lock:
                self._waiting.pop(request.id, None)
        return self._judge(held)

    def expire(self, request: ApprovalRequest) -> Approval:
        """Nobody waits for this answer any more: silence was a denial."""
        with self._lock:
            held = self._waiting.pop(request.id, None)
        if held is not None:
            self._settle(held, "timeout")
        return self._silence(request)

    def close(self) -> None:
        """Deny what is waiting and everything to come."""
        self._closed = True
        self.notify(None)

    def after_fork(self) -> None:
        """In a child process: who waits for an answer waits in the parent."""
        self._lock = threading.Lock()
        self._waiting = {}

    def _tell(self, channel: Channel, held: _Waiting) -> None:
        try:
            answer = channel(held.request)
            if hasattr(type(answer), "__await__"):
                if self._run_async is None:
                    msg = "an async channel needs a runtime"
                    raise TypeError(msg)
                self._run_async(answer)
        except KeyboardInterrupt:
            self._settle(held, "deny")
            raise
        except BaseException as error:
            why = bounded(self._clean(describe_exception(error)), 500)
            log.warning("The approval channel failed: %s. The request is denied.", why)
            self._settle(held, "deny")

    def _settle(self, held: _Waiting, answer: str) -> bool:
        with self._lock:
            if held.answer is not None:
                return False
            held.answer = answer
        held.answered.set()
        return True

    def _judge(self, held: _Waiting) -> Approval:
        with self._lock:
            # An answer that comes now is too late: the judgement is made once.
            answer = held.answer = held.answer or "timeout"
        if answer in {"once", "session", "always"}:
            return Approval(granted=True, how=answer)
        if answer == "timeout":
            return self._silence(held.request)
        return self._denied(held.request, "deny", "it was denied")

    def _silence(self, request: ApprovalRequest) -> Approval:
        return self._denied(
            request, "timeout", f"nobody answered within {self._timeout:g} s, and silence isn't consent"
        )

    def _denied(self, request: ApprovalRequest, how: str, why: str) -> Approval:
        message = f"{request.tool_name} wasn't approved: {why}. {_NOT_AGAIN}"
        self._decisions.add(
            Decision("denied", f"tool:{request.tool_name}", f"Denied ({how}): {why}.", fix=_FIXES.get(how))
        )
        return Approval(granted=False, how=how, message=message)
