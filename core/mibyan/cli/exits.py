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


class RefusedError(MibyanError):
    """Something isn't allowed: the command ends with 3."""
