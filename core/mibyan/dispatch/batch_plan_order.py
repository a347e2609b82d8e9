"""`Order`: which calls of a batch wait for which (dispatch.P1, P2).

Calls are put in one after the other, in their order. Two that can't run together keep it: the later waits for the
earlier. So whatever runs at the same time, the outcome is that of the sequence.

Where a path leads can change while the batch runs: an earlier call may make, move or remove something on its way. The
call then waits for that one as for any conflict. Once that one has ended it is *stale*: it must be asked again what it
touches before it runs, and before anything after it begins that it might exclude. While such an earlier call may bend
the way to anywhere (it writes a link or a directory on it), the call is *in doubt*, and what comes after it waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from mibyan.dispatch.resources_index import Touches
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mibyan.dispatch.resources_needs import Need

Why: TypeAlias = Literal["same", "barrier", "doubt"]


@record
class Wait:
    """Why a call waits for an earlier one."""

    #: The position of the earlier one, from 0.
    on: int
    #: `same`: both touch `what`; `barrier`: one of the two, at position `of`, is one, and `what` says why; `doubt`: it
    #: isn't known before what the one at position `of` touches.
    why: Why
    what: str = ""
    of: int = -1


class Order:
    """The waits of the calls of one batch that are known and haven't ended."""

    def __init__(self) -> None:
        self._needs: dict[int, Need] = {}
        #: By call, the earlier ones that it waits for.
        self._waits: dict[int, set[int]] = {}
        #: By call, the later ones that wait for it.
        self._behind: dict[int, set[int]] = {}
        #: By call, the earlier ones after which it must be asked again.
        self._asks_after: dict[int, set[int]] = {}
        #: By call in doubt, the earlier ones that put it there.
        self._doubts: dict[int, set[int]] = {}
        self._stale: set[int] = set()
        self._begun: set[int] = set()
        self._barriers: set[int] = set()
        self._touches = Touches()

    # Questions ---------------------------------------------------------------------------------------------------

    def waits(self, index: int) -> list[Wait]:
        """What a call waits for, in call order."""
        waits = {on: self._told(on, index) for on in self._waits[index]}
        for doubtful in self._before(self._doubts, index):
            for cause in self._doubts[doubtful]:
                waits.setdefault(cause, Wait(cause, "doubt", of=doubtful))
        return [waits[on] for on in sorted(waits)]

    def may_run(self, index: int) -> bool:
        """Whether a call waits for nothing."""
        return not self._waits[index] and not self.stale_before(index) and not any(self._before(self._doubts, index))

    def stale_before(self, index: int) -> list[int]:
        """The calls that must be asked again what they touch before one that waits for nothing else may run."""
        if self._waits[index] or not self._stale:
            return []
        return sorted({*self._before(self._stale, index), *(self._stale & {index})})

    # Changes -----------------------------------------------------------------------------------------------------

    def put(self, index: int, need: Need) -> None:
        """Put a call in, after all earlier ones; or say what one that hasn't begun needs now."""
        behind = self._forget(index) if index in self._needs else set()
        self._needs[index], self._waits[index], self._behind[index] = need, set(), set()
        met = set(self._met_by(index))
        for earlier in met:
            if earlier < index:
                self._relate(earlier, index)
        if need.kind == "barrier":
            self._barriers.add(index)
        self._touches.add(index, need.resources)
        for later in {each for each in met if each > index} | behind:
            if later not in self._begun:
                self._relate_again(index, later, meets=later in met)

    def begin(self, index: int) -> None:
        """The call runs from now on."""
        self._begun.add(index)

    def outdate(self, index: int) -> None:
        """The call said what it touches before something changed."""
        self._stale.add(index)

    def end(self, index: int) -> None:
        """The call is over, whether or not it was put in: nobody waits for it any more."""
        if index not in self._needs:
            return
        for later in self._forget(index):
            self._waits[later].discard(index)
            self._settle(later, index, changed=index in self._begun)
        for known in (self._needs, self._waits, self._behind):
            del known[index]

    # How it comes about ------------------------------------------------------------------------------------------

    def _forget(self, index: int) -> set[int]:
        """Let go of what is known of a call; those that waited for it."""
        self._barriers.discard(index)
        self._touches.discard(index, self._needs[index].resources)
        self._stale.discard(index)
        self._asks_after.pop(index, None)
        self._doubts.pop(index, None)
        for earlier in self._waits[index]:
            self._behind[earlier].discard(index)
        return self._behind[index]

    def _met_by(self, index: int) -> set[int]:
        """The other calls that one can't run together with."""
        need = self._needs[index]
        if need.kind == "barrier":
            return set(self._needs) - {index}
        if need.kind == "free":
            return set(self._barriers)
        return (self._barriers | self._touches.excluded_by(need.resources)) - {index}

    def _before(self, calls: Iterable[int], index: int) -> Iterator[int]:
        """Those of the calls before one that would exclude it, or it them, if their paths led elsewhere."""
        need = self._needs[index]
        for each in calls:
            if each < index and need.kind == "named" and (need.writes or self._needs[each].writes):
                yield each

    def _relate(self, earlier: int, later: int) -> None:
        """Let `later` wait for `earlier`, and see whether that one may change what it touches."""
        self._waits[later].add(earlier)
        self._behind[earlier].add(later)
        first, second = self._needs[earlier], self._needs[later]
        if second.kind != "named":
            return
        if first.kind == "barrier" or first.resources.replaces(second.resources):
            self._asks_after.setdefault(later, set()).add(earlier)
        if first.kind == "named" and first.resources.bends(second.resources):
            self._doubts.setdefault(later, set()).add(earlier)

    def _relate_again(self, earlier: int, later: int, *, meets: bool) -> None:
        """`earlier` has changed: let `later` wait for it, or no longer."""
        self._waits[later].discard(earlier)
        for table in (self._asks_after, self._doubts):
            _take(table, later, earlier)
        if meets:
            self._relate(earlier, later)

    def _settle(self, later: int, earlier: int, *, changed: bool) -> None:
        """`earlier` has ended: what it was to `later`, it is no longer."""
        if _take(self._asks_after, later, earlier) and changed and later not in self._begun:
            self._stale.add(later)
        _take(self._doubts, later, earlier)

    def _told(self, earlier: int, later: int) -> Wait:
        first, second = self._needs[earlier], self._needs[later]
        for need, index in ((first, earlier), (second, later)):
            if need.kind == "barrier":
                return Wait(earlier, "barrier", need.why, index)
        return Wait(earlier, "same", first.resources.excludes(second.resources) or "")


def _take(table: dict[int, set[int]], of: int, index: int) -> bool:
    """Take `index` out of the set of `of`; whether it was there. An empty set goes."""
    found = table.get(of)
    if found is None or index not in found:
        return False
    found.discard(index)
    if not found:
        del table[of]
    return True
