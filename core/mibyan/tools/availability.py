"""Availability: may a tool be shown and called now, and if not, why (registry.V1 to V5)."""

from __future__ import annotations

import logging
import threading
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from mibyan.records import record
from mibyan.report import Decision, DecisionLog
from mibyan.text import bounded, describe_exception, plain_text
from mibyan.tools.check_identity import Identity, identity, reference, same
from mibyan.tools.check_pass import Apart, CheckPass
from mibyan.tools.current import acting
from mibyan.tools.requirements import missing_requirements

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from mibyan.tools.entry import CheckFn, ToolEntry
    from mibyan.tools.owner import Owner

log = logging.getLogger("mibyan.availability")


@record
class Verdict:
    """Whether a tool is available."""

    available: bool
    #: Why not.
    reason: str | None = None


AVAILABLE = Verdict(available=True)


@record(frozen=False)
class _Kept:
    """The last verdict of a check."""

    verdict: Verdict
    at: float
    #: When it last was available.
    passed: float | None


class _Flight:
    """A probe under way, for those who ask meanwhile."""

    __slots__ = ("_bell", "forgotten", "late", "thread", "verdict")

    def __init__(self, forgotten: int) -> None:
        #: Held until there is a verdict for those who wait; an event takes ten times as long to make.
        self._bell = threading.Lock()
        self._bell.acquire()
        self.thread = threading.get_ident()
        #: How often everything had been forgotten when it began: after another time it is no news.
        self.forgotten = forgotten
        self.verdict = _ENDED
        #: Whether it was given up, and still runs.
        self.late = False

    def end(self) -> None:
        """There is a verdict; saying so twice is fine."""
        try:
            self._bell.release()
        except RuntimeError:
            return

    def wait(self, seconds: float) -> bool:
        """Wait for a verdict; whether there is one."""
        if not self._bell.acquire(timeout=seconds):
            return False
        self.end()  # The next one who waits comes through as well.
        return True


#: The probes within which this code runs, on whatever thread or loop.
_PROBING: ContextVar[tuple[_Flight, ...]] = ContextVar("mibyan_probing", default=())


