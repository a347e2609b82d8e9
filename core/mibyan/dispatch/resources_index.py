"""`Touches`: which calls of a batch touch something that another one mustn't share, found without asking each."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mibyan.dispatch.resources import Resources

    _Table = dict[str, set[int]]


class Touches:
    """The positions of calls by what they touch and write, and by the directories above that."""

    def __init__(self) -> None:
        self._touched: _Table = defaultdict(set)
        self._written: _Table = defaultdict(set)
        self._above: _Table = defaultdict(set)
        self._above_written: _Table = defaultdict(set)

    def add(self, index: int, resources: Resources) -> None:
        """Enter a call."""
        for table, paths in self._tables(resources):
            for path in paths:
                table[path].add(index)

    def discard(self, index: int, resources: Resources) -> None:
        """Take a call out."""
        for table, paths in self._tables(resources):
            for path in paths:
                table[path].discard(index)

    def excluded_by(self, resources: Resources) -> set[int]:
        """The calls that may not run together with one that has these resources (`Resources.excludes`)."""
        found: set[int] = set()
        for table, paths in (
            (self._touched, resources.written), (self._above, resources.written),
            (self._touched, resources.above_written), (self._written, resources.touched),
            (self._above_written, resources.touched), (self._written, resources.above),
        ):  # fmt: skip
            found.update(*_found(table, paths))
        return found

    def _tables(self, resources: Resources) -> tuple[tuple[_Table, frozenset[str]], ...]:
        return (
            (self._touched, resources.touched), (self._written, resources.written),
            (self._above, resources.above), (self._above_written, resources.above_written),
        )  # fmt: skip


def _found(table: _Table, paths: Iterable[str]) -> Iterator[set[int]]:
    return (table[path] for path in paths if path in table)
