"""Reading unified diffs as models write them.

The grammar is that of `diff -u` and git. Beyond it, the numbers in a hunk's header may be wrong or missing and an empty
context line may have lost its blank: both are common in what models write. (`unidiff` refuses such hunks, and
`whatthepatch` applies a hunk only at the line its header names, so neither could do this reading.)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mibyan import ToolError
from mibyan_builtin.files import diffnames

#: Characters of a diff at most.
MAX_DIFF = 10_000_000

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
#: What can follow a hunk although its header promised more lines.
_FOLLOWS = ("@@", "diff --git ", "Index: ", "```", "*** ", "From ", "Only in ")


@dataclass(slots=True)
class Hunk:
    """One piece of a file's change."""

    #: The line of the diff that it begins in, from 1, for messages.
    at: int
    #: The old file's line that it begins in, from 1; `None` when the header doesn't say.
    start: int | None
    #: How many old lines the header promises; with 0, `start` is the line before the insertion.
    promised: int | None
    #: `(kind, text)`: kind is a blank for context, `-` or `+`; the text has no `\n` but may have a `\r`.
    lines: list[tuple[str, str]] = field(default_factory=list)
    #: Whether the last old line ends without a `\n`.
    old_ends_bare: bool = False
    #: Whether the last new line ends without a `\n`.
    new_ends_bare: bool = False

    @property
    def old(self) -> list[str]:
        """The lines that must be there."""
        return [text for kind, text in self.lines if kind != "+"]

    def count(self, kind: str) -> int:
        """How many lines of a kind it has."""
        return sum(1 for each, _ in self.lines if each == kind)


@dataclass(slots=True)
class FileDiff:
    """The changes of one file."""

    #: The old name; `None`: the file is new.
    old: str | None
    #: The new name; `None`: the file goes.
    new: str | None
    hunks: list[Hunk] = field(default_factory=list)
    #: Whether it becomes executable; `None`: it stays as it is.
    executable: bool | None = None
    #: Whether git's header says that it is renamed; then the names have no `a/` and `b/`.
    renamed: bool = False

    @property
    def paths(self) -> list[str]:
        """The names it is about."""
        return list(dict.fromkeys(path for path in (self.old, self.new) if path))

    def count(self, kind: str) -> int:
        """How many lines of a kind its hunks have."""
        return sum(hunk.count(kind) for hunk in self.hunks)


def parse(diff: str) -> list[FileDiff]:
    """The files' changes in a diff, in its order.

    Raises:
        ToolError: It isn't a unified diff, or it has something that text files don't have.
    """
    if len(diff) > MAX_DIFF:
        raise ToolError(f"The diff is {len(diff)} characters long; the limit is {MAX_DIFF}")
    files = _Parser(diff).files()
    if not files:
        raise ToolError(
            "It isn't a unified diff: it has no file header",
            hint="Each file begins with a line '--- a/PATH' and a line '+++ b/PATH', then hunks: '@@ -1,3 +1,4 @@'.",
        )
    return files


