"""`typed_line`: a line that a person types at the terminal, or why there is none."""

from __future__ import annotations

import os
import select
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Callable

#: How typing ended: with a line, with the end of input, with Ctrl-C, by nobody typing in time, or because nobody wants
#: to know any more.
End: TypeAlias = Literal["line", "end", "interrupt", "silence", "settled"]

#: Seconds after which the terminal is looked at again: a Ctrl-C that comes just before the wait begins doesn't end it.
_GLANCE: Final = 0.5


@record
class Typed:
    """What somebody typed."""

    end: End
    #: Without its line end; empty unless `end` is `line`.
    text: str = ""


def typed_line(until: float = float("inf"), wake: int | None = None, wanted: Callable[[], bool] | None = None) -> Typed:
    """Wait for a line at standard input.

    Not with `sys.stdin`: a thread that waits in there holds its lock, and the interpreter can't end.

    Args:
        until: Moment of `time.time()` after which nobody waits any more.
        wake: A descriptor that becomes readable when somebody presses Ctrl-C.
        wanted: Whether somebody still wants to know; asked now and then.
    """
    if os.name == "nt":  # There select knows sockets only.
        text = sys.stdin.readline()
        return _typed(text.encode())
    terminal = sys.stdin.fileno()
    line = b""
    while not line.endswith(b"\n"):
        left = until - time.time()
        if left <= 0:
            return Typed("silence")
        if wanted is not None and not wanted():
            return Typed("settled")
        ready, _, _ = select.select([terminal, *([] if wake is None else [wake])], [], [], min(left, _GLANCE))
        if wake is not None and wake in ready:
            os.read(wake, 1)
            return Typed("interrupt")
        if terminal in ready:
            piece = _read(terminal)
            if not piece:
                break
            line += piece
    return _typed(line)


def _read(terminal: int) -> bytes:
    """What there is; nothing once the terminal has gone away."""
    with suppress(OSError):
        return os.read(terminal, 4096)
    return b""


def _typed(line: bytes) -> Typed:
    """A line that was ended by the line end; what the end of input has ended is no answer."""
    return Typed("line", line.decode("utf-8", "replace").rstrip("\r\n")) if line.endswith(b"\n") else Typed("end")


def forget_typed() -> None:
    """Throw away what was typed before anything was asked: nobody has seen the question yet."""
    with suppress(Exception):  # no terminal, or none of POSIX's
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
