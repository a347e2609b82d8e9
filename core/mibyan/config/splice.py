"""Edits of YAML text that touch nothing but what they are about.

Every comment, blank line, quote, indentation and line end outside the edited value stays, byte by byte: a library that
loads and dumps the document would move comments and reflow lines. The result isn't trusted: `mibyan.config.edit` reads
it again and compares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.config.outline import Entry, Outline, SpliceError, is_flow, is_nothing, kind_of
from mibyan.config.render import block, inline, is_long, items

if TYPE_CHECKING:
    from mibyan.config.keys import KeyPath


class Splicer(Outline):
    """One edit of a text.

    Args:
        text: YAML that has been read without problems.
    """

    def put(self, path: KeyPath, value: Any) -> str:
        """The text in which `path` has `value`; what is missing on the way is added."""
        if self._root is None or (kind_of(self._root) == "scalar" and not self._root.value):
            return self._append_lines(len(self._text.rstrip()), 0, block(_names(path), value, self._step))
        trail, rest = self._follow(path)
        if not rest:
            return self._replace(trail, value)
        return self._add(trail, rest, value)

    def append(self, path: KeyPath, value: Any, whole: list[Any]) -> str:
        """The text in which the list at `path` has one more item, which makes it `whole`."""
        trail, rest = self._follow(path) if self._root is not None else ([], path)
        # A list that isn't written here (or is an alias) becomes one that is.
        if rest or self._is_alias(trail[-1]) or is_nothing(trail[-1].node):
            return self.put(path, whole)
        entry = trail[-1]
        known = self._entries(entry.node)
        if is_flow(entry.node):
            if not known and not self._in_flow(trail[:-1]):
                return self._replace_by_block(entry, [f"- {inline(value)}"], self._column(entry.start) + self._step)
            return self._insert_in_flow(entry, known, inline(value))
        return self._append_lines(known[-1].value_end, self._column(known[-1].start), items([value], self._step))

    def remove(self, path: KeyPath) -> str:
        """The text without the key or item at `path`."""
        trail, rest = self._follow(path)
        if rest:
            raise SpliceError("it isn't written there, it comes from an anchor")
        entry = trail[-1]
        parent = trail[-2].node if len(trail) > 1 else self._root
        siblings = self._entries(parent)
        if is_flow(parent):
            return self._remove_from_flow(siblings, entry)
        if len(siblings) == 1 and len(trail) > 1:
            return self._replace(trail[:-1], {} if kind_of(parent) == "mapping" else [])
        return self._remove_lines(siblings, entry)

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

    def _replace(self, trail: list[Entry], value: Any) -> str:
        """The text in which the last entry has another value."""
        entry = trail[-1]
        in_flow = self._in_flow(trail[:-1])
        if isinstance(value, list | tuple) and value and not in_flow and is_long(value):
            lines = items(value, self._step)
            return self._replace_by_block(entry, lines, self._column(entry.start) + self._step)
        if isinstance(value, dict) and value and not in_flow and isinstance(entry.name, str):
            lines = [line for name, part in value.items() for line in block([name], part, self._step)]
            return self._replace_by_block(entry, lines, self._column(entry.start) + self._step)
        style = getattr(entry.node, "style", None) if not self._is_alias(entry) else None
        return self._replace_inline(entry, inline(value, quote=style if style in {"'", '"'} else None))

    def _replace_inline(self, entry: Entry, new: str) -> str:
        """The text in which an entry has a value of one line."""
        if entry.is_empty:
            return self._cut(entry.after, entry.after, f" {new}")
        if kind_of(entry.node) == "scalar" or is_flow(entry.node) or self._is_alias(entry):
            return self._cut(entry.value_start, entry.value_end, new)
        # A comment behind the key stays where it is; what was below the key goes.
        head = self._text[entry.after : min(self._line_end(entry.after), entry.value_start)].rstrip()
        return self._cut(entry.after, self._line_end(entry.value_end), f" {new}{head}")

    def _replace_by_block(self, entry: Entry, lines: list[str], indent: int) -> str:
        """The text in which an entry has the value that is written in lines of its own."""
        is_block = kind_of(entry.node) != "scalar" and not is_flow(entry.node) and not self._is_alias(entry)
        head_end = min(self._line_end(entry.after), entry.value_start)
        if entry.is_empty or is_block:
            head = self._text[entry.after : self._line_end(entry.after) if entry.is_empty else head_end].rstrip()
        else:
            head = self._text[entry.value_end : self._line_end(entry.value_end)].rstrip()
        return self._cut(entry.after, self._line_end(entry.value_end), head + self._lines(indent, lines))

    def _add(self, trail: list[Entry], rest: KeyPath, value: Any) -> str:
        """The text with what is missing below the last entry."""
        node = trail[-1].node if trail else self._root
        if trail and is_nothing(node):
            return self._replace(trail, _nested(rest, value))
        entries = self._entries(node)
        if is_flow(node) and not (trail or entries):
            return self._cut(
                node.start_mark.index, node.end_mark.index, self._eol.join(block(_names(rest), value, self._step))
            )
        if is_flow(node) and not entries and not self._in_flow(trail[:-1]):
            return self._replace(trail, _nested(rest, value))
        if is_flow(node):
            new = inline(_nested(rest, value))[1:-1]
            return self._insert_in_flow(trail[-1] if trail else None, entries, new)
        return self._append_lines(
            entries[-1].value_end, self._column(entries[0].start), block(_names(rest), value, self._step)
        )

    def _insert_in_flow(self, entry: Entry | None, entries: list[Entry], new: str) -> str:
        """The text with one more entry inside braces or brackets."""
        if entries:
            return self._cut(entries[-1].value_end, entries[-1].value_end, f", {new}")
        node = entry.node if entry else self._root
        return self._cut(node.end_mark.index - 1, node.end_mark.index - 1, new)

    def _remove_from_flow(self, siblings: list[Entry], entry: Entry) -> str:
        """The text without an entry inside braces or brackets."""
        number = siblings.index(entry)
        if number + 1 < len(siblings):
            return self._cut(entry.start, siblings[number + 1].start)
        return self._cut(siblings[number - 1].value_end if number else entry.start, entry.value_end)

    def _remove_lines(self, siblings: list[Entry], entry: Entry) -> str:
        """The text without the lines of an entry; comments above it stay."""
        start = self._line_start(entry.start)
        if self._text[start : entry.start].strip():
            # The first key behind a dash: the next one takes its place.
            return self._cut(entry.start, siblings[siblings.index(entry) + 1].start)
        end = self._text.find("\n", entry.value_end)
        return self._cut(start, len(self._text) if end < 0 else end + 1)


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
