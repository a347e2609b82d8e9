"""Checks that don't answer: every pass ends, on every way in, and nothing piles up (registry.V2 to V5, dispatch.B2)."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import mibyan
from mibyan import Runtime

from .world import SCHEMA, SOON, World

#: Seconds after which a check is given up here.
LIMIT = 0.2
LATE = "its check did not answer within 0.2 s"


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """Comes when the test is over."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def rt(bare: Callable[..., Runtime]) -> Runtime:
    made = bare(dispatch={"hook_timeout": LIMIT})
    made.registry.register("plain", "u", SCHEMA, lambda args: "plain")
    made.registry.register("checked", "u", SCHEMA, lambda args: "checked", check_fn=lambda: True)
    return made


def hanging(never: threading.Event, kind: str, asked: list[int]) -> Callable[[], Any]:
    """A check that hangs in one of the ways in which checks do."""

    def sync() -> bool:
        asked.append(1)
        return never.wait(SOON)

    async def waits() -> bool:
        asked.append(1)
        await asyncio.sleep(SOON)
        return True

    async def blocks() -> bool:
        asked.append(1)
        return never.wait(SOON)

    async def ignores() -> bool:
        asked.append(1)
        while not never.is_set():
            try:
                await asyncio.sleep(SOON)
            except asyncio.CancelledError:
                await asyncio.sleep(0.05)
                if never.is_set():
                    raise
        return True

    return {"sync": sync, "waits": waits, "blocks its loop": blocks, "ignores the end": ignores}[kind]


def names(rt: Runtime) -> list[str]:
    return [definition["function"]["name"] for definition in rt.definitions()]


#: What asks checks outside of calls, and what it says while `hangs`, alone in `t`, does that.
PASSES: dict[str, tuple[Callable[[Runtime], Any], Any]] = {
    "definitions": (names, ["checked", "plain"]),
    "is_toolset_available": (lambda rt: rt.registry.is_toolset_available("t"), False),
    "another toolset": (lambda rt: rt.registry.is_toolset_available("u"), True),
    "get_definitions": (lambda rt: len(rt.registry.get_definitions({"hangs", "plain"})), 1),
    "requirements": (lambda rt: rt.registry.check_toolset_requirements()["t"], False),
    "verdicts": (lambda rt: rt.availability.verdicts([rt.registry.get_entry("hangs")])["hangs"].reason, LATE),
    "in a loop": (lambda rt: asyncio.run(in_a_loop(rt)), ["checked", "plain"]),
    "in a handler": (lambda rt: json.loads(rt.call("asks", {}, timeout=SOON)), ["asks", "checked", "plain"]),
}


async def in_a_loop(rt: Runtime) -> list[str]:
    return names(rt)


@pytest.mark.parametrize("kind", ["sync", "waits", "blocks its loop", "ignores the end"])
@pytest.mark.parametrize("asks", PASSES)
def test_registry_V2_a_pass_ends(rt: Runtime, never: threading.Event, asks: str, kind: str) -> None:
    """registry.V2, V5: a check that hangs makes its tool unavailable after the limit; the others are what they are."""
    asked: list[int] = []
    rt.registry.register("hangs", "t", SCHEMA, lambda args: "x", check_fn=hanging(never, kind, asked))
    if asks == "in a handler":
        rt.registry.register("asks", "u", SCHEMA, lambda args: names(rt))
    do, expected = PASSES[asks]
    for _ in range(2):
        assert do(rt) == expected
    # Awaitables that are cancelled have come to an end, and are asked again; what is stuck isn't.
    assert kind == "waits" or len(asked) <= 1


