"""`Dispatcher`: the faces of the pipeline. Inline, guarded or awaited, it is the same steps."""

from __future__ import annotations

import logging
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mibyan.dispatch import answers
from mibyan.dispatch.guard import Guard
from mibyan.dispatch.perform import Performer
from mibyan.dispatch.threads import ThreadPool

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.dispatch.call import Call
    from mibyan.dispatch.loops import Loops, LoopThread
    from mibyan.dispatch.pipeline import Pipeline
    from mibyan.dispatch.steps import Outcome, Step, Steps
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.results import ToolResult
    from mibyan.tools.store import RegistryStore

log = logging.getLogger("mibyan.dispatch")

#: Seconds after which an inline call, where nothing is enforced, is worth a warning.
LONG = 300.0

#: The deadline of the guarded call that runs here: what a handler calls inline stands under it.
DEADLINE: ContextVar[float | None] = ContextVar("mibyan_deadline", default=None)


@dataclass(frozen=True, slots=True)
class Enforcement:
    """What the configuration says of time.

    Args:
        timeout: Seconds a call may take where neither it nor its tool says otherwise.
        always: Whether config.yaml sets a time-out, so that the inline faces are guarded too.
    """

    timeout: float | None
    always: bool = False


class Dispatcher:
    """Runs calls; owns the runtime's threads and loops."""

    def __init__(self, store: RegistryStore, pipeline: Pipeline, enforcement: Enforcement) -> None:
        self._store = store
        self._pipeline = pipeline
        self._enforcement = enforcement
        self._pool = ThreadPool("mibyan")
        self._dedicated: dict[str, ThreadPool] = {}
        self._loops: Loops | None = None
        self._lock = threading.Lock()
        self._active: set[Any] = set()
        self._closed = False
        self.performer = Performer(store, self.loops)

    # Faces -------------------------------------------------------------------------------------------------------

    def inline(self, call: Call) -> ToolResult:
        """Run a call on this thread, unless a time-out is set anywhere: then as `guarded`."""
        if self._closed:
            return self._after_close(call)
        if self._must_guard(call):
            return self.guarded(call)
        call.interrupts = call.session.interrupts
        call.deadline = DEADLINE.get()
        started = time.monotonic()
        result: ToolResult = self._drive(self._pipeline.steps(call))
        if time.monotonic() - started > LONG:
            log.warning("Tool %r ran longer than %g s inline, where no deadline is enforced.", call.name, LONG)
        return result

    def guarded(self, call: Call) -> ToolResult:
        """Run a call on the runtime's threads and answer at its deadline at the latest."""
        if self._closed:
            return self._after_close(call)
        guard = self._guard(call)
        self._attend(guard, call)
        try:
            guard.start()
            return guard.wait()  # type: ignore[no-any-return]
        finally:
            self._leave(guard, call)

    async def awaited(self, call: Call) -> ToolResult:
        """Run a call without holding the running loop: an async handler on it, a sync one on the runtime's threads."""
        if self._closed:
            return self._after_close(call)
        from mibyan.dispatch.awaiting import LoopDriver, wait_for

        entry = self._entry_of(call)
        if entry is not None and entry.is_async and entry.loop != "runtime":
            self._arm(call)
            driver = LoopDriver(self._pipeline.steps(call), call, self.performer, self.submit)
            self._attend(driver, call)
            try:
                return await driver.run()  # type: ignore[no-any-return]
            finally:
                self._leave(driver, call)
        guard = self._guard(call)
        self._attend(guard, call)
        try:
            return await wait_for(guard)  # type: ignore[no-any-return]
        finally:
            self._leave(guard, call)

    def run_steps(self, steps: Steps) -> Any:
        """Run steps that belong to no call (session hooks, patches) on this thread."""
        return self._drive(steps)

    def _drive(self, steps: Steps) -> Any:
        outcome: Outcome | None = None
        perform = self.performer.perform
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as stop:
                return stop.value
            outcome = self._elsewhere(step) if step.thread != "pool" else perform(step)

    def _elsewhere(self, step: Step) -> Outcome:
        """An inline step of a tool that wants a thread of its own."""
        import contextvars

        context, done = contextvars.copy_context(), threading.Event()
        box: list[Outcome] = []

        def job() -> None:
            box.append(context.run(self.performer.perform, step))
            done.set()

        self.submit(job, step.thread)
        done.wait()
        return box[0]

    # What is enforced --------------------------------------------------------------------------------------------

    def _must_guard(self, call: Call) -> bool:
        if call.timeout is not None or self._enforcement.always:
            return True
        entry = self._entry_of(call)
        return entry is not None and (entry.timeout is not None or entry.thread == "pool")

    def _entry_of(self, call: Call) -> ToolEntry | None:
        return self._store.find(call.asked) if isinstance(call.asked, str) else None

    def _arm(self, call: Call) -> None:
        """Set the deadline that counts until the tool's own is known."""
        call.guarded = True
        call.interrupts = call.session.interrupts
        seconds = call.timeout if call.timeout is not None else self._enforcement.timeout
        call.deadline = None if seconds is None else time.monotonic() + seconds

    def _guard(self, call: Call) -> Guard:
        self._arm(call)
        token = DEADLINE.set(call.deadline)
        try:
            return Guard(self._pipeline.steps(call), call, self.performer, self.submit, self._retire)
        finally:
            DEADLINE.reset(token)

    def _attend(self, guard: Any, call: Call) -> None:
        with self._lock:
            self._active.add(guard)
        call.session.attend(guard)

    def _leave(self, guard: Any, call: Call) -> None:
        with self._lock:
            self._active.discard(guard)
        call.session.leave(guard)

    # Threads and loops -------------------------------------------------------------------------------------------

    def submit(self, job: Callable[[], None], thread: str = "pool") -> None:
        """Run a job on one of the runtime's threads; `thread` other than `pool` names one that serves nothing else.

        Raises:
            RuntimeError: The runtime is closed.
        """
        if thread == "pool":
            self._pool.submit(job)
            return
        with self._lock:
            pool = self._dedicated.get(thread)
            if pool is None:
                pool = self._dedicated[thread] = ThreadPool(f"mibyan-{thread}", most=1)
        pool.submit(job)

    def loops(self) -> Loops:
        """The runtime's own loops, made on first use."""
        loops = self._loops
        if loops is None:
            from mibyan.dispatch.loops import Loops

            with self._lock:
                if self._loops is None:
                    self._loops = Loops()
                loops = self._loops
                if self._closed:
                    loops.close()
        return loops

    def run_async(self, awaitable: Any) -> Any:
        """Wait for an awaitable on the runtime's loop."""
        from mibyan.dispatch.perform import awaited

        pending = self.loops().submit(lambda: awaited(awaitable))
        try:
            return pending.future.result()
        except BaseException:
            pending.cancel()
            raise

    def start_async(self, awaitable: Any) -> None:
        """Start an awaitable on the runtime's loop without waiting for it."""
        from mibyan.dispatch.perform import awaited

        self.loops().submit(lambda: awaited(awaitable))

    def _retire(self, thread: LoopThread) -> None:
        log.warning("An async handler blocks the runtime's event loop; a new loop takes its place.")
        if self._loops is not None:
            self._loops.retire(thread)

    def close(self) -> None:
        """Cancel running calls, end threads and loops; a stuck one is left behind as a daemon."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            active = list(self._active)
        for guard in active:
            guard.cancel("the runtime is closed")
        self._pool.close()
        for pool in self._dedicated.values():
            pool.close(wait=0.1)
        if self._loops is not None:
            self._loops.close()

    def _after_close(self, call: Call) -> ToolResult:
        return answers.closed(call)

    @property
    def threads(self) -> int:
        """Threads alive that belong to the runtime."""
        loops = 0 if self._loops is None else self._loops.size
        return self._pool.size + sum(pool.size for pool in self._dedicated.values()) + loops
