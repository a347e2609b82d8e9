"""`mibyan.cli.logs`: log records on standard error, a line each."""

from __future__ import annotations

import logging

import pytest

from mibyan.cli.logs import LineHandler, shown


@pytest.mark.parametrize(
    ("name", "level", "message", "args", "expected"),
    [
        ("mibyan.toolsets", logging.WARNING, "Unknown %r", ("x",), "mibyan: warning: Unknown 'x'\n"),
        ("mibyan", logging.ERROR, "two\nlines\x1b[31m", (), "mibyan: error: two lines\\x1b[31m\n"),
        ("mibyan.plugins", logging.INFO, "quiet", (), ""),
        ("somelib.core", logging.WARNING, "theirs", (), "somelib.core: warning: theirs\n"),
        ("mibyandria", logging.WARNING, "theirs", (), "mibyandria: warning: theirs\n"),
        ("mibyan", logging.WARNING, "%d", ("x",), "mibyan: warning: %d (TypeError in its arguments)\n"),
        ("mibyan", logging.WARNING, "x" * 100_000, (), "mibyan: warning: " + "x" * 1999 + "…\n"),
    ],
)
def test_a_record_is_a_line(capsys: pytest.CaptureFixture[str], name, level, message, args, expected) -> None:
    """Warnings and errors: who, how bad, what; on one line, harmless and bounded."""
    record = logging.LogRecord(name, level, __file__, 1, message, args, None)
    with shown(debug=False):
        (handler,) = [one for one in logging.getLogger().handlers if isinstance(one, LineHandler)]
        if record.levelno >= handler.level:
            handler.handle(record)
    assert capsys.readouterr().err == expected


def test_debug_shows_all_of_mibyans(capsys: pytest.CaptureFixture[str]) -> None:
    """--debug: every record of Mibyan's own, with its traceback."""
    with shown(debug=True):
        try:
            raise ValueError("why")
        except ValueError:
            logging.getLogger("mibyan.x").debug("seen", exc_info=True)
    err = capsys.readouterr().err
    assert err.startswith("mibyan: debug: seen\nTraceback")
    assert "ValueError: why" in err


def test_afterwards_nothing_is_left() -> None:
    """The handler and the level are gone when the command is."""
    before = (list(logging.getLogger().handlers), logging.getLogger("mibyan").level)
    with shown(debug=True):
        assert len(logging.getLogger().handlers) == len(before[0]) + 1
    assert (list(logging.getLogger().handlers), logging.getLogger("mibyan").level) == before
