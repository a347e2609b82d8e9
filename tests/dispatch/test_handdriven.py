"""Awaited calls on the quick way: within the caller's task, and yet never held up by what doesn't end."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest

from mibyan import Runtime

from .conftest import compile_call

#: Seconds after which something surely waited for what hangs.
LONG = 5.0


def run(rt: Runtime, name: str = "x", **options: Any) -> dict[str, Any]:
    """The result of one awaited call on the quick way, as it would be the third."""

    async def main() -> str:
        compiled = compile_call(rt, name)
        assert compiled is not None
        assert compiled.run_awaited is not None
        return await rt.acall(name, "{}", **options)

    text = asyncio.run(main())
    return json.loads(text) if text.startswith("{") else {"text": text}


@pytest.mark.parametrize("waits", ["nothing", "sleep(0)", "sleep", "future", "task", "timeout", "group", "thread"])
def test_dispatch_B1_whatever_a_handler_waits_for_it_goes_on(rt, add, waits):
    """It is in the caller's task from its first step to its last."""

    async def handler(args: dict[str, Any]) -> str:
        first = asyncio.current_task()
        match waits:
            case "sleep(0)":
                for _ in range(3):
                    await asyncio.sleep(0)
            case "sleep":
                await asyncio.sleep(0.001)
            case "future":
                future = asyncio.get_running_loop().create_future()
                asyncio.get_running_loop().call_soon(future.set_result, None)
                await future
            case "task":
                await asyncio.create_task(asyncio.sleep(0.001))
            case "timeout":
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await asyncio.sleep(60)
                await asyncio.sleep(0.05)
            case "group":
                async with asyncio.TaskGroup() as group:
                    group.create_task(asyncio.sleep(0.001))
                    group.create_task(asyncio.sleep(0))
            case "thread":
                await asyncio.to_thread(time.sleep, 0.001)
        return "same" if asyncio.current_task() is first else "other"

    add(handler)
    assert run(rt) == {"text": "same"}


ENDINGS: dict[str, BaseException] = {
    "value": ValueError("x"), "exit": SystemExit(1), "cancelled": asyncio.CancelledError(), "stop": StopIteration(1),
    "closed": GeneratorExit(), "late": TimeoutError("y"),
}  # fmt: skip


@pytest.mark.parametrize("when", ["at once", "later"])
@pytest.mark.parametrize("how", ENDINGS)
def test_dispatch_C4_whatever_it_raises_is_a_result(rt, add, how, when):
    async def handler(args: dict[str, Any]) -> str:
        if when == "later":
            await asyncio.sleep(0.001)
        raise ENDINGS[how]

    add(handler)
    assert run(rt)["error_type"] == "tool_exception"


def until(done: Any) -> None:
    """Wait until something is so."""
    end = time.monotonic() + 20
    while not done() and time.monotonic() < end:
        time.sleep(0.01)


async def stubborn(began: asyncio.Event, ended: threading.Event) -> None:
    """Doesn't let itself be cancelled for a while."""
    until = time.monotonic() + 0.5
    began.set()
    while time.monotonic() < until:
        try:
            await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            continue
    ended.set()


@pytest.mark.parametrize("kind", ["stubborn", "sleeping", "waiting for a stubborn task"])
def test_dispatch_B2_the_deadline_holds_whatever_it_does_with_being_cancelled(rt, add, kind):
    """dispatch.B2: it is answered then, goes on alone, and is counted until it has ended."""
    ended = threading.Event()

    async def handler(args: dict[str, Any]) -> None:
        if kind == "sleeping":
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()
        elif kind == "stubborn":
            await stubborn(asyncio.Event(), ended)
        else:
            await asyncio.create_task(stubborn(asyncio.Event(), ended))

    async def main() -> tuple[dict[str, Any], float]:
        compile_call(rt, "x")
        started = time.monotonic()
        found = json.loads(await rt.acall("x", "{}", timeout=0.1))
        took = time.monotonic() - started
        await asyncio.to_thread(until, lambda: ended.is_set() and not rt._parts.dispatcher.stuck)
        return found, took

    add(handler)
    found, took = asyncio.run(asyncio.wait_for(main(), 30))
    assert found["error_type"] == "timeout"
    assert took < (LONG if kind == "sleeping" else 0.5)
    assert rt._parts.dispatcher.stuck == 0


@pytest.mark.parametrize("kind", ["sleeping", "stubborn"])
def test_dispatch_C4_a_host_that_cancels_gets_its_cancellation(rt, add, kind):
    """dispatch.C4: `asyncio.timeout` around `acall` works, also where the handler won't be cancelled."""
    ended = threading.Event()

    async def handler(args: dict[str, Any]) -> None:
        if kind == "sleeping":
            await asyncio.sleep(60)
        await stubborn(asyncio.Event(), ended)

    async def main() -> float:
        compile_call(rt, "x")
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await rt.acall("x", "{}")
        took = time.monotonic() - started
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        assert await rt.acall("y", "{}") == "fine"
        return took

    add(handler)
    add(lambda args: "fine", "y")
    assert asyncio.run(main()) < 0.5


def test_dispatch_C4_a_swallowed_cancellation_leaves_all_the_same(rt, add):
    async def handler(args: dict[str, Any]) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "I go on"
        return "never"

    async def main() -> bool:
        compile_call(rt, "x")
        task = asyncio.create_task(rt.acall("x", "{}"))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return task.cancelled()

    add(handler)
    assert asyncio.run(main())


@pytest.mark.parametrize("by", ["interrupt", "close of the session", "close of the runtime"])
def test_dispatch_B5_an_awaited_call_ends_with_what_it_belongs_to(rt, add, by):
    began = threading.Event()

    async def handler(args: dict[str, Any]) -> None:
        began.set()
        await asyncio.sleep(60)

    def end() -> None:
        began.wait(20)
        session = rt._parts.sessions.find(None)
        {"interrupt": session.interrupt, "close of the session": session.close, "close of the runtime": rt.close}[by]()

    add(handler)
    ender = threading.Thread(target=end)
    ender.start()
    assert run(rt)["error_type"] == "cancelled"
    ender.join()


def test_dispatch_B5_an_interrupt_during_the_first_step_counts(rt, add):
    async def handler(args: dict[str, Any]) -> None:
        rt._parts.sessions.find(None).interrupt()
        await asyncio.sleep(60)

    add(handler)
    assert run(rt)["error_type"] == "cancelled"


@pytest.mark.parametrize("what", ["nothing of asyncio", "a future of another loop"])
def test_dispatch_C4_a_coroutine_that_waits_for_the_wrong_thing_hears_of_it(rt, add, what):
    other = asyncio.new_event_loop()

    class Odd:
        def __await__(self) -> Any:
            yield 5

    async def handler(args: dict[str, Any]) -> None:
        await (Odd() if what == "nothing of asyncio" else other.create_future())

    add(handler)
    assert "RuntimeError" in run(rt)["error"]
    other.close()


def test_dispatch_B4_thousands_of_awaited_calls_leave_nothing(rt, add):
    async def handler(args: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        return "ok"

    async def main() -> tuple[set[str], int]:
        compile_call(rt, "x")
        answers = await asyncio.gather(*(rt.acall("x", "{}") for _ in range(2000)))
        return set(answers), len(asyncio.all_tasks())

    add(handler)
    assert asyncio.run(main()) == ({"ok"}, 1)
    session = rt._parts.sessions.find(None)
    assert not session._guards
