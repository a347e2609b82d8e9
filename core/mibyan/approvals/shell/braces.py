"""Brace expansion: `{a,b}` and `{1..3}` in a word, before anything else of it is expanded."""

from __future__ import annotations

import itertools
import re
from typing import Any, Final, TypeAlias

from mibyan.approvals.shell.values import UNKNOWN

#: A piece of a word: a text and whether it is quoted, or a node of the tree and whether it stands in double quotes.
Cell: TypeAlias = tuple[Any, bool]

#: Words that one word may become; beyond that it counts as unknown.
MAX_WORDS: Final = 512

_RANGE = re.compile(r"(-?\d{1,6})\.\.(-?\d{1,6})(?:\.\.(-?\d{1,6}))?|([A-Za-z])\.\.([A-Za-z])(?:\.\.(-?\d{1,6}))?")


def expand(cells: list[Cell]) -> list[list[Cell]]:
    """The words that a word becomes."""
    if not any(isinstance(text, str) and not quoted and "{" in text for text, quoted in cells):
        return [cells]
    done, todo = [], [_split(cells)]
    while todo:
        word = todo.pop()
        found = _first(word)
        if found is None:
            done.append(word)
        else:
            todo += reversed(found)
        if len(done) + len(todo) > MAX_WORDS:
            return [[(UNKNOWN, False)]]
    return done


def _split(cells: list[Cell]) -> list[Cell]:
    """The same with a cell for each unquoted character that means something in braces."""
    found: list[Cell] = []
    for text, quoted in cells:
        if isinstance(text, str) and not quoted:
            found += [(piece, False) for piece in re.split(r"([{},])", text) if piece]
        else:
            found.append((text, quoted))
    return found


def _first(cells: list[Cell]) -> list[list[Cell]] | None:
    """The words with the first expandable braces expanded; `None`: there are none."""
    pairs = _pairs(cells)
    for start in sorted(pairs):
        commas, end = pairs[start]
        middles = _middles(cells, start, commas, end)
        if middles is not None:
            return [[*cells[:start], *middle, *cells[end + 1 :]] for middle in middles]
    return None


def _pairs(cells: list[Cell]) -> dict[int, tuple[list[int], int]]:
    """Where braces open: the commas between them, and where they close."""
    pairs: dict[int, tuple[list[int], int]] = {}
    open_ones: list[tuple[int, list[int]]] = []
    for index, cell in enumerate(cells):
        if not _is_text(cell) or cell[1]:
            continue
        if cell[0] == "{":
            open_ones.append((index, []))
        elif cell[0] == "," and open_ones:
            open_ones[-1][1].append(index)
        elif cell[0] == "}" and open_ones:
            start, commas = open_ones.pop()
            pairs[start] = commas, index
    return pairs


def _is_text(cell: Cell) -> bool:
    return isinstance(cell[0], str)


def _middles(cells: list[Cell], start: int, commas: list[int], end: int) -> list[list[Cell]] | None:
    if commas:
        edges = [start, *commas, end]
        return [cells[a + 1 : b] for a, b in itertools.pairwise(edges)]
    inside = cells[start + 1 : end]
    if len(inside) != 1 or not _is_text(inside[0]) or inside[0][1]:
        return None
    match = _RANGE.fullmatch(inside[0][0])
    return None if match is None else [[(text, False)] for text in _range(match)]


def _range(match: re.Match[str]) -> list[str]:
    letters = match[4] is not None
    low, high = (ord(match[4]), ord(match[5])) if letters else (int(match[1]), int(match[2]))
    step = abs(int(match[6] if letters else match[3] or 1) if (match[6] if letters else match[3]) else 1) or 1
    count = abs(high - low) // step + 1
    if count > MAX_WORDS:
        return [UNKNOWN]
    found = [low + step * index * (1 if high >= low else -1) for index in range(count)]
    return [chr(code) for code in found] if letters else [str(number) for number in found]
