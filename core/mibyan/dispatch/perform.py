"""Running one step on this thread, in the name of its owner."""

from __future__ import annotations

from types import GeneratorType
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.steps import Outcome, Step
from mibyan.tools.current import CURRENT, Current

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.dispatch.loops import Loops, Pending
    from mibyan.tools.owner import Owner
    from mibyan.tools.store import RegistryStore

_ITERABLE_COROUTINE = 0x100


def is_awaitable(value: Any) -> bool:
    """Whether `value` can be awaited, without asking the value itself (its `__getattr__` may do anything)."""
    kind = type(value)
    if kind is GeneratorType:
        return bool(value.gi_code.co_flags & _ITERABLE_COROUTINE)
    return hasattr(kind, "__await__")


async def awaited(value: Any) -> Any:
    """What `value`, any awaitable, gives."""
    return await value


def current_of(store: RegistryStore, owner: Owner | None) -> Current | None:
    """Who runs while the owner's code does: nobody that a plugin could be taken for, when it is the host's."""
    return None if owner is None or owner.kind != "plugin" else Current(store, owner)


class Performer:
    """Runs steps on the thread that asks; what must be awaited goes to the runtime's loop."""

    def __init__(self, store: RegistryStore, loops: Callable[[], Loops]) -> None:
        self._store = store
        self._loops = loops

    def perform(self, step: Step, pending: Callable[[Pending], None] | None = None) -> Outcome:
        """Run a step to its end.

        Args:
            step: The step.
            pending: Told of a coroutine that is waited for, so that somebody can cancel it.
        """
        token = CURRENT.set(current_of(self._store, step.owner))
        try:
            if step.is_async:
                value = self._await(lambda: step.function(*step.args, **step.kwargs), pending)
            else:
                value = step.function(*step.args, **step.kwargs)
                if is_awaitable(value):
                    awaitable = value
                    value = self._await(lambda: awaited(awaitable), pending)
            return Outcome(value if step.finish is None else step.finish(value))
        except BaseException as error:
            return Outcome(error=error)
        finally:
            CURRENT.reset(token)

    def _await(self, make: Callable[[], Any], told: Callable[[Pending], None] | None) -> Any:
        pending = self._loops().submit(make)
        if told is not None:
            told(pending)
        try:
            return pending.future.result()
        except BaseException:
            pending.cancel()
            raise

    async def perform_here(self, step: Step) -> Outcome:
        """Run an async step on the running loop."""
        token = CURRENT.set(current_of(self._store, step.owner))
        try:
            value = step.function(*step.args, **step.kwargs)
            if is_awaitable(value):
                value = await value
            return Outcome(value if step.finish is None else step.finish(value))
        except BaseException as error:
            return Outcome(error=error)
        finally:
            CURRENT.reset(token)
