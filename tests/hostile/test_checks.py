"""Checks of every kind: kept, forgiven, shared, awaited, and never in the way (registry.V2 to V4)."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mibyan import Runtime
from mibyan.tools import availability
from mibyan.tools.availability import Availability
from mibyan.tools.entry import ToolEntry
from mibyan.tools.owner import Owner
from mibyan.tools.registration import build_entry

from .world import SCHEMA, SOON

OWNER = Owner("p", "plugin", "pip")


class Clock:
    """A time that only the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def entry(check: Any, name: str = "x", **options: Any) -> ToolEntry:
    return build_entry(OWNER, name, "t", SCHEMA, len, check, **options)


class Check:
    """A check that answers what it is told to, and counts."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked = 0

    def __call__(self) -> Any:
        self.asked += 1
        answer = self.answers[min(self.asked, len(self.answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return answer


# Time ----------------------------------------------------------------------------------------------------------------


def test_registry_V3_without_ttl_each_pass_asks() -> None:
    """registry.V3: with `ttl` 0 a verdict is for its pass only; within it each distinct check is asked once."""
    probe, check = Availability(clock=Clock()), Check(True, False, True)
    entries = [entry(check, name) for name in ("x", "y", "z")]
    for turn, available in enumerate([True, False, True], 1):
        assert {v.available for v in probe.verdicts(entries).values()} == {available}
        assert check.asked == turn


@pytest.mark.parametrize("where", ["runtime", "tool"])
@pytest.mark.parametrize("answer", [True, False, "no key", RuntimeError("x")])
def test_registry_V3_ttl(where: str, answer: Any) -> None:
    """registry.V3: a verdict of any kind is kept for `ttl` seconds, the tool's own before the runtime's."""
    clock, check = Clock(), Check(answer)
    probe = Availability(30.0 if where == "runtime" else 5000.0, clock=clock)
    tool = entry(check, **({} if where == "runtime" else {"check_ttl": 30}))
    first = probe.verdict(tool)
    clock.now += 29.9
    assert probe.verdict(tool) == first
    assert check.asked == 1
    clock.now += 0.2
    probe.verdict(tool)
    assert check.asked == 2


def test_registry_V3_grace(caplog: pytest.LogCaptureFixture) -> None:
    """registry.V3: within `grace` of a True a False is served as True, with one WARNING, and asked anew each time."""
    clock, check = Clock(), Check(True, False, "gone", RuntimeError("timed out"), False, True, False)
    probe, tool = Availability(clock=clock), entry(check, check_ttl=30, check_grace=60)
    assert probe.verdict(tool).available
    with caplog.at_level(logging.WARNING):
        clock.now += 31
        assert [probe.verdict(tool).available for _ in range(3)] == [True] * 3
    assert check.asked == 4
    assert sum("within its grace" in record.getMessage() for record in caplog.records) == 1
    clock.now += 29.5  # 60.5 seconds after the True.
    assert not probe.verdict(tool).available
    clock.now += 1
    assert not probe.verdict(tool).available  # This one is kept.
    assert check.asked == 5
    clock.now += 30
    assert probe.verdict(tool).available
    clock.now += 31
    with caplog.at_level(logging.WARNING):
        assert probe.verdict(tool).available  # A new grace, and a new warning.
    assert [record.getMessage()[:16] for record in caplog.records] == ["Check of tool 'x"] * 2


def test_registry_V3_there_is_no_grace_without_a_pass() -> None:
    """registry.V3: what was never available isn't forgiven."""
    probe = Availability(grace=1000.0, clock=Clock())
    assert not probe.verdict(entry(Check(False))).available


def test_registry_V4_invalidate_forgets() -> None:
    """registry.V4: after `invalidate()` a check is asked anew, and a pass of before gives no grace."""
    probe, check = Availability(1000.0, 1000.0, clock=Clock()), Check(True, False)
    tool = entry(check)
    assert probe.verdict(tool).available
    probe.invalidate()
    assert not probe.verdict(tool).available


