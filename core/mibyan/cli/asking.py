"""The terminal as the channel for approvals: a person sees what would run and says yes, or it doesn't."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mibyan.cli.output import is_terminal, say
from mibyan.text import describe_exception, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.approvals import ApprovalRequest, Approvals

#: Seconds after which the terminal is looked at again: a Ctrl-C that comes just before the wait begins doesn't end it.
_GLANCE = 0.5

#: Characters of what would run that fit on a screen; of more the beginning and the end are shown, and how much isn't.
_SHOWN = 6000


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
    """Asks on the terminal, one question at a time; all but a yes is a no: other text, the end of input, Ctrl-C, silence.

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
            self._asking = True
            try:
                answer = ask_yes_no(_question(request), until=request.expires, wake=self._ears and self._ears[0])
            except Exception as error:  # whatever is wrong with this terminal
                say(f"mibyan: error: can't ask here: {one_line(describe_exception(error))}")
                answer = False
            finally:
                self._asking = False
        if answer is not None:
            self._approvals.resolve(request.id, "once" if answer else "deny")


def ask_yes_no(question: str, *, until: float = float("inf"), wake: int | None = None) -> bool | None:
    """Ask a person at the terminal.

    Args:
        question: What is asked, over one or more lines; it is shown as it is, but for what could play tricks.
        until: Moment of `time.time()` after which nobody waits any more.
        wake: A descriptor that becomes readable when somebody presses Ctrl-C.

    Returns:
        Whether the answer was a yes; `None`: there was none in time.
    """
    say(question, end=" [y/N] ")
    line = _read_line(until, wake)
    if line is None or not line.endswith("\n"):
        say("")  # The answer's own line end is missing.
    return None if line is None else line.strip().lower() in {"y", "yes"}


def _read_line(until: float, wake: int | None) -> str | None:
    """A line of the terminal, without its end if it was ended otherwise; `None` when nobody typed in time.

    Not with `sys.stdin`: a thread that waits in there holds its lock, and the interpreter can't end.
    """
    if os.name == "nt":  # There select knows sockets only.
        return sys.stdin.readline()
    terminal = sys.stdin.fileno()
    line = b""
    while not line.endswith(b"\n"):
        left = until - time.time()
        if left <= 0:
            return None
        ready, _, _ = select.select([terminal, *([] if wake is None else [wake])], [], [], min(left, _GLANCE))
        if wake is not None and wake in ready:
            os.read(wake, 1)
            return ""
        if terminal in ready:
            piece = os.read(terminal, 4096)
            if not piece:
                return ""
            line += piece
    return line.decode("utf-8", "replace")


def _question(request: ApprovalRequest) -> str:
    """What a person must know to decide; what isn't ours is set in, so that it can't pose as the question."""
    parts = [f"{request.tool_name} wants to run:", _set_in(request.text)]
    if request.reason:
        parts += ["Why you are asked:", _set_in(request.reason)]
    for finding in request.findings:
        parts += ["What was found:", _set_in(str(finding.get("description") or finding.get("id")))]
    return "\n".join([*parts, "Allow it this once?"])


def _set_in(text: str) -> str:
    return "\n".join(f"    {line}" for line in _shortened(text).splitlines())


def _shortened(text: str) -> str:
    if len(text) <= _SHOWN:
        return text
    half = _SHOWN // 2
    left_out = len(text) - 2 * half
    return (
        f"{text[:half]}\n… {left_out:,} characters aren't shown here; say no if you don't know them …\n{text[-half:]}"
    )
