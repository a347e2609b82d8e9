"""`Finding`: one thing that isn't as it should be, or that somebody should know, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from mibyan.records import as_dict, record

if TYPE_CHECKING:
    from pathlib import Path

    from mibyan.config.load import LoadedConfig
    from mibyan.errors import MibyanError

#: `error`: something doesn't work; `warning`: something works otherwise than one may think; `info`: good to know.
Severity: TypeAlias = Literal["error", "warning", "info"]

#: The worst first.
SEVERITIES: Final = ("error", "warning", "info")


@record
class Finding:
    """One thing that a check has found."""

    severity: Severity
    #: What it is, in one sentence.
    what: str
    #: A path, `file:line`, or a variable's name.
    where: str | None = None
    #: The command or the line that mends it.
    fix: str | None = None

    def to_dict(self, check: str) -> dict[str, Any]:
        """The finding as a JSON object, with the name of its check."""
        return {"check": check, **as_dict(self)}


@record
class Patient:
    """What is examined."""

    #: `$MIBYAN_HOME`; `None`: it can't be told where that is.
    home: Path | None
    project: Path | None
    #: The configuration, or the defaults where it can't be used.
    config: LoadedConfig | None
    #: What is wrong with it, or with where it is looked for.
    broken: MibyanError | None
    safe_mode: bool = False
    also: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
