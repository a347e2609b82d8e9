"""What is wrong with a configuration: every problem with its file, line, key, and what would be right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.errors import ConfigError
from mibyan.records import record
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: Problems that a message lists.
_SHOWN = 50


@record
class Problem:
    """One thing that is wrong."""

    #: The file as people call it: `config.yaml`, `.mibyan/config.yaml`.
    file: str
    #: Counted from 1; `None` where there is no line (an unreadable file, an override in code).
    line: int | None
    #: The dotted key; empty when the file as a whole is meant.
    key: str
    #: What is wrong, in a sentence without its end.
    message: str
    #: What was probably meant: a key or a value.
    suggestion: str | None = None

    @property
    def where(self) -> str:
        """`config.yaml:12`, or the file alone."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        key = f"key '{self.key}': " if self.key else ""
        suggestion = f" (did you mean '{self.suggestion}'?)" if self.suggestion else ""
        # A cloned project's file must not play tricks on the terminal.
        return one_line(f"{self.where}: {key}{self.message}{suggestion}", 1000)


class InvalidConfigError(ConfigError):
    """A configuration that can't be used; `problems` has everything that is wrong with it, in the file's order."""

    def __init__(
        self,
        origin: Path | str,
        problems: Iterable[Problem],
        *,
        hint: str | None = None,
        verb: str = "can't be used",
    ) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        lines = "\n".join(f"  {problem}" for problem in self.problems[:_SHOWN])
        if len(self.problems) > _SHOWN:
            lines += f"\n  and {len(self.problems) - _SHOWN:,} more"
        super().__init__(f"{origin} {verb}:\n{lines}", origin=str(origin), hint=hint)
