"""What one session was shown is never read by another (registry.D5)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mibyan import Runtime

from .world import SCHEMA, SOON

SETS = ("red", "green", "blue")


@pytest.fixture
def rt(bare: Callable[..., Runtime]) -> Runtime:
    """A runtime with ten tools in each of three toolsets; each tool tells what it was told it may see."""
    runtime = bare()
    for toolset in SETS:
        for number in range(10):
            runtime.registry.register(
                f"{toolset}_{number}", toolset, SCHEMA, lambda args, enabled_tools: {"tools": enabled_tools}
            )
    return runtime


def names(definitions: list[dict[str, Any]]) -> set[str]:
    return {definition["function"]["name"] for definition in definitions}


def test_registry_D5_sessions_see_their_own(rt: Runtime) -> None:
    """registry.D5: what a session is shown, what it may call and what a handler is told are its own, whoever asked last."""
    sessions = {toolset: rt.session(enabled_toolsets=[toolset]) for toolset in SETS}
    everything = rt.definitions()
    for _ in range(2):
        for toolset, session in sessions.items():
            own = {f"{toolset}_{number}" for number in range(10)}
            assert names(rt.definitions(session=session)) == own == session.tool_names
            assert set(json.loads(rt.call(f"{toolset}_0", {}, session=session))["tools"]) == own
            other = next(name for name in SETS if name != toolset)
            assert json.loads(rt.call(f"{other}_0", {}, session=session))["error_type"] == "tool_not_in_session"
    assert len(everything) == 30


def test_registry_D5_what_was_shown_is_nobody_elses_to_change(rt: Runtime) -> None:
    """registry.R3, D5: a list that was shown is the caller's own, and its dicts can't be changed."""
    session = rt.session(enabled_toolsets=["red"])
    shown = rt.definitions(session=session)
    shown.clear()
    again = rt.definitions(session=session)
    assert len(again) == 10
    for change in (lambda d: d.update(x=1), lambda d: d["function"].update(name="x"), lambda d: d["function"].clear(),
                   lambda d: d["function"]["parameters"]["properties"].update(x={})):  # fmt: skip
        with pytest.raises(TypeError, match="read-only"):
            change(again[0])
    assert rt.definitions(session=session) == again


def test_registry_D5_under_load(rt: Runtime) -> None:
    """registry.D5: twelve sessions ask and call at once while tools come and go and overrides speak: each sees its own."""
    stop = threading.Event()
    counter = iter(range(10**9))
    rt.registry.register("red_x", "red", SCHEMA, lambda args: "x",
                         dynamic_schema_overrides=lambda: {"description": f"d {next(counter)}"})  # fmt: skip

    def mutate(toolset: str) -> None:
        while not stop.is_set():
            rt.registry.register(f"{toolset}_new", toolset, SCHEMA, lambda args: "new", aliases=[f"{toolset}_alias"])
            rt.registry.deregister(f"{toolset}_new")

    def converse(number: int) -> set[str]:
        toolset = SETS[number % 3]
        wrong: set[str] = set()
        denied = [f"{SETS[(number + 1) % 3]}"] if number % 2 else []
        with rt.session(f"s{number}", enabled_toolsets=[toolset], disabled_toolsets=denied) as session:
            for turn in range(40):
                shown = names(rt.definitions(session=session))
                told = json.loads(rt.call(f"{toolset}_{turn % 10}", {}, session=session))["tools"]
                wrong |= {name for name in (*shown, *told, *session.tool_names) if not name.startswith(toolset)}
                if len(shown) < 10 or len(told) < 10:
                    wrong.add(f"too few: {shown}")
        return wrong

    mutators = [threading.Thread(target=mutate, args=(toolset,)) for toolset in SETS]
    for mutator in mutators:
        mutator.start()
    try:
        with ThreadPoolExecutor(12) as pool:
            results = [future.result(SOON * 2) for future in [pool.submit(converse, n) for n in range(12)]]
    finally:
        stop.set()
        for mutator in mutators:
            mutator.join(SOON)
    assert results == [set()] * 12


def test_dispatch_C8_answers_are_kept_by_session(bare: Callable[..., Runtime]) -> None:
    """dispatch.C8: what one session was answered isn't another's answer."""
    rt, asked = bare(), []

    def handler(args: dict[str, Any], session_id: str) -> str:
        asked.append(session_id)
        return f"for {session_id}"

    rt.registry.register("x", "t", SCHEMA, handler, cache=True, read_only=True)
    for _ in range(2):
        for name in ("a", "b"):
            session = rt._parts.sessions.of_id(name)
            assert rt.call("x", {}, session=session) == f"for {name}"
    assert asked == ["a", "b"]


def test_a_closed_session_leaves_nothing_to_the_next_of_its_id(bare: Callable[..., Runtime]) -> None:
    """A session that was closed is over: the next one with that id begins with nothing of it."""
    rt, asked = bare(), []
    rt.registry.register("x", "t", SCHEMA, lambda args: asked.append(1) or "x", cache=True, read_only=True)
    for _ in range(2):
        with rt.session("s", enabled_toolsets=["t"]) as session:
            rt.call("x", {}, session=session)
            assert session.started
    assert asked == [1, 1]
    with rt.session("s") as session:
        assert session.enabled_toolsets is None
        assert not session.started
