"""Log records on standard error, a line each; imported when there is something that could log."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mibyan.cli.output import say
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Characters of a record that are shown.
_LIMIT = 2000


class LineHandler(logging.Handler):
    """Writes `mibyan: warning: …`, and for other people's loggers their name instead.

    Args:
        debug: Whether tracebacks are shown.
    """

    def __init__(self, *, debug: bool) -> None:
        super().__init__(logging.DEBUG if debug else logging.WARNING)
        self._debug = debug

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        who = "mibyan" if record.name.partition(".")[0] == "mibyan" else one_line(record.name, 60)
        try:
            message = record.getMessage()
        except Exception as error:  # its arguments don't fit: still worth a line
            message = f"{record.msg} ({type(error).__name__} in its arguments)"
        say(f"{who}: {record.levelname.lower()}: {one_line(message, _LIMIT)}")
        if self._debug and record.exc_info:
            say(logging.Formatter().formatException(record.exc_info))


@contextmanager
def shown(*, debug: bool) -> Iterator[None]:
    """Show the records of warnings and errors; with `debug` all of Mibyan's, with their tracebacks."""
    handler = LineHandler(debug=debug)
    root, own = logging.getLogger(), logging.getLogger("mibyan")
    level = own.level
    root.addHandler(handler)
    if debug:
        own.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.removeHandler(handler)
        own.setLevel(level)
