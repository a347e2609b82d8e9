"""Being asked to end: what runs is cancelled and cleaned up first, and asking again doesn't interrupt that."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

#: Ctrl-C, `kill`, and a terminal that goes away.
_NAMES: Final = ("SIGINT", "SIGTERM", "SIGHUP")
#: Seconds for cleaning up, in which asking again changes nothing: half a clean-up would leave processes behind.
PATIENCE: Final = 5.0


class Terminated(KeyboardInterrupt):
    """A signal other than Ctrl-C's asked the process to end.

    Args:
        number: The signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def ends_cleanly() -> Iterator[None]:
    """While this lasts those signals raise `KeyboardInterrupt`, `Terminated` where it wasn't Ctrl-C.

    One that the parent has set to be ignored stays so (nohup), and one that somebody else handles stays theirs.
    """
    taken: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
        usual = (signal.SIG_DFL, signal.default_int_handler)
        taken = {number: signal.getsignal(number) for number in numbers if signal.getsignal(number) in usual}
    ending = _Ending()
    for number in taken:
        signal.signal(number, ending)
    try:
        yield
    finally:
        for number, before in taken.items():
            signal.signal(number, before)


class _Ending:
    """What a signal does: the first raises, and so does one that comes when there was time enough to clean up."""

    def __init__(self) -> None:
        self._since: float | None = None

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._since is not None and now - self._since < PATIENCE:
            return
        self._since = now
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)
