"""Running hook chains, step by step: each implementation is dealt with alone (dispatch.H1 to H4)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeAlias

from mibyan.dispatch.steps import CallCancelled, DeadlinePassed, Outcome, Step, StepTimeout
from mibyan.report import Decision, DecisionLog
from mibyan.text import bounded, describe_exception

if TYPE_CHECKING:
    from mibyan.hooks.table import HookChain, Implementation

log = logging.getLogger("mibyan.hooks")

#: Seconds for which an implementation that hung isn't run.
QUARANTINE = 60.0

#: Gives the arguments of one implementation, fresh ones each time.
Values: TypeAlias = Callable[["Implementation"], dict[str, Any]]
#: Adds a step to a trace: `note(step, **facts)`.
Note: TypeAlias = Callable[..., None]
#: Takes an implementation and its answer.
Take: TypeAlias = Callable[["Implementation", Any], None]
#: Takes an implementation that failed and how.
Fail: TypeAlias = Callable[["Implementation", str], None]
ChainSteps: TypeAlias = Generator[Step, Any, Any]


class HookFailed(Exception):  # noqa: N818 - becomes an answer
    """A policy implementation failed, so the call is blocked."""

    def __init__(self, implementation: Implementation, how: str) -> None:
        super().__init__(how)
        self.implementation = implementation
        self.how = how


class ChainRunner:
    """Runs the chains of one runtime and remembers which implementations hung, and which were complained about."""

    def __init__(self, hook_timeout: Callable[[], float], decisions: DecisionLog) -> None:
        self._hook_timeout = hook_timeout
        self._decisions = decisions
        self._resting: dict[Implementation, float] = {}
        self._told: set[Implementation] = set()

    def run(
        self, chain: HookChain, note: Note, values: Values, take: Take, fail: Fail, *, late: bool = False
    ) -> ChainSteps:
        """Run every implementation of a chain, wrappers around them.

        Args:
            chain: The chain.
            note: Keeps what happened in the call's trace.
            values: The arguments for one implementation.
            take: Gets each answer (it may raise TypeError or ValueError: the answer is nonsense).
            fail: Gets each failure.
            late: Whether it may run past the call's deadline.
        """
        entered: list[tuple[Implementation, Any]] = []
        answers: list[Any] = []
        for wrapper in chain.wrappers:
            generator = yield from self._enter(wrapper, note, values, fail, late=late)
            if generator is not None:
                entered.append((wrapper, generator))
        for implementation in chain.plain:
            answer = yield from self._one(implementation, note, values, fail, late=late)
            if answer is not _FAILED and self._taken(implementation, answer, take, fail):
                answers.append(answer)
        for wrapper, generator in reversed(entered):
            yield from self._leave(wrapper, generator, answers, note, take, fail, late=late)

    def _one(self, implementation: Implementation, note: Note, values: Values, fail: Fail, *, late: bool) -> ChainSteps:
        """Run one implementation; its answer, or `_FAILED`."""
        until = self._resting.get(implementation)
        if until is not None:
            if time.monotonic() < until:
                fail(implementation, "it hung less than a minute ago and isn't run again yet")
                return _FAILED
            self._resting.pop(implementation, None)
        names = implementation.names
        given = values(implementation)
        kwargs = {name: given[name] for name in names}
        outcome = yield self._step(implementation, implementation.function, (), kwargs, late=late)
        return self._read(implementation, note, outcome, fail)

    def _step(
        self, implementation: Implementation, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        *, late: bool,
    ) -> Step:  # fmt: skip
        return Step(function, args, kwargs, implementation.owner, implementation.label, self._hook_timeout(), late=late)

    def _read(self, implementation: Implementation, note: Note, outcome: Outcome, fail: Fail) -> Any:
        error = outcome.error
        if error is None:
            return outcome.value
        if isinstance(error, KeyboardInterrupt | CallCancelled | DeadlinePassed):
            raise error
        if isinstance(error, StepTimeout):
            self._resting[implementation] = time.monotonic() + QUARANTINE
            how = f"it took longer than {self._hook_timeout():g} s"
        else:
            how = f"it raised {describe_exception(error)}"
        note("hook_failed", hook=implementation.label, how=bounded(how, 500))
        fail(implementation, how)
        return _FAILED

    def _taken(self, implementation: Implementation, answer: Any, take: Take, fail: Fail) -> bool:
        try:
            take(implementation, answer)
        except (TypeError, ValueError) as error:
            fail(implementation, f"its answer is nonsense: {bounded(str(error), 300)}")
            return False
        return True

    def _enter(self, wrapper: Implementation, note: Note, values: Values, fail: Fail, *, late: bool) -> ChainSteps:
        """Run a wrapper up to its `yield`; its generator, or `None` when it failed."""
        generator = yield from self._one(wrapper, note, values, fail, late=late)
        if generator is _FAILED:
            return None
        outcome = yield self._step(wrapper, _first, (generator,), {}, late=late)
        return None if self._read(wrapper, note, outcome, fail) is _FAILED else generator

    def _leave(
        self,
        wrapper: Implementation,
        generator: Any,
        answers: list[Any],
        note: Note,
        take: Take,
        fail: Fail,
        *,
        late: bool,
    ) -> ChainSteps:
        """Run a wrapper to its end; what it adds to the answers is taken in its name."""
        before = list(answers)
        outcome = yield self._step(wrapper, _last, (generator, list(answers), wrapper.wraps), {}, late=late)
        result = self._read(wrapper, note, outcome, fail)
        if result is _FAILED or result is None:
            return
        for answer in result if isinstance(result, list | tuple) else [result]:
            if not any(answer is known for known in before) and self._taken(wrapper, answer, take, fail):
                answers.append(answer)  # noqa: PERF401 - taking may fail

    def complain(self, implementation: Implementation, how: str) -> None:
        """Say once that an implementation failed where that changes nothing (dispatch.H3)."""
        if implementation in self._told:
            return
        self._told.add(implementation)
        reason = f"{implementation.label} failed: {bounded(how, 500)}. It is ignored."
        log.warning("%s", reason)
        self._decisions.add(
            Decision(
                "warning", f"hook:{implementation.hook}", reason, plugin_id=implementation.owner.plugin_id, problem=True
            )
        )

    def run_observers(self, chain: HookChain, note: Note, values: Values) -> ChainSteps:
        """Run a chain whose answers are ignored and whose failures change nothing."""
        yield from self.run(chain, note, values, _ignore, self.complain, late=True)


class _Failed:
    """An implementation has no answer."""


_FAILED = _Failed()


def _ignore(implementation: Implementation, answer: Any) -> None:
    """Nobody reads it."""


def _first(generator: Any) -> None:
    """Run a wrapper's generator to its `yield`."""
    try:
        next(generator)
    except StopIteration:
        msg = "the wrapper ended without a yield"
        raise TypeError(msg) from None


def _last(generator: Any, answers: list[Any], kind: str) -> Any:
    """Give a wrapper what the others answered; what it makes of it."""
    given: Any = answers
    if kind == "hookwrapper":
        from pluggy import Result

        given = Result(answers, None)
    try:
        generator.send(given)
    except StopIteration as stop:
        return given.get_result() if kind == "hookwrapper" else stop.value
    generator.close()
    msg = "the wrapper has more than one yield"
    raise TypeError(msg)
