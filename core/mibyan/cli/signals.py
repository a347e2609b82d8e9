"""Being asked to end: what runs is cancelled and cleaned up first, as after Ctrl-C."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

#: `kill`, and a terminal that goes away.
_NAMES: Final = ("SIGTERM", "SIGHUP")


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
    """While this lasts those signals raise `Terminated`; one that the parent has set to be ignored stays so (nohup)."""
    taken = []
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
        taken = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _raise(number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated(number)
