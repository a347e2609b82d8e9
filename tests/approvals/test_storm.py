"""Many ask at once: everybody gets the own answer, one notification for what is the same, and no loop stands still."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter

import pytest

from mibyan import Ask, Runtime, ToolCall

SOON = 30.0


@pytest.fixture
def make(tmp_path):
    made = []

    def runtime(timeout=20.0):
        rt = Runtime(home=tmp_path, config={"approvals": {"timeout": timeout}})
        rt._parts._loaded = True
        rt.registry.register(
            "x",
            "t",
            {"description": ""},
            lambda args: "ran",
            approval=lambda args, context: Ask("sure?", key=args.get("key")),
        )
        made.append(rt)
        return rt

    yield runtime
    for rt in made:
        rt.close()


def wait_until(true):
    until = time.monotonic() + SOON
    while not true():
        assert time.monotonic() < until
        threading.Event().wait(0.002)


def test_approvals_P2_a_hundred_ask_in_ten_sessions(make):
    """Threads and tasks, some answered, some timed out, some cancelled: each has exactly its own; no grant crosses a session."""
    rt = make(timeout=3.0)
    chance = random.Random(7)
    sessions = [rt.session(f"s{number}") for number in range(10)]
    plan = {}
    for number in range(100):
        want = chance.choice(["once", "session", "deny", "silence", "cancel"])
        plan[number] = (sessions[number % 10], want)
    wanted = {str(number): want for number, (_, want) in plan.items()}

    def answer(request):
        number = request.text.split('"n":')[1].split(",")[0].strip(' "}')
        want = wanted[number]
        if want in {"once", "session", "deny"}:
            threading.Timer(chance.random() / 10, rt.approvals.resolve, (request.id, want)).start()

    rt.approvals.notify(answer)
    results, ticks = {}, []

    async def one(number):
        session, want = plan[number]
        call = rt.aexecute(ToolCall("x", {"n": str(number), "key": f"k{number}"}), session=session)
        task = asyncio.ensure_future(call)
        if want == "cancel":
            await asyncio.sleep(0.3)
            task.cancel()
        try:
            results[number] = (await task).status
        except asyncio.CancelledError:
            results[number] = "cancelled"

    async def clock(stop):
        while not stop.is_set():
            before = time.monotonic()
            await asyncio.sleep(0.01)
            ticks.append(time.monotonic() - before)

    async def all_tasks():
        stop = asyncio.Event()
        ticking = asyncio.ensure_future(clock(stop))
        await asyncio.gather(*(one(number) for number in range(50)))
        stop.set()
        await ticking

    def thread(number):
        session, want = plan[number]
        if want == "cancel":  # a deadline isn't a person's: a thread's call is cancelled with its own session
            with rt.session() as own:
                threading.Timer(0.3, own.interrupt).start()
                results[number] = rt.execute(
                    ToolCall("x", {"n": str(number), "key": f"k{number}"}), session=own, timeout=SOON
                ).status
            return
        results[number] = rt.execute(
            ToolCall("x", {"n": str(number), "key": f"k{number}"}), session=session, timeout=SOON
        ).status

    threads = [threading.Thread(target=thread, args=(number,)) for number in range(50, 100)]
    for each in threads:
        each.start()
    asyncio.run(all_tasks())
    for each in threads:
        each.join(SOON)
    expected = {"once": "ok", "session": "ok", "deny": "denied", "silence": "denied", "cancel": "cancelled"}
    assert results == {number: expected[want] for number, (_, want) in plan.items()}
    assert len(ticks) > 50
    for session in sessions:
        own = {f"host:k{number}" for number, (whose, want) in plan.items() if whose is session and want == "session"}
        assert rt.approvals.granted(session) == own
    assert rt.approvals.pending() == []
    assert rt._parts.approvals._waiting == {}


def _waiters(rt):
    return sum(len(held.waiters) for held in list(rt._parts.approvals._waiting.values()))


@pytest.mark.parametrize("answer", ["once", "deny"])
def test_approvals_P2_the_same_question_is_one_notification(make, answer):
    """Threads that ask the same at once wait for one answer; another session's question is another."""
    rt = make()
    asked, statuses = [], Counter()
    rt.approvals.notify(asked.append)
    sessions = [rt.session("a"), rt.session("b")]
    threads = [
        threading.Thread(
            target=lambda s=session: statuses.update([(s.id, rt.execute(ToolCall("x"), session=s).status)])
        )
        for session in sessions
        for _ in range(5)
    ]
    for each in threads:
        each.start()
    wait_until(lambda: _waiters(rt) == 10)
    assert sorted(request.session_id for request in asked) == ["a", "b"]
    for request in asked:
        assert rt.approvals.resolve(request.id, answer if request.session_id == "a" else "once")
    for each in threads:
        each.join(SOON)
    assert statuses == {("a", "ok" if answer == "once" else "denied"): 5, ("b", "ok"): 5}


