"""The collection of commands: `verdict`, `category`, `command` a row, split at line feeds only."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_ESCAPE = re.compile(r"\\n|\\x([0-9a-fA-F]{2})")


@cache
def rows(name: str = "commands.tsv") -> list[tuple[str, str, str]]:
    """Each row's verdict, category and command."""
    lines = Path(__file__).with_name(name).read_bytes().decode().split("\n")[1:]
    return [
        (level, category, _read(command))
        for level, category, command in (line.split("\t", 2) for line in lines if line)
    ]


def _read(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else "\n", text)
