"""What a check of a call is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from mibyan.approvals.shell.call import Call

#: A rule's id, and where what falls under it stands.
Found: TypeAlias = tuple[str, tuple[int, int]]
#: Finds what a call of a program does that falls under rules.
Checker: TypeAlias = Callable[[Call], Iterable[Found]]
