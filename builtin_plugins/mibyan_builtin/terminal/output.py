"""A command's output: decoded, cleaned of what steers a terminal, and bounded while it comes (terminal.E4)."""

from __future__ import annotations

import codecs
import re
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Characters of a line that are held back to see what a carriage return makes of it; a longer line is cut there.
LONGEST_LINE = 65_536
#: The share of the output's beginning in what is kept.
HEAD = 0.4

#: What steers a terminal: CSI, OSC and other strings with their ends, character sets, and the short sequences.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c\n]*(?:\x1b\\|\x9c)?"
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-~]?"
)
_BACKSPACE = re.compile(r"[^\x08]\x08")
#: Controls that show nothing; the tabulator stays.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
#: A line that has none of these is as it should be.
_UNCLEAN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean_line(line: str) -> str:
    r"""A line as it would be left on a terminal: without colours, and only the last state of a progress line.

    Args:
        line: Without its `\n`.
    """
    if not _UNCLEAN.search(line):
        return line
    plain = _SEQUENCE.sub("", line)
    states = [state for state in plain.split("\r") if state]
    plain = states[-1] if states else ""
    while "\x08" in plain:
        shorter = _BACKSPACE.sub("", plain)
        if shorter == plain:
            break
        plain = shorter
    return _CONTROL.sub("", plain)


def _last_state(line: str) -> str:
    """A line that isn't complete, without the states that a carriage return has overwritten."""
    states = line.split("\r")
    last = next((i for i in range(len(states) - 1, -1, -1) if _SEQUENCE.sub("", states[i])), 0)
    return "\r".join(states[last:])


def bounded(text: str, limit: int, file: str | None = None) -> str:
    """The beginning and the end of a text, `limit` characters, with a marker between them; `file` has all of it."""
    if len(text) <= limit:
        return text
    head = int(limit * HEAD)
    return f"{text[:head]}\n{_marker(len(text) - limit, len(text), text.count(chr(10)), file)}\n{text[len(text) - limit + head :]}"


def _marker(left_out: int, characters: int, lines: int, file: str | None) -> str:
    where = f"; the whole is in {file}" if file else ""
    return f"[… {left_out:,} of {characters:,} characters ({lines:,} lines in all) left out{where} …]"


class Output:
    """What a command has written so far: its beginning and its end.

    Args:
        limit: Characters that are kept at most.
        pass_on: Gets all of it, cleaned, as it comes.
    """

    #: Characters written, after cleaning.
    characters: int
    #: Line endings written.
    lines: int

    def __init__(self, limit: int, pass_on: Callable[[str], None] | None = None) -> None:
        self._pass_on = pass_on
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head_room = int(limit * HEAD)
        self._tail_room = limit - self._head_room
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._line = ""
        self.characters = 0
        self.lines = 0

    @property
    def truncated(self) -> bool:
        """Whether something was left out."""
        return self._tail_size > self._tail_room or self.characters > self._kept

    def write(self, data: bytes) -> None:
        """Take what came; a character or a line may end in the next piece."""
        self._take(self._decoder.decode(data))

    def close(self) -> None:
        """Take what is left of the last line."""
        self._take(self._decoder.decode(b"", final=True))
        self._keep(clean_line(self._line))
        self._line = ""

    def text(self, file: str | None = None) -> str:
        """The output, with a marker where something was left out; `file` has all of it."""
        head, tail = "".join(self._head), "".join(self._tail)
        if not self.truncated:
            return head + tail
        tail = tail[-self._tail_room :] if self._tail_room else ""
        left_out = self.characters - len(head) - len(tail)
        return f"{head}\n{_marker(left_out, self.characters, self.lines, file)}\n{tail}"

    @property
    def _kept(self) -> int:
        return sum(map(len, self._head)) + self._tail_size

    def _take(self, text: str) -> None:
        *whole, rest = (self._line + text).split("\n")
        if whole:
            self.lines += len(whole)
            self._keep("".join(f"{clean_line(line)}\n" for line in whole))
        rest = _last_state(rest)
        while len(rest) > LONGEST_LINE:
            self._keep(clean_line(rest[:LONGEST_LINE]))
            rest = rest[LONGEST_LINE:]
        self._line = rest

    def _keep(self, text: str) -> None:
        self.characters += len(text)
        if self._pass_on is not None:
            self._pass_on(text)
        if self._head_room:
            self._head.append(text[: self._head_room])
            text = text[self._head_room :]
            self._head_room -= len(self._head[-1])
        if text:
            self._tail.append(text)
            self._tail_size += len(text)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_room:
            self._tail_size -= len(self._tail.popleft())
