"""Tables for people: plain aligned text, and on a terminal fitted to its width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from mibyan.cli.output import safe
from mibyan.records import field, record
from mibyan.text import bounded

if TYPE_CHECKING:
    from mibyan.cli.output import Output

#: The cells of a row, as text.
Row: TypeAlias = Sequence[str]

_GAP = "  "
#: What an empty cell shows, so that columns can be counted.
_NOTHING = "-"
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
    width = max((len(name) for name in shown), default=0)
    for name, value in shown.items():
        first, *others = safe(value).splitlines() or [""]
        out.line("\n".join([f"{name:<{width}}{_GAP}{first}", *(f"{'':<{width}}{_GAP}{line}" for line in others)]))


def plain(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """A table as aligned text, a line a row: for pipes and files."""
    titles = [column.title for column in columns]
    widths = [max(width_of(row[at]) for row in (titles, *rows)) for at in range(len(columns))]
    return "".join(f"{aligned(columns, row, widths)}\n" for row in (titles, *rows))


def aligned(columns: Sequence[Column], row: Row, widths: Sequence[int]) -> str:
    """A row as one line, each cell as wide as its column."""
    cells = [padded(text, width, right=column.right) for column, text, width in zip(columns, row, widths, strict=True)]
    return _GAP.join(cells).rstrip()


def padded(text: str, width: int, *, right: bool = False) -> str:
    """`text` with blanks, so that it is `width` cells wide."""
    blanks = " " * (width - width_of(text))
    return blanks + text if right else text + blanks


def width_of(text: str) -> int:
    """The cells of a terminal that `text` takes: two for wide characters (CJK, emoji), none for combining ones."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cell(text: str) -> str:
    """`text` on one line, bounded and harmless."""
    return safe(bounded(" ".join(text[: 2 * _LIMIT].split()), _LIMIT)) or _NOTHING