@pytest.mark.parametrize("kind", ["sync", "blocks its loop"])
def test_registry_V4_one_stuck_probe_a_check(
    rt: Runtime, never: threading.Event, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """registry.V4: however many passes and calls there are, a stuck check holds one thread; it is told once."""
    asked: list[int] = []
    rt.registry.register("hangs", "t", SCHEMA, lambda args: "x", check_fn=hanging(never, kind, asked))
    rt.registry.register("too", "t", SCHEMA, lambda args: "x", check_fn=rt.registry.get_entry("hangs").check_fn)
    with caplog.at_level(logging.WARNING, "mibyan.availability"):
        assert names(rt) == ["checked", "plain"]
        threads, begun = rt._parts.dispatcher.threads, time.monotonic()
        for _ in range(50):
            assert names(rt) == ["checked", "plain"]
            assert LATE in rt.call("hangs", {}, timeout=SOON)
            assert LATE in rt.call("hangs", {})
        # Nobody waits again for what is known to be stuck.
        assert time.monotonic() - begun < SOON / 2
    assert rt._parts.dispatcher.threads <= threads + 1
    assert asked == [1]
    told = [record.getMessage() for record in caplog.records if record.name == "mibyan.availability"]
    assert told.count(f"Tool 'hangs' is unavailable: {LATE}.") == 1
    assert len([one for one in rt.report().about("tool:hangs") if one.problem and LATE in one.reason]) == 1


def test_registry_V4_it_is_asked_again_once_it_has_answered(rt: Runtime) -> None:
    """A check that was late and is well again makes its tool available, without anybody's doing."""
    go, ended = threading.Event(), threading.Event()

    def check() -> bool:
        go.wait(SOON)
        ended.set()
        return True

    rt.registry.register("hangs", "t", SCHEMA, lambda args: "x", check_fn=check)
    assert "hangs" not in names(rt)
    go.set()
    assert ended.wait(SOON)
    until = time.monotonic() + SOON
    while "hangs" not in names(rt) and time.monotonic() < until:
        pass
    assert "hangs" in names(rt)
    assert rt._parts.dispatcher.stuck == 0


def test_registry_V4_several_that_hang(rt: Runtime, never: threading.Event) -> None:
    """Each is given up for itself, and what stands behind them is asked."""
    for number in range(3):
        rt.registry.register(f"a{number}", "t", SCHEMA, len, check_fn=hanging(never, "sync", []))
    assert names(rt) == ["checked", "plain"]
    assert rt._parts.dispatcher.stuck == 3


def test_registry_V4_passes_at_once_share_the_probe(rt: Runtime, never: threading.Event) -> None:
    """registry.V4: of sixteen passes at once one asks, and all end."""
    asked: list[int] = []
    rt.registry.register("hangs", "t", SCHEMA, lambda args: "x", check_fn=hanging(never, "sync", asked))
    with ThreadPoolExecutor(16) as pool:
        assert all(shown == ["checked", "plain"] for shown in pool.map(lambda _: names(rt), range(16)))
    assert asked == [1]
    assert rt._parts.dispatcher.stuck <= 16


def test_registry_V3_grace_counts_for_what_is_late(
    bare: Callable[..., Runtime], never: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    """registry.V3: a probe that hangs once doesn't strip a tool from a conversation; one WARNING."""
    rt = bare(dispatch={"hook_timeout": LIMIT}, availability={"grace": 1000})
    answers = iter([True])
    rt.registry.register("x", "t", SCHEMA, lambda args: "x", check_fn=lambda: next(answers, None) or never.wait(SOON))
    with caplog.at_level(logging.WARNING, "mibyan.availability"):
        for _ in range(5):
            assert names(rt) == ["x"]
            assert rt.call("x", {}, timeout=SOON) == "x"
    assert sum("within its grace" in record.getMessage() for record in caplog.records) == 1


def test_registry_V3_a_late_verdict_is_kept_for_its_ttl(bare: Callable[..., Runtime], never: threading.Event) -> None:
    """registry.V3: with a `ttl` a check that was late isn't waited for until that has passed."""
    rt = bare(dispatch={"hook_timeout": LIMIT}, availability={"ttl": 1000})
    asked: list[int] = []
    rt.registry.register("x", "t", SCHEMA, lambda args: "x", check_fn=hanging(never, "waits", asked))
    for _ in range(3):
        assert names(rt) == []
    assert asked == [1]


def test_registry_V4_what_it_awaited_is_cancelled(rt: Runtime) -> None:
    """Nothing is leaked: the coroutine of an async check that is given up comes to its end."""
    ended, variable = threading.Event(), contextvars.ContextVar("variable", default="no")
    seen: list[str] = []

    async def check() -> bool:
        seen.append(variable.get())
        try:
            await asyncio.sleep(SOON)
        finally:
            ended.set()
        return True

    rt.registry.register("hangs", "t", SCHEMA, lambda args: "x", check_fn=check)
    variable.set("yes")
    assert names(rt) == ["checked", "plain"]
    assert ended.wait(SOON)
    assert seen == ["yes"]


@pytest.mark.parametrize("way", ["guarded", "awaited", "many"])
@pytest.mark.parametrize("kind", ["sync", "waits", "blocks its loop"])
def test_dispatch_B2_a_call_says_what_hangs(rt: Runtime, never: threading.Event, way: str, kind: str) -> None:
    """dispatch.B2, C2: where a limit is enforced, the call of such a tool is answered with what it is that hangs."""
    rt.registry.register("hangs", "t", SCHEMA, lambda args: "x", check_fn=hanging(never, kind, []))
    call = mibyan.ToolCall("hangs", {})
    result = {
        "guarded": lambda: rt.execute(call, timeout=SOON), "awaited": lambda: asyncio.run(rt.aexecute(call)),
        "many": lambda: rt.call_many([call])[0],
    }[way]()  # fmt: skip
    assert (result.status, result.error_type) == ("error", "tool_unavailable")
    assert LATE in result.error


def test_checks_cost_no_thread_where_there_are_none(bare: Callable[..., Runtime]) -> None:
    """No check, no cost: definitions of tools without checks, or with kept verdicts, use the caller's thread only."""
    rt = bare(availability={"ttl": 1000})
    rt.registry.register("plain", "u", SCHEMA, lambda args: "plain")
    rt.definitions()
    assert rt._parts.dispatcher.threads == 0
    on: list[str] = []
    rt.registry.register("x", "t", SCHEMA, len, check_fn=lambda: on.append(threading.current_thread().name) or True)
    for _ in range(3):
        assert len(rt.definitions()) == 2
    assert [name.startswith("mibyan-") for name in on] == [True]


def test_an_interrupt_ends_the_wait(rt: Runtime, never: threading.Event) -> None:
    """A KeyboardInterrupt that comes while a check hangs leaves at once."""
    import _thread

    inside = threading.Event()

    def check() -> bool:
        inside.set()
        return never.wait(SOON)

    rt.availability.limit = SOON
    rt.registry.register("hangs", "t", SCHEMA, lambda args: "x", check_fn=check)
    threading.Thread(target=lambda: inside.wait(SOON) and _thread.interrupt_main()).start()
    with pytest.raises(KeyboardInterrupt):
        rt.definitions()
    assert rt._parts.dispatcher.stuck == 1


def test_a_plugin_that_asks_while_it_loads(world: World) -> None:
    """The checks of lazy plugins are asked where they can be imported: no thread waits for another's turn to load."""
    source = "import mibyan\ndef check():\n    return True\ndef register(ctx):\n    ctx.register_tool('word', 'words', "
    lazy = {"name": "word", "toolset": "words", "schema": {"description": "d"}, "check": "__init__:check"}
    world.folder("lazy", source + "{'description': 'd'}, lambda args: 'word', check_fn=check)\n", {"tools": [lazy]})
    world.folder("z-asks", "import mibyan, sys\nsys.shown_of_test = len(mibyan.get_runtime().definitions())\n"
                 "def register(ctx):\n    ctx.register_tool('x', 't', {'description': 'd'}, len)\n")  # fmt: skip
    import sys

    begun = time.monotonic()
    try:
        rt = world.runtime()
        assert names(rt) == ["word", "x"]
        assert sys.shown_of_test == 1  # type: ignore[attr-defined]
        assert time.monotonic() - begun < SOON / 2
    finally:
        del sys.shown_of_test  # type: ignore[attr-defined]
