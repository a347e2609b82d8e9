"""Replacing a piece of text, found exactly; when it isn't found, saying what comes nearest."""

from __future__ import annotations

import re

from mibyan import ToolError
from mibyan_builtin.files.encoding import usual_line_ending
from mibyan_builtin.files.problems import shown

#: Lines of a file in which something similar is looked for.
COMPARED_LINES = 20_000
#: Places of one line that are looked at: one that stands everywhere says little.
COMMON = 100
#: Lines and characters of what is shown as the nearest text.
SHOWN_LINES = 8
SHOWN_CHARACTERS = 600
#: Line numbers that a message lists.
LISTED = 10


def replace(text: str, old: str, new: str, *, every: bool, path: str) -> tuple[str, list[int]]:
    r"""`text` with `old` replaced by `new`, and the numbers of the lines where it stood.

    `\n` in `old` also finds the file's `\r\n`, and `\n` in `new` becomes what ends the file's lines.

    Args:
        text: The file's text.
        old: What stands there, exactly.
        new: What shall stand there.
        every: Replace every occurrence; else there must be exactly one.
        path: The file, for messages.

    Raises:
        ToolError: There is nothing to replace, or it isn't clear which.
    """
    _check(old, new)
    pattern = re.compile(re.escape(old).replace("\\\r\\\n", "\\\n").replace("\\\n", "\r?\n"))
    found = list(pattern.finditer(text))
    if not found:
        raise ToolError(f"old_string isn't in {shown(path)}", hint=nearest(text, old))
    lines = _line_numbers(text, [match.start() for match in found])
    if len(found) > 1 and not every:
        distinct = list(dict.fromkeys(lines))
        listed = ", ".join(str(line) for line in distinct[:LISTED]) + (", …" if len(distinct) > LISTED else "")
        raise ToolError(
            f"old_string is in {shown(path)} {len(found)} times, in lines {listed}",
            hint="Send more of the surrounding lines, so that it stands there once; or set replace_all.",
        )
    ending = usual_line_ending(text)
    replacement = new.replace("\r\n", "\n").replace("\n", ending)
    return pattern.sub(lambda _: replacement, text), lines


def _check(old: str, new: str) -> None:
    if not old:
        raise ToolError("old_string is empty", hint="Send the text to replace; write_file makes a new file.")
    if old == new:
        raise ToolError("old_string and new_string are the same; there is nothing to change")


def _line_numbers(text: str, positions: list[int]) -> list[int]:
    """The line of each position, in one pass."""
    numbers, line, reached = [], 1, 0
    for position in positions:
        line += text.count("\n", reached, position)
        reached = position
        numbers.append(line)
    return numbers


def nearest(text: str, wanted: str) -> str:
    """What in `text` comes nearest to `wanted`, in a sentence for the model."""
    lines = text.splitlines()
    sought = wanted.splitlines()
    start = _same_but_blanks(lines, sought)
    if start is not None:
        span = f"line {start + 1}" if len(sought) == 1 else f"lines {start + 1} to {start + len(sought)}"
        return f"It differs in blanks only from {span}:\n{_excerpt(lines, start, len(sought))}"
    start = _shared(lines, sought)
    start = _similar(lines, sought) if start is None else start
    if start is not None:
        return f"The nearest is at line {start + 1}:\n{_excerpt(lines, start, len(sought))}"
    return "Nothing like it is there; read the file and copy the text exactly, blanks included."


def _same_but_blanks(lines: list[str], sought: list[str]) -> int | None:
    """Where `sought` begins when blanks don't count."""
    plain = ["".join(line.split()) for line in sought]
    every = ["".join(line.split()) for line in lines]
    if not any(plain):
        return None
    starts = (i for i, line in enumerate(every) if line == plain[0])
    return next((i for i in starts if every[i : i + len(plain)] == plain), None)


def _shared(lines: list[str], sought: list[str]) -> int | None:
    """Where the most of the lines of `sought` stand at their place."""
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines[:COMPARED_LINES]):
        places.setdefault(line.strip(), []).append(number)
    votes: dict[int, int] = {}
    for number, line in enumerate(sought):
        for place in places.get(line.strip(), [])[:COMMON] if line.strip() else ():
            votes[place - number] = votes.get(place - number, 0) + 1
    return max(max(votes, key=lambda start: (votes[start], -start)), 0) if votes else None


def _similar(lines: list[str], sought: list[str]) -> int | None:
    """Where a line that looks like the longest one of `sought` puts the beginning of `sought`."""
    from difflib import get_close_matches

    longest = max(range(len(sought)), key=lambda i: len(sought[i].strip()), default=0)
    key = sought[longest].strip()[:200] if sought else ""
    candidates = {line.strip()[:200]: i for i, line in reversed(list(enumerate(lines[:COMPARED_LINES])))}
    candidates.pop("", None)
    close = get_close_matches(key, candidates, n=1, cutoff=0.6)
    return max(candidates[close[0]] - longest, 0) if close else None


def _excerpt(lines: list[str], start: int, count: int) -> str:
    text = "\n".join(lines[start : start + min(count, SHOWN_LINES)])
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
