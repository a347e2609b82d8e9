"""The pieces of a call's way in a batch, ready to be driven: what both drivers do before they drive."""

from __future__ import annotations

import time
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING

from mibyan.dispatch.call import Call
from mibyan.dispatch.many_batch import Batch
from mibyan.dispatch.many_gates import Gates, GateStep
from mibyan.dispatch.many_members import Member
from mibyan.dispatch.names import find_entry
from mibyan.dispatch.resources_needs import FREE, declared
from mibyan.dispatch.steps import CallCancelled, DeadlinePassed, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mibyan.dispatch.dispatcher import Dispatcher
    from mibyan.dispatch.guard import Guard
    from mibyan.dispatch.many_members import Section
    from mibyan.dispatch.steps import Step, Steps
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.results import ToolResult


def make_batch(dispatcher: Dispatcher, calls: Sequence[Call], workers: int, timeout: float | None) -> Batch:
    """The calls, all of one session, as a batch that hasn't begun."""
    members = [_member(dispatcher, index, call) for index, call in enumerate(calls)]
    for member in takewhile(lambda each: each.declared is FREE, members):
        member.gates.is_free = True
    return Batch(members, workers, timeout)


def _member(dispatcher: Dispatcher, index: int, call: Call) -> Member:
    dispatcher._place(call)
    gates = call.gates = Gates(call)
    entry = find_entry(dispatcher._store, call.asked, call.session.tool_names)
    known = None if entry is None else declared(entry)
    return Member(index, call, gates, known, _may_ask(dispatcher, entry))


def _may_ask(dispatcher: Dispatcher, entry: ToolEntry | None) -> bool:
    """Whether somebody may have to be asked for approval, as far as it can be told before the call begins."""
    if entry is None or entry.activate is not None or entry.approval is not None:
        return True
    chain = dispatcher._pipeline._hooks.ready("pre_tool_call")
    return chain is None or bool(chain)


@contextmanager
def attended(dispatcher: Dispatcher, batch: Batch) -> Iterator[None]:
    """Let `Session.interrupt`, `Runtime.close` and the end of the call around it reach the batch."""
    first = batch.members[0].call
    dispatcher._attend(batch, first)
    if first.is_cancelled():  # It came in between.
        batch.cancel("the session was interrupted")
    try:
        yield
    finally:
        dispatcher._leave(batch, first)


def opening(dispatcher: Dispatcher, batch: Batch) -> Guard | None:
    """What runs before the first call of a session: `on_session_start`; `None`: the session has begun."""
    session = batch.members[0].call.session
    if session.started or session.closed:
        return None
    call = Call("on_session_start", None, session, guarded=True)
    return dispatcher._guard(call, dispatcher._pipeline._begin(call))


def result_of(dispatcher: Dispatcher, member: Member) -> ToolResult:
    """The result of a call, also of one for whose end nobody waits any more."""
    why = CallCancelled("it was interrupted")
    return member.result or member.call.answer or dispatcher._pipeline.given_up(member.call, why)


def steps_of(dispatcher: Dispatcher, batch: Batch, section: Section) -> Steps:
    """A section's steps; they return the `GateStep` that the call comes to, or its `ToolResult`."""
    member, call = section.member, section.member.call
    if member.steps is None:
        dispatcher._arm(call)
        member.steps = dispatcher._pipeline.steps(call)
    else:
        call.stood(time.monotonic() - member.since)
    _limit(call, batch)
    return _up_to_gate(member, member.steps, section.outcome)


def _limit(call: Call, batch: Batch) -> None:
    """Let the call end with its batch at the latest."""
    if batch.timeout is not None:
        call.latest = batch.deadline()
        if call.cap() and call.gates is not None and call.gates.are_reached:
            call.timeout = batch.timeout  # What an answer will tell; the tool's own is known by now.


def ended(
    dispatcher: Dispatcher, batch: Batch, member: Member, why: BaseException
) -> tuple[Steps, Step] | ToolResult:  # fmt: skip
    """End a call that doesn't run: its result, or its steps with the first one that its observers need."""
    call = member.call
    if isinstance(why, DeadlinePassed):
        call.timeout = batch.timeout
    outcome: Outcome | None = Outcome(error=why)
    if member.begun and member.steps is not None:
        steps = member.steps
    else:
        steps, outcome = dispatcher._pipeline.observers(call, dispatcher._pipeline.given_up(call, why)), None
    try:
        step = steps.send(outcome)
    except StopIteration as stop:
        result: ToolResult = stop.value
        return result
    step.call = call
    return steps, step


def _up_to_gate(member: Member, steps: Steps, outcome: Outcome | None) -> Steps:
    """Go on with a call's steps up to its next gate or its end."""
    member.begun = True
    while True:
        try:
            step = steps.send(outcome)
        except StopIteration as stop:
            return stop.value
        if isinstance(step, GateStep):
            return step
        outcome = yield step
