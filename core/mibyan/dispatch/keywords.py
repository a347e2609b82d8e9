"""Calls whose context comes as keywords: `registry.dispatch`, `handle_function_call`, `ctx.dispatch_tool`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.dispatch.steps import enclosing
from mibyan.text import plain_text
from mibyan.tools.current import CURRENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mibyan.dispatch.call import Call
    from mibyan.dispatch.dispatcher import Dispatcher
    from mibyan.dispatch.quick.lane import ExpressLane
    from mibyan.dispatch.sessions import Sessions
    from mibyan.tools.owner import Owner

#: The keywords of a call that may take the quick way.
_QUICK = frozenset(("session", "tool_call_id", "task_id", "user_task"))
#: The keywords that the pipeline knows.
_KNOWN = (*sorted(_QUICK), "timeout")


class KeywordCalls:
    """Inline calls; keywords that the pipeline knows count, the others reach handlers that accept them.

    Args:
        lane: The quick way.
        sessions: The runtime's sessions.
        dispatcher: Runs the calls that need the pipeline.
        make: `make(name, args, **known)` makes them, see `Runtime.make_call`.
    """

    def __init__(
        self, lane: ExpressLane, sessions: Sessions, dispatcher: Dispatcher, make: Callable[..., Call]
    ) -> None:
        self._lane = lane
        self._sessions = sessions
        self._dispatcher = dispatcher
        self._make = make

    def text(self, name: str, args: Any, context: Mapping[str, Any]) -> str:
        """The text of a call."""
        if context.keys() <= _QUICK:
            get = context.get
            quick = self._lane.call(name, args, get("session"), get("tool_call_id"), get("task_id"), get("user_task"))
            if quick is not None:
                return quick if isinstance(quick, str) else quick.text
        known = {key: context[key] for key in _KNOWN if key in context}
        if "session" not in known:
            session_id, around = context.get("session_id"), enclosing()
            if isinstance(session_id, str):
                known["session"] = self._sessions.of_id(plain_text(session_id))
            elif around is not None and around.call is not None and around.call.session._home is self._sessions:
                # A handler's call belongs to the conversation that it runs in, and sees no more than that one may.
                known["session"] = around.call.session
        made = self._make(name, args, **known)
        made.extra = {key: value for key, value in context.items() if key not in known and key != "session_id"}
        return self._dispatcher.inline(made).text

    def of_plugin(self, name: str, args: Any, owner: Owner) -> str:
        """`ctx.dispatch_tool`: a plugin's call through the pipeline, in the session of the call that it runs in."""
        current, around = CURRENT.get(), enclosing()
        context: dict[str, Any] = {}
        if current is not None and current.owner is owner and around is not None and around.call is not None:
            outer = around.call
            context = {"session": outer.session, "task_id": outer.task_id, "user_task": outer.user_task}
        return self.text(name, args, context)
