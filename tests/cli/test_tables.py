"""`mibyan.cli.tables` and `mibyan.cli.terminal`: text in columns, whatever its script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich import cells

from mibyan.cli.output import Output
from mibyan.cli.tables import Column, cell, isolated, plain, show_fields, show_table
from mibyan.cli.terminal import drawn
from mibyan.cli.widths import cells_of

from .conftest import add_plugin

COLUMNS = (Column("NAME"), Column("N", right=True), Column("DESCRIPTION"))
ROWS = [
    ["weather", "12", "plain text"],
    ["天気予報", "3", "天気予報を取得する"],
    ["طقس", "400", "توقعات الطقس"],
    ["e\u0301te", "1", "combining"],
    ["می‌خواهم", "7", "Persian with a joiner"],
]


def cell_len(text: str) -> int:
    """The cells that text takes; rich 13 counts isolate marks, which take none."""
    return cells.cell_len(text.replace("\u2068", "").replace("\u2069", ""))


def starts(lines: list[str]) -> set[int]:
    """The cells at which the last column begins, told by its words."""
    last = [row[2] for row in ROWS]
    return {cell_len(line[: line.index(text)]) for line, text in zip(lines, last, strict=True)}


def test_columns_are_aligned_by_what_is_seen() -> None:
    """CJK takes two cells, combining marks none: every column begins at one place; numbers end at one."""
    lines = plain(COLUMNS, ROWS).splitlines()
    assert starts(lines[1:]) == {lines[0].index("DESCRIPTION")}
    assert {cell_len(line[: line.index(row[1]) + len(row[1])]) for line, row in zip(lines[1:], ROWS, strict=True)} == {
        lines[0].index("N ", 4) + 1
    }


def test_a_pipe_gets_no_marks() -> None:
    """Isolate marks are for terminals: what is piped is the text itself, a line a row."""
    text = plain(COLUMNS, ROWS)
    assert not set(text) & set("\u2068\u2069\x1b")
    assert len(text.splitlines()) == len(ROWS) + 1


def test_on_a_terminal_right_to_left_text_stays_in_its_cell() -> None:
    """Each right-to-left cell stands between isolate marks, which take no room; other cells don't."""
    lines = drawn(None, COLUMNS, ROWS, width=100).splitlines()
    assert starts(lines[1:]) == {lines[0].index("DESCRIPTION")}
    assert "\u2068طقس\u2069" in lines[3]
    assert "\u2068توقعات الطقس\u2069" in lines[3]
    assert "\u2068" not in lines[1] + lines[2]


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("طقس", True),
        ("מזג אוויר", True),
        ("weather طقس", True),
        ("ߒߞߏ", True),
        ("weather", False),
        ("天気", False),
        ("", False),
    ],
)
def test_isolated(text: str, marked: bool) -> None:
    """Hebrew, Arabic and their kin are right-to-left; a part is enough."""
    assert isolated(text) == (f"\u2068{text}\u2069" if marked else text)


_WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=60)


@given(st.lists(st.tuples(_WORDS, _WORDS, _WORDS), max_size=6), st.integers(60, 120))
def test_a_table_fits_the_terminal_and_loses_no_mark(rows: list[tuple[str, str, str]], width: int) -> None:
    """Whatever the cells: no line is wider than the terminal, and each mark that opens is closed on its line."""
    cleaned = [[cell(text) for text in row] for row in rows]
    for line in drawn(None, COLUMNS, cleaned, width=width).split("\n"):
        assert cell_len(line) <= width
        assert line.count("\u2068") == line.count("\u2069")


@given(st.lists(st.tuples(_WORDS, _WORDS, _WORDS), max_size=6))
def test_a_row_is_a_line(rows: list[tuple[str, str, str]]) -> None:
    """Whatever the cells: in a pipe a row is one line, and an empty cell can be counted."""
    cleaned = [[cell(text) for text in row] for row in rows]
    assert len(plain(COLUMNS, cleaned).split("\n")) == len(rows) + 2
    assert all(text for row in cleaned for text in row)


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("", 0), ("plain", 5), ("Grüße", 5), ("e\u0301te\u0301", 3), ("天気", 4), ("ｶﾅ", 2), ("カナ", 4), ("한국", 4),
        ("\u1112\u1161\u11ab", 2), ("طَقْس", 3), ("שָׁלוֹם", 4), ("می‌خواهم", 7), ("ส้ม", 2), ("ก็", 1), ("हिन्दी", 3),
        ("⚡", 2), ("🌦", 1), ("🌦\ufe0f", 2), ("❤", 1), ("❤\ufe0f", 2), ("👩\u200d👩\u200d👧", 2), ("👍🏽", 2), ("🇩🇪🇫🇷", 4),
        ("a🇩🇪b", 4), ("x🎲y", 4), ("…", 1), ("–", 1), ("\u200b", 0), ("𝔘", 1), ("𠀀", 2),
    ],
)  # fmt: skip
def test_cells_of(text: str, cells: int) -> None:
    """Wide characters take two cells, marks and what is joined none, flags two for their two letters."""
    assert cells_of(text) == cells


