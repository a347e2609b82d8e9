"""`Dispatcher`: the faces of the pipeline. Inline, guarded or awaited, it is the same steps."""

from __future__ import annotations

import logging
import sys
import threading
import time
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from mibyan.dispatch import answers
from mibyan.dispatch.guard import FAREWELL, Guard
from mibyan.dispatch.perform import Performer, awaited
from mibyan.dispatch.quick.compiled import LONG
from mibyan.dispatch.quick.frame import Frame
from mibyan.dispatch.quick.guard import QuickGuard
from mibyan.dispatch.runners import Runners
from mibyan.dispatch.steps import RUNNING, CallCancelled, Outcome, enclosing
from mibyan.records import record
from mibyan.tools.current import acting

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mibyan.dispatch.awaiting import Waker
    from mibyan.dispatch.call import Call
    from mibyan.dispatch.pipeline import Pipeline
    from mibyan.dispatch.quick.compiled import Express
    from mibyan.dispatch.quick.frame import Ids
    from mibyan.dispatch.quick.replay import Begun
    from mibyan.dispatch.steps import Cancellable, Step, Steps
    from mibyan.tools.results import ToolResult
    from mibyan.tools.store import RegistryStore

log = logging.getLogger("mibyan.dispatch")


@record
class Enforcement:
    """What the configuration says of time.

    Args:
        timeout: Seconds a call may take where neither it nor its tool says otherwise.
        hook_timeout: Seconds that a hook may take in a guarded call.
        always: Whether config.yaml sets a time-out, so that the inline faces are guarded too.
    """

    timeout: float | None
    hook_timeout: float
    always: bool = False