def test_registry_V4_what_was_asked_before_invalidate_isnt_kept() -> None:
    """registry.V4: a probe under way at `invalidate()` is no news: who asks next probes anew, nothing of it is kept."""
    probe, asked, go = Availability(1000.0, clock=Clock()), threading.Event(), threading.Event()
    answers = iter([False, True])

    def check() -> bool:
        answer = next(answers)
        if not answer:
            asked.set()
            assert go.wait(SOON)
        return answer

    tool = entry(check)
    old: list[bool] = []
    prober = threading.Thread(target=lambda: old.append(probe.verdict(tool).available))
    prober.start()
    assert asked.wait(SOON)
    probe.invalidate()
    assert probe.verdict(tool).available
    go.set()
    prober.join(SOON)
    assert old == [False]
    assert probe.verdict(tool).available


# Together ------------------------------------------------------------------------------------------------------------


def test_registry_V4_single_flight() -> None:
    """registry.V4: of 32 threads that ask at once one probes, and all have its verdict."""
    probe, go = Availability(clock=Clock()), threading.Event()
    inside = threading.Semaphore(0)
    asked: list[int] = []

    def check() -> str:
        asked.append(1)
        assert go.wait(SOON)
        return "the one verdict"

    tool, barrier = entry(check), threading.Barrier(33)

    def ask() -> str | None:
        barrier.wait(SOON)
        inside.release()
        return probe.verdict(tool).reason

    with ThreadPoolExecutor(32) as pool:
        futures = [pool.submit(ask) for _ in range(32)]
        barrier.wait(SOON)
        for _ in range(32):
            assert inside.acquire(timeout=SOON)
        flight = next(iter(probe._flights.values()), None)
        while flight is None:
            flight = next(iter(probe._flights.values()), None)
        # Everybody waits for that one, or will find it: nobody has an answer while it is under way.
        assert not any(future.done() for future in futures)
        go.set()
        reasons = {future.result(SOON) for future in futures}
    assert reasons == {"the one verdict"}
    # A thread that comes when the flight is over probes again: with ttl 0 that is another pass.
    assert len(asked) <= 32
    assert not probe._flights


def test_registry_V4_single_flight_with_a_ttl() -> None:
    """registry.V4: with a `ttl`, 32 threads and a hundred passes each are one probe."""
    probe, check = Availability(1000.0, clock=Clock()), Check(True)
    tool, barrier = entry(check), threading.Barrier(32)

    def ask() -> bool:
        barrier.wait(SOON)
        return all(probe.verdict(tool).available for _ in range(100))

    with ThreadPoolExecutor(32) as pool:
        assert all(pool.map(lambda _: ask(), range(32)))
    assert check.asked == 1


def test_registry_V4_checks_that_ask_for_themselves() -> None:
    """A check that asks for its own tool, in its thread or another with its context, is unavailable to itself; no deadlock."""
    seen: list[str | None] = []

    def check() -> bool:
        seen.append(probe.verdict(tool).reason)
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: seen.append(context.run(probe.verdict, tool).reason))
        thread.start()
        thread.join(SOON)
        return True

    probe, tool = Availability(), entry(check)
    assert probe.verdict(tool).available
    assert seen == ["its check asked for itself"] * 2


