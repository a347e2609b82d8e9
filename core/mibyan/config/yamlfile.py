"""YAML as data with lines: JSON types only, every key's line known, every trap of the format a sentence.

Scalars are read as in YAML 1.2's core schema, and `yes no on off` as the booleans they are in YAML 1.1 (people write
them). Keys are always text: a plugin may be called `123` or `on`. Sexagesimal numbers and dates are text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.config.keys import join_key
from mibyan.config.problems import InvalidConfigError, Problem
from mibyan.config.scalars import describe, resolve
from mibyan.errors import MibyanError
from mibyan.paths import read_text
from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mibyan.config.keys import KeyPath

#: Bytes of a file; a configuration of this size is a mistake.
MAX_BYTES = 4_000_000
#: Containers inside one another.
MAX_DEPTH = 64
#: Values in all, what aliases repeat included ("a billion laughs").
MAX_VALUES = 200_000


@record
class Document:
    """A mapping that was read from a file, with the line of every key."""

    #: The file as people call it.
    label: str
    #: JSON types.
    data: dict[str, Any] = field(default_factory=dict)
    #: The line of each key and item, counted from 1.
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def line(self, path: KeyPath) -> int | None:
        """The line of a key, or of the nearest one above it that is written."""
        known = (self.lines.get(path[:depth]) for depth in range(len(path), -1, -1))
        return next((line for line in known if line is not None), None)

    def where(self, path: KeyPath) -> str:
        """`config.yaml:12`, or the label alone where there are no lines."""
        line = self.line(path)
        return self.label if line is None else f"{self.label}:{line}"

    def problem(self, path: KeyPath, message: str, suggestion: str | None = None) -> Problem:
        """A problem at a key of this document."""
        return Problem(self.label, self.line(path), join_key(path), message, suggestion)


def read_document(path: Path, label: str) -> Document:
    """The mapping in a YAML file; an empty file is an empty mapping.

    Raises:
        InvalidConfigError: It can't be read, isn't YAML, isn't a mapping, or uses what a configuration can't have.
    """
    try:
        text = read_text(path, limit=MAX_BYTES)
    except MibyanError as error:
        place = error.origin or ""
        line = place.rpartition(":")[2]
        message = error.message.replace(place, "it", 1) if error.message.startswith(place) else error.message
        problem = Problem(label, int(line) if line.isdecimal() else None, "", message)
        raise InvalidConfigError(path, [problem], hint=error.hint) from error
    return parse_document(text, label, origin=path)


def parse_document(text: str, label: str, *, origin: Path | str | None = None) -> Document:
    """The mapping in YAML text.

    Args:
        text: The YAML; a byte order mark at its start is allowed.
        label: What problems call the file.
        origin: What the error calls the file, `label` when it isn't given.

    Raises:
        InvalidConfigError: It isn't YAML, isn't a mapping, or uses what a configuration can't have.
    """
    reader = _Reader(Document(label))
    try:
        data = reader.read(text.removeprefix("\ufeff"))
    except _UnreadableError as error:
        reader.problems.append(Problem(label, error.line, join_key(error.path), error.message))
        data = {}
    if reader.problems:
        raise InvalidConfigError(origin or label, reader.problems)
    return Document(label, data, reader.document.lines)


class _UnreadableError(Exception):
    """Reading can't go on."""

    def __init__(self, message: str, line: int | None = None, path: KeyPath = ()) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.path = path


