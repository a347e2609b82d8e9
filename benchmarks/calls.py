"""What a call costs beside its floor: inline, awaited, from sync code, guarded."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from benchmarks import work
from benchmarks.figures import Target
from benchmarks.harness import Pair, PerAwait, PerCall, measure, own_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import mibyan
    from benchmarks.figures import Figure
    from benchmarks.harness import Effort

GROUP = "calls"

#: Seconds; a call that has one is guarded.
TIMEOUT = 60.0


def figures(effort: Effort) -> list[Figure]:
    """All figures of single calls."""
    with ExitStack() as stack:
        plain, hooked = stack.enter_context(work.runtime()), stack.enter_context(work.runtime())
        for each in plain, hooked:
            work.register(each)
        work.add_hooks(hooked)
        loop = stack.enter_context(own_loop())
        pairs = [
            *_inline(plain, hooked),
            *_awaited(plain, loop),
            *_bridged(plain, loop, stack.enter_context(_bare_loop())),
            *_guarded(plain, hooked, stack.enter_context(_waiting_thread())),
        ]
        _check(pairs, plain, hooked)
        return measure(GROUP, pairs, effort.windows)


def _check(pairs: list[Pair], *runtimes: mibyan.Runtime) -> None:
    """What is measured does its work: an error would be quick too."""
    names = ("list_folder", "list_folder_async", "flat", "flat_context")
    answers = [runtime.call(name, work.TEXT) for runtime in runtimes for name in names]
    answers += [runtime.call("nested", work.NESTED_TEXT) for runtime in runtimes]
    wrong = [answer for answer in answers if answer != '{"result": "src/app"}']
    if wrong or not pairs:
        raise RuntimeError(f"a call that is to be measured answers {wrong[:1]}")


def _inline(plain: mibyan.Runtime, hooked: mibyan.Runtime) -> list[Pair]:
    def beside_floor(name: str, tool: str, text: str, bound: float, aim: float | None = None) -> Pair:
        call = plain.call
        return Pair(name, "validated call", PerCall(work.Floor().call), PerCall(lambda: call(tool, text)), "µs",
                    Target(bound, aim))  # fmt: skip

    without, with_hooks = plain.call, hooked.call
    return [
        beside_floor("typed tool, text to text", "list_folder", work.TEXT, 4, 2.5),
        beside_floor("raw JSON Schema, flat", "flat", work.TEXT, 4),
        beside_floor("raw JSON Schema, flat, handler(args, **context)", "flat_context", work.TEXT, 4),
        beside_floor("raw JSON Schema, nested", "nested", work.NESTED_TEXT, 6),
        Pair("with one pre and one post hook", "the same without", PerCall(lambda: without("list_folder", work.TEXT)),
             PerCall(lambda: with_hooks("list_folder", work.TEXT)), "µs", Target(0.5, subject="more")),
    ]  # fmt: skip


def _awaited(plain: mibyan.Runtime, loop: asyncio.AbstractEventLoop) -> list[Pair]:
    call = plain.acall
    return [
        Pair("acall of an async tool", "validated call", PerCall(work.Floor().call),
             PerAwait(loop, lambda: call("list_folder_async", work.TEXT)), "µs", Target(4.5, 2.5)),
        Pair("acall of a sync tool", "asyncio.to_thread",
             PerAwait(loop, lambda: asyncio.to_thread(work.list_folder, **work.ARGUMENTS)),
             PerAwait(loop, lambda: call("list_folder", work.TEXT)), "µs", Target(1.25)),
    ]  # fmt: skip


def _bridged(
    plain: mibyan.Runtime, loop: asyncio.AbstractEventLoop, bare_loop: asyncio.AbstractEventLoop
) -> list[Pair]:
    def submitted() -> object:
        return asyncio.run_coroutine_threadsafe(work.list_folder_async(**work.ARGUMENTS), bare_loop).result()

    def called() -> object:
        return plain.call("list_folder_async", work.TEXT)

    async def submitted_inside() -> object:
        return submitted()

    async def called_inside() -> object:
        return called()

    return [
        Pair("async tool from sync code", "run_coroutine_threadsafe", PerCall(submitted), PerCall(called), "µs",
             Target(1.0)),
        Pair("async tool from sync code inside a running loop", "run_coroutine_threadsafe",
             PerAwait(loop, submitted_inside), PerAwait(loop, called_inside), "µs"),
    ]  # fmt: skip


def _guarded(plain: mibyan.Runtime, hooked: mibyan.Runtime, hand_over: Callable[[], object]) -> list[Pair]:
    call, with_hooks = plain.call, hooked.call
    return [
        Pair("guarded call of a sync tool", "hand-over to a waiting thread", PerCall(hand_over),
             PerCall(lambda: call("list_folder", work.TEXT, timeout=TIMEOUT)), "µs", Target(1.5)),
        Pair("guarded call with two sync hooks", "hand-over to a waiting thread", PerCall(hand_over),
             PerCall(lambda: with_hooks("list_folder", work.TEXT, timeout=TIMEOUT)), "µs", Target(2.0)),
    ]  # fmt: skip


@contextmanager
def _waiting_thread() -> Iterator[Callable[[], object]]:
    """The bare hand-over: a thread that waits on a queue runs the function, the caller waits for the answer."""
    jobs: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
    answers: SimpleQueue[object] = SimpleQueue()

    def serve() -> None:
        while (arguments := jobs.get()) is not None:
            answers.put(work.list_folder(**arguments))

    def hand_over() -> object:
        jobs.put(work.ARGUMENTS)
        return answers.get()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield hand_over
    finally:
        jobs.put(None)
        thread.join()


@contextmanager
def _bare_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