def test_registry_V4_checks_that_wait_for_each_other_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two checks that ask for each other in two threads come to an end."""
    monkeypatch.setattr(availability, "PATIENCE", 0.05)
    probe, barrier = Availability(), threading.Barrier(2)

    def check(other: str) -> bool:
        barrier.wait(SOON)
        return probe.verdict(tools[other]).available

    tools = {name: entry(lambda other=other: check(other), name) for name, other in (("a", "b"), ("b", "a"))}
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(lambda name: probe.verdict(tools[name]), tools))
    assert {verdict.available for verdict in verdicts} <= {True, False}
    assert not probe._flights


def test_registry_V4_a_log_handler_may_ask() -> None:
    """Nothing is logged under the lock: a handler that asks for the tool that is complained about gets an answer."""
    probe = Availability(1.0, 1000.0)
    tool = entry(Check(True, False, False), check_ttl=0)
    asked: list[bool] = []

    class Asks(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if not asked:
                asked.append(True)
                asked.append(probe.verdict(tool).available)

    handler = Asks()
    logging.getLogger("mibyan.availability").addHandler(handler)
    try:
        probe.verdict(tool)
        probe.verdict(tool)
    finally:
        logging.getLogger("mibyan.availability").removeHandler(handler)
    assert len(asked) == 2


# Memory --------------------------------------------------------------------------------------------------------------


def test_registry_V4_closures_arent_kept_alive() -> None:
    """registry.V4: the cache keeps neither a check's closure nor the object of a bound method alive."""
    probe = Availability(1000.0)

    class Thing:
        def check(self) -> bool:
            return True

    thing, other = Thing(), Thing()
    held = [weakref.ref(thing), weakref.ref(other)]
    probe.verdict(entry(lambda thing=thing: bool(thing)))
    probe.verdict(entry(other.check))
    del thing, other
    gc.collect()
    assert [reference() for reference in held] == [None, None]


def test_registry_V4_a_reused_id_is_another_check() -> None:
    """registry.V4: a verdict is never given to another check that happens to live where the first one did."""
    probe = Availability(1000.0)
    for number in range(300):
        # Each is collected at once, and the next one is likely to get its place.
        assert probe.verdict(entry(lambda number=number: f"reason {number}")).reason == f"reason {number}"


def test_registry_V4_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """registry.V4: of many checks the last ones are kept."""
    monkeypatch.setattr(Availability, "LIMIT", 10)
    probe = Availability(1000.0)
    checks = [Check(True) for _ in range(50)]
    tools = [entry(check, f"x{number}") for number, check in enumerate(checks)]
    probe.verdicts(tools)
    assert len(probe._kept) == 10
    probe.verdicts(tools[-10:])
    assert [check.asked for check in checks] == [1] * 50


# Whatever it is ------------------------------------------------------------------------------------------------------


class Unhashable:
    __hash__ = None

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("never ask")

    def __call__(self) -> bool:
        return True


class Slotted:
    """Has no weak references."""

    __slots__ = ()

    def __call__(self) -> bool:
        return True


class EvilTruth:
    def __bool__(self) -> bool:
        raise SystemExit("no")


class EvilText(str):
    __slots__ = ()

    def _raise(self, *_: Any) -> Any:
        raise RuntimeError("evil")

    __str__ = __len__ = __bool__ = __getitem__ = __eq__ = _raise
    __hash__ = str.__hash__


class Liar:
    @property
    def __class__(self) -> type:
        return str


class Mute(Exception):
    def __str__(self) -> str:
        raise SystemExit(1)


async def later(answer: Any = True) -> Any:
    await asyncio.sleep(0)
    if isinstance(answer, BaseException):
        raise answer
    return answer


def leaves(error: BaseException) -> Callable[[], Any]:
    def check() -> Any:
        raise error

    return check


class Awaits:
    def __await__(self) -> Any:
        yield from asyncio.sleep(0).__await__()
        return "awaited"


