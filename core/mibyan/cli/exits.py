"""What a command ends with, in one place (api.md, "Command line")."""

from __future__ import annotations

from typing import Final

from mibyan.errors import MibyanError

OK: Final = 0
#: The result's status is error, timeout or cancelled; or the answer couldn't be written.
FAILED: Final = 1
#: Usage or configuration.
USAGE: Final = 2
#: Blocked, denied, untrusted; with `--strict` a plugin that isn't ready or an unknown toolset.
REFUSED: Final = 3

#: The exit code of `mibyan call` by the result's status.
OF_STATUS: Final = {
    "ok": OK,
    "error": FAILED,
    "timeout": FAILED,
    "cancelled": FAILED,
    "blocked": REFUSED,
    "denied": REFUSED,
}


class UsageError(MibyanError):
    """The words of the command line can't be understood: the command ends with 2, and points to its help.

    Args:
        message: What is wrong with them.
        path: The command whose help says more, `mibyan` first; empty: the one that runs.
    """

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class RefusedError(MibyanError):
    """Something isn't allowed: the command ends with 3."""
