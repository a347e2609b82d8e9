"""Leaving the process: a thread that some plugin has left running doesn't keep it open for ever."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from typing import NoReturn

from mibyan.cli.output import say
from mibyan.text import one_line

#: Seconds that such threads have to end.
PATIENCE = 10.0
#: Seconds after which a person is told what is waited for.
_SOON = 1.0


def leave(code: int) -> int:
    """Wait for threads that would keep the interpreter from ending; where they don't end, end without them.

    Args:
        code: What the process ends with.

    Returns:
        `code`, when nothing is left that would hold the process. Else it doesn't return.
    """
    try:
        if not _waited(_SOON):
            names = ", ".join(one_line(thread.name, 60) for thread in _threads())
            say(
                f"mibyan: waiting up to {PATIENCE:g} s for threads that a plugin has started: {names} (Ctrl-C: don't wait)"
            )
            if not _waited(PATIENCE - _SOON):
                _end_without_them(code)
    except KeyboardInterrupt:
        _end_without_them(code)
    return code


def _threads() -> list[threading.Thread]:
    """The threads that the interpreter would wait for."""
    return [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]


def _waited(seconds: float) -> bool:
    """Wait for them; whether they have ended."""
    until = time.monotonic() + seconds
    for thread in _threads():
        thread.join(max(0.0, until - time.monotonic()))
    return not _threads()


def _end_without_them(code: int) -> NoReturn:
    """What the interpreter does at its end, but for waiting."""
    import atexit

    with suppress(BaseException):  # whatever a plugin has registered
        atexit._run_exitfuncs()  # there is no public name for it
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