#: What a check is, and whether its tool is available then.
CHECKS: dict[str, tuple[Any, bool]] = {
    "unhashable": (Unhashable(), True),
    "slotted": (Slotted(), True),
    "method": (Check(True).__call__, True),
    "builtin": (dict, False),
    "generator function": (lambda: (x for x in ()), True),
    "None": (lambda: None, False),
    "number": (lambda: 1, True),
    "NaN": (lambda: float("nan"), True),
    "an object": (object, True),
    "a class": (lambda: int, True),
    "empty text": (lambda: "", False),
    "evil text": (lambda: EvilText("why"), False),
    "evil truth": (EvilTruth, False),
    "a liar": (Liar, False),
    "itself": (lambda: CHECKS["itself"], True),
    "needs arguments": (lambda x: True, False),
    "ValueError": (leaves(ValueError("x")), False),
    "mute": (leaves(Mute()), False),
    "SystemExit": (leaves(SystemExit(3)), False),
    "GeneratorExit": (leaves(GeneratorExit()), False),
    "StopIteration": (leaves(StopIteration()), False),
    "CancelledError": (leaves(asyncio.CancelledError()), False),
    "RecursionError": (leaves(RecursionError()), False),
    "MemoryError": (leaves(MemoryError()), False),
    "async": (later, True),
    "async no": (lambda: later("no"), False),
    "async SystemExit": (lambda: later(SystemExit(1)), False),
    "async CancelledError": (lambda: later(asyncio.CancelledError()), False),
    "awaitable": (Awaits, False),
    "async evil truth": (lambda: later(EvilTruth()), False),
}


@pytest.mark.parametrize("name", CHECKS)
def test_registry_V2_whatever_a_check_is(bare: Callable[..., Runtime], name: str) -> None:
    """registry.V2: whatever a check is, gives or raises, its tool is available or not, and the others are unaffected."""
    check, available = CHECKS[name]
    rt = bare(availability={"ttl": 1000, "grace": 0})
    rt.registry.register("x", "t", SCHEMA, lambda args: "x", check_fn=check)
    rt.registry.register("y", "u", SCHEMA, lambda args: "y")
    for _ in range(2):
        shown = [definition["function"]["name"] for definition in rt.definitions()]
        assert shown == (["x", "y"] if available else ["y"])
    assert rt.registry.is_toolset_available("t") is available
    assert ("tool_unavailable" in rt.call("x", {})) is not available
    assert ("tool_unavailable" in rt.call("x", {}, timeout=SOON)) is not available
    assert ("tool_unavailable" in asyncio.run(rt.acall("x", {}))) is not available
    assert rt.call("y", {}) == "y"


def test_registry_V2_keyboard_interrupt_leaves(bare: Callable[..., Runtime]) -> None:
    """A KeyboardInterrupt in a check leaves; the next pass asks again."""
    rt = bare()
    answers = iter([KeyboardInterrupt(), True])

    def check() -> bool:
        answer = next(answers)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    rt.registry.register("x", "t", SCHEMA, lambda args: "x", check_fn=check)
    with pytest.raises(KeyboardInterrupt):
        rt.definitions()
    assert len(rt.definitions()) == 1


@pytest.mark.parametrize("is_async", [True, False])
def test_dispatch_B3_context_variables_reach_checks(bare: Callable[..., Runtime], is_async: bool) -> None:
    """dispatch.B3: the caller's context variables are visible in checks, also in async ones."""
    rt, variable = bare(), contextvars.ContextVar("variable", default="no")

    async def awaited() -> bool:
        return variable.get() == "yes"

    rt.registry.register(
        "x", "t", SCHEMA, lambda args: "x", check_fn=awaited if is_async else lambda: variable.get() == "yes"
    )
    assert rt.definitions() == []
    variable.set("yes")
    assert len(rt.definitions()) == 1
    assert rt.call("x", {}) == "x"
    assert rt.call("x", {}, timeout=SOON) == "x"


def test_dispatch_B2_a_check_that_hangs_ends_the_call_at_its_deadline(bare: Callable[..., Runtime]) -> None:
    """dispatch.B2: a hanging check costs a guarded call its time and no more; the tool is asked anew afterwards."""
    rt, go = bare(), threading.Event()
    asked: list[int] = []

    def check() -> bool:
        asked.append(1)
        return len(asked) > 1 or go.wait(SOON)

    rt.registry.register("x", "t", SCHEMA, lambda args: "x", check_fn=check)
    try:
        assert '"timeout"' in rt.call("x", {}, timeout=0.05)
        assert rt.call("x", {}, timeout=SOON) == "x"
    finally:
        go.set()
