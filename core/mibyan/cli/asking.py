"""The terminal as the channel for approvals: a person sees what would run and says yes, or it doesn't."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from mibyan.cli.approving.typing_line import forget_typed, typed_line
from mibyan.cli.output import is_terminal, say
from mibyan.text import describe_exception, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.approvals import ApprovalRequest, Approvals
    from mibyan.cli.approving.question import Question

#: Answers that are none after which it is denied.
TRIES: Final = 3

#: Why it is denied, by how typing ended.
_ENDS: Final = {
    "end": "the input has ended", "interrupt": "Ctrl-C", "silence": "nobody answered in time, and silence isn't consent",
    "settled": "it isn't asked any more",
}  # fmt: skip


@contextmanager
def approvals_answered(approvals: Approvals, *, yes: bool) -> Iterator[None]:
    """Let approvals be answered: granted once with `yes`, else asked on a terminal; without either they are denied."""
    if yes:
        approvals.notify(lambda request: approvals.resolve(request.id, "once"))
        yield
    elif can_ask():
        with TerminalChannel(approvals).listening() as channel:
            approvals.notify(channel)
            yield
    else:
        yield


def can_ask() -> bool:
    """Whether there is a person to ask: standard input and standard error are terminals."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


class TerminalChannel:
    """Asks on the terminal, one question at a time.

    Answers are `once`, `session`, `always` and `deny`, as `mibyan.cli.approving.question` reads them. What is no answer is asked
    again, `TRIES` times in all; then it is a denial, as are the end of input, Ctrl-C and silence.

    Args:
        approvals: Where the answers go.
    """

    def __init__(self, approvals: Approvals) -> None:
        self._approvals = approvals
        self._turn = threading.Lock()
        self._asking = False
        self._ears: tuple[int, int] | None = None
        self._otherwise: Any = None

    def __call__(self, request: ApprovalRequest) -> None:
        """Ask, on a thread of its own: the broker counts the time."""
        threading.Thread(target=self._ask, args=(request,), name="mibyan-prompt", daemon=True).start()

    @contextmanager
    def listening(self) -> Iterator[TerminalChannel]:
        """While this lasts Ctrl-C at a question is a no; elsewhere it is what it was."""
        self._ears = os.pipe()
        before: Any = None
        if threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGINT, self._interrupted)
            self._otherwise = before
        try:
            yield self
        finally:
            if before is not None:
                signal.signal(signal.SIGINT, before)
            # Nobody is asked any more: a question that is still open ends as denied.
            os.write(self._ears[1], b"\0")

    def _interrupted(self, number: int, frame: Any) -> None:
        if self._asking and self._ears is not None:
            os.write(self._ears[1], b"\0")
            return
        if callable(self._otherwise):  # not where the parent has set it to be ignored
            self._otherwise(number, frame)

    def _ask(self, request: ApprovalRequest) -> None:
        with self._turn:
            if not self._is_open(request):
                return
            self._asking = True
            try:
                answer = self._answer(request)
            except Exception as error:  # whatever is wrong with this terminal
                say(f"mibyan: error: can't ask here: {one_line(describe_exception(error))}")
                answer = "deny"
            finally:
                self._asking = False
        if answer is not None:
            self._approvals.resolve(request.id, answer)

    def _is_open(self, request: ApprovalRequest) -> bool:
        return any(one.id == request.id for one in self._approvals.pending())

    def _answer(self, request: ApprovalRequest) -> str | None:
        """What the person says; `None`: nothing in time."""
        from mibyan.cli.approving.question import Question
        from mibyan.cli.widths import width_of

        question = Question(request, width_of(sys.stderr))
        forget_typed()
        say(question.text())
        for _ in range(TRIES):
            answer = self._once_asked(question, request)
            while answer == "view":
                say(question.view())
                answer = self._once_asked(question, request)
            if answer != "again":
                return answer
        say(f"mibyan: denied: no answer in {TRIES} tries")
        return "deny"

    def _once_asked(self, question: Question, request: ApprovalRequest) -> str | None:
        """The answer to the question; `again` if it is none, `None` if nobody waits for it any more."""
        say(question.prompt(), end="")
        wake = self._ears and self._ears[0]
        typed = typed_line(request.expires, wake, lambda: self._is_open(request))
        if typed.end == "line":
            answer = question.answer(typed.text)
            if answer is None:
                say(question.again())
            return answer or "again"
        say(f"\nmibyan: denied: {_ENDS[typed.end]}")
        return None if typed.end in {"silence", "settled"} else "deny"


def ask_yes_no(question: str) -> bool:
    """Ask a person at the terminal; all but a yes is a no.

    Args:
        question: What is asked, over one or more lines; it is shown as it is, but for what could play tricks.
    """
    say(question, end=" [y/N] ")
    typed = typed_line()
    if typed.end != "line":
        say("")  # The answer's own line end is missing.
    return typed.text.strip().lower() in {"y", "yes"}