class _Parser:
    """A cursor over the lines of a diff."""

    def __init__(self, diff: str) -> None:
        self.lines = diff.removesuffix("\n").split("\n")
        # Where even the headers end with \r the diff itself came that way; a diff of a Windows file has it in hunks only.
        headers = [line for line in self.lines if line.startswith(("--- ", "+++ ", "@@"))]
        if headers and all(line.endswith("\r") for line in headers):
            self.lines = [line.removesuffix("\r") for line in self.lines]
        self.at = 0

    def files(self) -> list[FileDiff]:
        """Everything up to the end."""
        found: list[FileDiff] = []
        while self.at < len(self.lines):
            if self._line().startswith("diff --git "):
                found.append(self._git_file())
            elif self._names_at(self.at):
                found.append(self._named_file())
            elif self._line().startswith("@@"):
                raise self._problem("a hunk stands before any file header ('--- a/PATH' and '+++ b/PATH')")
            else:
                self.at += 1  # a commit message, an index line
        return found

    def _line(self, ahead: int = 0) -> str:
        return self.lines[self.at + ahead] if self.at + ahead < len(self.lines) else ""

    def _names_at(self, at: int) -> bool:
        """Whether the two lines with a file's names are there."""
        return at + 1 < len(self.lines) and self.lines[at].startswith("--- ") and self.lines[at + 1].startswith("+++ ")

    def _named_file(self) -> FileDiff:
        old, new = diffnames.pair(self._line()[4:], self._line(1)[4:])
        if not old and not new:
            raise self._problem("the file header names no file")
        self.at += 2
        file = FileDiff(old, new)
        self._read_hunks(file)
        if not file.hunks and old == new:
            raise self._problem(f"{new} has no hunk ('@@ -1,3 +1,4 @@' and lines)")
        return file

    def _git_file(self) -> FileDiff:
        file = FileDiff(*diffnames.git_pair(self._line().removeprefix("diff --git ")))
        self.at += 1
        while self.at < len(self.lines) and not self._line().startswith(("diff --git ", "@@")):
            if self._names_at(self.at):
                named = self._named_file()
                file.hunks = named.hunks
                if not file.renamed:
                    file.old, file.new = named.old, named.new
                return file
            self._read_extended(file)
            self.at += 1
        self._read_hunks(file)
        if not file.paths:
            raise self._problem("the file header before it names no file")
        return file

    def _read_extended(self, file: FileDiff) -> None:
        """One of git's extended header lines."""
        match diffnames.extended(self._line()):
            case "new file mode", mode:
                file.old, file.executable = None, self._executable(mode)
            case "new mode", mode:
                file.executable = self._executable(mode)
            case "deleted file mode", _:
                file.new = None
            case "rename from", path:
                file.old, file.renamed = diffnames.path(path), True
            case "rename to", path:
                file.new = diffnames.path(path)
            case (("copy from" | "copy to"), _):
                raise self._problem("copies aren't supported; write the new file's content instead")
            case (("GIT binary patch" | "Binary files"), _):
                raise self._problem("it changes a binary file; the file tools write text")

    def _executable(self, mode: str) -> bool:
        if mode not in {"100644", "100755"}:
            raise self._problem(f"mode {mode} isn't a text file's (100644 or 100755)")
        return mode == "100755"

    def _read_hunks(self, file: FileDiff) -> None:
        while self._line().startswith("@@"):
            file.hunks.append(self._hunk())
            while self.at < len(self.lines) and not self._line().strip():
                self.at += 1

    def _hunk(self) -> Hunk:
        numbers = _HUNK.match(self._line())
        hunk = Hunk(self.at + 1, int(numbers[1]), int(numbers[2] or 1)) if numbers else Hunk(self.at + 1, None, None)
        left = _Left(int(numbers[2] or 1), int(numbers[4] or 1)) if numbers else _Left(None, None)
        self.at += 1
        while self.at < len(self.lines) and not self._ends_hunk(left):
            self._read_hunk_line(hunk, left)
        if not left.exactly_none:
            self._drop_blank_tail(hunk)
        if hunk.count(" ") == len(hunk.lines):
            raise ToolError(f"The diff can't be used: the hunk in line {hunk.at} changes nothing")
        return hunk

    def _read_hunk_line(self, hunk: Hunk, left: _Left) -> None:
        line = self._line()
        self.at += 1
        if line.startswith("\\"):  # "\ No newline at end of file", about the line before it
            kind = hunk.lines[-1][0] if hunk.lines else " "
            hunk.old_ends_bare |= kind != "+"
            hunk.new_ends_bare |= kind != "-"
            return
        kind = line[:1].strip() or " "
        hunk.lines.append((kind, line[1:]))
        left.take(kind)

    def _ends_hunk(self, left: _Left) -> bool:
        """Whether the line isn't the hunk's; the promised numbers decide where the text doesn't."""
        line = self._line()
        if line.startswith(_FOLLOWS) or (self._header_at(self.at) and not left.exactly_one):
            return True
        if not line.strip() and not left.some:
            return not self._hunk_goes_on()
        if left.none and line in {"-- ", "--"}:  # what `git format-patch` ends a patch with
            return True
        if line[:1] in {" ", "+", "-", "\\", "\r", ""}:
            return False
        if left.none:
            return True
        raise self._problem("a line in a hunk begins with a blank, '+' or '-'; this one doesn't")

    def _header_at(self, at: int) -> bool:
        return self._names_at(at) and at + 2 < len(self.lines) and self.lines[at + 2].startswith("@@")

    def _hunk_goes_on(self) -> bool:
        """Whether lines of a hunk follow the blank lines here."""
        at = next((i for i in range(self.at, len(self.lines)) if self.lines[i].strip()), len(self.lines))
        goes_on = at < len(self.lines) and self.lines[at][0] in {" ", "+", "-", "\\"}
        return goes_on and not self._names_at(at) and self.lines[at] not in {"-- ", "--"}

    def _drop_blank_tail(self, hunk: Hunk) -> None:
        """Blank lines at the end were read as context although they may be none; without them it matches as well."""
        at = self.at
        while hunk.lines and hunk.lines[-1] == (" ", "") and self.lines[at - 1] in {"", "\r"}:
            hunk.lines.pop()
            at -= 1

    def _problem(self, what: str) -> ToolError:
        return ToolError(f"The diff can't be used: line {self.at + 1}: {what}")


@dataclass(slots=True)
class _Left:
    """How many old and new lines a hunk's header still promises; `None`: it promised nothing."""

    old: int | None
    new: int | None

    def take(self, kind: str) -> None:
        """Count a line."""
        if self.old is not None and self.new is not None:
            self.old -= kind != "+"
            self.new -= kind != "-"

    @property
    def some(self) -> bool:
        """Whether lines are still promised."""
        return self.old is not None and self.new is not None and (self.old > 0 or self.new > 0)

    @property
    def none(self) -> bool:
        """Whether all that was promised is there."""
        return self.old is not None and not self.some

    @property
    def exactly_none(self) -> bool:
        """Whether as much is there as was promised."""
        return (self.old, self.new) == (0, 0)

    @property
    def exactly_one(self) -> bool:
        """Whether one removed and one added line are missing: `--- a` and `+++ b` may be they."""
        return (self.old, self.new) == (1, 1)
