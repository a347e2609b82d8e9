"""`CommandProcess`: a command that an environment has started."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds that processes have to end by themselves between SIGTERM and SIGKILL.
GRACE = 0.5
#: Seconds between two looks at what has no event to wait for.
TICK = 0.02


class CommandProcess(ABC):
    """A started command: its output, its input, its end.

    One thread reads; the other methods may be called by any. Nothing here says that it runs on this machine.
    """

    #: What its environment knows it by.
    id: str
    #: Its process id on the machine it runs on, where there is one.
    pid: int | None = None
    #: The directory it was started in.
    directory: str = ""
    #: What whoever gave the command should know.
    note: str | None = None

    @abstractmethod
    def poll(self) -> int | None:
        """The exit code (128 + n after signal n); `None` while it runs. Never waits, whoever holds its output open."""

    @abstractmethod
    def read(self, timeout: float = 0.0) -> bytes | None:
        """The next piece of its output.

        Args:
            timeout: Seconds to wait for one; the end of the command ends the wait too.

        Returns:
            What came, `b""` if nothing did, `None` when there is no more to come (then it has waited as well).
        """

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Give it input, after what it was given before; doesn't wait until it is read.

        Raises:
            BackendError: Its input is closed.
        """

    @abstractmethod
    def close_stdin(self) -> None:
        """End its input, once what was given has been read; on a terminal as Ctrl-D does."""

    @abstractmethod
    def resize(self, rows: int, columns: int) -> None:
        """Tell its terminal's size in characters; without a terminal nothing happens."""

    @abstractmethod
    def signal(self, number: int) -> None:
        """Send a signal to the command's process group; nothing happens when it has ended."""

    @abstractmethod
    def kill(self, grace: float = GRACE) -> None:
        """End it and every process that it has started, wherever they went; returns when they are gone.

        Args:
            grace: Seconds between SIGTERM and SIGKILL.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of it: descriptors and connections. It isn't ended. A second time does nothing."""

    @property
    def cwd(self) -> str | None:
        """The directory that the shell ended in; `None`: it isn't known."""
        return None

    def wait(self, timeout: float | None = None, cancelled: Callable[[], bool] | None = None) -> int | None:
        """Wait for its end; somebody else must read its output meanwhile.

        Args:
            timeout: Seconds; `None`: for ever.
            cancelled: Asked again and again; true ends the wait.

        Returns:
            The exit code, or `None` when the wait ended before the command did.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left = TICK if until is None else until - time.monotonic()
            if left <= 0 or (cancelled is not None and cancelled()):
                return None
            time.sleep(min(left, TICK))
        return code
