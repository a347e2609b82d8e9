"""Applying a file's hunks to its text, each where its old lines stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan import ToolError
from mibyan_builtin.files.encoding import usual_line_ending
from mibyan_builtin.files.problems import shown
from mibyan_builtin.files.replacing import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mibyan_builtin.files.unified import FileDiff, Hunk

#: Line numbers that a message lists.
LISTED = 10


def created(file: FileDiff) -> str:
    """The text of a file that the diff makes.

    Raises:
        ToolError: It has lines that would have to be there before.
    """
    for hunk in file.hunks:
        if hunk.old:
            raise ToolError(f"The hunk in line {hunk.at} of the diff has old lines, but {file.new} is a new file")
    lines = [text for hunk in file.hunks for _, text in hunk.lines]
    bare = bool(file.hunks) and file.hunks[-1].new_ends_bare
    return "\n".join(lines) + ("\n" if lines and not bare else "")


def applied(text: str, file: FileDiff, path: str) -> str:
    """`text` with every hunk of `file` applied.

    A hunk goes where its header says, if its old lines stand there; else to the one other place after the hunk before
    it where they stand. Lines are compared exactly, and only when that finds nothing without the blanks at their ends.

    Raises:
        ToolError: A hunk's old lines aren't there, or it isn't clear which of several places is meant.
    """
    return _Application(text, file, path).run()


class _Application:
    """The text of one file on its way from the old to the new."""

    def __init__(self, text: str, file: FileDiff, path: str) -> None:
        self.file = file
        self.path = path
        self.text = text
        self.return_ = "\r" if usual_line_ending(text) == "\r\n" else ""
        self.lines = text.split("\n")
        self.bare = self.lines[-1] != ""
        if not self.bare:
            self.lines.pop()
        elif self.return_:
            self.lines[-1] += "\r"  # it may get a successor
        #: Whether the hunks themselves say which lines end with \r.
        ends = {line.endswith("\r") for hunk in file.hunks for _, line in hunk.lines}
        self.literal = len(ends) > 1
        #: The old lines in the forms in which they are compared.
        self.forms: dict[Callable[[str], str], list[str]] = {}
        self.result: list[str] = []
        #: The old line, from 0, up to which the result is done.
        self.reached = 0
        #: By how much the last hunk was away from where its header put it.
        self.drift = 0

    def run(self) -> str:
        """The new text."""
        for hunk in self.file.hunks:
            self._apply(hunk, self._place(hunk))
        self.result += self.lines[self.reached :]
        if self.bare and self.return_ and self.result:
            self.result[-1] = self.result[-1].removesuffix("\r")
        return "\n".join(self.result) + ("\n" if self.result and not self.bare else "")

    def _apply(self, hunk: Hunk, place: int) -> None:
        self.result += self.lines[self.reached : place]
        self.reached = place
        for kind, line in hunk.lines:
            if kind == "+":
                self.result.append(line if self.literal else line.removesuffix("\r") + self.return_)
                continue
            if kind == " ":
                self.result.append(self.lines[self.reached])
            self.reached += 1
        if self.reached == len(self.lines) and (hunk.old_ends_bare or hunk.new_ends_bare):
            self.bare = hunk.new_ends_bare
        if hunk.start is not None:
            self.drift = place - _header_place(hunk)

    def _place(self, hunk: Hunk) -> int:
        """The old line, from 0, where the hunk belongs."""
        if not hunk.old:
            return self._insertion_place(hunk)
        expected = None if hunk.start is None else _header_place(hunk) + self.drift
        for form in (_without_return, str.rstrip):
            found = self._matches(hunk, form, expected)
            if len(found) == 1:
                return found[0]
            if found:
                raise self._ambiguous(hunk, found)
        hint = nearest(self.text, "\n".join(hunk.old))
        raise ToolError(f"The hunk in line {hunk.at} of the diff doesn't fit {shown(self.path)}", hint=hint)

    def _insertion_place(self, hunk: Hunk) -> int:
        """Where lines go that have no context: the header's numbers must be right then."""
        place = 0 if not self.lines else None
        if hunk.start is not None and hunk.promised == 0:
            place = hunk.start + self.drift
        if place is None or not self.reached <= place <= len(self.lines):
            raise ToolError(
                f"The hunk in line {hunk.at} of the diff doesn't say where in {shown(self.path)} its lines go",
                hint="Send some of the lines around them as context.",
            )
        return place

    def _matches(self, hunk: Hunk, form: Callable[[str], str], expected: int | None) -> Sequence[int]:
        """Where the hunk's old lines stand, compared in a form; only `expected` if they stand there."""
        if form not in self.forms:
            self.forms[form] = [form(line) for line in self.lines]
        lines, old = self.forms[form], [form(line) for line in hunk.old]
        last = len(lines) - len(old)
        first = max(self.reached, last) if hunk.old_ends_bare else self.reached
        places = range(first, last + 1)
        if expected is not None and expected in places and lines[expected : expected + len(old)] == old:
            return [expected]
        return [i for i in places if lines[i] == old[0] and lines[i : i + len(old)] == old]

    def _ambiguous(self, hunk: Hunk, found: Sequence[int]) -> ToolError:
        listed = ", ".join(str(place + 1) for place in found[:LISTED]) + (", …" if len(found) > LISTED else "")
        return ToolError(
            f"The hunk in line {hunk.at} of the diff fits {shown(self.path)} in {len(found)} places: lines {listed}",
            hint="Send more lines of context, or the right line numbers in its header.",
        )


def _header_place(hunk: Hunk) -> int:
    """The old line, from 0, that the header names."""
    start = hunk.start or 0
    return start if hunk.promised == 0 else start - 1


def _without_return(line: str) -> str:
    return line.removesuffix("\r")
