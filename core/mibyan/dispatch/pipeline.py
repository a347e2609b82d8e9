"""The one door: every call of every front goes through `Pipeline.steps`, from its name to its answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mibyan.dispatch import answers
from mibyan.dispatch.approving import ApprovalSteps, Refused
from mibyan.dispatch.arguments import ArgumentProblem, Prepared, bind, copy_arguments, prepare, read_arguments
from mibyan.dispatch.chains import Round
from mibyan.dispatch.names import find_entry, suggest_names
from mibyan.dispatch.policy import Ballot, read_answer
from mibyan.dispatch.steps import (
    CallCancelled,
    DeadlinePassed,
    Outcome,
    Step,
    StepFailed,
    Steps,
    StepTimeout,
)
from mibyan.errors import MibyanError
from mibyan.records import replace
from mibyan.text import describe_exception, plain_text, replace_surrogates
from mibyan.tools.requirements import missing_requirements

if TYPE_CHECKING:
    from mibyan.approvals.broker import Approvals
    from mibyan.dispatch.call import Call
    from mibyan.dispatch.chains import ChainRunner
    from mibyan.dispatch.handlers import HandlerSteps
    from mibyan.dispatch.plan import Plan
    from mibyan.dispatch.plans import Plans
    from mibyan.hooks.table import HookTable, Implementation
    from mibyan.tools.availability import Availability
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.results import ToolResult
    from mibyan.tools.store import RegistryStore


class Pipeline:
    """The steps of a call; see the package's architecture page for the picture."""

    def __init__(
        self,
        store: RegistryStore,
        hooks: HookTable,
        chains: ChainRunner,
        availability: Availability,
        plans: Plans,
        handlers: HandlerSteps,
        approvals: Approvals,
    ) -> None:
        self._store = store
        self._hooks = hooks
        self._chains = chains
        self._availability = availability
        self._plans = plans
        self._handlers = handlers
        self._approving = ApprovalSteps(approvals, handlers)

    def steps(self, call: Call) -> Steps:
        """Run a call; returns its `ToolResult`, after the observers have seen it.

        Raises:
            KeyboardInterrupt: It came while the call ran.
        """
        try:
            answer = yield from self._answer(call)
        except Refused as refusal:
            answer = refusal.answer
        except GeneratorExit:  # Nobody drives it any more.
            raise
        except BaseException as error:
            answer = _ended(call, error)
        self._seal(call, answer)
        yield from self._observe(call)
        if call.leaving is not None:
            raise call.leaving
        return call.answer

    def given_up(self, call: Call, why: BaseException) -> ToolResult:
        """Answer a call whose steps can't go on; `observers` come next."""
        return self._seal(call, _ended(call, why))

    def observers(self, call: Call, answer: ToolResult) -> Steps:
        """Let the observers see the answer of a call that was given up."""
        yield from self._observe(call)
        return answer

    def _seal(self, call: Call, answer: ToolResult) -> ToolResult:
        call.answer, call.answered = self._handlers.sealed(call, answer), time.monotonic()
        return call.answer

    def _answer(self, call: Call) -> Steps:
        if call.begun is None:
            entry = yield from self._tool(call)
        elif call.begun.ended is not None:
            raise call.begun.ended
        else:
            entry = call.begun.entry
        plan = self._plans.of(entry)
        prepared = self._prepare(call, plan)
        yield from self._set_deadline(call, entry)
        ballot = yield from self._ask_hooks(call)
        if ballot is not None:
            prepared = self._apply(call, plan, ballot, prepared)
        gates = call.gates
        if gates is not None:
            asks = entry.approval is not None or (ballot is not None and bool(ballot.asks))
            yield from gates.before_approval(entry, prepared.args, asks=asks)
        approved = None
        if entry.approval is not None or (ballot is not None and ballot.asks):
            approved = yield from self._approving.approve(call, entry, ballot, prepared)
        if gates is not None:
            yield from gates.before_handler(entry, prepared.args)
        if approved is not None:
            yield from self._approving.confirm(call, entry, prepared, approved, moved=gates is not None)
        return (yield from self._handlers.run(call, plan, prepared))

    def _chain(self, hook: str, *, late: bool = False) -> Steps:
        """The implementations of a hook; the plugins that implement it are imported first, if they aren't yet."""
        chain = self._hooks.ready(hook)
        if chain is not None:
            return chain
        label = f"the import of the plugins that implement {hook}"
        return _value((yield Step(self._hooks.chain, (hook,), label=label, late=late)))

    # Before the arguments ----------------------------------------------------------------------------------------

    def _tool(self, call: Call) -> Steps:
        """The tool that is called, if it may be and can be now."""
        if call.session.closed:
            raise Refused(answers.cancelled(call, "the session is closed"))
        yield from self._begin(call)
        entry = self._find(call)
        if entry.handled_by == "agent" and call.session.handler_of(entry) is None:
            raise Refused(answers.agent_level(call))
        self._admit(call, entry)
        return (yield from self._make_available(call, entry))

    def _begin(self, call: Call) -> Steps:
        """`on_session_start`, before the session's first call."""
        if not call.session.begin():
            return
        chain = yield from self._chain("on_session_start")
        if chain:
            values = {"session_id": call.session.id, "platform": call.session.platform}
            yield from self._chains.run_observers(chain, call.note, lambda _: dict(values), late=False)

    def _find(self, call: Call) -> ToolEntry:
        entry = find_entry(self._store, call.asked, call.session.tool_names)
        if entry is None:
            unknown = answers.unknown_tool(call, suggest_names(self._store, call.asked, call.session.tool_names))
            raise Refused(answers.locked_out(call, self._store, call.asked) or unknown)
        call.entry = entry
        if entry.name != call.asked:
            call.note("renamed", asked=call.asked, name=entry.name)
        return entry

    def _admit(self, call: Call, entry: ToolEntry) -> None:
        """dispatch.C2: the session's toolsets."""
        visible = call.session.tool_names
        if visible is not None and entry.name not in visible:
            raise Refused(answers.not_in_session(call, suggest_names(self._store, call.asked, visible)))

    def _make_available(self, call: Call, entry: ToolEntry) -> Steps:
        """Import a lazy tool's plugin and probe the tool; the entry that is there then."""
        if entry.activate is not None and entry.handled_by != "agent":
            if lacking := missing_requirements(entry.requires):  # its code would miss it too, and take others with it
                raise Refused(answers.unavailable(call, lacking))
            entry = yield from self._activate(call, entry)
        if entry.check_fn is None and not entry.requires:
            return entry
        outcome = yield Step(self._availability.verdict, (entry,), owner=entry.owner, limit=self._availability.limit,
                             label=f"the check of {entry.name}")  # fmt: skip
        if isinstance(outcome.error, DeadlinePassed | CallCancelled):
            # Whoever asks next mustn't wait for a probe that nobody waits for.
            self._availability.abandon(entry)
        hangs = isinstance(outcome.error, StepTimeout)
        verdict = self._availability.give_up(entry) if hangs else _value(outcome)
        if not verdict.available:
            raise Refused(answers.unavailable(call, verdict.reason))
        return entry

    def _activate(self, call: Call, entry: ToolEntry) -> Steps:
        outcome = yield Step(entry.activate, label=f"the import of plugin {entry.owner.id!r}", explain=_why_not)  # type: ignore[arg-type]
        if isinstance(outcome.error, StepFailed):
            raise Refused(answers.unavailable(call, outcome.told))
        _value(outcome)
        found = self._store.find(entry.name)
        if found is None or found.activate is not None:
            raise Refused(answers.gone(call, self._store, entry))
        call.entry = found
        call.note("activated", plugin=entry.owner.id)
        return found

    def _prepare(self, call: Call, plan: Plan) -> Prepared:
        read = None if call.begun is None else call.begun.prepared
        if read is not None:
            call.args = read.args
            return read if read.bound is not None else Prepared(read.args, bind(plan, read.args))
        try:
            args = read_arguments(call.raw)
            call.args = args
            prepared = prepare(plan, args)
        except ArgumentProblem as problem:
            raise Refused(problem.answer(call)) from None
        call.args = prepared.args
        if prepared.repairs:
            call.note("repaired", repairs=prepared.repairs)
        return prepared

    def _set_deadline(self, call: Call, entry: ToolEntry) -> Steps:
        """dispatch.B2: the call's time-out, else the tool's, else the one of the configuration."""
        if call.timeout is not None or entry.timeout is None:
            return
        seconds: Any = entry.timeout
        if callable(seconds):
            step = Step(seconds, (copy_arguments(call.args),), owner=entry.owner, finish=_seconds,
                        label=f"the timeout of {entry.name}")  # fmt: skip
            seconds = _value((yield step))
        if seconds is not None:
            call.timeout = float(seconds)
            call.deadline = time.monotonic() + call.timeout
            call.cap()
            call.guarded = True

    # Policy ------------------------------------------------------------------------------------------------------

    def _ask_hooks(self, call: Call) -> Steps:
        chain = (yield from self._chain("pre_tool_call")) if call.begun is None else call.begun.pre
        if not chain:
            return None
        if call.gates is not None:
            yield from call.gates.before_hooks()
        ballot = Ballot(call, self._chains)
        turn = Round(call.note, lambda _: self._values(call), read_answer, ballot.take, ballot.fail)
        yield from self._chains.run(chain, turn)
        if ballot.blocks:
            who, block = ballot.blocks[0]
            raise Refused(answers.blocked(call, block.message, who))
        return ballot

    def _apply(self, call: Call, plan: Plan, ballot: Ballot, prepared: Prepared) -> Prepared:
        """Apply the hooks' modifications; what they made is validated again."""
        if not ballot.changes:
            return prepared
        try:
            return prepare(plan, ballot.modified())
        except ArgumentProblem as problem:
            by = ", ".join(sorted({who for who, _ in ballot.changes}))
            message = f"{problem.message} (as changed by the pre_tool_call hook of {by})"
            raise Refused(answers.invalid_arguments(call, message, problem.violations, changed_by=by)) from None

    # After the answer --------------------------------------------------------------------------------------------

    def _observe(self, call: Call) -> Steps:
        """dispatch.H1: once for every call, whatever became of it; nothing it does changes the answer."""
        answer = call.answer
        try:
            chain = None if call.begun is None else call.begun.post
            if chain is None:
                chain = yield from self._chain("post_tool_call", late=True)
            if chain and answer is not None:
                yield from self._chains.run_observers(chain, call.note, lambda _: self._outcome_values(call, answer))
        except GeneratorExit:
            raise
        except BaseException as ended:
            if call.leaving is None and isinstance(ended, KeyboardInterrupt):
                call.leaving = ended

    def _values(self, call: Call) -> dict[str, Any]:
        return {
            "tool_name": call.name, "args": copy_arguments(call.args),
            "toolset": None if call.entry is None else call.entry.toolset, "task_id": call.task_id,
            "session_id": call.session.id, "tool_call_id": call.id, "user_task": call.user_task,
        }  # fmt: skip

    def _outcome_values(self, call: Call, answer: ToolResult) -> dict[str, Any]:
        executed = None if call.executed_args is None else copy_arguments(call.executed_args)
        return {
            **self._values(call), "result": answer.text, "status": answer.status, "error_type": answer.error_type,
            "error_message": answer.error, "duration_ms": answer.duration_ms, "executed_args": executed,
        }  # fmt: skip

    def transform(self, call: Call, answer: ToolResult) -> Steps:
        """`transform_tool_result`: each implementation may replace the text."""
        if call.begun is not None and call.begun.post is not None:
            return answer  # Its observers have begun.
        chain = yield from self._chain("transform_tool_result")
        if not chain:
            return answer
        changed = [answer]

        def take(implementation: Implementation, text: str) -> None:
            changed[0] = replace(changed[0], text=text, content=None)
            call.note("transformed", hook=implementation.label)

        turn = Round(
            call.note, lambda _: self._outcome_values(call, changed[0]), _read_text, take, self._chains.complain
        )
        try:
            yield from self._chains.run(chain, turn)
        except DeadlinePassed as passed:
            call.note("transforms_cut", at=str(passed))
        return changed[0]


