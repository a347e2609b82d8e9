"""What a check of a call is, and what checks share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from mibyan.approvals.paths import loses_machine
from mibyan.approvals.shell.call import Call
from mibyan.approvals.shell.values import HOME, Arg

#: A rule's id, and where what falls under it stands.
Found: TypeAlias = tuple[str, tuple[int, int]]
#: Finds what a call of a program does that falls under rules.
Checker: TypeAlias = Callable[[Call], Iterable[Found]]


def path_of(call: Call, arg: Arg) -> str:
    """An operand as a path."""
    return call.scope.path(arg.text)


def lost(call: Call, arg: Arg, *, found: bool = False) -> str | None:
    """The rule about deleting an operand with all that is in it, if that loses the machine or a home.

    Args:
        call: The call.
        arg: The operand.
        found: Whether it is where `find` begins, which chooses.
    """
    if not loses_machine(arg, call.scope, found=found):
        return None
    path = call.scope.path(arg.text.rstrip("*") or ".")
    return "home_delete" if path.startswith((HOME, "/home/", "/root", "/Users/")) else "root_delete"
