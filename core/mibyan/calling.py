"""`Calling`: the parts of a runtime that run calls; made when the first call, or whatever else must be run, comes.

A runtime that only says which tools there are needs none of them, and doesn't import what they stand on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.dispatch.call import Call
from mibyan.dispatch.chains import ChainRunner, Round
from mibyan.dispatch.checks import read_any_text, read_name, read_seconds
from mibyan.dispatch.dispatcher import Dispatcher, Enforcement
from mibyan.dispatch.handlers import HandlerSteps
from mibyan.dispatch.keywords import KeywordCalls
from mibyan.dispatch.limits import keep_in
from mibyan.dispatch.pipeline import Pipeline
from mibyan.dispatch.plans import Plans
from mibyan.dispatch.quick.compiled import Surroundings
from mibyan.dispatch.quick.lane import ExpressLane
from mibyan.dispatch.sessions import Sessions
from mibyan.dispatch.terminal_output import OutputHooks
from mibyan.once import once
from mibyan.tools.outputs import CommandOutputs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mibyan.approvals.operator_rules import OperatorRule
    from mibyan.dispatch.nested import NestedCalls
    from mibyan.dispatch.session import Session
    from mibyan.environments import Environment
    from mibyan.environments.sessions import Environments
    from mibyan.hooks.table import HookOwner, Implementation
    from mibyan.parts import Parts


class Calling:
    """What runs the calls of one runtime.

    Args:
        parts: The runtime's other parts.
    """

    def __init__(self, parts: Parts) -> None:
        settings = parts.config.settings
        self._parts = parts
        self._chains = ChainRunner(lambda: settings.dispatch.hook_timeout, parts.log, parts.redactor.redact)
        self._plans = Plans(validate=settings.dispatch.validate, max_result_chars=settings.dispatch.max_result_chars)
        results = parts.home / "cache" / "results"
        self._handlers = HandlerSteps(
            settings, parts.redactor, keep_in(results), parts.plugin_config, self.command_rules
        )
        self.dispatcher = self._make_dispatcher()
        self._handlers.nested = self._nested
        hooks = OutputHooks(parts.hooks, self._chains, self.dispatcher.run_steps)
        redact = parts.clean if settings.redaction.live else str
        self._handlers.outputs = CommandOutputs(results, redact, hooks.are_there, hooks.transform)
        self.sessions = Sessions(parts.scope, self._session_ended, self._environment)
        self.lane = self._make_lane()
        self.calls = KeywordCalls(self.lane, self.sessions, self.dispatcher, self._make_loaded)

    def _make_dispatcher(self) -> Dispatcher:
        parts = self._parts
        pipeline = Pipeline(
            parts.store, parts.hooks, self._chains, parts.availability, self._plans, self._handlers, parts.approvals
        )  # fmt: skip
        self._handlers.transform = pipeline.transform
        parts.store.on_change = self._plans.forget
        limits = parts.config.settings.dispatch
        always = parts.config.is_written("dispatch.timeout") or parts.config.is_written("dispatch.hook_timeout")
        return Dispatcher(parts.store, pipeline, Enforcement(limits.timeout, limits.hook_timeout, always))

    def _make_lane(self) -> ExpressLane:
        parts = self._parts
        around = Surroundings(
            parts.store, parts.hooks, self._chains, self._handlers, self.dispatcher.runners, self.dispatcher.go_on,
            self.dispatcher.go_on_awaited,
        )  # fmt: skip
        return ExpressLane(around, self._plans, self.sessions, self.dispatcher)

    def make(
        self, name: str, args: Any, session: Session | str | None = None, task_id: str | None = None,
        tool_call_id: str | None = None, user_task: str | None = None, timeout: float | None = None,
    ) -> Call:  # fmt: skip
        """A call ready for the pipeline; see `Runtime.call` for the arguments and errors."""
        return Call(
            read_name(name), args, self.sessions.find(session), read_any_text(tool_call_id, "tool_call_id"),
            read_any_text(task_id, "task_id"), read_any_text(user_task, "user_task"), read_seconds(timeout),
        )  # fmt: skip

    def _make_loaded(self, name: str, args: Any, **known: Any) -> Call:
        """The same, once the plugins are loaded."""
        made: Call = self._parts.runtime.make_call(name, args, **known)
        return made

    def _nested(self) -> NestedCalls:
        """What the handler that runs here calls other tools with."""
        from mibyan.dispatch.nested import NestedCalls

        return NestedCalls(
            self.dispatcher.guarded, self.make, lambda session: self._parts.runtime.definitions(session=session)
        )

    @property
    def kept(self) -> tuple[Any, ...]:
        """What a fork is told to."""
        made = (self.environments,) if "environments" in vars(self) else ()
        return (self.sessions, self.dispatcher, *made)

    @once
    def environments(self) -> Environments:
        """Where the commands of the sessions' tasks run; made when the first one needs it."""
        from mibyan.backends import environments

        return environments(self._parts)

    def _environment(self, session: Session, task_id: str | None) -> Environment:
        return self.environments.of(session, task_id)

    def close(self) -> None:
        """End all sessions and everything that runs."""
        self.sessions.close()
        self.dispatcher.close()

    def _session_ended(self, session: Session) -> None:
        """`on_session_end`, for a session in which a call was made; an implementation that hangs holds nothing up."""
        if "environments" in vars(self):
            self.environments.close_session(session.id)
        if not session.started:
            return
        self.observe("on_session_end", session, {"session_id": session.id, "platform": session.platform})

    def command_rules(self) -> tuple[OperatorRule, ...]:
        """The rules about commands that aren't built in: the operator's, then those of plugins.

        Raises:
            ConfigError: One of the operator's isn't right.
        """
        offered = self._parts.plugins.offers.rules
        return (*self._parts.approvals.configured_rules(), *(offer.value for offer in offered.values()))

    def observe(self, hook: str, session: Session, values: Mapping[str, Any]) -> None:
        """Run the implementations of a hook that only looks on; one that hangs is given up after `dispatch.hook_timeout`."""
        chain = self._parts.hooks.chain(hook)
        if chain:
            steps = self._chains.run_observers(chain, _nowhere, lambda _: dict(values))
            self.dispatcher.watch_steps(steps, Call(hook, None, session))

    def patience_for(self, *hooks: str) -> float:
        """Seconds that the implementations of hooks may take, one after the other."""
        chains = [self._parts.hooks.ready(hook) for hook in hooks]
        # Of one whose plugins aren't imported yet it isn't known how many there will be.
        several = sum(2 if chain is None else len(chain.plain) + 3 * len(chain.wrappers) for chain in chains)
        return several * self._parts.config.settings.dispatch.hook_timeout

    def patches(
        self, chain: Any, definitions: Mapping[str, Mapping[str, Any]], names: tuple[str, ...]
    ) -> Mapping[str, Mapping[str, Any]]:
        """What the implementations of `mibyan_patch_definitions` say, the later plugin last."""
        merged: dict[str, dict[str, Any]] = {}

        def take(implementation: Any, changes: dict[str, dict[str, Any]]) -> None:
            del implementation
            for tool, change in changes.items():
                merged.setdefault(tool, {}).update(change)

        values = {"definitions": definitions, "names": frozenset(names)}
        turn = Round(_nowhere, lambda _: dict(values), _read_patch, take, self._chains.complain)
        self.dispatcher.run_steps(self._chains.run(chain, turn))
        return merged

    def terminal_environments(self) -> list[tuple[HookOwner, str, str]]:
        """What the implementations of `mibyan_terminal_environments` say: whose, the name, and `module:Class`."""
        found: list[tuple[HookOwner, str, str]] = []

        def take(implementation: Implementation, named: dict[str, str]) -> None:
            found.extend((implementation.owner, name, target) for name, target in named.items())

        turn = Round(_nowhere, lambda _: {}, _read_environments, take, self._chains.complain)
        self.dispatcher.run_steps(self._chains.run(self._parts.hooks.chain("mibyan_terminal_environments"), turn))
        return found


def _read_environments(answer: Any) -> dict[str, str]:
    """What an implementation of `mibyan_terminal_environments` answered.

    Raises:
        TypeError: It isn't a mapping of names to `module:Class`.
    """
    named = dict(answer)
    if not all(isinstance(text, str) for pair in named.items() for text in pair):
        msg = "expected names, each with a text module:Class"
        raise TypeError(msg)
    return named


def _nowhere(step: str, **facts: Any) -> None:
    """The trace of steps that belong to no call."""
    del step, facts


def _read_patch(answer: Any) -> dict[str, dict[str, Any]]:
    """What an implementation of `mibyan_patch_definitions` answered.

    Raises:
        TypeError: It isn't a mapping of mappings by tool name.
    """
    changes = {tool: dict(change) for tool, change in dict(answer).items()}
    if not all(isinstance(tool, str) for tool in changes):
        msg = "the keys must be names of tools"
        raise TypeError(msg)
    return changes
