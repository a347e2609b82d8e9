"""What one command leaves to the next: directory, exported variables, functions (terminal.E2).

Each command has a shell of its own, so none can break the next one's. When it ends, however that is (`exit 3` and a failing
`set -e` too, by a trap), the shell says how things stand, through a pipe; nothing is written to disk. What it changed since
it began is kept, so that commands that run at the same time don't undo one another's.
"""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mibyan_builtin.terminal.exports import read_exports

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Variables that a shell sets for itself.
_SHELLS_OWN: Final = frozenset({"PWD", "SHLVL", "_", "MIBYAN_COMMAND_ID", "BASHOPTS", "SHELLOPTS"})
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
#: What holds the command in its shell.
COMMAND: Final = "__mibyan_command"
_END: Final = b"\0end\0"


@dataclass(frozen=True, slots=True)
class Report:
    """What a shell said at its end."""

    cwd: str
    exports: Mapping[str, str]
    functions: bytes


@dataclass(frozen=True, slots=True)
class Given:
    """What a shell was given at its start."""

    directory: str
    environment: Mapping[str, str]
    functions: bytes
    #: Whether the directory is for this command only.
    for_once: bool


def script(out: int, functions: int | None, *, bash: bool) -> str:
    """The code that a shell runs: it takes the functions over, runs `$1`, and reports.

    Args:
        out: The descriptor that it reports to.
        functions: The descriptor that it reads functions from.
        bash: Whether it is bash; another can't tell its functions.
    """
    # bash looks at the number alone; others take one digit there, but open the path.
    word, into = ("builtin", f">&{out}") if bash else ("command", f">/dev/fd/{out}")
    listing = "builtin declare -f;" if bash else ""
    tell = (
        "{ set +xve; } 2>/dev/null; "
        f'{{ {word} pwd; {word} printf "\\000"; export -p; {word} printf "\\000"; {listing} {word} printf "\\000end\\000"; }}'
        f" 2>/dev/null {into}"
    )
    take = "" if functions is None else f". /dev/fd/{functions}; exec {functions}<&-; "
    # `eval` keeps what is wrong with the command's syntax the command's, and all of this is in one line, so that the
    # command's own lines have their numbers. A trap of its own may take the place of ours.
    return (
        f'{take}trap \'[ -z "${{{COMMAND}-}}" ] || {{ {tell}; }}\' EXIT; {COMMAND}=$1; shift; eval "${COMMAND}"; '
        f"{{ set -- $?; set +xve; }} 2>/dev/null; {tell}; {COMMAND}=; {word} exit $1"
    )


def read_report(data: bytes) -> Report | None:
    """What a shell said last; `None` when it came to no end."""
    whole = data.rpartition(_END)[0]
    parts = whole[whole.rfind(_END) + len(_END) if _END in whole else 0 :].split(b"\0")
    if len(parts) != 3:
        return None
    cwd, exports, functions = parts
    return Report(os.fsdecode(cwd.removesuffix(b"\n")), read_exports(exports), functions)


@dataclass(slots=True)
class ShellState:
    """What the next command of a task starts with; several threads may use it."""

    #: `None`: no command has left the directory that commands start in.
    cwd: str | None = None
    #: What commands have changed of the environment; `None`: they have removed it.
    variables: dict[str, str | None] = field(default_factory=dict)
    functions: bytes = b""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """`base` with the changes."""
        with self._lock:
            changed = {**base, **self.variables}
        return {name: value for name, value in changed.items() if value is not None}

    def take(self, given: Given, report: Report, withheld: Callable[[str], bool]) -> None:
        """Keep what a command has changed.

        Args:
            given: What its shell was given.
            report: What it said at its end.
            withheld: Whether a variable of that name isn't for commands; such a one isn't kept.
        """
        before = {name: value for name, value in given.environment.items() if _IDENTIFIER.fullmatch(name)}
        names = {*before, *report.exports} - _SHELLS_OWN
        changed = {
            name: report.exports.get(name)
            for name in names
            if before.get(name) != report.exports.get(name) and not withheld(name)
        }
        with self._lock:
            self.variables.update(changed)
            if report.functions != given.functions:
                self.functions = report.functions
            if not given.for_once and report.cwd != given.directory:
                self.cwd = report.cwd