@given(_WORDS)
def test_cells_of_any_text(text: str) -> None:
    """Whatever the text: no more than two cells a character, and what follows doesn't make what was there narrower."""
    assert 0 <= cells_of(text) <= 2 * len(text)
    assert cells_of(text) <= cells_of(text + "a") <= cells_of(text) + 1


def test_a_table_in_a_pipe_costs_no_rich(program: Callable, home: Path) -> None:
    """Wide and right-to-left descriptions are aligned in a pipe without importing rich."""
    manifest = "manifest_version: 1\nid: w\ntools: [{name: weather, toolset: t, schema: {description: 天気 طقس 🌦}}]\n"
    add_plugin(home, "w", "", manifest)
    script = "import sys\nfrom mibyan.cli.main import main\nmain(['tools', 'list'])\nprint(sorted({'rich'} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, encoding="utf-8",
                          env={**os.environ, "PYTHONUTF8": "1"})  # fmt: skip
    assert "天気 طقس 🌦" in done.stdout
    assert done.stderr == "[]\n"


def test_cells_are_harmless_and_bounded() -> None:
    """A cell is one line, has no controls, and an end."""
    assert cell("a\nb\t c\x1b[31m\u202e") == "a b c\\x1b[31m\\u202e"
    assert cell("") == cell(" \n ") == "-"
    assert len(cell("x" * 1_000_000)) == 2000


class Screen:
    """A stream that says it is a terminal."""

    encoding = "utf-8"
    errors = "strict"

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass

    def fileno(self) -> int:
        raise OSError("it has none")


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return Screen()


def test_a_terminal_gets_colours_and_its_width(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal states have colours (unless NO_COLOR), and long cells are wrapped."""
    monkeypatch.setattr(sys, "stdout", screen)
    columns = (Column("ID"), Column("STATE", styles={"failed": "red"}), Column("WHY"))
    monkeypatch.setenv("COLUMNS", "60")
    show_table(Output(), columns, [["a", "failed", "it is a long story " * 8]])
    assert "\x1b[31mfailed" in screen.text
    assert len(screen.text.splitlines()) > 3
    screen.text = ""
    monkeypatch.setenv("NO_COLOR", "1")
    show_table(Output(), columns, [["a", "failed", "short"]])
    assert "\x1b[31m" not in screen.text


def test_fields_that_run_from_right_to_left(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal a value that runs from right to left stands between isolate marks of Mibyan's; its own are made visible."""
    monkeypatch.setattr(sys, "stdout", screen)
    show_fields(Output(), {"name": "طقس 12", "other": "a\u2067b\u200bc\U000e0041"})
    assert screen.text == "name   \u2068طقس 12\u2069\nother  a\\u2067b\\u200bc\\U000e0041\n"
    monkeypatch.setattr(screen, "isatty", lambda: False)
    screen.text = ""
    show_fields(Output(), {"name": "طقس 12"})
    assert screen.text == "name  طقس 12\n"


def test_json_on_a_terminal_stays_json(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made visible in a document is an escape of JSON's own, whatever it is."""
    monkeypatch.setattr(sys, "stdout", screen)
    value = {"text": "a\x1b\x7f\x9b\u202e\u200b\ufeff\U000e0041"}
    Output().document(value)
    assert not set(screen.text) & set("\x1b\x9b\u202e\u200b\ufeff")
    assert json.loads(screen.text) == value


def test_fields(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and values, a line each; further lines are set in, empty ones left out, tricks made visible."""
    monkeypatch.setattr(sys, "stdout", screen)
    show_fields(Output(), {"name": "x", "nothing": "", "description": "one\ntwo\x1b[31m"})
    assert screen.text == "name         x\ndescription  one\n             two\\x1b[31m\n"


def test_listing_on_a_terminal(home: Path, monkeypatch: pytest.MonkeyPatch, screen: Screen) -> None:
    """`tools list` on a terminal: the same rows, drawn by rich."""
    from mibyan.cli.main import main

    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["tools", "list", "--safe-mode"]) == 0
    assert "terminal" in screen.text
    assert "\x1b[1m" in screen.text