def test_one_who_leaves_leaves_the_question_to_the_others(make):
    """The first one is interrupted; who asked the same after it gets the person's answer."""
    rt = make()
    asked, results = [], {}
    rt.approvals.notify(asked.append)

    async def main():
        first = asyncio.ensure_future(rt.aexecute(ToolCall("x")))
        await asyncio.to_thread(wait_until, lambda: asked)
        second = asyncio.ensure_future(rt.aexecute(ToolCall("x")))
        await asyncio.to_thread(wait_until, lambda: _waiters(rt) == 2)
        first.cancel()
        await asyncio.wait([first])
        results["open"] = rt.approvals.is_open(asked[0].id)
        rt.approvals.resolve(asked[0].id, "once")
        results["second"] = (await second).status

    asyncio.run(main())
    assert (results, len(asked)) == ({"open": True, "second": "ok"}, 1)


def test_a_queue_on_a_thread(make):
    """Questions are taken when the host is ready; one that is over isn't given out; closing denies what waits."""
    rt = make()
    queue = rt.approvals.queue()
    assert queue.get(timeout=0) is None
    results = {}
    threads = [
        threading.Thread(target=lambda n=number: results.update({n: rt.execute(ToolCall("x", {"n": n})).status}))
        for number in range(3)
    ]
    for each in threads:
        each.start()
    wait_until(lambda: len(rt.approvals.pending()) == 3)
    rt.approvals.resolve(rt.approvals.pending()[0].id, "once")
    request = queue.get(timeout=SOON)
    assert rt.approvals.is_open(request.id)
    queue.resolve(request.id, "once")
    assert queue.get(timeout=SOON).id == rt.approvals.pending()[0].id
    with queue:
        pass
    for each in threads:
        each.join(SOON)
    assert Counter(results.values()) == {"ok": 2, "denied": 1}
    assert (list(queue), queue.closed) == ([], True)
    assert rt.execute(ToolCall("x")).status == "denied"


def test_a_queue_in_an_event_loop(make):
    """`async for` takes questions without holding the loop; another channel in its place ends it."""
    rt = make()

    async def main():
        queue = rt.approvals.queue()
        assert await queue.aget(timeout=0.01) is None

        async def host():
            return [queue.resolve(request.id, "once") async for request in queue]

        hosting = asyncio.ensure_future(host())
        results = await asyncio.gather(*(rt.aexecute(ToolCall("x", {"n": number})) for number in range(5)))
        rt.approvals.notify(lambda request: "deny")
        return [result.status for result in results], await hosting, (await rt.aexecute(ToolCall("x"))).status

    assert asyncio.run(main()) == (["ok"] * 5, [True] * 5, "denied")


def test_an_async_channel_that_raises_denies(make, caplog):
    """As a sync one that does."""
    rt = make()

    async def channel(request):
        raise ValueError("no line")

    rt.approvals.notify(channel)
    assert rt.execute(ToolCall("x")).status == "denied"
    assert "no line" in caplog.text


@pytest.mark.parametrize(("said", "status"), [("once", "ok"), ("session", "ok"), ("deny", "denied")])
@pytest.mark.parametrize("form", ["sync", "async"])
def test_a_channel_may_answer_by_what_it_returns(make, said, status, form):
    """One of the four answers; anything else it returns means nothing."""
    rt = make()

    async def channel(request):
        return said

    rt.approvals.notify(channel if form == "async" else lambda request: said)
    assert rt.execute(ToolCall("x")).status == status
