"""`Order`: which calls of a batch wait for which (dispatch.P1, P2).

Calls are put in one after the other, in their order. Two that can't run together keep it: the later waits for the
earlier. So whatever runs at the same time, the outcome is that of the sequence.

Where a path leads can change while the batch runs: an earlier call may make, move or remove something on its way. The
call then waits for that one as for any conflict, and is asked again what it touches once it has ended. Until then it is
*unsure*, may touch anything, and the calls after it wait for the answer, unless neither they nor it write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.dispatch.resources_needs import Need


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a call waits for an earlier one."""

    #: The position of the earlier one, from 0.
    on: int
    #: `same`: both touch `what`; `barrier`: one of the two, at position `of`, is one, and `what` says why; `unsure`: it
    #: isn't known yet what the one at position `of` touches.
    why: str
    what: str = ""
    of: int = -1


class Order:
    """The waits of the calls of one batch that are known and haven't ended."""

    def __init__(self) -> None:
        self._needs: dict[int, Need] = {}
        self._waits: dict[int, dict[int, Wait]] = {}
        #: The earlier calls that may change what an unsure one touches; empty: it is sure, or to be asked again.
        self._unsure: dict[int, set[int]] = {}
        self._stale: set[int] = set()
        self._begun: set[int] = set()
        # The positions by what others must ask of them.
        self._barriers: set[int] = set()
        self._writers: set[int] = set()
        self._readers: set[int] = set()
        self._free: set[int] = set()

    # Questions ---------------------------------------------------------------------------------------------------

    def waits(self, index: int) -> list[Wait]:
        """What a call waits for, in call order."""
        return [self._waits[index][on] for on in sorted(self._waits[index])]

    def may_run(self, index: int) -> bool:
        """Whether a call that was put in waits for nothing, and it is known what it touches."""
        return not self._waits[index] and index not in self._stale

    def is_stale(self, index: int) -> bool:
        """Whether a call must be asked again what it touches: all that it depended on has ended."""
        return index in self._stale

    def unsure_of(self, index: int) -> list[int]:
        """The calls that may change what an unsure one touches."""
        return sorted(self._unsure[index])

    # Changes -----------------------------------------------------------------------------------------------------

    def put(self, index: int, need: Need) -> None:
        """Put a call in, after all earlier ones; or say what one that hasn't begun needs now."""
        known = index in self._needs
        self._forget(index)
        self._needs[index], self._waits[index], self._unsure[index] = need, {}, set()
        self._group(need).add(index)
        self._stale.discard(index)
        for earlier in sorted(self._before(index, need)):
            self._relate(earlier, index)
        if known:
            self._relate_later(index)

    def begin(self, index: int) -> None:
        """The call runs from now on."""
        self._begun.add(index)

    def end(self, index: int) -> None:
        """The call is over, whether or not it was put in: nobody waits for it any more."""
        if self._needs.pop(index, None) is None:
            return
        self._forget(index)
        for known in (self._waits, self._unsure):
            known.pop(index, None)
        self._stale.discard(index)
        for later, waits in self._waits.items():
            waits.pop(index, None)
            unsure = self._unsure[later]
            if index in unsure:
                unsure.discard(index)
                if not unsure:
                    self._stale.add(later)

    # How it comes about ------------------------------------------------------------------------------------------

    def _group(self, need: Need) -> set[int]:
        match need.kind:
            case "barrier":
                return self._barriers
            case "free":
                return self._free
        return self._writers if need.writes else self._readers

    def _forget(self, index: int) -> None:
        for group in (self._barriers, self._writers, self._readers, self._free):
            group.discard(index)

    def _before(self, index: int, need: Need) -> Iterator[int]:
        """The earlier calls that one with this need may have to wait for."""
        groups = [self._barriers]
        if need.kind != "free":
            groups.append(self._writers)
        if need.writes:
            groups.append(self._readers)
        if need.kind == "barrier":
            groups.append(self._free)
        return (earlier for group in groups for earlier in group if earlier < index)

    def _relate(self, earlier: int, later: int) -> None:
        """Find out whether, and why, `later` waits for `earlier`, and whether that one may change what it touches."""
        first, second = self._needs[earlier], self._needs[later]
        waits = self._waits[later]
        if first.kind == "barrier" or second.kind == "barrier":
            is_first = first.kind == "barrier"
            waits[earlier] = Wait(
                earlier, "barrier", (first if is_first else second).why, earlier if is_first else later
            )
            if second.kind == "named":
                self._unsure[later].add(earlier)
            return
        what = first.resources.excludes(second.resources)
        if what is not None:
            waits[earlier] = Wait(earlier, "same", what)
            if first.resources.moves(second.resources):
                self._unsure[later].add(earlier)
        elif self._unsure[earlier] or earlier in self._stale:
            waits[earlier] = Wait(earlier, "unsure", of=earlier)

    def _relate_later(self, index: int) -> None:
        """The need of a call has changed: see what that means for those after it."""
        later = sorted(each for each in self._needs if each > index and each not in self._begun)
        unsure = [each for each in later if self._relate_again(index, each)]
        for one in unsure:
            for each in later:
                if each > one and _meet(self._needs[one], self._needs[each]):
                    self._waits[each].setdefault(one, Wait(one, "unsure", of=one))

    def _relate_again(self, earlier: int, later: int) -> bool:
        """Whether `later` has become unsure by it."""
        was_sure = not self._unsure[later]
        self._waits[later].pop(earlier, None)
        self._unsure[later].discard(earlier)
        if _meet(self._needs[earlier], self._needs[later]):
            self._relate(earlier, later)
        return was_sure and bool(self._unsure[later])


def _meet(one: Need, other: Need) -> bool:
    """Whether two calls with these needs have anything to do with one another."""
    if one.kind == "barrier" or other.kind == "barrier":
        return True
    return one.kind != "free" and other.kind != "free" and (one.writes or other.writes)
