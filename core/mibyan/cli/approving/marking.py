"""`marked`: a command as it is written, with parts of it marked in the lines below; aligned for any script.

Columns are cells of a terminal: wide characters take two, marks that combine none, and what could play tricks is shown
as an escape. A mark that begins or ends within text that runs from right to left covers all of that text: which of it
stands where is the terminal's affair.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.cli.tables import RIGHT_TO_LEFT
from mibyan.cli.widths import cells_of
from mibyan.records import record
from mibyan.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Characters of a long line that are shown of its beginning, of its end, and around each mark.
_KEPT: Final = 160
#: Lines without a mark that are shown in a row.
_UNMARKED: Final = 6
#: Cells of a line where nobody says.
WIDTH: Final = 100
#: Narrower than this nothing can be read.
_NARROWEST: Final = 12
_INDENT: Final = "    "
#: Cells of text that runs from right to left and is marked as a whole; characters that can combine with one.
_LONGEST_RUN: Final = 40
_LONGEST_CLUSTER: Final = 32
#: Text that runs from right to left, with what stands in the midst of it.
_BACKWARDS: Final = re.compile(rf"{RIGHT_TO_LEFT}(?:[^A-Za-z\u00c0-\u024f\u0370-\u058f\u1e00-\u1fff]*{RIGHT_TO_LEFT})*")


@record
class _Piece:
    """What can't be divided: a character with what combines with it, or text that runs from right to left."""

    shown: str
    cells: int
    #: From and to in the command.
    span: tuple[int, int]


def marked(command: str, spans: Sequence[tuple[int, int]], *, width: int = WIDTH) -> list[str]:
    """A command's lines, each with the marks of what stands on it below: `^^^^ 1` for the first of `spans`.

    Args:
        command: The command.
        spans: From and to, in characters.
        width: Cells of a line; longer lines are wrapped. The ends of very long ones are shown, and what is marked.
    """
    room = max(width - len(_INDENT), _NARROWEST)
    lines = list(_lines(command))
    kept = _kept_lines(lines, spans)
    shown: list[str] = []
    left_out = 0
    for number, (text, start) in enumerate(lines):
        if number not in kept:
            left_out += 1
            continue
        if left_out:
            shown.append(f"{_INDENT}… {left_out:,} lines …")
            left_out = 0
        for row in _wrapped(_shortened(list(_pieces(text, start)), spans), room):
            shown.append(_INDENT + "".join(piece.shown for piece in row))
            shown += (f"{_INDENT}{marks}" for marks in _marks(row, spans))
    return shown


def _lines(command: str) -> Iterator[tuple[str, int]]:
    """The lines, and where each begins."""
    start = 0
    for line in command.split("\n"):
        yield line, start
        start += len(line) + 1


def _kept_lines(lines: Sequence[tuple[str, int]], spans: Sequence[tuple[int, int]]) -> set[int]:
    """The numbers of the lines that are shown: the first and last ones, and those around the ends of what is marked."""
    count = len(lines)
    from bisect import bisect_right

    kept = {*range(min(count, _UNMARKED)), *range(max(count - _UNMARKED, 0), count)}
    starts = [start for _, start in lines]
    for span in spans:
        for place in (span[0], max(span[1] - 1, span[0])):
            at = bisect_right(starts, place) - 1
            kept |= {at - 1, at, at + 1}
    return kept


def _pieces(text: str, start: int) -> Iterator[_Piece]:
    at = 0
    for run in _BACKWARDS.finditer(text):
        yield from _clusters(text[at : run.start()], start + at)
        yield from _backwards(run[0], start + run.start())
        at = run.end()
    yield from _clusters(text[at:], start + at)


def _backwards(text: str, start: int) -> Iterator[_Piece]:
    shown = visible(text)
    cells = cells_of(shown)
    if cells > _LONGEST_RUN:
        yield from _clusters(text, start)
    else:
        yield _Piece(shown, cells, (start, start + len(text)))


