"""Globs as ripgrep and git know them: `*.py`, `src/**/test_*.py`, `*.{js,ts}`, `!vendor/**`."""

from __future__ import annotations

import re
from fnmatch import translate
from typing import TYPE_CHECKING, TypeAlias

from mibyan import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

#: Globs that one with braces may stand for.
MAX_ALTERNATIVES = 256
#: Characters of a glob.
MAX_GLOB = 1000

_BRACES = re.compile(r"\{([^{}]*)\}")

#: A name's pattern; `None` is `**`, any number of directories.
Segment: TypeAlias = "re.Pattern[str] | None"


def matching(glob: str) -> Callable[[str], bool]:
    """A predicate over paths relative to the directory that is searched.

    A glob without a slash is about a file's name, one with a slash about the whole path; a leading `!` turns it round.

    Raises:
        ToolError: It isn't a glob.
    """
    negated = glob.startswith("!")
    plain = glob.removeprefix("!").removeprefix("./")
    if not plain.strip("/") or len(plain) > MAX_GLOB or "\0" in plain:
        raise ToolError(f"It isn't a glob: {glob[:100]!r}", hint="A glob looks like *.py or src/**/*.ts.")
    plain += "**" if plain.endswith("/") else ""
    whole = "/" in plain
    patterns = [[_segment(part) for part in each.strip("/").split("/")] for each in _alternatives(plain)]

    def matches(path: str) -> bool:
        parts = path.split("/") if whole else [path.rsplit("/", 1)[-1]]
        return any(_match(pattern, parts) for pattern in patterns) is not negated

    return matches


def _alternatives(glob: str) -> list[str]:
    """The globs without braces that `glob` stands for."""
    found = [glob]
    while any(_BRACES.search(each) for each in found):
        found = [wider for each in found for wider in _widened(each)]
        if len(found) > MAX_ALTERNATIVES:
            raise ToolError(f"The glob stands for more than {MAX_ALTERNATIVES} globs; use fewer braces")
    return found


def _widened(glob: str) -> Iterator[str]:
    braces = _BRACES.search(glob)
    if braces is None:
        yield glob
        return
    for choice in braces[1].split(","):
        yield glob[: braces.start()] + choice + glob[braces.end() :]


def _segment(part: str) -> Segment:
    return None if part == "**" else re.compile(translate(part))


def _match(pattern: Sequence[Segment], parts: Sequence[str]) -> bool:
    """Whether the names fit the pattern; `reached` are the places in the pattern that the names so far lead to."""
    reached = _past_stars(pattern, {0})
    for name in parts:
        after: set[int] = set()
        for at in reached - {len(pattern)}:
            segment = pattern[at]
            if segment is None:
                after |= {at, at + 1} if at == len(pattern) - 1 else {at}
            elif segment.match(name):
                after.add(at + 1)
        reached = _past_stars(pattern, after)
    return len(pattern) in reached


def _past_stars(pattern: Sequence[Segment], places: set[int]) -> set[int]:
    """`places` and those after a `**` there, which may stand for nothing (but not at the end: `a/**` isn't `a`)."""
    reached = set(places)
    for at in range(len(pattern) - 1):
        if at in reached and pattern[at] is None:
            reached.add(at + 1)
    return reached
