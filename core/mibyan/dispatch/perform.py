"""Running one step on this thread, in the name of its owner."""

from __future__ import annotations

from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.steps import ENDINGS, RUNNING, NonsenseError, Outcome, Step, StepFailed, running_step
from mibyan.text import describe_exception
from mibyan.tools.current import CURRENT, Current

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.dispatch.loops import Loops
    from mibyan.tools.owner import Owner
    from mibyan.tools.store import RegistryStore

_ITERABLE_COROUTINE = 0x100
#: Awaitables in one another that are awaited.
_LAYERS = 8


def is_awaitable(value: Any) -> bool:
    """Whether `value` can be awaited, without asking the value itself (its `__getattr__` may do anything)."""
    kind = type(value)
    if kind is GeneratorType:
        return bool(value.gi_code.co_flags & _ITERABLE_COROUTINE)
    return hasattr(kind, "__await__")


async def awaited(value: Any) -> Any:
    """What `value` gives, if it can be awaited; what that gives likewise, within reason."""
    for _ in range(_LAYERS):
        if not is_awaitable(value):
            break
        value = await value
    return value


def current_of(store: RegistryStore, owner: Owner | None) -> Current | None:
    """Who runs while the owner's code does: nobody that a plugin could be taken for, when it is the host's."""
    return None if owner is None or owner.kind != "plugin" else Current(store, owner)


def failed(step: Step, error: BaseException) -> Outcome:
    """The outcome of a step that ended with an exception; what it says is found out here, where the step ran."""
    if issubclass(type(error), (*ENDINGS, NonsenseError)):
        return Outcome(error=error)
    try:
        told = (step.explain or describe_exception)(error)
    except KeyboardInterrupt as interrupt:
        return Outcome(error=interrupt)
    except BaseException as worse:
        told = describe_exception(worse)
    return Outcome(error=StepFailed(told if isinstance(told, str) else step.label), told=told)


def _discard(awaitable: Any) -> None:
    if type(awaitable) is CoroutineType:
        from inspect import CORO_CREATED, getcoroutinestate

        if getcoroutinestate(awaitable) == CORO_CREATED:
            awaitable.close()


class Performer:
    """Runs steps on the thread that asks; what must be awaited goes to the runtime's loop."""

    def __init__(self, store: RegistryStore, loops: Callable[[], Loops]) -> None:
        self._store = store
        self._loops = loops

    def perform(self, step: Step) -> Outcome:
        """Run a step to its end."""
        current, running = CURRENT.get(), RUNNING.get()
        try:  # An interrupt may come after each of these words: there would be no token to go back with.
            CURRENT.set(current_of(self._store, step.owner))
            RUNNING.set(step)
            return Outcome(self._ask(step) if step.person else self._run(step))
        except BaseException as error:
            return failed(step, error)
        finally:
            step.done = True
            CURRENT.set(current)
            RUNNING.set(running)

    def _run(self, step: Step) -> Any:
        if step.is_async:
            value = self.wait_for(lambda: awaited(step.function(*step.args, **step.kwargs)))
        else:
            value = step.function(*step.args, **step.kwargs)
            if is_awaitable(value):
                value = self.wait_for_value(value)
        return value if step.finish is None else step.finish(value)

    def _ask(self, step: Step) -> Any:
        """A step that waits for a person: no clock runs."""
        call = step.call
        if call is None:
            return self._run(step)
        call.hold(step)
        try:
            return self._run(step)
        finally:
            call.release(step)

    def wait_for_value(self, awaitable: Any) -> Any:
        """Wait for an awaitable that is there already; a coroutine that never began is closed, or Python complains.

        Raises:
            RuntimeError: The runtime is closed.
        """
        try:
            return self.wait_for(lambda: awaited(awaitable))
        except BaseException:
            _discard(awaitable)
            raise

    def wait_for(self, make: Callable[[], Any]) -> Any:
        """Wait for what `make` gives, awaited on the runtime's loop; cancelled when nobody waits for the step any more.

        Raises:
            RuntimeError: The runtime is closed.
        """
        pending = self._loops().submit(make)
        step = running_step()
        if step is not None and step.done:
            step = None  # This code outlived it: whoever ends its call has nothing to do with it.
        call = None if step is None else step.call
        if step is not None:
            step.attend(pending)
        if call is not None and not call.guarded:
            call.session.attend(pending)
            if call.session.interrupts != call.interrupts:
                # It came after the coroutine had begun and before the session knew of it.
                pending.cancel("the session was interrupted")
        try:
            return pending.wait()
        finally:
            if step is not None:
                step.leave(pending)
            if call is not None and not call.guarded:
                call.session.leave(pending)

    async def perform_here(self, step: Step) -> Outcome:
        """Run an async step on the running loop, in a task (so in a context) of its own."""
        CURRENT.set(current_of(self._store, step.owner))
        RUNNING.set(step)
        try:
            value = await awaited(step.function(*step.args, **step.kwargs))
            return Outcome(value if step.finish is None else step.finish(value))
        except BaseException as error:
            return failed(step, error)
        finally:
            step.done = True
