"""What a call touches, and whether two calls touch the same (dispatch.P2)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mibyan.dispatch.resources_paths import identity, key, places
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mibyan.dispatch.resources_paths import Place


@record
class Resources:
    """The resources of one call as they are now: readers share one, a writer excludes everybody else.

    A path counts where it leads, and so does what makes it lead there. What isn't a path is one in the working directory:
    two calls mean the same by the same text.
    """

    #: Absolute paths, for people.
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    #: All that is touched, and what of it is written.
    touched: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    #: The directories above them.
    above: frozenset[str] = frozenset()
    above_written: frozenset[str] = frozenset()
    #: What of it makes paths lead where they do: symbolic links, and directories that are left again.
    pivots: frozenset[str] = frozenset()

    def excludes(self, other: Resources) -> str | None:
        """Something that one of the two writes and the other touches; `None`: they may run together."""
        return _clash(self, other) or _clash(other, self)

    def replaces(self, other: Resources) -> bool:
        """Whether something on the ways of `other` may be another thing once this call has ended."""
        return self.bends(other) or not self.written.isdisjoint(other.touched)

    def bends(self, other: Resources) -> bool:
        """Whether the ways of `other` may lead anywhere while this call hasn't ended.

        It writes a link or a directory on a way. Where it writes just the end of one, there will be a thing that is
        written, not a link to something else: a tool that makes links names what they lead to.
        """
        return not (self.written.isdisjoint(other.above) and self.written.isdisjoint(other.pivots))


def resolve(reads: Iterable[str], writes: Iterable[str], cwd: str) -> Resources:
    """The resources with these names.

    Args:
        reads: Paths that are read, a directory with all that is in it.
        writes: Paths that are written, a directory with all that is in it.
        cwd: Where relative ones start.

    Raises:
        ValueError: A name can't be a path (a NUL character).
    """
    read = [place for name in reads for place in places(name, cwd)]
    wrote = [place for name in writes for place in places(name, cwd)]
    ways = {key(path) for place in (*read, *wrote) for path in place.way}
    pivots = ways | {key(link) for place in (*read, *wrote) for link in place.last_links}
    written = _keys(wrote)
    touched = written | _keys(read) | ways
    return Resources(
        _ends(read), _ends(wrote), frozenset(touched), frozenset(written), _above(touched), _above(written),
        frozenset(pivots),
    )  # fmt: skip


def _keys(found: Iterable[Place]) -> set[str]:
    """What stands for these places: their ends, the links that are their last name, the files that are there."""
    keys: set[str] = set()
    for place in found:
        keys.add(key(place.end))
        # A tool may mean the link (to remove it) or what it points to.
        keys.update(key(link) for link in place.last_links)
        file = identity(place.end)
        if file is not None:
            keys.add(file)
    return keys


def _ends(found: Iterable[Place]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(place.end for place in found))


def _above(paths: Iterable[str]) -> frozenset[str]:
    """The directories above each of these paths."""
    found: set[str] = set()
    for path in paths:
        parent = os.path.dirname(path)  # noqa: PTH120 - keys, not paths
        while parent and parent not in found and parent != path:
            found.add(parent)
            path, parent = parent, os.path.dirname(parent)  # noqa: PTH120, PLW2901
    return frozenset(found)


def _clash(writer: Resources, other: Resources) -> str | None:
    if not writer.written:
        return None
    if (
        writer.written.isdisjoint(other.touched)
        and writer.written.isdisjoint(other.above)
        and writer.above_written.isdisjoint(other.touched)
    ):
        return None
    common = writer.written & other.touched or writer.written & other.above or writer.above_written & other.touched
    paths = sorted(path for path in common if not path.startswith("\0"))
    return paths[0] if paths else "one file under two names"