def _ended(call: Call, error: BaseException) -> ToolResult:
    """The answer of a call that something ended."""
    match error:
        case KeyboardInterrupt():
            call.leaving = error
            return answers.cancelled(call, "it was interrupted")
        case CallCancelled():
            return answers.cancelled(call, str(error))
        case DeadlinePassed():
            return answers.timed_out(call, str(error))
        case StepFailed():
            return answers.internal(call, str(error))
    # dispatch.C4, the second level: whatever goes wrong around the handler is an answer too.
    return answers.internal(call, describe_exception(error))


def _value(outcome: Outcome) -> Any:
    """The value of a step that isn't a handler.

    Raises:
        BaseException: What ended the call.
        StepFailed: The step's code raised.
    """
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


def _why_not(error: BaseException) -> str:
    """Why a plugin can't be imported."""
    return error.message if isinstance(error, MibyanError) else describe_exception(error)


def _seconds(answer: Any) -> float | None:
    """What a tool's own time-out says; `None` for what isn't seconds."""
    if isinstance(answer, bool) or not isinstance(answer, int | float):
        return None
    return float(answer) if 0 < answer < float("inf") else None


def _read_text(answer: Any) -> str:
    """The text of a `transform_tool_result` implementation.

    Raises:
        TypeError: It isn't text.
    """
    if not isinstance(answer, str):
        msg = f"expected text or None, got {type(answer).__name__}"
        raise TypeError(msg)
    return replace_surrogates(plain_text(answer))
