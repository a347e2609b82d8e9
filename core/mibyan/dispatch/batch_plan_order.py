"""`Order`: which calls of a batch wait for which (dispatch.P1, P2).

Calls are put in one after the other, in their order. Two that can't run together keep it: the later waits for the
earlier. So whatever runs at the same time, the outcome is that of the sequence.

Where a path leads can change while the batch runs: an earlier call may make, move or remove something on its way. The
call then waits for that one as for any conflict, and is asked again what it touches once it has ended. Until then it is
*unsure*, may touch anything, and the calls after it wait for the answer, unless neither they nor it write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from mibyan.dispatch.resources_index import Touches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.dispatch.resources_needs import Need


Why: TypeAlias = Literal["same", "barrier", "unsure"]


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a call waits for an earlier one."""

    #: The position of the earlier one, from 0.
    on: int
    #: `same`: both touch `what`; `barrier`: one of the two, at position `of`, is one, and `what` says why; `unsure`: it
    #: isn't known yet what the one at position `of` touches.
    why: Why
    what: str = ""
    of: int = -1


class Order:
    """The waits of the calls of one batch that are known and haven't ended."""

    def __init__(self) -> None:
        self._needs: dict[int, Need] = {}
        #: By call, what it waits for and why.
        self._waits: dict[int, dict[int, Why]] = {}
        #: Those that wait for one.
        self._behind: dict[int, set[int]] = {}
        #: The earlier calls that may change what an unsure one touches.
        self._unsure: dict[int, set[int]] = {}
        #: Those whose answer has to be asked for again: none of these is left.
        self._stale: set[int] = set()
        self._begun: set[int] = set()
        self._barriers: set[int] = set()
        self._touches = Touches()

    # Questions ---------------------------------------------------------------------------------------------------

    def waits(self, index: int) -> list[Wait]:
        """What a call waits for, in call order."""
        return [self._told(index, on, self._waits[index][on]) for on in sorted(self._waits[index])]

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
        behind = self._forget(index) if index in self._needs else None
        self._needs[index], self._waits[index] = need, {}
        self._unsure[index], self._behind[index] = set(), set()
        for earlier, why in self._met_by(index):
            if earlier < index:
                self._wait(index, earlier, why)
        self._enter(index, need)
        if behind is not None:
            self._behind[index] = behind
            self._relate_later(index, set(behind))

    def begin(self, index: int) -> None:
        """The call runs from now on."""
        self._begun.add(index)

    def end(self, index: int) -> None:
        """The call is over, whether or not it was put in: nobody waits for it any more."""
        if index not in self._needs:
            return
        for later in self._forget(index):
            del self._waits[later][index]
            unsure = self._unsure[later]
            if index in unsure:
                unsure.discard(index)
                if not unsure:
                    self._stale.add(later)
        for known in (self._needs, self._waits, self._unsure, self._behind):
            del known[index]

    # How it comes about ------------------------------------------------------------------------------------------

    def _enter(self, index: int, need: Need) -> None:
        if need.kind == "barrier":
            self._barriers.add(index)
        elif need.kind == "named":
            self._touches.add(index, need.resources)

    def _forget(self, index: int) -> set[int]:
        """Let go of what is known of a call, but not of who waits for it: those."""
        self._barriers.discard(index)
        self._touches.discard(index, self._needs[index].resources)
        self._stale.discard(index)
        for earlier in self._waits[index]:
            self._behind[earlier].discard(index)
        return self._behind[index]

    def _met_by(self, index: int) -> Iterator[tuple[int, Why]]:
        """The other calls that one can't run together with."""
        need = self._needs[index]
        if need.kind == "barrier":
            yield from ((each, "barrier") for each in self._needs if each != index)
            return
        yield from ((each, "barrier") for each in self._barriers)
        if need.kind == "free":
            return
        excluded = self._touches.excluded_by(need.resources) - {index}
        yield from ((each, "same") for each in excluded)
        for each in self._unsure:
            if each not in excluded and self._is_unsure(each) and self._may_meet(each, index):
                yield each, "unsure"

    def _may_meet(self, one: int, other: int) -> bool:
        """Whether two calls would exclude one another if the paths of either led elsewhere."""
        first, second = self._needs[one], self._needs[other]
        return first.kind == second.kind == "named" and (first.writes or second.writes)

    def _is_unsure(self, index: int) -> bool:
        return bool(self._unsure[index]) or index in self._stale

    def _wait(self, later: int, earlier: int, why: Why) -> None:
        """Let `later` wait for `earlier`, and see whether that one may change what it touches."""
        self._waits[later][earlier] = why
        self._behind[earlier].add(later)
        if why == "unsure" or self._needs[later].kind != "named":
            return
        if why == "barrier" or self._needs[earlier].resources.moves(self._needs[later].resources):
            self._unsure[later].add(earlier)

    def _relate_later(self, index: int, behind: set[int]) -> None:
        """The need of a call has changed: see what that means for those after it that haven't begun.

        Args:
            index: The call.
            behind: Those that waited for it.
        """
        later = [each for each in self._needs if each > index and each not in self._begun]
        met = dict(self._met_by(index))
        if self._is_unsure(index):
            met.update((each, "unsure") for each in later if each not in met and self._may_meet(index, each))
        for one in [each for each in later if each in met or each in behind]:
            if self._relate_again(index, one, met.get(one)):
                for each in later:
                    if each > one and one not in self._waits[each] and self._may_meet(one, each):
                        self._wait(each, one, "unsure")

    def _relate_again(self, earlier: int, later: int, why: Why | None) -> bool:
        """Say anew why `later` waits for `earlier`, if it does; whether it has become unsure by that."""
        was_unsure = self._is_unsure(later)
        if why == "same" and self._waits[later].get(earlier) == why and earlier in self._unsure[later]:
            return False
        self._waits[later].pop(earlier, None)
        self._behind[earlier].discard(later)
        self._unsure[later].discard(earlier)
        if why is not None and (why != "unsure" or self._is_unsure(earlier)):
            self._wait(later, earlier, why)
        if was_unsure and not self._unsure[later]:
            self._stale.add(later)  # Those that wait for its answer still do.
        return not was_unsure and self._is_unsure(later)

    def _told(self, later: int, earlier: int, why: Why) -> Wait:
        first, second = self._needs[earlier], self._needs[later]
        if why == "barrier":
            is_first = first.kind == "barrier"
            return Wait(earlier, why, (first if is_first else second).why, earlier if is_first else later)
        if why == "same":
            return Wait(earlier, why, first.resources.excludes(second.resources) or "")
        return Wait(earlier, why, of=earlier)
