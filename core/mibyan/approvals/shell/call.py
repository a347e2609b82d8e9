"""`Call`: one simple command of a script, as it would be run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.approvals.shell.values import NOTHING, UNKNOWN, Arg, Data
from mibyan.records import field, record, replace

if TYPE_CHECKING:
    from mibyan.approvals.shell.scope import Scope


@record(eq=False)
class Call:
    """A program or builtin with its words."""

    #: Its name and its arguments.
    args: tuple[Arg, ...]
    scope: Scope
    stdin: Data = NOTHING
    #: Variables that are set for it alone.
    environment: dict[str, Arg] = field(default_factory=dict)
    #: Files that its output goes to.
    outputs: tuple[Arg, ...] = ()
    #: The programs that run it, the outermost first, such as `("sudo", "xargs")`.
    via: tuple[str, ...] = ()
    #: Whether it runs in a container of its own.
    contained: bool = False
    depth: int = 0

    @property
    def name(self) -> str:
        """The program without its folder; `UNKNOWN` in it: it isn't known."""
        return program_name(self.args[0].text) if self.args else ""

    @property
    def words(self) -> list[str]:
        """The arguments' texts."""
        return [arg.text for arg in self.args[1:]]

    @property
    def span(self) -> tuple[int, int]:
        """From its first to its last word, in bytes."""
        spans = [arg.span for arg in (*self.args, *self.outputs)] or [(0, 0)]
        return min(start for start, _ in spans), max(end for _, end in spans)

    @property
    def is_opaque(self) -> bool:
        """Whether what would run can't be told."""
        return UNKNOWN in self.name

    def inner(self, args: tuple[Arg, ...] | list[Arg], **changes: object) -> Call:
        """The command that this one runs."""
        given = {"args": tuple(args), "via": (*self.via, self.name), "depth": self.depth + 1, "outputs": (), **changes}
        return replace(self, **given)


def program_name(text: str) -> str:
    """A program's name without its folder and a Windows ending; in small letters where it is one of Windows'."""
    name = text.rsplit("/", 1)[-1]
    for ending in (".exe", ".EXE", ".cmd", ".bat"):
        name = name.removesuffix(ending)
    return name
