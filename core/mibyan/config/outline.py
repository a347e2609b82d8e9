"""Where the parts of a YAML text are: every key and item with its value, from its first character to its last."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.config.keys import KeyPath

_ALIAS = re.compile(r"\*[^\s,\[\]{}]+")


class SpliceError(Exception):
    """The text has a form in which an edit can't be made; the message says which."""


@record
class Entry:
    """A key with its value, or an item of a list, in the text."""

    name: str | int
    #: Where the key or the item's dash begins (in `[...]` the item itself).
    start: int
    #: Right behind the colon or the dash (in `[...]` where the item begins).
    after: int
    #: Where the value begins and ends; behind the end there may be a comment.
    value_start: int
    value_end: int
    node: Any

    @property
    def is_empty(self) -> bool:
        """Whether nothing is written (`key:`)."""
        return self.value_start == self.value_end


class Outline:
    """The parts of a text.

    Args:
        text: YAML that has been read without problems.

    Raises:
        SpliceError: It has one anchor at two places.
    """

    def __init__(self, text: str) -> None:
        import yaml

        self._text = text
        self._eol = "\r\n" if "\r\n" in text else "\n"
        try:
            self._root: Any = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except yaml.composer.ComposerError as error:  # YAML allows it, the library's trees don't
            line = error.context_mark.line + 1 if error.context_mark else "?"
            raise SpliceError(f"the anchor in line {line} is used again for something else") from error
        self._step = next(self._steps(self._root), 2)

    def _steps(self, node: Any) -> Iterator[int]:
        """How far mappings are indented below mappings."""
        if node is None or is_flow(node) or kind_of(node) == "scalar":
            return
        for entry in self._entries(node):
            is_below = kind_of(entry.node) == "mapping" and not is_flow(entry.node) and not self._is_alias(entry)
            if is_below and kind_of(node) == "mapping":
                yield max(1, self._column(entry.value_start) - self._column(entry.start))
            yield from () if self._is_alias(entry) else self._steps(entry.node)

    def _follow(self, path: KeyPath) -> tuple[list[Entry], KeyPath]:
        """The entries from the top down to `path` as far as they are there, and what is missing."""
        trail: list[Entry] = []
        node = self._root
        for depth, part in enumerate(path):
            entry = next((entry for entry in self._entries(node) if entry.name == part), None)
            if entry is None:
                return trail, path[depth:]
            if self._is_alias(entry) and depth < len(path) - 1:
                raise SpliceError(f"'{part}' is an alias: what is below it is shared with its anchor")
            trail.append(entry)
            node = entry.node
        return trail, ()

    def _entries(self, node: Any) -> list[Entry]:
        """The entries of a mapping or a list."""
        entries: list[Entry] = []
        position = node.start_mark.index
        for number, part in enumerate(node.value if kind_of(node) != "scalar" else ()):
            entries.append(self._entry(node, number, part, position))
            position = entries[-1].value_end
        return entries

    def _entry(self, node: Any, number: int, part: Any, position: int) -> Entry:
        """One entry; `position` is where the one before it ended."""
        if kind_of(node) == "mapping":
            key, value = part
            start, name = key.start_mark.index, key.value
            after = self._text.index(":", key.end_mark.index) + 1
        else:
            value, name = part, number
            # Before an item there are blanks, comments, and its dash as the last thing.
            is_alias = value.start_mark.index < position
            end = self._alias(position)[0] if is_alias else value.start_mark.index
            start = end if is_flow(node) else self._text.rindex("-", position, end)
            after = end if is_flow(node) else start + 1
        if value.start_mark.index < after and value.start_mark.index < start:
            return Entry(name, start, after, *self._alias(after), value)
        return Entry(name, start, after, value.start_mark.index, self._end(value), value)

    def _alias(self, position: int) -> tuple[int, int]:
        """Where the alias that comes next begins and ends."""
        match = _ALIAS.search(self._text, position)
        if match is None:
            raise SpliceError("an alias that can't be found")
        return match.span()

    def _is_alias(self, entry: Entry) -> bool:
        return bool(entry.node.start_mark.index != entry.value_start)

    def _end(self, node: Any) -> int:
        """Where a value ends: behind its last character, before comments and blank lines."""
        if kind_of(node) == "scalar" or is_flow(node):
            end: int = node.end_mark.index
            is_block_scalar = kind_of(node) == "scalar" and node.style in {"|", ">"}
            return len(self._text[:end].rstrip()) if is_block_scalar else end
        return self._entries(node)[-1].value_end

    def _in_flow(self, trail: list[Entry]) -> bool:
        """Whether what is below the last entry is inside braces or brackets."""
        return is_flow(self._root) or any(is_flow(entry.node) for entry in trail)

    def _column(self, index: int) -> int:
        """Characters between the beginning of the line and `index`."""
        return index - self._line_start(index)

    def _line_start(self, index: int) -> int:
        return self._text.rfind("\n", 0, index) + 1

    def _line_end(self, index: int) -> int:
        """Where the line ends in which `index` is, before its line end."""
        end = self._text.find("\n", index)
        end = len(self._text) if end < 0 else end
        return end - 1 if self._text[end - 1 : end] == "\r" and end > index else end


def kind_of(node: Any) -> str:
    """`scalar`, `sequence` or `mapping`."""
    return str(node.id)


def is_nothing(node: Any) -> bool:
    """Whether a node is nothing, written out or not."""
    return kind_of(node) == "scalar" and node.tag == "tag:yaml.org,2002:null"


def is_flow(node: Any) -> bool:
    """Whether a node is in braces or brackets."""
    return bool(getattr(node, "flow_style", False))
