"""Tables on a terminal: wrapped to its width, in its colours, right-to-left text kept in its cell."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from mibyan.cli.tables import Column, isolated
from mibyan.cli.widths import width_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from mibyan.cli.tables import Row

_GAP: Final = "  "
#: No column is made narrower than this to fit.
_NARROWEST: Final = 12


def drawn(stream: TextIO | None, columns: Sequence[Column], rows: Sequence[Row], *, width: int | None = None) -> str:
    """A table as text for a terminal.

    Args:
        stream: The terminal.
        columns: Its columns.
        rows: Their cells, each on one line.
        width: Cells of a line; `None`: those of the terminal.
    """
    console = Console(
        file=stream, width=width or width_of(stream), highlight=False, markup=False, emoji=False, soft_wrap=True
    )
    widths = _fitted(columns, rows, console.width)
    with console.capture() as captured:
        console.print(_line(columns, [column.title for column in columns], widths, ["bold"] * len(columns)))
        for row in rows:
            styles = [column.styles.get(text, "") for column, text in zip(columns, row, strict=True)]
            pieces = [_wrapped(text, size, console) for text, size in zip(row, widths, strict=True)]
            for parts in zip_longest(*pieces, fillvalue=""):
                console.print(_line(columns, parts, widths, styles))
    return captured.get()


def _fitted(columns: Sequence[Column], rows: Sequence[Row], room: int) -> list[int]:
    """The columns' widths: as wide as their cells, the widest ones narrowed until the line fits."""
    titles = [column.title for column in columns]
    widths = [max(cell_len(row[at]) for row in (titles, *rows)) for at in range(len(columns))]
    least = [max(_NARROWEST, cell_len(title)) for title in titles]
    excess = sum(widths) + len(_GAP) * (len(columns) - 1) - room
    while excess > 0:
        at = max(range(len(widths)), key=lambda at: widths[at] - least[at])
        if widths[at] <= least[at]:
            break
        widths[at] -= 1
        excess -= 1
    return widths


def _wrapped(text: str, width: int, console: Console) -> list[str]:
    """The lines of a cell."""
    if cell_len(text) <= width:
        return [text]
    return [line.plain.rstrip() for line in Text(text).wrap(console, width)]


def _line(columns: Sequence[Column], parts: Sequence[str], widths: Sequence[int], styles: Sequence[str]) -> Text:
    line = Text(no_wrap=True, overflow="ignore")
    last = len(columns) - 1
    for at, (column, text) in enumerate(zip(columns, parts, strict=True)):
        blanks = " " * (widths[at] - cell_len(text)) if at < last or column.right else ""
        line.append(blanks if column.right else "")
        line.append(isolated(text), style=styles[at])
        line.append(("" if column.right else blanks) + (_GAP if at < last else ""))
    return line
