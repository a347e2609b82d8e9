"""The one order of all plugins: tiers, inside a tier `after:` edges, then ids (plugins.F1)."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from mibyan.plugins.candidate import Note
from mibyan.plugins.sources.ids import PROJECT_TOOLS, key
from mibyan.records import replace
from mibyan.tools.owner import TIERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mibyan.plugins.candidate import Candidate


def tier(candidate: Candidate) -> int:
    """The candidate's tier; the user's tools directory stands before the project's, as in the architecture's list."""
    return 2 * TIERS[candidate.source] + candidate.id.startswith(PROJECT_TOOLS)


def ordered(candidates: Iterable[Candidate]) -> tuple[list[Candidate], list[Note]]:
    """The candidates in order, and a note for each cycle of `after:` edges.

    The order is total: it depends on ids, origins and manifests alone, not on the order they come in.
    """
    tiers: dict[int, list[Candidate]] = {}
    for candidate in sorted(candidates, key=_position):
        tiers.setdefault(tier(candidate), []).append(candidate)
    result: list[Candidate] = []
    notes: list[Note] = []
    for _, members in sorted(tiers.items()):
        result += _sorted_tier(members, notes)
    return result, notes


def shadowed(candidates: Sequence[Candidate], unable: Callable[[Candidate], bool] = lambda _: False) -> list[Candidate]:
    """The candidates, where several have one id all but the first marked with the first one's origin.

    Args:
        candidates: In order.
        unable: Whether a candidate can't take another's place: disabled, untrusted, incompatible (plugins.L1).
    """
    holders: dict[str, Candidate] = {}
    for candidate in candidates:
        if candidate.shadowed_by is None and not unable(candidate):
            holders.setdefault(key(candidate.id), candidate)
    return [
        replace(candidate, shadowed_by=holder.origin)
        if (holder := holders.get(key(candidate.id), candidate)) is not candidate
        and candidate.usable
        and not unable(candidate)
        else candidate
        for candidate in candidates
    ]


def _position(candidate: Candidate) -> tuple[str, bool, str]:
    return candidate.id, candidate.shadowed_by is not None, candidate.origin


def _sorted_tier(members: Sequence[Candidate], notes: list[Note]) -> Iterator[Candidate]:
    """The members, each behind those it comes after; among those that may come next the smallest id does.

    Args:
        members: Candidates of one tier, by position.
        notes: Takes a note for each cycle; a cycle is broken at its smallest id.
    """
    before = _edges(members)
    waiting = set(range(len(members)))
    behind: dict[int, list[int]] = {}
    for index, earlier in before.items():
        for other in earlier:
            behind.setdefault(other, []).append(index)
    ready = [index for index in range(len(members)) if not before[index]]
    while waiting:
        while not ready:
            first = _break_cycle(members, before, waiting, notes)
            ready = [] if before[first] else [first]
        index = heapq.heappop(ready)
        waiting.discard(index)
        yield members[index]
        for other in behind.get(index, ()):
            before[other].discard(index)
            if not before[other] and other in waiting:
                heapq.heappush(ready, other)


def _edges(members: Sequence[Candidate]) -> dict[int, set[int]]:
    """For each member those it comes after; ids that nobody in the tier has don't count."""
    by_key: dict[str, set[int]] = {}
    for index, member in enumerate(members):
        by_key.setdefault(key(member.id), set()).add(index)
    edges: dict[int, set[int]] = {}
    for index, member in enumerate(members):
        after = member.manifest.after if member.manifest is not None else ()
        own = by_key[key(member.id)]
        edges[index] = {other for name in after for other in by_key.get(key(name), ()) if other not in own}
    return edges


def _break_cycle(
    members: Sequence[Candidate], before: dict[int, set[int]], waiting: set[int], notes: list[Note]
) -> int:
    """The first member of a cycle among those that wait; its edge in the cycle is dropped."""
    trail: list[int] = []
    index = min(waiting)
    while index not in trail:
        trail.append(index)
        index = min(before[index])
    cycle = trail[trail.index(index) :]
    at = cycle.index(min(cycle))
    first, *rest = (*cycle[at:], *cycle[:at])
    names = " after ".join(members[one].id for one in (first, *rest, first))
    text = f"`after:` goes in a circle: {names}; {members[first].id} doesn't wait"
    notes.append(Note("warning", text, members[first].origin, "take one of these `after:` away"))
    before[first].discard(rest[0])
    return first
