"""The names of the command line that no plugin can take."""

from __future__ import annotations

import re
from typing import Final

#: The commands of Mibyan itself, those that its next versions have too.
RESERVED: Final = frozenset({
    "agent", "approvals", "batch", "call", "chat", "command", "completion", "config", "doctor", "help", "mcp", "plugins",
    "processes", "run", "serve", "tools", "toolsets", "trace", "version",
})  # fmt: skip

_WORD = re.compile(r"[^\W_]([\w.-]{0,62}\w)?")


def why_not_a_command(name: str) -> str | None:
    """Why a plugin can't add a command of a name to the command line, in words that go on from it; `None`: it can."""
    if name in RESERVED:
        return "is a command of Mibyan itself"
    if not _WORD.fullmatch(name):
        return "isn't a word that a command line takes: 1 to 64 letters, digits, '.', '_' and '-', the first a letter or digit"
    return None