def _clusters(text: str, start: int) -> Iterator[_Piece]:
    if text.isascii():
        for at, char in enumerate(text):
            shown = " " if char == "\t" else visible(char)
            yield _Piece(shown, len(shown), (start + at, start + at + 1))
        return
    held, cells, begun = "", 0, 0
    for at, char in enumerate(text):
        shown = " " if char == "\t" else visible(char)
        total = cells_of(held + shown)
        if held and ((total > cells and cells_of(shown)) or len(held) > _LONGEST_CLUSTER):
            yield _Piece(held, cells, (start + begun, start + at))
            held, begun, total = "", at, cells_of(shown)
        held, cells = held + shown, total
    if held:
        yield _Piece(held, cells, (start + begun, start + len(text)))


def _shortened(pieces: list[_Piece], spans: Sequence[tuple[int, int]]) -> list[_Piece]:
    """A very long line without its dull parts."""
    count = len(pieces)
    if count <= 8 * _KEPT:
        return pieces
    kept = {*range(_KEPT), *range(count - _KEPT, count)}
    for span in spans:
        touched = [at for at, piece in enumerate(pieces) if _overlap(piece.span, span)]
        for at in (touched[0], touched[-1]) if touched else ():
            kept |= set(range(max(at - _KEPT // 2, 0), min(at + _KEPT // 2, count)))
    shown: list[_Piece] = []
    last = -1
    for at in sorted(kept):
        if at != last + 1:
            gap = f"…{at - last - 1:,} more…"
            shown.append(_Piece(gap, cells_of(gap), (pieces[last + 1].span[0], pieces[at - 1].span[1])))
        shown.append(pieces[at])
        last = at
    return shown


def _wrapped(pieces: list[_Piece], room: int) -> Iterator[list[_Piece]]:
    row: list[_Piece] = []
    cells = 0
    for piece in pieces:
        if row and cells + piece.cells > room:
            yield row
            row, cells = [], 0
        row.append(piece)
        cells += piece.cells
    yield row


def _marks(row: list[_Piece], spans: Sequence[tuple[int, int]]) -> Iterator[str]:
    """The lines below a row: one for each different span that touches it, with the numbers of those that are the same."""
    numbers: dict[tuple[int, int], list[int]] = {}
    for number, span in enumerate(spans, 1):
        numbers.setdefault(span, []).append(number)
    for span, same in numbers.items():
        line = "".join(("^" if _overlap(piece.span, span) else " ") * max(piece.cells, 0) for piece in row)
        if "^" in line:
            yield f"{line.rstrip()} {', '.join(map(str, same))}"


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two stretches share a character; an empty one is taken for the character that it stands before."""
    return one[0] < max(other[1], other[0] + 1) and other[0] < one[1]


def wrapped(text: str, width: int, indent: str = _INDENT) -> list[str]:
    """Text in lines that fit, each set in, so that none of them can pose as somebody else's words.

    Args:
        text: Any text; what could play tricks in it becomes visible.
        width: Cells of a line, with the indent.
        indent: What each line begins with.
    """
    room = max(width - len(indent), _NARROWEST)
    rows = (row for line in visible(text).split("\n") for row in _wrapped(list(_clusters(line, 0)), room))
    return [(indent + "".join(piece.shown for piece in row)).rstrip() for row in rows]


def worded(text: str, width: int, indent: str = "", hang: str = "") -> list[str]:
    """The same, broken between words where that goes: for prose, whose blanks don't matter.

    Args:
        text: Any text.
        width: Cells of a line, with the indent.
        indent: What each line begins with.
        hang: What each line but the first begins with beside: then none of them can pose as another item of a list.
    """
    room = max(width - len(indent) - len(hang), _NARROWEST)
    lines: list[str] = []
    for paragraph in visible(text).split("\n"):
        held = ""
        for word in paragraph.split():
            if held and cells_of(f"{held} {word}") > room:
                lines.append(held)
                held = ""
            *full, held = wrapped(f"{held} {word}" if held else word, room, "")
            lines += full
        lines.append(held)
    return [(indent + (hang if number else "") + line).rstrip() for number, line in enumerate(lines)]
