"""Reading a part of a text file: bounded in lines, in characters and in the length of a line."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from mibyan import ToolError
from mibyan_builtin.files.encoding import SNIFFED, Encoding, detect, undecodable
from mibyan_builtin.files.opening import opened
from mibyan_builtin.files.problems import problem, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan_builtin.files.workspace import Location

#: Lines of one answer at most.
MAX_LINES = 2000
#: Characters of one line at most; the rest of it is left out.
MAX_LINE = 2000
#: Bytes of a file up to which its lines are counted to the end.
COUNTED = 64 * 1024 * 1024
#: Lines after which a long read looks whether it should stop.
PATIENCE = 20_000


@dataclass(slots=True)
class Slice:
    """The lines of a file from `first` on."""

    #: The number of the first line, from 1.
    first: int
    lines: list[str] = field(default_factory=list)
    #: Lines seen so far; the file's lines when `complete`.
    seen: int = 0
    #: Whether the whole file was gone through.
    complete: bool = False
    #: Lines whose end was left out.
    cut: int = 0


def read(location: Location, offset: int, limit: int, budget: int, stop: Callable[[], None]) -> dict[str, Any]:
    """The answer of `read_file`.

    Args:
        location: The file.
        offset: The first line, from 1.
        limit: Lines at most.
        budget: Characters at most, as JSON writes them.
        stop: Called now and then; raises when the call is over.

    Raises:
        ToolError: It isn't a text file that can be read, or it ends before `offset`.
    """
    _check_range(offset, limit)
    with opened(location) as (stream, status):
        try:
            encoding, part = _read_lines(stream, location.given, _Bounds(offset, limit, budget, status.st_size), stop)
        except OSError as error:
            raise problem(error, location.given) from None
    if part.complete and offset > max(part.seen, 1):
        raise ToolError(f"{shown(location.given)} has {part.seen} lines; there is no line {offset}")
    return {"path": str(location.path), **_answer(part), "size": status.st_size, **_peculiarities(part, encoding)}


def _check_range(offset: int, limit: int) -> None:
    if offset < 1:
        raise ToolError(f"offset is the number of a line, from 1; got {offset}")
    if not 1 <= limit <= MAX_LINES:
        raise ToolError(f"limit is a number of lines, 1 to {MAX_LINES}; got {limit}", hint="Read on with offset.")


@dataclass(frozen=True, slots=True)
class _Bounds:
    offset: int
    limit: int
    budget: int
    size: int

    def hold(self, part: Slice, characters: int) -> bool:
        """Whether the slice has all it may have."""
        return len(part.lines) >= self.limit or characters >= self.budget


def _read_lines(stream: IO[bytes], path: str, bounds: _Bounds, stop: Callable[[], None]) -> tuple[Encoding, Slice]:
    head = stream.read(SNIFFED)
    encoding = detect(head, path)
    stream.seek(len(encoding.mark))
    text = io.TextIOWrapper(stream, encoding=encoding.name, newline="\n")
    part = Slice(bounds.offset)
    try:
        _fill(text, part, bounds, stop)
    except UnicodeDecodeError as error:
        # The lines so far came from earlier pieces of the file; the piece at fault gave none.
        line = part.seen + error.object.count(b"\n", 0, error.start) + 1
        raise undecodable(error, encoding, path, line) from None
    finally:
        text.detach()
    return encoding, part


def _fill(text: io.TextIOWrapper, part: Slice, bounds: _Bounds, stop: Callable[[], None]) -> None:
    characters = 0
    while line := text.readline(MAX_LINE + 1):
        left_out = 0 if line.endswith("\n") or len(line) <= MAX_LINE else 1 + _skip_line(text)
        part.seen += 1
        if part.seen % PATIENCE == 0:
            stop()
        if part.seen < bounds.offset:
            continue
        if not bounds.hold(part, characters):
            part.cut += bool(left_out)
            part.lines.append(_cut(line, left_out))
            characters += len(json.dumps(part.lines[-1], ensure_ascii=False)) - 2
        elif bounds.size > COUNTED:
            return
    part.complete = True


def _cut(line: str, left_out: int) -> str:
    return f"{line[:MAX_LINE]} … [{left_out} more characters in this line]\n" if left_out else line


def _skip_line(text: io.TextIOWrapper) -> int:
    """Go to the end of the line; the number of characters passed, its line ending not counted."""
    passed = 0
    while piece := text.readline(65_536):
        passed += len(piece.removesuffix("\n"))
        if piece.endswith("\n"):
            break
    return passed


def _answer(part: Slice) -> dict[str, Any]:
    last = part.first + len(part.lines) - 1
    more = not part.complete or part.seen > last
    answer: dict[str, Any] = {"content": _content(part.lines), "first_line": part.first, "last_line": last}
    if part.complete:
        answer["total_lines"] = part.seen
    answer["truncated"] = bool(more or part.cut)
    if more:
        answer["next_offset"] = last + 1
    return answer


def _content(lines: list[str]) -> str:
    r"""The lines as one text; their `\r\n` is read as `\n` where all have it."""
    return "".join(_unix(lines) or lines)


def _unix(lines: list[str]) -> list[str] | None:
    ended = [line for line in lines if line.endswith("\n")]
    if not ended or not all(line.endswith("\r\n") for line in ended):
        return None
    return [f"{line[:-2]}\n" if line.endswith("\r\n") else line for line in lines]


def _peculiarities(part: Slice, encoding: Encoding) -> dict[str, str]:
    """What `write_file` and `patch` keep by themselves, for the model to know."""
    told = {} if encoding == Encoding() else {"encoding": str(encoding)}
    if _unix(part.lines):
        told["line_endings"] = "crlf"
    return told
