"""Availability: may a tool be shown and called now, and if not, why (registry.V1 to V5)."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from contextvars import ContextVar
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeAlias

from mibyan.records import record
from mibyan.report import Decision, DecisionLog
from mibyan.text import bounded, describe_exception, plain_text
from mibyan.tools.current import acting
from mibyan.tools.mending import mending_check
from mibyan.tools.origin import place_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from mibyan.tools.entry import CheckFn, Requirements, ToolEntry
    from mibyan.tools.owner import Owner

log = logging.getLogger("mibyan.availability")


#: What makes two checks one.
Identity: TypeAlias = tuple[int, int]


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

    __slots__ = ("done", "thread", "verdict")

    def __init__(self) -> None:
        self.done = threading.Event()
        self.thread = threading.get_ident()
        self.verdict = _ENDED


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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ttl = ttl
        self.grace = grace
        self._decisions = DecisionLog() if log is None else log
        self._run_async = run_async
        self._acting_as = acting_as
        self._clean = clean
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[Identity, tuple[Any, _Kept]] = {}
        self._flights: dict[Identity, _Flight] = {}
        #: How often everything was forgotten: a probe that began before that is no news.
        self._forgotten = 0
        self._told: dict[tuple[str, str], None] = {}

    def verdicts(self, entries: Iterable[ToolEntry]) -> dict[str, Verdict]:
        """The verdict of each entry, by name: one pass, in which each distinct check is probed at most once."""
        seen: dict[Identity, Verdict] = {}
        found: dict[str, Verdict] = {}
        for entry in entries:
            if entry.check_fn is None and not entry.requires:
                found[entry.name] = AVAILABLE
                continue
            missing = missing_requirements(entry.requires)
            if missing is not None:
                found[entry.name] = Verdict(available=False, reason=missing)
            elif entry.check_fn is None:
                found[entry.name] = AVAILABLE
            else:
                key = _identity(entry.check_fn)
                if key not in seen:
                    seen[key] = self._judge(entry, entry.check_fn, key)
                found[entry.name] = seen[key]
        return found

    def verdict(self, entry: ToolEntry) -> Verdict:
        """The verdict of one entry."""
        if entry.check_fn is None and not entry.requires:
            return AVAILABLE
        return self.verdicts((entry,))[entry.name]

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
                self._flights.pop(_identity(entry.check_fn), None)

    def after_fork(self) -> None:
        """In a child process: whoever probed when it was made isn't there."""
        self._lock = threading.Lock()
        self._flights = {}

    def _judge(self, entry: ToolEntry, check: CheckFn, key: Identity) -> Verdict:
        ttl = self.ttl if entry.check_ttl is None else entry.check_ttl
        now = self._clock()
        with self._lock:
            kept = self._recall(key, check)
            if kept is not None and now - kept.at < ttl:
                return kept.verdict
            flight = self._flights.get(key)
            if flight is None:
                mine, forgotten = _Flight(), self._forgotten
                self._flights[key] = mine
            elif flight.thread == threading.get_ident() or flight in _PROBING.get():
                return _ASKS_ITSELF
        if flight is not None:
            return flight.verdict if flight.done.wait(PATIENCE) else _HANGS
        token = _PROBING.set((*_PROBING.get(), mine))
        try:
            mine.verdict = self._settle(entry, check, key, *self._probe(entry, check), forgotten)
        finally:
            _PROBING.reset(token)
            with self._lock:
                if self._flights.get(key) is mine:
                    del self._flights[key]
            mine.done.set()
        return mine.verdict

    def _settle(
        self, entry: ToolEntry, check: CheckFn, key: Identity, verdict: Verdict, raised: bool, forgotten: int,  # noqa: FBT001 - as `_probe` gives it
    ) -> Verdict:  # fmt: skip
        """Keep a fresh verdict, and forgive a failure within the grace of a pass."""
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
        if raised:
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
        reference, kept = held
        # An id is given again once its object is gone: the check must still be the same.
        return kept if _same(reference() if isinstance(reference, weakref.ref) else reference, check) else None

    def _remember(self, key: Identity, check: CheckFn, kept: _Kept) -> None:
        self._kept.pop(key, None)  # What was asked last goes last.
        while len(self._kept) >= self.LIMIT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (_reference(check), kept)

    def _warn(self, entry: ToolEntry, text: str, once: str | None = None) -> None:
        """Say it once for a tool: this text, or whatever is said under `once`."""
        told = (entry.name, once or text)
        if told in self._told:
            return
        if len(self._told) >= self.LIMIT:
            self._told.clear()
        self._told[told] = None
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


def _identity(check: Any) -> Identity:
    """What makes two checks one: the object, or for a bound method its function and its object."""
    if type(check) is MethodType:
        return id(check.__func__), id(check.__self__)
    return id(check), 0


def _target(check: Any) -> Any:
    """The object that a check lives with; the check itself is asked nothing."""
    return check.__self__ if type(check) is MethodType else check


def _reference(check: Any) -> Any:
    """A weak reference where one can be had (closures must not be kept alive by a cache)."""
    try:
        return weakref.ref(_target(check))
    except TypeError:
        return _target(check)


def _same(target: Any, check: Any) -> bool:
    return target is _target(check)


def missing_requirements(requires: Requirements) -> str | None:
    """What is missing of a manifest's declared requirements, in words; `None`: nothing."""
    if not requires:
        return None
    missing = [f"environment variable {name} is not set" for name in requires.env if not os.environ.get(name)]
    missing += [f"program {name!r} is not on PATH" for name in requires.bins if not _on_path(name)]
    missing += [f"module {name!r} is not installed" for name in requires.modules if not _importable(name)]
    return "; ".join(missing) or None


def _on_path(name: str) -> bool:
    import shutil

    return shutil.which(name) is not None


def _importable(name: str) -> bool:
    import importlib.util

    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False
