"""What coercion has done to a value: a list of repairs, gathered from the inside out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.records import record
from mibyan.schema.place import place

if TYPE_CHECKING:
    from collections.abc import Callable

#: Schemas inside one another that one walk goes through: further down values are left alone.
MAX_DEPTH = 128


@record
class Repair:
    """One value that was replaced by another with the same meaning (dispatch.A2)."""

    #: Where: `days`, `items[0].name`; empty for the arguments as a whole.
    path: str
    #: What the model sent.
    before: Any
    #: What stands there now; `None` where the key was left out.
    after: Any
    #: What was done, in a few words: `text to integer`.
    how: str


class Walk:
    """The state of one walk through one value."""

    __slots__ = ("_known", "_notes", "depth")

    def __init__(self) -> None:
        self._notes: list[tuple[tuple[str | int, ...], Any, Any, str]] = []
        self.depth = MAX_DEPTH
        self._known: dict[tuple[int, int, bool], tuple[Any, Any, list[Any]]] = {}

    def mark(self) -> int:
        """A point in time, for `within` and `take`."""
        return len(self._notes)

    def note(self, before: Any, after: Any, how: str, at: int | None = None) -> None:
        """Add a repair of the value at hand, at the point `at` or now."""
        self._notes.insert(len(self._notes) if at is None else at, ((), before, after, how))

    def within(self, key: str | int, mark: int) -> None:
        """Say that what was noted since `mark` happened to the part of the value that is under `key`."""
        self._notes[mark:] = [((key, *path), before, after, how) for path, before, after, how in self._notes[mark:]]

    def take(self, mark: int) -> list[Any]:
        """Remove and return what was noted since `mark`."""
        taken = self._notes[mark:]
        del self._notes[mark:]
        return taken

    def give(self, notes: list[Any]) -> None:
        """Add again what was taken."""
        self._notes += notes

    def once(self, of: object, value: Any, wrap: bool, repair: Callable[..., Any]) -> Any:  # noqa: FBT001 - part of a key
        """What `repair` makes of a value, asked once.

        Schemas may come to the same part on many ways, and to themselves without going into the value: the second
        time there is nothing new to learn.
        """
        key = id(of), id(value), wrap
        if key not in self._known:
            # The value is kept, or another might get its id.
            self._known[key] = value, value, []
            mark = self.mark()
            found = repair(value, self, wrap=wrap)
            self._known[key] = value, found, self._notes[mark:]
            return found
        _, found, notes = self._known[key]
        self.give(notes)
        return found

    def repairs(self) -> list[Repair]:
        """All that was noted, the outer before the inner."""
        return [Repair(place(path), before, after, how) for path, before, after, how in self._notes]
