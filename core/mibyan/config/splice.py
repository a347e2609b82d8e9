"""Edits of YAML text that touch nothing but what they are about.

Every comment, blank line, quote, indentation and line end outside the edited value stays, byte by byte: a library that
loads and dumps the document would move comments and reflow lines. The result isn't trusted: `mibyan.config.edit` reads
it again and compares.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mibyan.config.render import block, inline, is_long

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.config.keys import KeyPath

_ALIAS = re.compile(r"\*[^\s,\[\]{}]+")


class SpliceError(Exception):
    """The text has a form in which this edit can't be made; the message says which."""


@dataclass(frozen=True, slots=True)
class _Entry:
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


class Splicer:
    """One edit of a text.

    Args:
        text: YAML that has been read without problems.
    """

    def __init__(self, text: str) -> None:
        import yaml

        self._text = text
        self._eol = "\r\n" if "\r\n" in text else "\n"
        self._root: Any = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self._step = next(self._steps(self._root), 2)

    def put(self, path: KeyPath, value: Any) -> str:
        """The text in which `path` has `value`; what is missing on the way is added."""
        if self._root is None or (_kind(self._root) == "scalar" and not self._root.value):
            return self._append_lines(len(self._text.rstrip()), 0, block(_names(path), value, self._step))
        trail, rest = self._follow(path)
        if not rest:
            return self._replace(trail, value)
        return self._add(trail, rest, value)

    def append(self, path: KeyPath, value: Any, whole: list[Any]) -> str:
        """The text in which the list at `path` has one more item, which makes it `whole`."""
        trail, rest = self._follow(path) if self._root is not None else ([], path)
        # A list that isn't written here (or is an alias) becomes one that is.
        if rest or self._is_alias(trail[-1]) or _is_nothing(trail[-1].node):
            return self.put(path, whole)
        entry = trail[-1]
        items = self._entries(entry.node)
        if entry.node.flow_style:
            if not items and not self._in_flow(trail[:-1]):
                return self._replace_by_block(entry, [f"- {inline(value)}"], self._column(entry.start) + self._step)
            return self._insert_in_flow(entry, items, inline(value))
        return self._append_lines(items[-1].value_end, self._column(items[-1].start), [f"- {inline(value)}"])

    def remove(self, path: KeyPath) -> str:
        """The text without the key or item at `path`."""
        trail, rest = self._follow(path)
        if rest:
            raise SpliceError("it isn't written there, it comes from an anchor")
        entry = trail[-1]
        parent = trail[-2].node if len(trail) > 1 else self._root
        siblings = self._entries(parent)
        if parent.flow_style:
            return self._remove_from_flow(siblings, entry)
        if len(siblings) == 1 and len(trail) > 1:
            return self._replace(trail[:-1], {} if _kind(parent) == "mapping" else [])
        return self._remove_lines(siblings, entry)

    # Where things are

    def _steps(self, node: Any) -> Iterator[int]:
        """How far mappings are indented below mappings."""
        if node is None or node.flow_style or _kind(node) == "scalar":
            return
        for entry in self._entries(node):
            is_below = _kind(entry.node) == "mapping" and not entry.node.flow_style and not self._is_alias(entry)
            if is_below and _kind(node) == "mapping":
                yield max(1, self._column(entry.value_start) - self._column(entry.start))
            yield from () if self._is_alias(entry) else self._steps(entry.node)

    def _follow(self, path: KeyPath) -> tuple[list[_Entry], KeyPath]:
        """The entries from the top down to `path` as far as they are there, and what is missing."""
        trail: list[_Entry] = []
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

    def _entries(self, node: Any) -> list[_Entry]:
        """The entries of a mapping or a list."""
        entries: list[_Entry] = []
        position = node.start_mark.index
        for number, part in enumerate(node.value if _kind(node) != "scalar" else ()):
            entries.append(self._entry(node, number, part, position))
            position = entries[-1].value_end
        return entries

    def _entry(self, node: Any, number: int, part: Any, position: int) -> _Entry:
        """One entry; `position` is where the one before it ended."""
        if _kind(node) == "mapping":
            key, value = part
            start, name = key.start_mark.index, key.value
            after = self._text.index(":", key.end_mark.index) + 1
        else:
            value, name = part, number
            # Before an item there are blanks, comments, and its dash as the last thing.
            is_alias = value.start_mark.index < position
            end = self._alias(position)[0] if is_alias else value.start_mark.index
            start = end if node.flow_style else self._text.rindex("-", position, end)
            after = end if node.flow_style else start + 1
        if value.start_mark.index < after and value.start_mark.index < start:
            return _Entry(name, start, after, *self._alias(after), value)
        return _Entry(name, start, after, value.start_mark.index, self._end(value), value)

    def _alias(self, position: int) -> tuple[int, int]:
        """Where the alias that comes next begins and ends."""
        match = _ALIAS.search(self._text, position)
        if match is None:
            raise SpliceError("an alias that can't be found")
        return match.span()

    def _is_alias(self, entry: _Entry) -> bool:
        return bool(entry.node.start_mark.index != entry.value_start)

    def _end(self, node: Any) -> int:
        """Where a value ends: behind its last character, before comments and blank lines."""
        if _kind(node) == "scalar" or node.flow_style:
            end: int = node.end_mark.index
            is_block_scalar = _kind(node) == "scalar" and node.style in {"|", ">"}
            return len(self._text[:end].rstrip()) if is_block_scalar else end
        return self._entries(node)[-1].value_end

    def _in_flow(self, trail: list[_Entry]) -> bool:
        """Whether what is below the last entry is inside braces or brackets."""
        return bool(self._root.flow_style) or any(getattr(entry.node, "flow_style", False) for entry in trail)

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

    # What is changed

    def _cut(self, start: int, end: int, new: str = "") -> str:
        """The text with `new` in the place of what is between `start` and `end`."""
        return self._text[:start] + new + self._text[end:]

    def _lines(self, indent: int, lines: list[str]) -> str:
        """Lines, each behind a line end."""
        return "".join(f"{self._eol}{' ' * indent}{line}" for line in lines)

    def _append_lines(self, index: int, indent: int, lines: list[str]) -> str:
        """The text with lines added below the one in which `index` is."""
        if not self._text.strip():
            return self._lines(indent, lines).removeprefix(self._eol) + self._eol
        end = self._line_end(index)
        return self._cut(end, end, self._lines(indent, lines) + ("" if end < len(self._text) else self._eol))

    def _replace(self, trail: list[_Entry], value: Any) -> str:
        """The text in which the last entry has another value."""
        entry = trail[-1]
        in_flow = self._in_flow(trail[:-1])
        if isinstance(value, list | tuple) and value and not in_flow and is_long(value):
            lines = [f"- {inline(part)}" for part in value]
            return self._replace_by_block(entry, lines, self._column(entry.start) + self._step)
        if isinstance(value, dict) and value and not in_flow and isinstance(entry.name, str):
            lines = [line for name, part in value.items() for line in block([name], part, self._step)]
            return self._replace_by_block(entry, lines, self._column(entry.start) + self._step)
        style = getattr(entry.node, "style", None) if not self._is_alias(entry) else None
        return self._replace_inline(entry, inline(value, quote=style if style in {"'", '"'} else None))

    def _replace_inline(self, entry: _Entry, new: str) -> str:
        """The text in which an entry has a value of one line."""
        if entry.is_empty:
            return self._cut(entry.after, entry.after, f" {new}")
        if _kind(entry.node) == "scalar" or entry.node.flow_style or self._is_alias(entry):
            return self._cut(entry.value_start, entry.value_end, new)
        # A comment behind the key stays where it is; what was below the key goes.
        head = self._text[entry.after : min(self._line_end(entry.after), entry.value_start)].rstrip()
        return self._cut(entry.after, self._line_end(entry.value_end), f" {new}{head}")

    def _replace_by_block(self, entry: _Entry, lines: list[str], indent: int) -> str:
        """The text in which an entry has the value that is written in lines of its own."""
        is_block = _kind(entry.node) != "scalar" and not entry.node.flow_style and not self._is_alias(entry)
        head_end = min(self._line_end(entry.after), entry.value_start)
        if entry.is_empty or is_block:
            head = self._text[entry.after : self._line_end(entry.after) if entry.is_empty else head_end].rstrip()
        else:
            head = self._text[entry.value_end : self._line_end(entry.value_end)].rstrip()
        return self._cut(entry.after, self._line_end(entry.value_end), head + self._lines(indent, lines))

    def _add(self, trail: list[_Entry], rest: KeyPath, value: Any) -> str:
        """The text with what is missing below the last entry."""
        node = trail[-1].node if trail else self._root
        if trail and _is_nothing(node):
            return self._replace(trail, _nested(rest, value))
        entries = self._entries(node)
        if node.flow_style and not (trail or entries):
            return self._cut(
                node.start_mark.index, node.end_mark.index, self._eol.join(block(_names(rest), value, self._step))
            )
        if node.flow_style and not entries and not self._in_flow(trail[:-1]):
            return self._replace(trail, _nested(rest, value))
        if node.flow_style:
            new = inline(_nested(rest, value))[1:-1]
            return self._insert_in_flow(trail[-1] if trail else None, entries, new)
        return self._append_lines(
            entries[-1].value_end, self._column(entries[0].start), block(_names(rest), value, self._step)
        )

    def _insert_in_flow(self, entry: _Entry | None, entries: list[_Entry], new: str) -> str:
        """The text with one more entry inside braces or brackets."""
        if entries:
            return self._cut(entries[-1].value_end, entries[-1].value_end, f", {new}")
        node = entry.node if entry else self._root
        return self._cut(node.end_mark.index - 1, node.end_mark.index - 1, new)

    def _remove_from_flow(self, siblings: list[_Entry], entry: _Entry) -> str:
        """The text without an entry inside braces or brackets."""
        number = siblings.index(entry)
        if number + 1 < len(siblings):
            return self._cut(entry.start, siblings[number + 1].start)
        return self._cut(siblings[number - 1].value_end if number else entry.start, entry.value_end)

    def _remove_lines(self, siblings: list[_Entry], entry: _Entry) -> str:
        """The text without the lines of an entry; comments above it stay."""
        start = self._line_start(entry.start)
        if self._text[start : entry.start].strip():
            # The first key behind a dash: the next one takes its place.
            return self._cut(entry.start, siblings[siblings.index(entry) + 1].start)
        end = self._text.find("\n", entry.value_end)
        return self._cut(start, len(self._text) if end < 0 else end + 1)


def _kind(node: Any) -> str:
    """`scalar`, `sequence` or `mapping`."""
    return str(node.id)


def _is_nothing(node: Any) -> bool:
    """Whether a node is nothing, written out or not."""
    return _kind(node) == "scalar" and node.tag == "tag:yaml.org,2002:null"


def _names(path: KeyPath) -> list[str]:
    """The parts of a key that are going to be added."""
    if any(isinstance(part, int) for part in path):
        raise SpliceError("an item can't be added by its number")
    return [str(part) for part in path]


def _nested(path: KeyPath, value: Any) -> Any:
    """`value` inside a mapping for each part of `path`."""
    for part in reversed(_names(path)):
        value = {part: value}
    return value