class _Reader:
    """Builds data from YAML's events; what is wrong is collected as far as reading can go on."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []
        self._events: Iterator[Any] = iter(())
        #: Anchored values, each with the number of values that it has.
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._values = 0

    def read(self, text: str) -> dict[str, Any]:
        """The mapping in `text`."""
        self._events = _events(text)
        next(self._events)  # the stream's start
        event = next(self._events)
        if type(event).__name__ == "StreamEndEvent":
            return {}
        data = self._value(next(self._events), ())
        next(self._events)  # the document's end
        if type(event := next(self._events)).__name__ != "StreamEndEvent":
            raise _UnreadableError("there is a second document (after a line '---'); one is allowed", _line(event))
        if data is None:
            return {}
        if not isinstance(data, dict):
            raise _UnreadableError(
                f"expected a mapping of keys to values, got {describe(data)}", self.document.lines.get((), 1)
            )
        return data

    def _value(self, event: Any, path: KeyPath) -> Any:
        """The value that begins with `event`; its line is noted."""
        self.document.lines.setdefault(path, _line(event))
        if len(path) > MAX_DEPTH:
            raise _UnreadableError(f"more than {MAX_DEPTH} levels inside one another", _line(event), path[:3])
        before = self._values
        match type(event).__name__:
            case "AliasEvent":
                return self._alias(event, path)
            case "ScalarEvent":
                value: Any = self._scalar(event, path)
            case "SequenceStartEvent":
                value = self._sequence(event, path)
            case _:
                value = self._mapping(event, path)
        self._count(event, 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = value, self._values - before
        return value

    def _count(self, event: Any, values: int) -> None:
        """Count what was read; aliases count as often as they stand for something."""
        self._values += values
        if self._values > MAX_VALUES:
            raise _UnreadableError(f"more than {MAX_VALUES:,} values (do anchors repeat one another?)", _line(event))

    def _alias(self, event: Any, path: KeyPath) -> Any:
        """What an alias stands for; what is below it counts as written in the alias's line."""
        if event.anchor not in self._anchors:
            raise _UnreadableError(
                f"the alias *{event.anchor} stands inside its own anchor or has none", _line(event), path
            )
        value, values = self._anchors[event.anchor]
        self._count(event, values)
        return value

    def _scalar(self, event: Any, path: KeyPath) -> Any:
        """A scalar's value."""
        try:
            return resolve(event.value, event.tag, plain=event.implicit[0])
        except ValueError as error:
            self._problem(path, event, str(error))
            return None

    def _sequence(self, event: Any, path: KeyPath) -> list[Any]:
        """A list's items."""
        self._check_tag(event, path, "tag:yaml.org,2002:seq")
        items: list[Any] = []
        while type(part := next(self._events)).__name__ != "SequenceEndEvent":
            items.append(self._value(part, (*path, len(items))))
        return items

    def _mapping(self, event: Any, path: KeyPath) -> dict[str, Any]:
        """A mapping's keys and values; `<<` takes over another mapping's where nothing else is written."""
        self._check_tag(event, path, "tag:yaml.org,2002:map")
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while type(part := next(self._events)).__name__ != "MappingEndEvent":
            key, is_merge = self._key(part, path)
            place = (*path, key)
            if is_merge:
                merged = {**self._merged(next(self._events), path), **merged}
                continue
            if key in own:
                first = self.document.lines[place]
                self._problem(place, part, f"written twice (first in line {first}); only one can count")
            self.document.lines[place] = _line(part)
            own[key] = self._value(next(self._events), place)
        return {**merged, **own}

    def _key(self, event: Any, path: KeyPath) -> tuple[str, bool]:
        """A key's text, and whether it is YAML's merge key."""
        if type(event).__name__ == "AliasEvent" and isinstance(self._anchors.get(event.anchor, (None,))[0], str):
            return self._anchors[event.anchor][0], False
        if type(event).__name__ != "ScalarEvent":
            raise _UnreadableError(
                "a key must be text; put quotes around it if it has brackets or braces", _line(event), path
            )
        if event.anchor is not None:
            self._anchors[event.anchor] = event.value, 1
        return event.value, event.value == "<<" and event.implicit[0]

    def _merged(self, event: Any, path: KeyPath) -> dict[str, Any]:
        """The keys that a `<<` brings: those of a mapping, or of several, the first of which wins."""
        value = self._value(event, path)
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            self._problem(path, event, f"'<<' takes a mapping, got {describe(value)}")
            return {}
        return {key: part for source in reversed(sources) for key, part in source.items()}

    def _check_tag(self, event: Any, path: KeyPath, tag: str) -> None:
        """Note a tag that isn't the container's own."""
        if event.tag not in {None, "!", tag}:
            self._problem(path, event, f"the tag {event.tag} isn't known here; leave it out")

    def _problem(self, path: KeyPath, event: Any, message: str) -> None:
        self.problems.append(Problem(self.document.label, _line(event), join_key(path), message))


def _line(event: Any) -> int:
    """The line in which an event begins, counted from 1."""
    return int(event.start_mark.line) + 1


def _events(text: str) -> Iterator[Any]:
    """YAML's events; what the parser refuses becomes a sentence."""
    import yaml

    try:
        yield from yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.reader.ReaderError as error:
        character, position = error.character, error.position
        shown = f"U+{character:04X}" if isinstance(character, int) else repr(character)
        raise _UnreadableError(f"a control character ({shown})", text.encode()[:position].count(b"\n") + 1) from error
    except yaml.MarkedYAMLError as error:
        # What isn't closed is best shown where it begins.
        unclosed = "expected ',' or" in str(error.problem) or "end of stream" in str(error.problem)
        mark = (error.context_mark if unclosed else None) or error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        raise _UnreadableError(_sentence(error, _character(text, mark)), line) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise _UnreadableError(f"it isn't YAML: {error}") from error


def _character(text: str, mark: Any) -> str:
    """The character at a mark, empty at the end of the text."""
    lines = text.split("\n", mark.line + 1) if mark else []
    return lines[mark.line][mark.column : mark.column + 1] if mark and mark.line < len(lines) else ""


#: What the parser says, and what people understand.
_SENTENCES = {
    "mapping values are not allowed": "a ': ' that can't be there; put quotes around text that has one, and check the indentation",
    "expected ',' or ']'": "a list in brackets that isn't closed, or lacks a comma",
    "expected ',' or '}'": "a mapping in braces that isn't closed, or lacks a comma",
    "found unexpected end of stream": "a quote that isn't closed",
    "did not find expected key": "expected a key here; check the indentation and the quotes",
    "could not find expected ':'": "a key without its ':'",
    "exceeded maximum nesting depth": f"more than {MAX_DEPTH} levels inside one another",
    "did not find expected '-' indicator": "expected a list item ('- ') here; check the indentation",
}


def _sentence(error: Any, character: str) -> str:
    """What the parser refused, in words."""
    problem = str(error.problem or error)
    if "cannot start any token" in problem:
        if character == "\t":
            return "a tab where YAML wants spaces"
        return f"text that begins with {character} must be in quotes"
    known = (words for phrase, words in _SENTENCES.items() if phrase in problem)
    return next(known, f"it isn't YAML: {problem}")
