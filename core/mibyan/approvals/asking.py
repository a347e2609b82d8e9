"""`Asking`: one question on its way: the hooks around it, the model of mode smart, the channel, what is kept of the answer."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from mibyan.approvals.requests import ANSWERS, ApprovalRequest, Question
from mibyan.records import field, record, replace
from mibyan.text import bounded, describe_exception

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from mibyan.approvals.deciding import Deciding

log = logging.getLogger("mibyan.approvals")

#: Told of each request; it answers by `resolve`, now or later, from any thread, or by returning the answer.
Channel: TypeAlias = Callable[[ApprovalRequest], Any]
#: Runs the implementations of a hook: `(hook, session, values)`.
Observe: TypeAlias = "Callable[[str, Any, Mapping[str, Any]], None]"

#: What hooks are told of an answer; everything else was granted.
_OUTCOMES: Final = {"deny": "denied", "timeout": "timeout", "no_channel": "no_channel", "cancelled": "cancelled"}


@record(frozen=False, eq=False)
class Waiting:
    """A question that a person is asked; all who ask the same at the same time wait for its answer.

    The first of them leads: it asks, hears what is said, keeps what was granted, and lets the others go on.
    """

    question: Question
    #: Those who wait.
    waiters: set[Question] = field(default_factory=set)
    #: Whether the channel knows of it.
    told: bool = False
    #: What was said first: one of `ANSWERS`, or `smart`, `timeout`, `no_channel`, `cancelled`; and the glob with it.
    said: str | None = None
    glob: str | None = None
    heard: threading.Event = field(default_factory=threading.Event)
    #: What came of it.
    answer: str | None = None
    answered: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, answer: str, glob: str | None = None) -> bool:
        """Answer; whether nobody had."""
        with self.lock:
            if self.said is not None:
                return False
            self.said, self.glob = answer, glob
        self.heard.set()
        return True

    def let_go(self, answer: str) -> None:
        """What came of it, for all who wait; only the first time counts."""
        with self.lock:
            self.said = self.said or answer
            self.answer = self.answer or answer
        self.heard.set()
        self.answered.set()


class Asking:
    """Asks one question after the other, each on the thread of who leads it.

    Args:
        timeout: Seconds that a person has.
        channel: Gives the channel; `None`: nobody is there.
        deciding: Gives what keeps grants, and the model.
        run_async: Starts the awaitable that an async channel gives, without waiting for it.
        observe: Runs the hooks.
        clean: Takes secrets out of a text.
    """

    def __init__(
        self,
        timeout: float,
        *,
        channel: Callable[[], Channel | None],
        deciding: Callable[[], Deciding],
        run_async: Callable[[Awaitable[Any]], None] | None = None,
        observe: Observe | None = None,
        clean: Callable[[str], str] = str,
    ) -> None:
        self._timeout = timeout
        self._channel = channel
        self._deciding = deciding
        self._run_async = run_async
        self._observe = observe
        self._clean = clean

    def lead(self, held: Waiting) -> None:
        """Ask for all who wait for this answer, wait for it here, and let them go on."""
        self._tell_hooks("pre_approval_request", held, {"request": held.question.request})
        if held.said is None and self._model_approves(held.question):
            held.say("smart")
        if held.said is None:
            self._ask_person(held)
        if not held.heard.wait(self._timeout):
            held.say("timeout")
        answer = held.said or "timeout"
        if held.glob is not None and not _fits(held.question, held.glob):
            answer = "deny"
        if answer in {"session", "always"}:
            self._deciding().keep(held.question, answer, held.glob)
        held.let_go(answer)
        values = {"request": held.question.request, "answer": answer if answer in ANSWERS else "",
                  "outcome": _OUTCOMES.get(answer, "granted")}  # fmt: skip
        self._tell_hooks("post_approval_response", held, values)

    def _ask_person(self, held: Waiting) -> None:
        # Hooks and a model may have taken their time: it isn't the person's.
        request = replace(held.question.request, expires=time.time() + self._timeout)
        with held.lock:
            held.question = replace(held.question, request=request)
            channel = self._channel()
            held.told = channel is not None
        if channel is None:
            held.say("no_channel")
        else:
            self._tell(channel, held)

    def _tell(self, channel: Channel, held: Waiting) -> None:
        try:
            answer = channel(held.question.request)
            if hasattr(type(answer), "__await__"):
                if self._run_async is None:
                    msg = "an async channel needs a runtime"
                    raise TypeError(msg)
                self._run_async(self._awaited(answer, held))
            elif isinstance(answer, str) and answer in ANSWERS:
                held.say(answer)
        except KeyboardInterrupt:
            held.say("deny")
            raise
        except BaseException as error:
            self._failed(held, error)

    async def _awaited(self, answer: Any, held: Waiting) -> None:
        """What an async channel does; it may answer by what it returns."""
        try:
            said = await answer
            if isinstance(said, str) and said in ANSWERS:
                held.say(said)
        except BaseException as error:
            self._failed(held, error)
            if not isinstance(error, Exception):
                raise

    def _failed(self, held: Waiting, error: BaseException) -> None:
        why = bounded(self._clean(describe_exception(error)), 500)
        log.warning("The approval channel failed: %s. The request is denied.", why)
        held.say("deny")

    def _model_approves(self, question: Question) -> bool:
        """In mode smart: whether the model approves this one call."""
        model = self._deciding().model
        if model is None or not model.may_decide(question):
            return False
        from mibyan.approvals.smart import SmartError

        try:
            return model.approves(question)
        except SmartError as error:
            log.warning("approvals.mode smart: %s. A person is asked.", error)
            return False

    def _tell_hooks(self, hook: str, held: Waiting, values: Mapping[str, Any]) -> None:
        if self._observe is None:
            return
        try:
            self._observe(hook, held.question.session, values)
        except Exception as error:
            log.warning("%s failed: %s", hook, bounded(self._clean(describe_exception(error)), 500))


def _fits(question: Question, glob: str) -> bool:
    """Whether a glob may be kept for good: it covers the very command."""
    if question.command is None:
        return False
    from mibyan.approvals.globs import admits
    from mibyan.approvals.simple_commands import simple_commands

    listed = simple_commands(question.command)
    return admits(glob, question.command, listed.texts if listed.complete else None)
