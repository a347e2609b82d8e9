"""`ExpressLane`: the compiled calls of one runtime, by session and tool."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.frame import NO_IDS
from mibyan.dispatch.session import Session
from mibyan.dispatch.values import data_of
from mibyan.records import replace
from mibyan.tools.results import ToolCall, ToolResult

if TYPE_CHECKING:
    from mibyan.dispatch.call import Call
    from mibyan.dispatch.express import Express, Surroundings
    from mibyan.dispatch.plans import Plans
    from mibyan.dispatch.sessions import Sessions
    from mibyan.tools.entry import ToolEntry

#: Calls of a tool in a session after which it is worth compiling.
_OFTEN = 2
#: The types that an id may have.
_TEXT = (str, type(None))


class Kept:
    """What a session keeps of the calls of one tool."""

    __slots__ = ("calls", "express", "run", "state")

    def __init__(self) -> None:
        #: How many took the pipeline.
        self.calls = 0
        self.express: Express | None = None
        self.run: Any = None
        #: The state of registry and hooks that they are for.
        self.state: tuple[int, int] = (-1, -1)


class ExpressLane:
    """Runs the inline calls that need nothing but the usual; compiles them when they come again.

    Args:
        around: What compiled calls have in common; `None`: every call is guarded, there is no quick way.
        plans: The tools' plans.
        sessions: The runtime's sessions; those of another runtime are no business of this one.
    """

    def __init__(self, around: Surroundings | None, plans: Plans, sessions: Sessions) -> None:
        self._around = around
        self._plans = plans
        self._sessions = sessions

    def call(self, name: Any, raw: Any, session: Any, call_id: Any, task_id: Any, user_task: Any) -> str | None:
        """Run a call; its text, or `None`: nothing has run, the pipeline has to."""
        made = self.run(name, raw, session, call_id, task_id, user_task)
        return made if made is None or type(made) is str else made.text  # type: ignore[union-attr]

    def run(
        self, name: Any, raw: Any, session: Any, call_id: Any, task_id: Any, user_task: Any
    ) -> str | ToolResult | None:
        """The same; the result itself where the pipeline went on with it."""
        own = self._sessions.default if session is None else session
        if type(own) is not Session or own._home is not self._sessions or type(name) is not str:
            return None
        kept = own._express.get(name)
        if kept is None or kept.run is None:
            return None
        if call_id is task_id is user_task is None:
            return kept.run(raw, NO_IDS, None)  # type: ignore[no-any-return]
        if type(call_id) in _TEXT and type(task_id) in _TEXT and type(user_task) in _TEXT:
            return kept.run(raw, (call_id, task_id, user_task), None)  # type: ignore[no-any-return]
        return None

    def execute(self, call: ToolCall, session: Any, task_id: Any, user_task: Any) -> ToolResult | None:
        """The same, structured."""
        if not isinstance(call, ToolCall):
            return None
        started = perf_counter()
        made = self.run(call.name, call.arguments, session, call.id, task_id, user_task)
        if made is None:
            return None
        if isinstance(made, str):
            took = round((perf_counter() - started) * 1000, 3)
            return ToolResult(call.id, call.name, "ok", made, None, data_of(made), None, None, took)
        return made if made.data is not None else replace(made, data=data_of(made.text))

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
        if self._around is None or (visible is not None and entry.name not in visible):
            return
        state = (self._around.store._version, self._around.hooks.generation)
        if kept.state == state:
            return
        from mibyan.dispatch.express import compile_call

        kept.state = state
        kept.express = compile_call(self._around, self._plans.of(entry), session)
        kept.run = None if kept.express is None else kept.express.run
