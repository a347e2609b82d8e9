"""Making a `BatchPlan`: the way of each call through the pipeline as far as nothing of it is noticed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mibyan.dispatch.approving import Refused
from mibyan.dispatch.arguments import copy_arguments
from mibyan.dispatch.batch_plan import BatchPlan, PlannedCall
from mibyan.dispatch.batch_plan_order import Order
from mibyan.dispatch.policy import read_approval
from mibyan.dispatch.resources_needs import FREE, NAMING_SECONDS, Need, declared, named
from mibyan.dispatch.steps import CallCancelled, DeadlinePassed, Outcome, Step, Steps
from mibyan.hooks.decisions import Ask, Block
from mibyan.records import record
from mibyan.text import describe_exception, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.dispatch.arguments import Prepared
    from mibyan.dispatch.call import Call
    from mibyan.dispatch.dispatcher import Dispatcher
    from mibyan.dispatch.pipeline import Pipeline
    from mibyan.tools.entry import ToolEntry


@record(frozen=False)
class _Seen:
    """What is known of a call."""

    need: Need | None = None
    #: Why it is refused.
    refused: str = ""
    asks: str | None = None


def preview(dispatcher: Dispatcher, calls: Sequence[Call], workers: int) -> BatchPlan:
    """Plan calls of one session without running any, and without a hook."""
    activates = len(calls) > 1 and any(_has_effects(dispatcher, call) for call in calls)
    seen = [_see(dispatcher, call, activates=activates) for call in calls]
    order = Order()
    for index, each in enumerate(seen):
        if each.need is not None:
            order.put(index, each.need)
    planned = tuple(
        _planned(index, call, each, order) for index, (call, each) in enumerate(zip(calls, seen, strict=True))
    )
    chain = dispatcher._pipeline._hooks.chain("pre_tool_call")
    hooks = tuple(dict.fromkeys(each.label for each in (*chain.wrappers, *chain.plain)))
    return BatchPlan(planned, workers, hooks, _cwd(calls[0]) if calls else "")


def _has_effects(dispatcher: Dispatcher, call: Call) -> bool:
    entry = dispatcher._store.find(call.asked)
    return entry is not None and not entry.read_only


def _see(dispatcher: Dispatcher, call: Call, *, activates: bool) -> _Seen:
    """Look at one call, on the runtime's threads: nothing that its tool's code does holds this up for ever."""
    try:
        found = dispatcher.watch_steps(_looking(dispatcher._pipeline, call, activates=activates), call)
    except Exception as error:
        found = _Seen(Need("barrier", one_line(describe_exception(error))))
    return found if isinstance(found, _Seen) else _Seen(refused=found.error or "it was cancelled")


def _looking(pipeline: Pipeline, call: Call, *, activates: bool) -> Steps:
    try:
        entry = pipeline._find(call)
        if entry.handled_by == "agent" and call.session.handler_of(entry) is None:
            return _Seen(refused=f"{entry.name} must be handled by the agent loop")
        pipeline._admit(call, entry)
        if activates or entry.activate is None:
            entry = yield from pipeline._make_available(call, entry)
        prepared = pipeline._prepare(call, pipeline._plans.of(entry))
        need = yield from _need(entry, prepared, call)
        return (yield from _asks(pipeline, call, entry, prepared, _Seen(need)))
    except Refused as refusal:
        return _Seen(refused=refusal.answer.error or "")
    except (CallCancelled, DeadlinePassed) as ended:
        return _Seen(refused=str(ended))


def _need(entry: ToolEntry, prepared: Prepared, call: Call) -> Steps:
    if entry.activate is not None and entry.handled_by != "agent":
        # Not imported: it needn't be, as nothing in the batch has effects on it, or nothing else is in it.
        return FREE if entry.read_only else declared(entry) or Need("named")
    return (yield from named(entry, prepared.args, call))


def _asks(pipeline: Pipeline, call: Call, entry: ToolEntry, prepared: Prepared, seen: _Seen) -> Steps:
    """See what the tool's own approval says; hooks aren't asked, they would take it for a call."""
    if entry.approval is None:
        return seen
    step = Step(entry.approval, (copy_arguments(prepared.args), pipeline._handlers.context(call, entry)),
                owner=entry.owner, label=f"the approval of {entry.name}", finish=read_approval, limit=NAMING_SECONDS)  # fmt: skip
    outcome: Outcome = yield step
    if outcome.error is not None:
        if isinstance(outcome.error, KeyboardInterrupt):
            raise outcome.error
        return _Seen(refused=f"the approval check of {entry.name} failed")
    match outcome.value:
        case Block(message):
            return _Seen(refused=message or "blocked by policy")
        case Ask() as ask:
            seen.asks = one_line(ask.reason) or "a person's approval"
        case None:
            return seen
        case verdict:
            ruling = yield from pipeline._approving.rule(call, [], verdict, prepared)
            if ruling.kind == "block":
                return _Seen(refused=ruling.message)
            if ruling.kind == "ask":
                seen.asks = one_line("; ".join(finding.description for finding in verdict.findings))
    return seen


def _planned(index: int, call: Call, seen: _Seen, order: Order) -> PlannedCall:
    need = seen.need
    if need is None:
        return PlannedCall(index, call.id, call.name, None, one_line(seen.refused, 300))
    effects = call.entry is not None and not call.entry.read_only
    return PlannedCall(index, call.id, call.name, need.kind, need.why, effects, need.resources.reads,
                       need.resources.writes, tuple(order.waits(index)), seen.asks)  # fmt: skip


def _cwd(call: Call) -> str:
    try:
        return os.path.realpath(call.session.cwd(call.task_id))
    except OSError:
        return ""
