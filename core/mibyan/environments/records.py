"""What goes into an environment and what comes out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mibyan.errors import MibyanError
from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Callable

#: How a command ended: by itself, at its deadline, or because nobody waits for it any more.
EndedBy: TypeAlias = Literal["exit", "timeout", "cancelled"]


class BackendError(MibyanError):
    """An environment can't be made, or can't do what it is asked for; no command's own failure."""


def _nothing() -> frozenset[str]:
    return frozenset()


@record(eq=False)
class EnvironmentContext:
    """What a backend's class is made with: `Class(context)`, once for each task of a session."""

    #: The session and the task within it that it belongs to; `None`: the session itself.
    session_id: str = "default"
    task_id: str | None = None
    #: The directory of this machine that the host has set for the session or the task; `None`: none was.
    cwd: str | None = None
    #: The section `terminal` of the configuration; `None`: everything has its default.
    settings: Any = None
    #: Gives the names of variables that hold secrets, beside those whose names look so (terminal.E5).
    secret_names: Callable[[], frozenset[str]] = field(default=_nothing)


@record
class CommandResult:
    """How a command went."""

    #: Its exit code; 128 + n after signal n.
    exit_code: int
    #: Standard output and error in the order in which they were written, as far as it was kept; empty, if
    #: `on_output` has taken it.
    output: bytes = b""
    ended_by: EndedBy = "exit"
    #: Seconds from its start to its end.
    duration: float = 0.0
    #: The directory that it ended in, else the one that it began in; a path of the machine it ran on.
    cwd: str = ""
    #: Bytes that were left out of the middle of `output`.
    omitted: int = 0
    #: What whoever gave the command should know: its directory was gone, so that it ran in another.
    note: str | None = None

    @property
    def text(self) -> str:
        """The output as UTF-8; what isn't becomes U+FFFD."""
        return self.output.decode("utf-8", "replace")
