"""`search_files`: lines that match a pattern, or files by their name."""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from mibyan import ToolError
from mibyan_builtin.files import dialect, engines
from mibyan_builtin.files.globs import matching
from mibyan_builtin.files.opening import existing, require_regular
from mibyan_builtin.files.problems import problem
from mibyan_builtin.files.walking import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mibyan_builtin.files.engines import Match
    from mibyan_builtin.files.workspace import Location, Workspace

#: Matches or files of one answer at most.
MAX_RESULTS = 1000
#: Characters of a matching line that are shown.
SHOWN_TEXT = 400
#: Characters of it that are shown before the match.
SHOWN_BEFORE = 100
#: Seconds that a search takes at most.
MAX_SECONDS = 60.0
#: Characters of a pattern.
MAX_PATTERN = 5000


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for."""

    pattern: str
    path: str
    glob: str | None
    limit: int
    #: Characters of the answer at most.
    budget: int
    #: Raises when the call is over.
    stop: Callable[[], None]
    #: `time.monotonic()` at which the search gives what it has.
    until: float

    def check(self) -> None:
        """Go on, or not.

        Raises:
            OutOfTime: The time is up.
        """
        self.stop()
        if time.monotonic() > self.until:
            raise OutOfTime


class OutOfTime(Exception):  # noqa: N818 - what was found until then is an answer
    """The search took its time."""


def in_content(workspace: Workspace, search: Search) -> dict[str, Any]:
    """The lines that match; the answer of `search_files(target="content")`."""
    _check_pattern(search.pattern)
    with _searched(workspace, search) as place:
        found: list[dict[str, Any]] = []
        outcome = _collect((_shown(place, match) for match in _matches(search, place)), found, search)
    return {"matches": found, "count": len(found), **outcome}


def by_name(workspace: Workspace, search: Search) -> dict[str, Any]:
    """The files whose name matches; the answer of `search_files(target="files")`."""
    wanted = _name_predicate(search.pattern)
    with _searched(workspace, search) as place:
        found: list[str] = []
        names = (place.prefix + name for name in place.files(search.check, links=True) if wanted(name))
        outcome = _collect(names, found, search)
    return {"files": found, "count": len(found), **outcome}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a search goes through: an open directory, or one file in it."""

    directory: int
    #: What stands before a found path in the answer.
    prefix: str
    #: The one file.
    name: str | None
    #: Which files are chosen, as it was given and as a predicate.
    glob: str | None
    admits: Callable[[str], bool]

    def files(self, stop: Callable[[], None], *, links: bool = False) -> Iterator[str]:
        """The files to look at."""
        names = [self.name] if self.name else walk(self.directory, stop, links=links)
        return (name for name in names if self.admits(name))


@contextmanager
def _searched(workspace: Workspace, search: Search) -> Iterator[_Place]:
    if not 1 <= search.limit <= MAX_RESULTS:
        raise ToolError(f"limit is a number of results, 1 to {MAX_RESULTS}; got {search.limit}")
    admits = matching(search.glob) if search.glob else _everything
    with workspace.locate(search.path) as location:
        if not stat.S_ISDIR(existing(location).st_mode):
            require_regular(location, existing(location))
            yield _Place(location.directory, _prefix(workspace, location, up=True), location.name, search.glob, admits)
            return
        directory = _open_directory(location)
        try:
            yield _Place(directory, _prefix(workspace, location), None, search.glob, admits)
        finally:
            os.close(directory)


def _open_directory(location: Location) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(location.name, flags, dir_fd=location.directory)
    except OSError as error:
        raise problem(error, location.given) from None


def _prefix(workspace: Workspace, location: Location, *, up: bool = False) -> str:
    shown_as = workspace.relative(location.path.parent if up else location.path)
    return "" if shown_as == "." else shown_as.removesuffix("/") + "/"


def _everything(_path: str) -> bool:
    return True


def _matches(search: Search, place: _Place) -> Iterator[Match]:
    """The matches of the engine that can be had."""
    program = shutil.which("rg")
    written = dialect.for_ripgrep(search.pattern)
    paths = place.files
    if program and written is not None and place.name is None:
        try:
            found = _by_ripgrep(program, written.text, place, search.check)
            if written.exact:
                yield from found
                return
            paths = partial(_candidates, program, written.text, place)
        except engines.Unanswered:
            pass  # it said nothing at all, so nothing is told twice
    yield from engines.own(search.pattern, paths, place.directory, search.check)


def _by_ripgrep(program: str, pattern: str, place: _Place, stop: Callable[[], None]) -> Iterator[Match]:
    matches = engines.ripgrep(program, pattern, place.directory, stop, place.glob)
    return (match for match in matches if place.admits(match.path))


def _candidates(program: str, pattern: str, place: _Place, stop: Callable[[], None]) -> Iterator[str]:
    """The files in which ripgrep finds a pattern that matches more; all files when it doesn't answer."""
    told = ""
    try:
        for match in _by_ripgrep(program, pattern, place, stop):
            if match.path != told:
                told = match.path
                yield told
    except engines.Unanswered:
        yield from place.files(stop)


def _collect(results: Iterable[Any], found: list[Any], search: Search) -> dict[str, Any]:
    """Put results into `found` as far as they may go; what the answer says about the rest."""
    characters = 0
    try:
        for result in results:
            characters += len(json.dumps(result, ensure_ascii=False)) + 2
            if len(found) >= search.limit or characters > search.budget:
                return {"truncated": True}
            found.append(result)
    except OutOfTime:
        return {"truncated": True, "note": "The search took too long and stopped; search a smaller part."}
    return {"truncated": False}


def _shown(place: _Place, match: Match) -> dict[str, Any]:
    """A match as the answer shows it: a long line is cut around the match."""
    text, start = match.text, max(match.column - SHOWN_BEFORE, 0)
    if len(text) > SHOWN_TEXT:
        start = start if match.column > SHOWN_TEXT // 2 else 0
        more = start + SHOWN_TEXT < len(text)
        text = ("…" if start else "") + text[start : start + SHOWN_TEXT] + ("…" if more else "")
    return {"path": place.prefix + match.path, "line": match.line, "text": text}


def _check_pattern(pattern: str) -> None:
    """Refuse what can't match a line; whether it is a regular expression, the engine says.

    Raises:
        ToolError: It can't.
    """
    if not pattern or len(pattern) > MAX_PATTERN:
        raise ToolError(f"The pattern has {len(pattern)} characters; it may have 1 to {MAX_PATTERN}")
    if "\n" in pattern:
        raise ToolError("The pattern has a line break; matches are looked for within single lines")


def _name_predicate(pattern: str) -> Callable[[str], bool]:
    """Whether a path's name fits: a glob, or a part of the name."""
    if any(character in pattern for character in "*?[{/"):
        return matching(pattern)
    if not pattern or len(pattern) > MAX_PATTERN:
        raise ToolError(
            "The pattern is empty or too long", hint="Give a glob such as *.py, or a part of a file's name."
        )
    return lambda path: pattern.casefold() in path.rsplit("/", 1)[-1].casefold()
