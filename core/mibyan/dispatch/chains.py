"""Running hook chains, step by step: each implementation is dealt with alone (dispatch.H1 to H4)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeAlias

from mibyan.dispatch.steps import ENDINGS, NonsenseError, Outcome, Step, StepTimeout
from mibyan.records import record
from mibyan.report import Decision, DecisionLog, turn_off
from mibyan.text import describe_exception, for_model

if TYPE_CHECKING:
    from mibyan.dispatch.call import Call
    from mibyan.hooks.table import HookChain, Implementation

log = logging.getLogger("mibyan.hooks")

#: Seconds for which an implementation that hung isn't run.
QUARANTINE = 60.0

#: Gives the arguments of one implementation, fresh ones each time.
Values: TypeAlias = Callable[["Implementation"], dict[str, Any]]
#: Adds a step to a trace: `note(step, **facts)`.
Note: TypeAlias = Callable[..., None]
#: Makes of an implementation's answer what `Take` gets, or raises; it runs where the implementation ran.
Read: TypeAlias = Callable[[Any], Any]
#: Takes an implementation and what was read of its answer.
Take: TypeAlias = Callable[["Implementation", Any], None]
#: Takes an implementation that failed and how.
Fail: TypeAlias = Callable[["Implementation", str], None]
ChainSteps: TypeAlias = Generator[Step, Any, Any]


@record
class Answer:
    """What an implementation answered (never `None`), and what was read of it."""

    raw: Any
    read: Any


@record
class Round:
    """One run of a chain.

    Args:
        note: Keeps what happened in the call's trace.
        values: The arguments for one implementation.
        read: Reads an answer.
        take: Gets each answer that could be read.
        fail: Gets each failure.
        late: Whether it may run past the call's deadline.
    """

    note: Note
    values: Values
    read: Read
    take: Take
    fail: Fail
    late: bool = False


class ChainRunner:
    """Runs the chains of one runtime and remembers which implementations hung, and which were complained about.

    Args:
        hook_timeout: Seconds that an implementation may take in a guarded call.
        decisions: Where complaints go.
        clean: Takes secrets out of a text.
    """

    def __init__(
        self, hook_timeout: Callable[[], float], decisions: DecisionLog, clean: Callable[[str], str] = str
    ) -> None:
        self._hook_timeout = hook_timeout
        self._decisions = decisions
        self._clean = clean
        #: The implementations that hung, and the moment from which each is run again.
        self.resting: dict[Implementation, float] = {}
        self._told: set[Implementation] = set()

    def run(self, chain: HookChain, turn: Round) -> ChainSteps:
        """Run every implementation of a chain, wrappers around them."""
        entered: list[tuple[Implementation, Any]] = []
        answers: list[Any] = []
        for wrapper in chain.wrappers:
            generator = yield from self._enter(wrapper, turn)
            if generator is not None:
                entered.append((wrapper, generator))
        for implementation in chain.plain:
            answer = yield from self._one(implementation, turn, _reading(turn.read))
            if isinstance(answer, Answer):
                turn.take(implementation, answer.read)
                answers.append(answer.raw)
        for wrapper, generator in reversed(entered):
            yield from self._leave(wrapper, generator, answers, turn)

    def run_observers(self, chain: HookChain, note: Note, values: Values, *, late: bool = True) -> ChainSteps:
        """Run a chain whose answers are ignored and whose failures change nothing."""
        yield from self.run(chain, Round(note, values, _as_it_is, _ignore, self.complain, late=late))

    def _one(self, implementation: Implementation, turn: Round, finish: Callable[[Any], Any] | None) -> ChainSteps:
        """Run one implementation; what `finish` made of its answer, or `_FAILED`."""
        until = self.resting.get(implementation)
        if until is not None:
            if time.monotonic() < until:
                turn.fail(implementation, "it hung less than a minute ago and isn't run again yet")
                return _FAILED
            self.resting.pop(implementation, None)
        given = turn.values(implementation)
        kwargs = {name: given[name] for name in implementation.names}
        outcome = yield self._step(implementation, implementation.function, (), kwargs, finish, turn)
        return self._read(implementation, outcome, turn)

    def _step(
        self, implementation: Implementation, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        finish: Callable[[Any], Any] | None, turn: Round,
    ) -> Step:  # fmt: skip
        return Step(function, args, kwargs, implementation.owner, implementation.label, self._hook_timeout(),
                    late=turn.late, finish=finish)  # fmt: skip

    def _read(self, implementation: Implementation, outcome: Outcome, turn: Round) -> Any:
        """The value of an outcome; `_FAILED`, once that was told, if it has none."""
        error = outcome.error
        if error is None:
            return outcome.value
        if isinstance(error, ENDINGS):
            raise error
        if isinstance(error, StepTimeout):
            self.resting[implementation] = time.monotonic() + QUARANTINE
            how = f"it took longer than {self._hook_timeout():g} s"
        elif isinstance(error, NonsenseError):
            how = f"its answer is nonsense: {for_model(self._clean(str(error)), 500)}"
        else:
            how = f"it raised {for_model(self._clean(str(outcome.told)), 500)}"
        turn.note("hook_failed", hook=implementation.label, how=how)
        turn.fail(implementation, how)
        return _FAILED

    def _enter(self, wrapper: Implementation, turn: Round) -> ChainSteps:
        """Run a wrapper up to its `yield`; its generator, or `None` when it failed."""
        generator = yield from self._one(wrapper, turn, None)
        if generator is _FAILED:
            return None
        outcome = yield self._step(wrapper, _first, (generator,), {}, None, turn)
        return None if self._read(wrapper, outcome, turn) is _FAILED else generator

    def _leave(self, wrapper: Implementation, generator: Any, answers: list[Any], turn: Round) -> ChainSteps:
        """Run a wrapper to its end; what it adds to the answers is taken in its name."""
        before = list(answers)
        args = (generator, list(answers), wrapper.wraps)
        outcome = yield self._step(wrapper, _last, args, {}, _reading_all(turn.read, before), turn)
        added = self._read(wrapper, outcome, turn)
        for answer in () if added is _FAILED else added:
            turn.take(wrapper, answer.read)
            answers.append(answer.raw)

    def tell_block(self, implementation: Implementation, call: Call, *, failed: bool = False) -> None:
        """Put into the report that an implementation blocks calls of a tool; not what it said, which may differ each time."""
        entry = call.entry
        if entry is None:
            return
        plugin_id = implementation.owner.plugin_id
        reason = f"{implementation.label} blocks calls of it" + (
            ", since it fails" if failed else "; their results say why"
        )
        self._decisions.add(
            Decision("blocked", f"tool:{entry.name}", reason, plugin_id, None, turn_off(plugin_id) or "It is the host's hook.",
                     rule="dispatch.H2" if failed else "dispatch.H1")
        )  # fmt: skip

    def complain(self, implementation: Implementation, how: str) -> None:
        """Say once that an implementation failed where that changes nothing (dispatch.H3)."""
        if implementation in self._told:
            return
        self._told.add(implementation)
        reason = f"{implementation.label} failed: {how}. It is ignored."
        log.warning("%s", reason)
        self._decisions.add(
            Decision(
                "warning",
                f"hook:{implementation.hook}",
                reason,
                plugin_id=implementation.owner.plugin_id,
                fix=turn_off(implementation.owner.plugin_id),
                problem=True,
                rule="dispatch.H3",
            )
        )


class _Failed:
    """An implementation has no answer."""


_FAILED = _Failed()


def _ignore(implementation: Implementation, answer: Any) -> None:
    """Nobody reads it."""


def _as_it_is(answer: Any) -> Any:
    return answer


def _reading(read: Read) -> Callable[[Any], Answer | None]:
    """What reads an answer on the thread and within the limit of the implementation that gave it."""

    def finish(raw: Any) -> Answer | None:
        if raw is None:
            return None
        try:
            return Answer(raw, read(raw))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise NonsenseError(describe_exception(error).removeprefix("TypeError: ")) from None

    return finish


def _reading_all(read: Read, known: list[Any]) -> Callable[[Any], list[Answer]]:
    """The same for a wrapper: of its list of answers, those that weren't in it before."""
    one = _reading(read)

    def finish(result: Any) -> list[Answer]:
        answers = result if isinstance(result, list | tuple) else [result]
        added = [one(raw) for raw in answers if not any(raw is old for old in known)]
        return [answer for answer in added if answer is not None]

    return finish


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
