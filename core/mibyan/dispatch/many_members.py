"""`Member`: one call of a batch, and how far it has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.records import record

if TYPE_CHECKING:
    from mibyan.dispatch.call import Call
    from mibyan.dispatch.many_gates import Gates, Place
    from mibyan.dispatch.resources_needs import Need
    from mibyan.dispatch.steps import Outcome, Steps
    from mibyan.tools.results import ToolResult


@record(frozen=False, eq=False)
class Member:
    """One call of a batch."""

    index: int
    call: Call
    gates: Gates
    #: What its tool's flags say that it needs to itself; `None`: the tool must be asked.
    declared: Need | None
    #: Whether a person may have to be asked for it.
    may_ask: bool
    #: Its pipeline, and whether that has begun.
    steps: Steps | None = None
    begun: bool = False
    #: The gate that it stands at or has passed last; `None`: none yet.
    place: Place | None = None
    #: Moment of `time.monotonic()` at which it came there.
    since: float = 0.0
    #: How many calls with effects had ended when it went on last: what it says of itself may be as old as that.
    seen: int = 0
    running: bool = False
    #: Whether its handler was begun and may have had effects.
    acts: bool = False
    result: ToolResult | None = None

    @property
    def need(self) -> Need | None:
        """What it needs to itself, as far as that is known."""
        return self.gates.need or self.declared

    @property
    def reads_only(self) -> bool:
        """Whether it has no effects."""
        return self.call.entry is not None and self.call.entry.read_only

    def stands_at(self, place: Place) -> bool:
        """Whether it waits at this gate."""
        return self.place == place and not self.running and self.result is None


@record
class Section:
    """A piece of a call's way that may run now: up to its next gate, or to its end."""

    member: Member
    #: What its pipeline gets; `None`: it begins.
    outcome: Outcome | None = None
    #: Why the call's way ends here.
    ending: BaseException | None = None
