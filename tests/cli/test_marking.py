"""`mibyan.cli.approving.marking`: parts of a command are marked below it, in any script and at any width."""

from __future__ import annotations

import random
import re

import pytest
from rich.cells import cell_len

from mibyan.cli.approving.marking import marked, wrapped
from mibyan.cli.widths import cells_of


def covered(lines: list[str], number: int) -> str:
    """What stands above the marks of one number, told by cells as rich counts them."""
    found = ""
    above = ""
    for line in lines:
        match = re.fullmatch(r"( *)(\^[\^ ]*) ([\d, ]+)", line)
        if match is None:
            above = line
        elif str(number) in match[3].split(", "):
            at, upto = len(match[1]), len(match[1]) + len(match[2])
            cell = 0
            for char in above:
                width = cell_len(char)
                found += char if at <= (cell if width else cell - 1) < upto else ""
                cell += width
    return found


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("rm -rf x; git push --force", "git push --force"),
        ("echo 日本語 && rm -rf 日本 && ls", "rm -rf 日本"),
        ("echo e\u0301e\u0301 ; rm -rf e\u0301 ; ls", "rm -rf e\u0301"),
        ("echo 한국어 | rm -rf x", "rm -rf x"),
        ("echo שלום עולם; rm -rf x", "rm -rf x"),
        ("echo ไม่ได้; rm -rf x", "rm -rf x"),
        ("echo a\nrm -rf b\necho c", "rm -rf b"),
    ],
)
def test_what_is_marked_stands_above_its_marks(command: str, part: str) -> None:
    """Wide, combining and right-to-left text before a part moves its marks by as many cells as it takes."""
    start = command.index(part)
    assert covered(marked(command, [(start, start + len(part))]), 1) == part


def test_marks_within_right_to_left_text_cover_all_of_it() -> None:
    """Which letter stands where is the terminal's affair: none is pointed to."""
    command = "echo שלום עולם; ls"
    start = command.index("לום")
    assert covered(marked(command, [(start, start + 1)]), 1) == "שלום עולם"


def test_tricks_become_visible_and_are_counted() -> None:
    """Control, bidirectional and zero-width characters are shown as escapes, and the marks stand below those."""
    command = "a\u202eb\x1b[2K\u200bc; rm -rf x"
    lines = marked(command, [(command.index("rm"), len(command))])
    assert lines[0] == "    a\\u202eb\\x1b[2K\\u200bc; rm -rf x"
    assert covered(lines, 1) == "rm -rf x"


def test_parts_that_are_the_same_share_their_marks() -> None:
    """Each different part has a line of marks, with the numbers of all that say so."""
    assert marked("rm -rf /", [(7, 8), (0, 8), (7, 8)]) == ["    rm -rf /", "           ^ 1, 3", "    ^^^^^^^^ 2"]


def test_an_empty_part_is_still_marked() -> None:
    """Something that has no length points to where it is."""
    assert marked("ab", [(1, 1)]) == ["    ab", "     ^ 1"]


@pytest.mark.parametrize("width", [20, 33, 80])
def test_long_lines_are_wrapped_with_their_marks(width: int) -> None:
    """No line is wider than the terminal, and the marks of a part that is broken go on below its rest."""
    command = "echo " + "日x" * 40 + " && rm -rf " + "y" * 50
    start = command.index("rm")
    lines = marked(command, [(start, len(command))], width=width)
    assert all(cells_of(line) <= width + 2 for line in lines)  # the number behind the marks may stand out
    assert covered(lines, 1).replace("\n", "") == command[start:]


def test_of_a_very_long_command_the_ends_and_the_parts_are_shown() -> None:
    """Neither a long line nor many lines hide what was found in their midst."""
    line = "x" * 20_000 + " rm -rf a " + "y" * 20_000
    shown = marked(line, [(20_001, 20_009)])
    assert sum(map(len, shown)) < 3000
    assert covered(shown, 1) == "rm -rf a"
    many = "\n".join([*(f"echo {number}" for number in range(5000)), "rm -rf a", *["true"] * 5000])
    start = many.index("rm")
    shown = marked(many, [(start, start + 8)])
    assert len(shown) < 30
    assert covered(shown, 1) == "rm -rf a"
    assert any("lines …" in line for line in shown)


def test_marks_of_anything_stand_within_their_lines() -> None:
    """Any text, any parts, any width: nothing raises, and every part is marked."""
    dice = random.Random(7)
    letters = "ab \t\n;|日한ée\u0301\u200d👩🏽שלع\u202e\x1b\ud800"
    for _ in range(300):
        text = "".join(dice.choice(letters) for _ in range(dice.randrange(60)))
        start = dice.randrange(len(text) + 1)
        spans = [(start, dice.randrange(start, len(text) + 1)), (0, len(text))]
        lines = marked(text, spans, width=dice.choice([1, 20, 200]))
        assert all("\x1b" not in line and "\u202e" not in line for line in lines)
        if text[slice(*spans[0])].replace("\n", "").strip("\u0301\u200d"):
            assert any(re.search(r"\^ 1(?:, 2)?$", line) for line in lines), (text, spans, lines)


def test_wrapped_text_cannot_leave_its_indent() -> None:
    """Each line of it is set in, however narrow the terminal and however its lines are broken."""
    lines = wrapped("Allow it? " * 9 + "\nAllow it?\r\nAllow it?\u2028x", 20)
    assert all(line.startswith("    ") and cells_of(line) <= 20 for line in lines)
