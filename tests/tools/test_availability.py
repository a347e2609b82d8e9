"""Availability: may a tool be shown and called now, and if not, why (registry.V1 to V5)."""

from __future__ import annotations

import gc
import logging
import threading
import weakref

import pytest

from mibyan import Runtime
from mibyan.tools.availability import Availability
from mibyan.tools.entry import Requirements
from mibyan.tools.owner import Owner
from mibyan.tools.registration import build_entry
from mibyan.tools.registry import ToolRegistry

SOON = 20.0
HOST = Owner("host", "host")


def entry(name="x", check=None, requires=None, **options):
    return build_entry(HOST, name, "t", {"description": ""}, print, check, requires=requires, **options)


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def counting(answers):
    """A check that gives these answers one after the other, and counts; the last one for ever."""
    runs = []

    def check():
        runs.append(1)
        answer = answers[min(len(runs), len(answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return check, runs


def test_registry_V1_without_a_check_it_is_available(monkeypatch):
    """registry.V1: no check means available; `requires_env` is information for people."""
    monkeypatch.delenv("NOT_SET", raising=False)
    assert Availability().verdict(entry(requires_env="NOT_SET")).available


@pytest.mark.parametrize(
    ("requires", "words"),
    [
        (Requirements(env=("NOT_SET",)), "NOT_SET"),
        (Requirements(env=("EMPTY",)), "EMPTY"),
        (Requirements(bins=("no-such-program",)), "no-such-program"),
        (Requirements(modules=("no_such_module",)), "no_such_module"),
        (Requirements(modules=("no.such.module",)), "no.such.module"),
    ],
)
def test_registry_V1_declared_requirements_count(monkeypatch, requires, words):
    """registry.V1: what a manifest requires counts, is told, and spares the check."""
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("NOT_SET", raising=False)
    verdict = Availability().verdict(entry(check=lambda: pytest.fail("probed"), requires=requires))
    assert (verdict.available, words in verdict.reason) == (False, True)
    assert Availability().verdict(entry(requires=Requirements(bins=("sh",), modules=("json",)))).available


@pytest.mark.parametrize(
    ("answer", "available", "reason"),
    [(True, True, None), (1, True, None), (False, False, "its check says no"), (None, False, "its check says no"),
     ("", False, "its check says no"), ("no key", False, "no key"), (0, False, "its check says no")],
)  # fmt: skip
def test_registry_V1_what_a_check_says(answer, available, reason):
    """registry.V1: true, false, or a text that says why not."""
    verdict = Availability().verdict(entry(check=lambda: answer))
    assert (verdict.available, verdict.reason) == (available, reason)


@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit(1), GeneratorExit(), RecursionError(), BaseException("b")]
)
def test_registry_V2_a_check_that_raises(caplog, error):
    """registry.V2: an exception is unavailable, logged once with its text; the other tools are unaffected."""
    check, _ = counting([error])
    availability = Availability()
    entries = [entry("bad", check), entry("good", lambda: True)]
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            verdicts = availability.verdicts(entries)
            assert (verdicts["bad"].available, verdicts["good"].available) == (False, True)
    assert type(error).__name__ in verdicts["bad"].reason
    assert len(caplog.records) == 1


def test_registry_V2_an_interrupt_leaves():
    """A KeyboardInterrupt in a check isn't a verdict."""
    check, _ = counting([KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        Availability().verdict(entry(check=check))


class HostileTruth:
    def __bool__(self):
        raise SystemExit(3)


class Unhashable:
    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError

    def __call__(self):
        return True


class Hostile:
    """A check that raises when it is asked anything but its verdict."""

    __slots__ = ()

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __call__(self):
        return True


@pytest.mark.parametrize("check", [Unhashable(), Hostile(), HostileTruth], ids=["unhashable", "hostile", "truth"])
def test_registry_V2_whatever_kind_of_object_the_check_is(check):
    """registry.V2: an unhashable or hostile check, or one whose answer has no truth, affects no other tool."""
    verdicts = Availability(ttl=10).verdicts([entry("odd", check), entry("good", lambda: True)])
    assert set(verdicts) == {"odd", "good"}
    assert verdicts["good"].available


def test_registry_V2_one_pass_probes_each_check_once():
    """registry.V2: tools that share a check share its verdict in a pass; the next pass probes anew."""
    check, runs = counting([True])
    availability = Availability()
    entries = [entry(f"t{n}", check) for n in range(5)]
    assert all(verdict.available for verdict in availability.verdicts(entries).values())
    assert len(runs) == 1
    availability.verdicts(entries)
    assert len(runs) == 2


def test_registry_V2_a_registrys_own_passes_share_too():
    """registry.V2, V5: `check_toolset_requirements` and its like are one pass each."""
    check, runs = counting([False])
    registry = ToolRegistry()
    for name, toolset in (("a", "one"), ("b", "one"), ("c", "two")):
        registry.register(name, toolset, {"description": ""}, print, check)
    assert registry.check_toolset_requirements() == {"one": False, "two": False}
    assert len(runs) == 1
    assert [missing["name"] for missing in registry.check_tool_availability()[1]] == ["one", "two"]
    assert len(runs) == 2


def test_registry_V3_a_ttl_keeps_a_verdict(clock):
    """registry.V3: a verdict outlives its pass only within a `ttl`: the tool's own, else the configuration's."""
    check, runs = counting([True, False])
    availability = Availability(ttl=30, clock=clock)
    assert [availability.verdict(entry(check=check)).available for _ in range(3)] == [True] * 3
    assert len(runs) == 1
    clock.now += 31
    assert not availability.verdict(entry(check=check)).available
    own, own_runs = counting([True])
    for _ in range(3):
        availability.verdict(entry(check=own, check_ttl=0))
    assert len(own_runs) == 3


def test_registry_V3_a_grace_forgives(clock, caplog):
    """registry.V3: within `grace` of a True a False is served as True with one WARNING, and isn't cached."""
    check, runs = counting([True, False, False, True, False, False])
    availability = Availability(ttl=30, grace=60, clock=clock)
    tool = entry(check=check)
    with caplog.at_level(logging.WARNING):
        assert availability.verdict(tool).available
        clock.now += 31
        assert availability.verdict(tool).available  # forgiven
        assert availability.verdict(tool).available  # asked again: it wasn't kept
        assert len(runs) == 3
        assert len(caplog.records) == 1
        assert availability.verdict(tool).available  # it is back
        clock.now += 100
        assert not availability.verdict(tool).available  # beyond the grace
    assert len(runs) == 5


def test_registry_V3_what_never_passed_has_no_grace(clock):
    """registry.V3: grace is counted from a True."""
    assert not Availability(grace=60, clock=clock).verdict(entry(check=lambda: False)).available


def test_registry_V4_concurrent_passes_share_one_probe():
    """registry.V4: who asks while a probe is under way waits for it."""
    begun, release, runs, verdicts = threading.Event(), threading.Event(), [], []

    def check():
        runs.append(1)
        begun.set()
        release.wait(SOON)
        return True

    availability, tool = Availability(), entry(check=check)
    threads = [threading.Thread(target=lambda: verdicts.append(availability.verdict(tool).available)) for _ in range(8)]
    threads[0].start()
    assert begun.wait(SOON)
    for thread in threads[1:]:
        thread.start()
    release.set()
    for thread in threads:
        thread.join(SOON)
    assert verdicts == [True] * 8
    # One that came when the first probe was already over made its own.
    assert 1 <= len(runs) < 8


def test_registry_V4_a_slow_check_holds_no_registration_up():
    """registry.V4: while a check is slow, tools can be registered, found and removed."""
    begun, release = threading.Event(), threading.Event()
    registry = ToolRegistry()

    def check():
        begun.set()
        return release.wait(SOON)

    registry.register("slow", "t", {"description": ""}, print, check)
    thread = threading.Thread(target=lambda: registry.is_toolset_available("t"))
    thread.start()
    assert begun.wait(SOON)
    registry.register("quick", "u", {"description": ""}, print)
    assert registry.get_entry("quick") is not None
    assert registry.deregister("quick")
    assert thread.is_alive()
    release.set()
    thread.join(SOON)


def test_registry_V4_an_abandoned_probe_isnt_waited_for():
    """dispatch.B2: when nobody waits for a probe any more, who asks next probes anew."""
    begun, release, runs = threading.Event(), threading.Event(), []

    def check():
        runs.append(1)
        if len(runs) == 1:
            begun.set()
            release.wait(SOON)
        return True

    availability, tool = Availability(), entry(check=check)
    thread = threading.Thread(target=lambda: availability.verdict(tool))
    thread.start()
    assert begun.wait(SOON)
    availability.abandon(tool)
    assert availability.verdict(tool).available
    release.set()
    thread.join(SOON)
    assert len(runs) == 2


def test_registry_V4_the_cache_holds_closures_weakly(clock):
    """registry.V4: what was probed isn't kept alive by its verdict; a new check at the same address is asked."""
    availability = Availability(ttl=1000, clock=clock)

    def make():
        thing = Owner("held", "host")
        check = lambda: bool(thing)
        availability.verdict(entry(check=check))
        return weakref.ref(check)

    reference = make()
    gc.collect()
    assert reference() is None
    assert not availability.verdict(entry(check=lambda: False)).available


def test_registry_V4_the_cache_is_bounded(monkeypatch, clock):
    """registry.V4: the oldest verdicts go."""
    monkeypatch.setattr(Availability, "LIMIT", 8)
    availability = Availability(ttl=1000, clock=clock)
    checks = [counting([True]) for _ in range(20)]
    for check, _ in checks:
        availability.verdict(entry(check=check))
    assert len(availability._kept) <= 8


def test_registry_V4_invalidate_forgets(clock):
    """registry.V4: `invalidate()` forgets every verdict."""
    check, runs = counting([True])
    availability = Availability(ttl=1000, clock=clock)
    for _ in range(2):
        availability.verdict(entry(check=check))
        availability.invalidate()
    assert len(runs) == 2


def test_registry_V4_bound_methods_are_told_apart(clock):
    """Two objects' methods are two checks, one object's method is one, however often it is looked up."""

    class Service:
        def __init__(self, answer):
            self.answer, self.runs = answer, 0

        def check(self):
            self.runs += 1
            return self.answer

    up, down = Service(True), Service(False)
    availability = Availability(ttl=1000, clock=clock)
    verdicts = availability.verdicts([entry("a", up.check), entry("b", down.check), entry("c", up.check)])
    assert [verdicts[name].available for name in "abc"] == [True, False, True]
    assert (up.runs, down.runs) == (1, 1)


@pytest.mark.parametrize("toolset", ["nope", "", None, 5, object(), []])
def test_registry_V5_unknown_is_false(toolset):
    """registry.V5: an unknown toolset isn't available, and asking never raises."""
    assert ToolRegistry().is_toolset_available(toolset) is False


def test_registry_V5_one_available_tool_is_enough(tmp_path):
    """registry.V5: a toolset is available when at least one of its tools is."""
    with Runtime(home=tmp_path) as rt:
        rt._parts._loaded = True
        rt.registry.register("a", "t", {"description": ""}, print, lambda: False)
        assert rt.registry.is_toolset_available("t") is False
        rt.registry.register("b", "t", {"description": ""}, print, lambda: 1 / 0)
        assert rt.registry.is_toolset_available("t") is False
        rt.registry.register("c", "t", {"description": ""}, print)
        assert rt.registry.is_toolset_available("t") is True
