"""`ExpressLane`: the compiled calls of one runtime, by session and tool."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.quick.frame import NO_IDS
from mibyan.dispatch.session import Session
from mibyan.dispatch.values import data_of
from mibyan.records import replace
from mibyan.tools.results import ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from mibyan.dispatch.call import Call
    from mibyan.dispatch.dispatcher import Dispatcher
    from mibyan.dispatch.plans import Plans
    from mibyan.dispatch.quick.compiled import Express, Surroundings
    from mibyan.dispatch.quick.frame import Ids
    from mibyan.dispatch.sessions import Sessions
    from mibyan.tools.entry import ToolEntry

#: Calls of a tool in a session after which it is worth compiling.
_OFTEN = 2
#: The types that an id may have.
_TEXT = (str, type(None))
_SECONDS = (int, float)
#: Seconds beyond which a time-out is looked at more closely.
_LONGEST = 1e9


async def _not_this_way() -> None:
    """Nothing has run."""


def _structured(call: ToolCall, made: str | ToolResult | None, started: float) -> ToolResult | None:
    """What a compiled call made, as a result."""
    if made is None:
        return None
    if isinstance(made, str):
        took = round((perf_counter() - started) * 1000, 3)
        return ToolResult(call.id, call.name, "ok", made, None, data_of(made), None, None, took)
    return made if made.data is not None else replace(made, data=data_of(made.text))


def _read_ids(call_id: Any, task_id: Any, user_task: Any) -> Ids | None:
    """A call's ids; `None`: one is something else than text, and the pipeline has a word for it."""
    fine = type(call_id) in _TEXT and type(task_id) in _TEXT and type(user_task) in _TEXT
    return (call_id, task_id, user_task) if fine else None


def _is_time(timeout: Any) -> bool:
    return timeout is None or (type(timeout) in _SECONDS and 0 < timeout < _LONGEST)


class Kept:
    """What a session keeps of the calls of one tool."""

    __slots__ = ("calls", "express", "state")

    def __init__(self) -> None:
        #: How many took the pipeline.
        self.calls = 0
        #: Its compiled call; `None`: there is none.
        self.express: Express | None = None
        #: The state of registry and hooks that was looked at last.
        self.state: tuple[int, int] = (-1, -1)


class ExpressLane:
    """Runs the calls that need nothing but the usual; compiles them when they come again.

    Args:
        around: What compiled calls have in common.
        plans: The tools' plans.
        sessions: The runtime's sessions; those of another runtime are no business of this one.
        dispatcher: Runs those that are guarded.
    """

    def __init__(self, around: Surroundings, plans: Plans, sessions: Sessions, dispatcher: Dispatcher) -> None:
        self._around = around
        self._plans = plans
        self._sessions = sessions
        self._dispatcher = dispatcher
        self._timeout = dispatcher.timeout
        dispatcher.went_well = self.consider

    def call(
        self, name: Any, raw: Any, session: Any, call_id: Any, task_id: Any, user_task: Any, timeout: Any = None,
        *, guarded: bool = False,
    ) -> str | ToolResult | None:  # fmt: skip
        """Run a call.

        Returns:
            Its text; the result where the pipeline went on with it; `None`: nothing has run, the pipeline has to.
        """
        own = self._sessions.default if session is None else session
        if type(own) is not Session or own._home is not self._sessions or type(name) is not str:
            return None
        kept = own._express.get(name)
        if kept is None or (express := kept.express) is None:
            return None
        ids = NO_IDS if call_id is task_id is user_task is None else _read_ids(call_id, task_id, user_task)
        if ids is None:
            return None
        if timeout is None and express.is_inline and not guarded:
            return express.run(raw, ids, None)
        if timeout is not None and not _is_time(timeout):
            return None
        if express.entry.is_async:
            guarded = guarded or timeout is not None or express.seconds is not None or self._dispatcher.always_guards
            return None if guarded else self._dispatcher.bridged_quickly(express, raw, ids)
        return self._dispatcher.guarded_quickly(express, raw, ids, timeout or express.seconds or self._timeout)

    def acall(
        self, name: Any, raw: Any, session: Any, call_id: Any, task_id: Any, user_task: Any, seconds: Any
    ) -> Coroutine[Any, Any, str | ToolResult | None]:
        """What runs a call without holding the running loop; see `call`."""
        own = self._sessions.default if session is None else session
        if type(own) is not Session or own._home is not self._sessions or type(name) is not str:
            return _not_this_way()
        kept = own._express.get(name)
        if kept is None or (express := kept.express) is None or (seconds is not None and not _is_time(seconds)):
            return _not_this_way()
        ids = NO_IDS if call_id is task_id is user_task is None else _read_ids(call_id, task_id, user_task)
        if ids is None:
            return _not_this_way()
        seconds = seconds or express.seconds or self._timeout
        if express.run_awaited is not None:
            return express.run_awaited(raw, ids, seconds)
        return self._dispatcher.awaited_quickly(express, raw, ids, seconds)

    async def aexecute(self, call: Any, session: Any, task_id: Any, user_task: Any, seconds: Any) -> ToolResult | None:
        """Like `execute`, without holding the running loop."""
        if not isinstance(call, ToolCall):
            return None
        started = perf_counter()
        made = await self.acall(call.name, call.arguments, session, call.id, task_id, user_task, seconds)
        return _structured(call, made, started)

    def execute(
        self, call: ToolCall, session: Any, task_id: Any, user_task: Any, timeout: Any, *, guarded: bool = False
    ) -> ToolResult | None:
        """The same, structured."""
        if not isinstance(call, ToolCall):
            return None
        started = perf_counter()
        made = self.call(call.name, call.arguments, session, call.id, task_id, user_task, timeout, guarded=guarded)
        return _structured(call, made, started)

    def consider(self, call: Call) -> None:
        """Compile the calls of a tool that took the pipeline again, if nothing spoke against the quick way."""
        entry, session = call.entry, call.session
        if entry is None or entry.name != call.asked or session._home is not self._sessions:
            return
        kept = session._express.get(entry.name)
        if kept is None:
            kept = session._express[entry.name] = Kept()
        kept.calls += 1
        if kept.calls >= _OFTEN:
            self.compile(kept, entry, session)

    def compile(self, kept: Kept, entry: ToolEntry, session: Session) -> None:
        """Compile the calls of a tool in a session that has begun, unless that was done for what there is now."""
        visible = session.tool_names
        if visible is not None and entry.name not in visible:
            return
        store = self._around.store
        state = (store._version, self._around.hooks.generation)
        # While it ran the tool may have become another's, and an odd version is that of a change that isn't through.
        if kept.state == state or state[0] % 2 or store.find(entry.name) is not entry:
            return
        from mibyan.dispatch.quick.compiled import compile_call

        kept.state = state
        express = compile_call(self._around, self._plans.of(entry), session, state)
        if express is not None and self._dispatcher.always_guards:
            express.is_inline = False
        kept.express = express  # In one step: another thread may be compiling it for what there was before.
