"""Awaited calls on the quick way: within the caller's task, and yet never held up by what doesn't end."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest

from mibyan import Runtime
from mibyan.dispatch.guard import LATE

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
    """It is the same task from its first step to its last, and not the caller's."""

    async def handler(args: dict[str, Any]) -> str:
        first = asyncio.current_task()
        assert first not in asyncio.all_tasks()
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


async def cleans_up_slowly() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(4 * LATE)


async def fails() -> None:
    await asyncio.sleep(0.01)
    raise ValueError("x")


async def times_out() -> str:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await cleans_up_slowly()
    return "own"


async def waits_for() -> str:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(cleans_up_slowly(), 0.01)
    return "own"


async def groups() -> str:
    with pytest.raises(ExceptionGroup):  # noqa: PT012 - a group ends where its block does
        async with asyncio.TaskGroup() as group:
            group.create_task(fails())
            group.create_task(cleans_up_slowly())
    return "own"


def task() -> asyncio.Task[Any]:
    found = asyncio.current_task()
    assert found is not None
    return found


async def cancels_itself() -> str:
    task().cancel()
    await asyncio.sleep(0)
    return "never"


async def cancels_itself_later() -> str:
    await asyncio.sleep(0)
    return await cancels_itself()


async def cancels_itself_at_its_end() -> str:
    await asyncio.sleep(0)
    task().cancel()
    return "never"


async def takes_it_back() -> str:
    await asyncio.sleep(0)
    task().cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(60)
    return "own" if task().cancelling() == 1 and task().uncancel() == 0 else "miscounted"


OWN = [times_out, waits_for, groups, takes_it_back]
CANCELLED = [cancels_itself, cancels_itself_later, cancels_itself_at_its_end]


@pytest.mark.parametrize("does", [*OWN, *CANCELLED], ids=lambda does: does.__name__)
def test_dispatch_C4_what_a_handler_cancels_is_never_its_host(rt, add, does):
    """Its own time-outs and groups, and it itself: whoever awaits the call has its answer and isn't cancelled."""

    async def handler(args: dict[str, Any]) -> str:
        return await does()

    async def main() -> tuple[str, int]:
        compile_call(rt, "x")
        found = await rt.acall("x", "{}")
        await asyncio.sleep(0)
        return found, task().cancelling()

    add(handler)
    started = time.monotonic()
    found, cancelling = asyncio.run(main())
    assert time.monotonic() - started < LONG
    assert cancelling == 0
    assert found == "own" if does in OWN else json.loads(found)["error_type"] in {"cancelled", "tool_exception"}


def test_dispatch_C4_a_cancelled_handler_that_raises_something_else_leaves_all_the_same(rt, add):
    """The host has asked for its cancellation, whatever the handler makes of it."""

    async def handler(args: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise ValueError("instead")

    async def main() -> None:
        compile_call(rt, "x")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await rt.acall("x", "{}")
        assert task().cancelling() == 0

    add(handler)
    asyncio.run(main())


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


ENDS = {
    "interrupt": lambda rt: rt._parts.sessions.find(None).interrupt(),
    "close of the session": lambda rt: rt._parts.sessions.find(None).close(),
    "close of the runtime": lambda rt: rt.close(),
}


def ended_meanwhile(rt: Runtime, add: Any, by: str) -> threading.Thread:
    """A tool that waits, and a thread that ends what its call belongs to once it does."""
    began = threading.Event()

    async def handler(args: dict[str, Any]) -> None:
        began.set()
        await asyncio.sleep(60)

    add(handler)
    ender = threading.Thread(target=lambda: began.wait(20) and ENDS[by](rt))
    ender.start()
    return ender


@pytest.mark.parametrize("by", ENDS)
def test_dispatch_B5_an_awaited_call_ends_with_what_it_belongs_to(rt, add, by):
    ender = ended_meanwhile(rt, add, by)
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


# From sync code ----------------------------------------------------------------------------------------------------


def quick(rt: Runtime, name: str = "x") -> str:
    """The text of a call of an async tool from sync code, as it would be the third."""
    assert compile_call(rt, name) is not None
    return rt.call(name, "{}")


def test_dispatch_B1_an_async_tool_from_sync_code_runs_on_the_runtimes_loop(rt, add):
    loops = set()

    async def handler(args: dict[str, Any]) -> str:
        loops.add(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return "ok"

    add(handler)
    assert rt.call("x", "{}") == "ok"
    assert [quick(rt) for _ in range(3)] == ["ok"] * 3
    assert len(loops) == 1
    assert rt._parts.dispatcher.threads <= 1


def test_dispatch_B1_an_async_handler_calls_the_sync_api(rt, add):
    """Its own loop is blocked meanwhile: the inner call needs another one, and has it at once."""

    async def inner(args: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        return "inner"

    async def outer(args: dict[str, Any]) -> str:
        return rt.call("inner", "{}")

    add(inner, "inner")
    add(outer)
    assert quick(rt, "inner") == "inner"
    started = time.monotonic()
    assert quick(rt) == "inner"
    assert time.monotonic() - started < 0.9  # a loop that is seen to be blocked only by waiting takes a second


def test_dispatch_B1_a_thread_that_a_handler_waits_for_calls_the_sync_api(rt, add):
    """Nobody can see that the loop is blocked: the call moves to another one after a while."""

    async def inner(args: dict[str, Any]) -> str:
        return "inner"

    async def outer(args: dict[str, Any]) -> str:
        found: list[str] = []
        thread = threading.Thread(target=lambda: found.append(rt.call("inner", "{}")))
        thread.start()
        thread.join(20)
        return found[0]

    add(inner, "inner")
    add(outer)
    compile_call(rt, "inner")
    assert quick(rt) == "inner"


@pytest.mark.parametrize("by", ENDS)
def test_dispatch_B5_a_call_from_sync_code_ends_with_what_it_belongs_to(rt, add, by):
    ender = ended_meanwhile(rt, add, by)
    assert json.loads(quick(rt))["error_type"] == "cancelled"
    ender.join()


def test_dispatch_C4_an_interrupt_in_an_async_handler_leaves_and_its_loop_lives(rt, add):
    async def handler(args: dict[str, Any]) -> str:
        raise KeyboardInterrupt

    async def fine(args: dict[str, Any]) -> str:
        return "fine"

    add(handler)
    add(fine, "fine")
    with pytest.raises(KeyboardInterrupt):
        quick(rt)
    assert quick(rt, "fine") == "fine"


def test_dispatch_B4_many_threads_share_the_loop(rt, add):
    async def handler(args: dict[str, Any]) -> str:
        await asyncio.sleep(0.001)
        return "ok"

    add(handler)
    assert quick(rt) == "ok"
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda: answers.extend(rt.call("x", "{}") for _ in range(20))) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["ok"] * 400


@pytest.mark.parametrize("loops", [1, 4])
def test_dispatch_B4_many_sync_tools_are_awaited_at_once(rt, add, loops):
    """What threads finish at the same moment wakes a loop once, and each waiter hears of its own call."""
    add(lambda args, tool_call_id: time.sleep(0.002) or tool_call_id)
    assert compile_call(rt, "x") is not None

    async def main() -> list[str]:
        return await asyncio.gather(*(rt.acall("x", "{}", tool_call_id=str(number)) for number in range(150)))

    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(asyncio.run(main()))) for _ in range(loops)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[str(number) for number in range(150)]] * loops
    assert len(rt._parts.dispatcher._wakers) <= loops
