"""Which of many things make something go wrong: halving, and what is needed together (delta debugging, Zeller 1999)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def minimal(suspects: Sequence[str], is_bad: Callable[[Sequence[str]], bool]) -> list[str]:
    """A part of the suspects that is bad, and of which nothing can be left out.

    One culprit among n is found in about 2 log n questions. Of several that are needed together all are given, of several
    that are bad by themselves one.

    Args:
        suspects: They are bad together.
        is_bad: Whether some of them are bad without the others. What can't be told isn't bad; then something may be left
            that could be left out.
    """
    found, parts = list(suspects), 2
    while len(found) > 1:
        pieces = _split(found, parts)
        rests = [[one for one in found if one not in piece] for piece in pieces] if parts > 2 else []
        smaller = next((some for some in (*pieces, *rests) if is_bad(some)), None)
        if smaller is not None:
            parts = 2 if smaller in pieces else max(parts - 1, 2)
            found = smaller
        elif parts >= len(found):
            break
        else:
            parts = min(2 * parts, len(found))
    return found


def _split(things: list[str], parts: int) -> list[list[str]]:
    """The things in as many pieces of nearly one length, in order."""
    ends = [len(things) * number // parts for number in range(parts + 1)]
    return [things[start:end] for start, end in pairwise(ends)]