class Dispatcher:
    """Runs calls on the runtime's threads and loops."""

    def __init__(self, store: RegistryStore, pipeline: Pipeline, enforcement: Enforcement) -> None:
        self._store = store
        self._pipeline = pipeline
        self._enforcement = enforcement
        self._lock = threading.Lock()
        self._active: set[Cancellable] = set()
        #: Set when a call ends while the runtime is being closed.
        self._left = threading.Event()
        self._refusing = False
        self._closed = False
        #: By event loop: what wakes it when threads have finished calls that wait there.
        self._wakers: WeakKeyDictionary[Any, Waker] = WeakKeyDictionary()
        #: Told of each call that took the pipeline and went well.
        self.went_well: Callable[[Call], None] | None = None
        #: The runtime's threads and loops.
        self.runners = Runners()
        self.performer = Performer(store, self.runners.loops)

    @property
    def always_guards(self) -> bool:
        """Whether every call is guarded, those of the inline faces too."""
        return self._enforcement.always

    @property
    def timeout(self) -> float | None:
        """Seconds that a guarded call may take where neither it nor its tool says otherwise."""
        return self._enforcement.timeout

    # Faces -------------------------------------------------------------------------------------------------------

    def inline(self, call: Call) -> ToolResult:
        """Run a call on this thread, unless a time-out is set anywhere: then as `guarded`."""
        if self._refusing:
            return answers.closed(call)
        if self._must_guard(call):
            return self.guarded(call)
        started = time.monotonic()
        self._place(call)
        try:
            if call.parent is not None:
                call.parent.attend(call)
            result: ToolResult = self._drive(self._pipeline.steps(call), call)
        finally:
            if call.parent is not None:
                call.parent.leave(call)
        if not call.guarded and time.monotonic() - started > LONG:
            log.warning("Tool %r ran longer than %g s inline, where no deadline is enforced.", call.name, LONG)
        return self._ended(call, result)

    def _ended(self, call: Call, result: ToolResult) -> ToolResult:
        if result.status == "ok" and self.went_well is not None:
            self.went_well(call)
        return result

    def go_on(self, frame: Frame, begun: Begun) -> ToolResult:
        """Go on, on this thread, with a call that began on the quick way."""
        call = frame.call()
        call.begun = begun
        return self._drive(begun.replayed(self._pipeline.steps(call)), call)  # type: ignore[no-any-return]

    def guarded(self, call: Call) -> ToolResult:
        """Run a call on the runtime's threads and answer at its deadline at the latest."""
        if self._refusing:
            return answers.closed(call)
        self._arm(call)
        guard = self._guard(call, self._pipeline.steps(call))
        try:
            self._attend(guard, call)
            return self._ended(call, guard.wait(guard.start))
        finally:
            self._leave(guard, call)

    def guarded_quickly(self, express: Express, raw: Any, ids: Ids, seconds: float | None) -> str | ToolResult | None:
        """Run a compiled call on the runtime's threads; its text, what the pipeline made of it, or `None`: nothing has run."""
        guard = QuickGuard(express, raw, ids, seconds, self._enforcement.hook_timeout, self._goes_on, self.runners)
        try:
            express.session.attend(guard)
            return guard.wait()
        finally:
            express.session.leave(guard)
            guard.leave()

    async def awaited_quickly(
        self, express: Express, raw: Any, ids: Ids, seconds: float | None
    ) -> str | ToolResult | None:
        """Like `guarded_quickly`, without holding the running loop."""
        from mibyan.dispatch.awaiting import wait_quickly

        guard = QuickGuard(express, raw, ids, seconds, self._enforcement.hook_timeout, self._goes_on, self.runners)
        try:
            express.session.attend(guard)
            return await wait_quickly(guard, self._wakers)  # type: ignore[no-any-return]
        finally:
            express.session.leave(guard)
            guard.leave()

    def bridged_quickly(self, express: Express, raw: Any, ids: Ids) -> str | ToolResult | None:
        """Run a compiled call of an async tool on the runtime's loop, and wait for it on this thread."""
        from mibyan.dispatch.quick.bridge import Bridge

        run, held = express.run_awaited, RUNNING.get()
        if run is None or (held is not None and not held.done):
            return None
        bridge = Bridge(lambda: run(raw, ids, None))
        thread = self.runners.loops().start(bridge.begin)
        if thread is None or not bridge.wait(thread):
            return None
        if isinstance(bridge.error, Exception | KeyboardInterrupt):
            raise bridge.error
        if bridge.error is not None:  # The loop was ended while it ran.
            call = Frame(express.entry, express.session, raw, ids, time.perf_counter()).call()
            return self._pipeline.given_up(call, CallCancelled("the runtime is closed"))
        return bridge.made  # type: ignore[no-any-return]

    async def go_on_awaited(self, frame: Frame, begun: Begun, seconds: float | None) -> ToolResult:
        """Go on in the running loop with a call that began on the quick way."""
        call = frame.call()
        call.begun, call.guarded, call.timeout = begun, True, seconds
        left = None if seconds is None else seconds - (time.perf_counter() - frame.started)
        call.deadline = None if left is None else time.monotonic() + left
        child, coming = self._awaitable(call, begun.replayed(self._pipeline.steps(call)))
        try:
            self._attend(child, call)
            return await coming  # type: ignore[no-any-return]
        finally:
            self._leave(child, call)

    def _goes_on(self, frame: Frame, begun: Begun, seconds: float | None, deadline: float | None) -> Guard:
        """The guard of a call that began on the quick way."""
        call = frame.call()
        call.begun, call.guarded, call.timeout, call.deadline = begun, True, seconds, deadline
        return self._guard(call, begun.replayed(self._pipeline.steps(call)))

    async def awaited(self, call: Call) -> ToolResult:
        """Run a call without holding the running loop: an async handler on it, a sync one on the runtime's threads."""
        if self._refusing:
            return answers.closed(call)
        self._arm(call)
        child, coming = self._awaitable(call, self._pipeline.steps(call))
        try:
            self._attend(child, call)
            return self._ended(call, await coming)
        finally:
            self._leave(child, call)

    def _awaitable(self, call: Call, steps: Steps) -> tuple[Cancellable, Coroutine[Any, Any, Any]]:
        """What ends a call's steps from outside, and what waits for them in the running loop."""
        from mibyan.dispatch.awaiting import LoopDriver, wait_for

        if self._runs_here(call):
            driver = LoopDriver(call, steps, self.performer, self.runners, self._guard)
            return driver, driver.run()
        guard = self._guard(call, steps)
        return guard, wait_for(guard, guard.start)

    def run_steps(self, steps: Steps) -> Any:
        """Run steps that belong to no call (patches of definitions) on this thread."""
        return self._drive(steps, None)

    def watch_steps(self, steps: Steps, call: Call) -> Any:
        """Run steps around a session's life on the runtime's threads: each within its own limit."""
        call.guarded = True
        guard = self._guard(call, steps)
        return guard.wait(guard.start)

    # Driving -----------------------------------------------------------------------------------------------------

    def _drive(self, steps: Steps, call: Call | None) -> Any:
        # Between the steps some foreign code runs too (a typed tool's own types): whoever calls, it acts in nobody's name.
        with acting(None):
            return self._run(steps, call)

    def _run(self, steps: Steps, call: Call | None) -> Any:
        outcome: Outcome | None = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as stop:
                return stop.value
            if call is not None:
                step.call, call.step = call, step
                if call.guarded:
                    return self._escalate(steps, step, call)
            try:
                outcome = self._perform(step, call)
            except KeyboardInterrupt as interrupt:
                outcome = Outcome(error=interrupt)

    def _perform(self, step: Step, call: Call | None) -> Outcome:
        """Run a step of an inline call; one made within a call that is over doesn't go on."""
        if call is not None and call.parent is not None and not step.late:
            ending = call.ending()
            if ending is not None:
                return Outcome(error=ending)
        return self.performer.perform(step) if step.thread == "pool" else self._elsewhere(step)

    def _escalate(self, steps: Steps, step: Step, call: Call) -> Any:
        """The tool turned out to have a time-out: from here on the call is guarded."""
        guard = self._guard(call, steps)
        try:
            self._attend(guard, call)
            return guard.wait(lambda: guard.resume(step))
        finally:
            self._leave(guard, call)

    def _elsewhere(self, step: Step) -> Outcome:
        """An inline step of a tool that wants a thread of its own."""
        import contextvars

        if self.runners.is_on(step.thread):
            return self.performer.perform(step)
        context, done = contextvars.copy_context(), threading.Event()
        box: list[Outcome] = []

        def job() -> None:
            box.append(context.run(self.performer.perform, step))
            done.set()

        self.runners.submit(job, step.thread)
        done.wait()
        return box[0]

    # What is enforced --------------------------------------------------------------------------------------------

    def _must_guard(self, call: Call) -> bool:
        if call.timeout is not None or self._enforcement.always:
            return True
        entry = self._store.find(call.asked)
        return entry is not None and (entry.timeout is not None or entry.thread == "pool")

    def _runs_here(self, call: Call) -> bool:
        """Whether the caller's loop drives: the handler is async, or may turn out to be."""
        from mibyan.dispatch.handlers import is_coroutine
        from mibyan.dispatch.names import find_entry

        entry = find_entry(self._store, call.asked, None)
        if entry is None or entry.loop == "runtime":
            return False
        if entry.handled_by == "agent":
            return is_coroutine(call.session.handler_of(entry))
        return entry.is_async or entry.activate is not None

    def _place(self, call: Call) -> None:
        """Note where the call is made: within which other one, and after how many interrupts."""
        call.interrupts = call.session.interrupts
        around = enclosing()
        if around is not None:
            call.enter(around)

    def _arm(self, call: Call) -> None:
        """Set the deadline that counts until the tool's own is known."""
        call.guarded = True
        seconds = call.timeout if call.timeout is not None else self._enforcement.timeout
        call.deadline = None if seconds is None else time.monotonic() + seconds
        self._place(call)

    def _guard(self, call: Call, steps: Steps) -> Guard:
        return Guard(call, steps, self._pipeline, self.performer, self.runners)

    def _attend(self, child: Cancellable, call: Call) -> None:
        with self._lock:
            self._active.add(child)
        call.session.attend(child)
        if call.parent is not None:
            call.parent.attend(child)

    def _leave(self, child: Cancellable, call: Call) -> None:
        with self._lock:
            self._active.discard(child)
        if self._refusing:
            self._left.set()
        call.session.leave(child)
        if call.parent is not None:
            call.parent.leave(child)

    # Awaitables that belong to no handler ------------------------------------------------------------------------

    def run_async(self, awaitable: Any) -> Any:
        """Wait for an awaitable on the runtime's loop; it ends with the step that waits for it.

        Raises:
            RuntimeError: The runtime is closed.
        """
        return self.performer.wait_for_value(awaitable)

    def start_async(self, awaitable: Any) -> None:
        """Start an awaitable on the runtime's loop without waiting for it."""
        self.runners.loops().submit(lambda: awaited(awaitable))

    @property
    def threads(self) -> int:
        """Threads alive that belong to the runtime."""
        return self.runners.size

    @property
    def stuck(self) -> int:
        """Steps that were given up at a deadline, counted until they come back."""
        return self.runners.stuck

    # The end -----------------------------------------------------------------------------------------------------

    def after_fork(self) -> None:
        """In a child process: the calls that are running are the parent's."""
        self._lock = threading.Lock()
        self._active = set()
        self.runners.after_fork()

    def refuse(self) -> None:
        """Answer every further call with an error, and cancel those that run; their observers get a moment."""
        self._refusing = True
        with self._lock:
            active = list(self._active)
        for child in active:
            child.cancel("the runtime is closed")
        until = time.monotonic() + FAREWELL
        while self._active and not _in_a_loop() and time.monotonic() < until:
            self._left.wait(max(0.0, until - time.monotonic()))
            self._left.clear()

    def close(self) -> None:
        """Cancel running calls, end threads and loops; a stuck one is left behind as a daemon."""
        self._refusing = True
        with self._lock:
            if self._closed:
                return
            self._closed = True
            active = list(self._active)
        for child in active:
            child.cancel("the runtime is closed")
        self.runners.close()


def _in_a_loop() -> bool:
    """Whether this thread runs an event loop: the calls that it drives can't end while it waits for them."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None
