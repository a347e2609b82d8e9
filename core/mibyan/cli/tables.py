"""Tables for people: plain aligned text, and on a terminal fitted to its width."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from mibyan.cli.output import safe
from mibyan.cli.widths import cells_of
from mibyan.records import field, record
from mibyan.text import bounded

if TYPE_CHECKING:
    from mibyan.cli.output import Output

#: The cells of a row, as text.
Row: TypeAlias = Sequence[str]

_GAP = "  "
#: What an empty cell shows, so that columns can be counted.
_NOTHING = "-"
#: Hebrew, Arabic, Syriac, Thaana, NKo and their kin, with the presentation forms and the historic scripts.
RIGHT_TO_LEFT: Final = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
#: First strong isolate, pop directional isolate: what stands between has its own direction and changes nobody else's.
_ISOLATED: Final = "\u2068{}\u2069"
#: Characters of a cell: what is longer is somebody's prank.
_LIMIT = 2000


@record
class Column:
    """A column of a table."""

    title: str
    #: Whether its cells are numbers, which stand to the right.
    right: bool = False
    #: rich's style by the cell's text, for terminals.
    styles: Mapping[str, str] = field(default_factory=dict)


def show_table(out: Output, columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """Print a table; on a terminal its cells are wrapped to the terminal's width.

    Args:
        out: Where to.
        columns: Its columns.
        rows: As many cells in each as there are columns; empty ones are shown as `-`.
    """
    cleaned = [[cell(text) for text in row] for row in rows]
    if out.is_terminal:
        from mibyan.cli.terminal import drawn

        out.write(drawn(out.stream, columns, cleaned))
    else:
        out.write(plain(columns, cleaned))


def show_fields(out: Output, fields: Mapping[str, str]) -> None:
    """Print names and values, a line each; empty ones are left out, further lines of a value are indented."""
    shown = {name: value for name, value in fields.items() if value}
    width = max((cells_of(name) for name in shown), default=0)
    for name, value in shown.items():
        first, *others = safe(value).splitlines() or [""]
        lines = [
            f"{padded(name, width)}{_GAP}{_kept(out, first)}",
            *(f"{'':<{width}}{_GAP}{_kept(out, line)}" for line in others),
        ]
        out.write("".join(f"{line}\n" for line in lines))


def _kept(out: Output, text: str) -> str:
    """A value that is harmless already; on a terminal one that runs from right to left stays where it stands."""
    return isolated(text) if out.is_terminal else text


def plain(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """A table as aligned text, a line a row: for pipes and files."""
    titles = [column.title for column in columns]
    widths = [max(cells_of(row[at]) for row in (titles, *rows)) for at in range(len(columns))]
    return "".join(f"{aligned(columns, row, widths)}\n" for row in (titles, *rows))


def aligned(columns: Sequence[Column], row: Row, widths: Sequence[int]) -> str:
    """A row as one line, each cell as wide as its column."""
    cells = [padded(text, width, right=column.right) for column, text, width in zip(columns, row, widths, strict=True)]
    return _GAP.join(cells).rstrip()


def padded(text: str, width: int, *, right: bool = False) -> str:
    """`text` with blanks, so that it is `width` cells wide."""
    blanks = " " * (width - cells_of(text))
    return blanks + text if right else text + blanks


def isolated(text: str) -> str:
    """`text` between isolate marks if some of it runs from right to left, so that its neighbours stay where they are."""
    return _ISOLATED.format(text) if not text.isascii() and re.search(RIGHT_TO_LEFT, text) else text


def cell(text: str) -> str:
    """`text` on one line, bounded and harmless."""
    return safe(bounded(" ".join(text[: 2 * _LIMIT].split()), _LIMIT)) or _NOTHING
