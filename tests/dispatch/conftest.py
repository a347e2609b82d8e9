"""A runtime without plugins, the ways in, and tools made of plain functions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from mibyan import Ask, Runtime, ToolCall, ToolEntry, ToolResult
from mibyan.dispatch.quick.compiled import Express
from mibyan.dispatch.quick.lane import Kept

ANY = {"type": "object", "properties": {}}

#: Seconds for what must happen at once but may be late on a busy machine.
SOON = 20.0


class Face(Protocol):
    """One of the ways in."""

    name: str
    rt: Runtime

    def __call__(self, name: Any = "x", args: Any = None, **options: Any) -> ToolResult: ...


def inline(rt: Runtime, call: ToolCall, **options: Any) -> ToolResult:
    return rt.execute(call, **options)


def quick(rt: Runtime, call: ToolCall, **options: Any) -> ToolResult:
    """An inline call on the quick way, where there is one: as if the tool had been called before."""
    compile_call(rt, call.name, options.get("session"))
    return rt.execute(call, **options)


def compile_call(rt: Runtime, name: Any, session: Any = None) -> Express | None:
    """The compiled call of a tool in a session, which has begun then."""
    parts = rt._parts
    entry = parts.store.find(name) if isinstance(name, str) else None
    own = parts.sessions.find(session)
    if entry is None or entry.name != name or rt.closed or own.closed:
        return None
    if not own.started:
        if parts.hooks.chain("on_session_start"):
            return None  # The first call is theirs.
        own.begin()
    kept = own._express.setdefault(name, Kept())
    parts.lane.compile(kept, entry, own)
    return kept.express


def guarded(rt: Runtime, call: ToolCall, **options: Any) -> ToolResult:
    return rt.execute(call, **{"timeout": SOON, **options})


def quick_guarded(rt: Runtime, call: ToolCall, **options: Any) -> ToolResult:
    """A guarded call on the quick way."""
    compile_call(rt, call.name, options.get("session"))
    return guarded(rt, call, **options)


def quick_awaited(rt: Runtime, call: ToolCall, **options: Any) -> ToolResult:
    """An awaited call on the quick way."""
    compile_call(rt, call.name, options.get("session"))
    return awaited(rt, call, **options)


def awaited(rt: Runtime, call: ToolCall, **options: Any) -> ToolResult:
    return asyncio.run(rt.aexecute(call, **options))


def in_a_loop(rt: Runtime, call: ToolCall, **options: Any) -> ToolResult:
    async def main() -> ToolResult:
        return rt.execute(call, **options)

    return asyncio.run(main())


def on_a_thread(rt: Runtime, call: ToolCall, **options: Any) -> ToolResult:
    box: list[ToolResult] = []
    thread = threading.Thread(target=lambda: box.append(rt.execute(call, **options)))
    thread.start()
    thread.join(SOON)
    return box[0]


def many(rt: Runtime, call: ToolCall, **options: Any) -> ToolResult:
    (result,) = rt.call_many([call], **options)
    return result


FACES: dict[str, Callable[..., ToolResult]] = {
    "inline": inline,
    "quick": quick,
    "guarded": guarded,
    "quick guarded": quick_guarded,
    "awaited": awaited,
    "quick awaited": quick_awaited,
    "in a loop": in_a_loop,
    "on a thread": on_a_thread,
    "many": many,
}


@pytest.fixture(scope="session", autouse=True)
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a first call imports is there before a deadline is measured."""
    with make_runtime(tmp_path_factory.mktemp("warm")) as runtime:
        runtime.registry.register("x", "t", {"description": ""}, coroutine)
        runtime.add_hook("pre_tool_call", lambda: Ask("sure?"))
        for face in FACES.values():
            face(runtime, ToolCall("x", {"a": "1"}))


async def coroutine(args: dict[str, Any]) -> dict[str, Any]:
    return args


@pytest.fixture
def rt(tmp_path: Path) -> Iterator[Runtime]:
    """A runtime that looks for no plugins."""
    runtime = make_runtime(tmp_path / "mibyan")
    yield runtime
    runtime.close()


def make_runtime(home: Path, **config: Any) -> Runtime:
    """A runtime that looks for no plugins, with this configuration."""
    runtime = Runtime(home=home, config=config or None)
    runtime._parts._loaded = True
    return runtime


#: The ways in that differ from another only by who calls, or that are that and the quick way: once is enough.
THOROUGH = {"in a loop", "on a thread", "many", "quick guarded", "quick awaited"}


@pytest.fixture(params=[pytest.param(face, marks=[pytest.mark.thorough] if face in THOROUGH else []) for face in FACES])
def face(request: pytest.FixtureRequest, rt: Runtime) -> Face:
    """Each of the ways in."""

    def run(name: Any = "x", args: Any = None, call_id: str | None = None, **options: Any) -> ToolResult:
        return FACES[request.param](rt, ToolCall(name, args, call_id), **options)

    run.name, run.rt = request.param, rt  # type: ignore[attr-defined]
    return run


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a handler of a function: as it is, or a coroutine function."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        if request.param == "sync":
            return function

        async def handler(args: dict[str, Any], **context: Any) -> Any:
            return function(args, **context)

        return handler

    return make


@pytest.fixture
def add(rt: Runtime) -> Callable[..., ToolEntry]:
    """Registers a handler as a tool."""

    def register(handler: Callable[..., Any], name: str = "x", parameters: Any = None, **options: Any) -> ToolEntry:
        schema = {"description": "d", "parameters": ANY if parameters is None else parameters}
        entry = rt.registry.register(name, "tests", schema, handler, **options)
        assert entry is not None
        return entry

    return register


@pytest.fixture
def seen(rt: Runtime) -> list[dict[str, Any]]:
    """What `post_tool_call` was told, call by call."""
    told: list[dict[str, Any]] = []
    rt.add_hook("post_tool_call", lambda **values: told.append(values))
    return told