class Availability:
    """Probes checks: each distinct one at most once a pass, and not again within its `ttl`.

    Args:
        ttl: Seconds for which a verdict is kept; 0: for the pass only.
        grace: Seconds after a pass within which a failing check is forgiven.
        log: Where decisions go.
        run_async: Runs an awaitable that a check gave; without one such a check is unavailable.
        acting_as: Lets code of a tool's owner run in its name; without one it runs in nobody's.
        clean: Takes secrets out of a text.
        apart: Runs a pass's checks where one that hangs can be given up; without it they run where they are asked for,
            and a pass takes as long as they do.
        limit: Seconds after which a check of a pass is given up: its tool is unavailable until the check has answered.
        clock: Gives the time, in seconds.
    """

    #: Checks remembered at most; the oldest go first.
    LIMIT = 4096

    def __init__(
        self,
        ttl: float = 0.0,
        grace: float = 0.0,
        *,
        log: DecisionLog | None = None,
        run_async: Callable[[Awaitable[Any]], Any] | None = None,
        acting_as: Callable[[Owner], acting] = lambda _: acting(None),
        clean: Callable[[str], str] = str,
        apart: Apart | None = None,
        limit: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ttl = ttl
        self.grace = grace
        self.limit = limit
        self._apart = apart
        self._decisions = DecisionLog() if log is None else log
        self._run_async = run_async
        self._acting_as = acting_as
        self._clean = clean
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[Identity, tuple[Any, _Kept]] = {}
        self._flights: dict[Identity, _Flight] = {}
        #: How often everything was forgotten.
        self._forgotten = 0
        self._told: dict[tuple[str, str], None] = {}

    def verdicts(self, entries: Iterable[ToolEntry]) -> dict[str, Verdict]:
        """The verdict of each entry, by name: one pass, in which each distinct check is probed at most once.

        A check that doesn't answer within `limit` is left alone: its tool is unavailable, and the pass goes on.
        """
        found: dict[str, Verdict] = {}
        left: dict[Identity, list[ToolEntry]] = {}
        for entry in entries:
            verdict = self._without_probe(entry)
            if verdict is None:
                left.setdefault(identity(entry.check_fn), []).append(entry)
                verdict = _ENDED
            found[entry.name] = verdict
        if left:
            turn = CheckPass([several[0] for several in left.values()], self._judge, self.give_up, self.limit)
            for several, verdict in zip(left.values(), turn.run(self._apart), strict=True):
                found.update((entry.name, verdict) for entry in several)
        return found

    def verdict(self, entry: ToolEntry) -> Verdict:
        """The verdict of one entry, its check asked on this thread and waited for as long as it takes."""
        return self._without_probe(entry) or self._judge(entry)

    def give_up(self, entry: ToolEntry) -> Verdict:
        """The verdict on a check that isn't waited for any more after `limit`; nobody asks it anew until it has answered."""
        check: CheckFn = entry.check_fn  # type: ignore[assignment]
        key = identity(check)
        with self._lock:
            flight = self._flights.get(key)
            forgotten = self._forgotten if flight is None else flight.forgotten
        verdict = self._settle(entry, check, key, self._late, forgotten, tell=True)
        if flight is not None:
            flight.verdict, flight.late = verdict, True
            flight.end()
        return verdict

    def invalidate(self) -> None:
        """Forget every verdict; who asks next doesn't wait for a probe that has begun already."""
        with self._lock:
            self._forgotten += 1
            self._kept.clear()
            self._flights.clear()

    def abandon(self, entry: ToolEntry) -> None:
        """Nobody waits for this tool's probe any more: who asks next probes anew."""
        if entry.check_fn is not None:
            with self._lock:
                self._flights.pop(identity(entry.check_fn), None)

    def after_fork(self) -> None:
        """In a child process: whoever probed when it was made isn't there."""
        self._lock = threading.Lock()
        self._flights = {}

    def _without_probe(self, entry: ToolEntry) -> Verdict | None:
        """What is known without asking the check; `None`: it must be asked."""
        missing = missing_requirements(entry.requires) if entry.requires else None
        if missing is not None:
            return Verdict(available=False, reason=missing)
        check = entry.check_fn
        if check is None:
            return AVAILABLE
        with self._lock:
            return self._fresh(entry, identity(check), check)

    def _fresh(self, entry: ToolEntry, key: Identity, check: CheckFn) -> Verdict | None:
        """The last verdict, if it still counts; the lock is held."""
        ttl = self.ttl if entry.check_ttl is None else entry.check_ttl
        kept = self._recall(key, check) if ttl > 0 else None
        return kept.verdict if kept is not None and self._clock() - kept.at < ttl else None

    def _judge(self, entry: ToolEntry) -> Verdict:
        """Ask the check, or wait for who asks it just now."""
        check: CheckFn = entry.check_fn  # type: ignore[assignment]
        key = identity(check)
        with self._lock:
            fresh = self._fresh(entry, key, check)
            if fresh is not None:
                return fresh
            flight = self._flights.get(key)
            if flight is None:
                mine = self._flights[key] = _Flight(self._forgotten)
            elif flight.thread == threading.get_ident() or flight in _PROBING.get():
                return _ASKS_ITSELF
        if flight is not None:
            if flight.late:
                return self._settle(entry, check, key, self._late, flight.forgotten, tell=True)
            return flight.verdict if flight.wait(PATIENCE) else _HANGS
        token = _PROBING.set((*_PROBING.get(), mine))
        try:
            verdict, raised = self._probe(entry, check)
            mine.verdict = self._settle(entry, check, key, verdict, mine.forgotten, tell=raised)
        finally:
            _PROBING.reset(token)
            with self._lock:
                if self._flights.get(key) is mine:
                    del self._flights[key]
            mine.end()
        return mine.verdict

    @property
    def _late(self) -> Verdict:
        return Verdict(available=False, reason=f"its check did not answer within {self.limit:g} s")

    def _settle(
        self, entry: ToolEntry, check: CheckFn, key: Identity, verdict: Verdict, forgotten: int, *, tell: bool
    ) -> Verdict:
        """Keep a fresh verdict, and forgive a failure within the grace of a pass; `tell`: a failure is told."""
        grace = self.grace if entry.check_grace is None else entry.check_grace
        now = self._clock()
        with self._lock:
            kept = self._recall(key, check)
            passed = now if verdict.available else kept.passed if kept else None
            forgiven = not verdict.available and passed is not None and now - passed < grace
            # What is forgiven isn't kept: the next pass probes again.
            if not forgiven and self._forgotten == forgotten:
                self._remember(key, check, _Kept(verdict, now, passed))
        if forgiven:
            self._warn(entry, f"Check of tool {entry.name!r} failed within its grace of {grace:g} s "
                              f"({verdict.reason}); the tool stays.", once="grace")  # fmt: skip
            return AVAILABLE
        if tell:
            self._warn(entry, f"Tool {entry.name!r} is unavailable: {verdict.reason}.")
        if verdict.available:
            self._told.pop((entry.name, "grace"), None)
        return verdict

    def _probe(self, entry: ToolEntry, check: CheckFn) -> tuple[Verdict, bool]:
        """Ask the check; its verdict, and whether it raised.

        All that it gives or raises is read in its owner's name: that runs its code too.
        """
        with self._acting_as(entry.owner):
            try:
                return self._read(check()), False
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                reason = f"its check raised {bounded(self._clean(describe_exception(error)), 500)}"
        return Verdict(available=False, reason=reason), True

    def _read(self, answer: Any) -> Verdict:
        if hasattr(type(answer), "__await__"):
            answer = self._await(answer)
        if isinstance(answer, str):
            text = plain_text(answer)
            return Verdict(available=False, reason=bounded(text, 500)) if text else _SAYS_NO
        return AVAILABLE if answer else _SAYS_NO

    def _await(self, answer: Any) -> Any:
        if self._run_async is None:
            if hasattr(answer, "close"):
                answer.close()
            msg = "an async check needs a runtime"
            raise TypeError(msg)
        return self._run_async(answer)

    def _recall(self, key: Identity, check: CheckFn) -> _Kept | None:
        held = self._kept.get(key)
        if held is None:
            return None
        kept_for, kept = held
        # An id is given again once its object is gone: the check must still be the same.
        return kept if same(kept_for, check) else None

    def _remember(self, key: Identity, check: CheckFn, kept: _Kept) -> None:
        self._kept.pop(key, None)  # What was asked last goes last.
        while len(self._kept) >= self.LIMIT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (reference(check), kept)

    def _warn(self, entry: ToolEntry, text: str, once: str | None = None) -> None:
        """Say it once for a tool: this text, or whatever is said under `once`."""
        told = (entry.name, once or text)
        if told in self._told:
            return
        if len(self._told) >= self.LIMIT:
            self._told.clear()
        self._told[told] = None
        from mibyan.tools.mending import mending_check
        from mibyan.tools.origin import place_of

        log.warning("%s", text)
        self._decisions.add(
            Decision(
                "unavailable",
                f"tool:{entry.name}",
                text,
                entry.plugin_id,
                place_of(entry),
                mending_check(entry),
                problem=True,
                rule="registry.V2",
            )
        )


#: Seconds for which a pass waits for a probe that another one began.
PATIENCE = 30.0

_SAYS_NO = Verdict(available=False, reason="its check says no")
_ASKS_ITSELF = Verdict(available=False, reason="its check asked for itself")
_ENDED = Verdict(available=False, reason="its check was interrupted")
_HANGS = Verdict(available=False, reason=f"its check hasn't answered for {PATIENCE:g} s")
