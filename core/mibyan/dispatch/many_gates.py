"""Where a call of a batch stands still: before its hooks, before a person is asked, before its handler (dispatch.P1).

Its pipeline is the one of every call. At a gate its generator yields a `GateStep`; whoever drives it stops there, and
the batch says later that it may go on. Nothing is held meanwhile, no thread either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mibyan.dispatch.resources_needs import FREE, Need, named
from mibyan.dispatch.steps import Outcome, Step, Steps
from mibyan.records import record

if TYPE_CHECKING:
    from mibyan.dispatch.call import Call
    from mibyan.tools.entry import ToolEntry

Place: TypeAlias = Literal["hooks", "approval", "handler"]


@record(frozen=False, eq=False)
class GateStep(Step):
    """Not a piece of code, but a place to stand at; the outcome lets the call go on."""

    place: Place = "handler"


#: Lets a call go on.
GO = Outcome(value="go")
#: Has a call that stands before its handler say again what it touches.
AGAIN = Outcome(value="again")


class Gates:
    """The gates of one call."""

    def __init__(self, call: Call) -> None:
        self._call = call
        #: What it needs to itself, once that is known.
        self.need: Need | None = None
        #: Whether it came to any: from then on it is known how long the tool itself may take.
        self.are_reached = False
        #: Whether it needn't stand before its handler: neither it nor any call before it may touch anything.
        self.is_free = False

    def before_hooks(self) -> Steps:
        """Hooks see the calls in their order."""
        yield from self._stand("hooks")

    def before_approval(self, entry: ToolEntry, args: dict[str, Any], *, asks: bool) -> Steps:
        """Say what the call will touch, with the arguments that will run; then wait for a turn to ask, if it asks.

        Args:
            entry: The tool.
            args: The arguments as the hooks leave them.
            asks: Whether somebody may be asked for approval.
        """
        self.need = yield from named(entry, args, self._call)
        if asks:
            yield from self._stand("approval")

    def before_handler(self, entry: ToolEntry, args: dict[str, Any]) -> Steps:
        """Wait for what the plan says, naming resources again where earlier calls may have moved them."""
        if self.is_free and entry.read_only and self.need is FREE:
            return
        while (yield from self._stand("handler")) == AGAIN.value:
            self.need = yield from named(entry, args, self._call)

    def _stand(self, place: Place) -> Steps:
        self.are_reached = True
        outcome: Outcome = yield GateStep(_nothing, place=place, label="the rest of the batch")
        if outcome.error is not None:
            raise outcome.error
        return outcome.value


def _nothing() -> None:
    """A gate has nothing to run."""
