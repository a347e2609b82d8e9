"""The environment that commands get: everything but secrets (terminal.E5)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

#: Names of variables that hold secrets.
SECRET = re.compile(r"(^|_)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)($|_)", re.IGNORECASE)

#: Files that a shell would read before the command, and that could bring the secrets back.
_SHELL_FILES = frozenset({"BASH_ENV", "ENV"})


def command_environment(
    environ: Mapping[str, str], *, secrets: Collection[str] = (), passthrough: Collection[str] = ()
) -> dict[str, str]:
    """The variables of `environ` that a command may see.

    Args:
        environ: The host's environment.
        secrets: Names of further variables that hold secrets.
        passthrough: Names of variables that are given all the same.
    """
    return {name: value for name, value in environ.items() if not is_withheld(name, secrets, passthrough)}


def is_withheld(name: str, secrets: Collection[str], passthrough: Collection[str]) -> bool:
    """Whether commands don't get the variable `name`; see `command_environment`."""
    return name not in passthrough and (name in secrets or name in _SHELL_FILES or SECRET.search(name) is not None)
