"""Many calls at once: what overlaps, what keeps its order, one result for each (dispatch.P1 to P3)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mibyan import Block, Modify, Runtime, ToolCall, ToolContext, tool

from .conftest import SOON, make_runtime

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}


def reads(args: dict[str, Any]) -> list[str]:
    return [args["path"]]


@pytest.fixture(params=["call_many", "acall_many"])
def many(request, rt: Runtime) -> Callable[..., list[Any]]:
    """Both ways in."""

    def run(calls, **options):
        if request.param == "call_many":
            return rt.call_many(calls, **options)
        return asyncio.run(rt.acall_many(calls, **options))

    return run


def meeting(parties: int) -> Callable[..., str]:
    """A handler that ends only when `parties` calls are in it at once."""
    barrier = threading.Barrier(parties, timeout=SOON)

    def handler(args: dict[str, Any]) -> str:
        barrier.wait()
        return "met"

    return handler


def kept_apart(events, first: str) -> Callable[..., str]:
    """A handler that tells of its begin and end; the call named `first` waits meanwhile for a later one to begin."""

    def handler(args: dict[str, Any], tool_call_id: str) -> str:
        events.tell(f"{tool_call_id} begins")
        if tool_call_id == first:
            events.wait_for("free begins")
        events.tell(f"{tool_call_id} ends")
        return tool_call_id

    return handler


def free(events) -> Callable[..., str]:
    def handler(args: dict[str, Any]) -> str:
        events.tell("free begins")
        return "free"

    return handler


# What runs together --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"read_only": True}, {"parallel": True}, {"reads": lambda args: ["one"]}, {"reads": lambda args: "one"},
                {"writes": lambda args: [args.get("path", "other")]}, {"writes": lambda args: []},
                {"writes": lambda args: iter(())}, {"read_only": True, "reads": reads}]
)  # fmt: skip
def test_dispatch_P2_what_cannot_conflict_runs_together(many, add, options):
    """dispatch.P2: read-only and parallel tools, readers of one thing, writers of two are under way at once."""
    add("meet", meeting(2), PATH, **options)
    results = many([ToolCall("meet", {"path": "a"}), ToolCall("meet", {"path": "b"})])
    assert [result.text for result in results] == ["met", "met"]


def test_calls_that_cannot_run_conflict_with_nothing(many, add):
    """An unknown tool and invalid arguments are answered; the calls around them still meet."""
    add("meet", meeting(2), PATH, writes=reads)
    calls = [ToolCall("meet", {"path": "a"}), ToolCall("nope"), ToolCall("meet", {"path": 1}), ToolCall("meet", '{"path": '),
             ToolCall("meet", {"path": "b"})]  # fmt: skip
    kinds = [None, "unknown_tool", "invalid_arguments", "arguments_truncated", None]
    assert [result.error_type for result in many(calls)] == kinds


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_dispatch_P3_at_most_so_many_at_once(many, add, workers):
    """dispatch.P3: as many calls as `max_workers` are in their handlers at once, and never more."""
    lock, inside, peak = threading.Lock(), set(), []
    barrier = threading.Barrier(workers, timeout=SOON)

    def handler(args, tool_call_id):
        with lock:
            inside.add(tool_call_id)
            peak.append(len(inside))
        barrier.wait()
        with lock:
            inside.discard(tool_call_id)
        barrier.wait()

    add("work", handler, parallel=True)
    results = many([ToolCall("work", None, str(index)) for index in range(3 * workers)], max_workers=workers)
    assert all(result.ok for result in results)
    assert max(peak) == workers


def test_dispatch_P3_the_configuration_says_how_many(tmp_path):
    """dispatch.P3: `dispatch.max_workers` counts where the call doesn't say."""
    with make_runtime(tmp_path, dispatch={"max_workers": 1}) as rt:
        inside, peak = [], []

        def handler(args):
            inside.append(1)
            peak.append(len(inside))
            inside.pop()

        rt.registry.register("work", "t", {"parameters": PATH}, handler, read_only=True)
        assert all(result.ok for result in rt.call_many([ToolCall("work")] * 20))
        assert max(peak) == 1
        assert rt.plan([ToolCall("work")]).max_workers == 1


# What keeps its order ------------------------------------------------------------------------------------------------

BARRIERS = {
    "undeclared": {},
    "interactive": {"interactive": True, "read_only": True},
    "parallel=False": {"parallel": False, "read_only": True},
    "reads raises": {"reads": lambda args: args["missing"]},
    "writes raises": {"writes": lambda args: 1 / 0, "parallel": True},
    "exits": {"reads": lambda args: exit()},
    "None": {"reads": lambda args: None},
    "a number": {"writes": lambda args: 7},
    "bytes": {"writes": lambda args: b"a"},
    "a dict": {"writes": lambda args: {"a": 1}},
    "numbers": {"writes": lambda args: [1]},
    "nul": {"writes": lambda args: ["a\0b"]},
    "no end": {"reads": lambda args: iter(lambda: "a", None)},
    "an iterator that raises": {"reads": lambda args: (1 / 0 for _ in "a")},
}


async def _reads(args):
    return ["a"]


@pytest.mark.parametrize("options", [*BARRIERS.values(), {"reads": _reads}], ids=[*BARRIERS, "async"])
def test_dispatch_P2_barriers_are_alone(rt, add, options):
    """dispatch.P2: interactive and undeclared tools, and those that can't say what they touch, run beside no other."""
    add("barrier", lambda args: "x", PATH, **options)
    add("free", lambda args: "x", read_only=True)
    add("reader", lambda args: "x", PATH, reads=reads)
    calls = [ToolCall("free"), ToolCall("barrier", {"path": "a"}), ToolCall("free"), ToolCall("reader", {"path": "b"})]
    plan = rt.plan(calls)
    assert plan.waves == ((0,), (1,), (2, 3))
    assert plan.calls[1].kind == "barrier"
    assert [result.text for result in rt.call_many(calls)] == ["x"] * 4


def test_a_tool_that_hangs_over_its_resources_is_a_barrier(rt, add, never, monkeypatch):
    """dispatch.P2: a tool that doesn't come back with what it touches runs beside no other, and runs."""
    monkeypatch.setattr("mibyan.dispatch.resources_needs.NAMING_SECONDS", 0.05)
    add("slow", lambda args: "x", reads=lambda args: [str(never.wait())])
    add("free", lambda args: "x", read_only=True)
    calls = [ToolCall("free"), ToolCall("slow"), ToolCall("free")]
    assert rt.plan(calls).waves == ((0,), (1,), (2,))
    assert [result.text for result in rt.call_many(calls)] == ["x"] * 3


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"writes": reads}, {"writes": reads}),
        ({"writes": reads}, {"reads": reads}),
        ({"reads": reads}, {"writes": reads}),
    ],
)
def test_dispatch_P2_a_writer_excludes(many, add, events, first, second):
    """dispatch.P2: of two calls that touch the same, one writing, the later begins when the earlier has ended."""
    handler = kept_apart(events, "1")
    add("first", handler, PATH, **first)
    add("second", handler, PATH, **second)
    add("free", free(events), read_only=True)
    many([ToolCall("first", {"path": "a"}, "1"), ToolCall("second", {"path": "./a"}, "2"), ToolCall("free")])
    assert [event for event in events.all if event != "free begins"] == ["1 begins", "1 ends", "2 begins", "2 ends"]


def test_the_plan_is_made_of_what_runs(many, rt, add, events):
    """A hook that changes what a call writes changes what it conflicts with."""
    add("write", kept_apart(events, "1"), PATH, writes=reads)
    add("free", free(events), read_only=True)
    rt.add_hook("pre_tool_call", lambda args: Modify({"path": "a"}) if args.get("path") == "b" else None)
    many([ToolCall("write", {"path": "a"}, "1"), ToolCall("write", {"path": "b"}, "2"), ToolCall("free")])
    assert [event for event in events.all if event != "free begins"] == ["1 begins", "1 ends", "2 begins", "2 ends"]


def test_resources_are_named_by_coerced_arguments(rt, add):
    """`reads` and `writes` see what the handler would see, as a copy."""
    seen: list[Any] = []

    def writes(args):
        seen.append(dict(args))
        args["n"] = 0
        return [f"thing-{seen[-1]['n']}"]

    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}}
    add("count", lambda args: args["n"], parameters, writes=writes)
    results = rt.call_many([ToolCall("count", {"n": "1"}), ToolCall("count", '{"n": 2.0}')])
    assert [result.text for result in results] == ["1", "2"]
    assert {args["n"] for args in seen} == {1, 2}


def test_a_later_call_finds_what_an_earlier_one_made(many, rt, add, tmp_path):
    """A path through a link that an earlier call makes is what the link says, for the plan too."""
    (tmp_path / "target").mkdir()
    add("link", lambda args: (tmp_path / "link").symlink_to("target"),
        writes=lambda args: [f"{tmp_path}/link", f"{tmp_path}/target"])  # fmt: skip
    add("write", lambda args: (tmp_path / "link" / "f").write_text("new"), writes=lambda args: [f"{tmp_path}/link/f"])
    add("read", lambda args: (tmp_path / "target" / "f").read_text(), reads=lambda args: [f"{tmp_path}/target/f"])
    assert [result.text for result in many([ToolCall("link"), ToolCall("write"), ToolCall("read")])][2] == "new"


def test_a_barrier_may_change_the_working_directory(many, rt, add, tmp_path, events):
    """What a call touches is asked again after a tool that may have changed anything, such as where relative paths start."""
    (tmp_path / "d").mkdir()
    session = rt.session(cwd=tmp_path)
    add("cd", lambda args: session.set_cwd("d"))
    handler = kept_apart(events, "1")
    add("write", handler, PATH, writes=reads)
    add("free", free(events), read_only=True)
    calls = [ToolCall("cd"), ToolCall("write", {"path": "a"}, "1"), ToolCall("write", {"path": f"{tmp_path}/d/a"}, "2"),
             ToolCall("free")]  # fmt: skip
    many(calls, session=session)
    assert [event for event in events.all if event != "free begins"] == ["1 begins", "1 ends", "2 begins", "2 ends"]


# One result for each -------------------------------------------------------------------------------------------------


def test_dispatch_P1_results_are_in_call_order(many, add, events):
    """dispatch.P1: whatever ends first, the results are those of the calls, in their order, with their ids."""

    def handler(args, tool_call_id):
        if tool_call_id == "0":
            events.wait_for("1", "2")
        events.tell(tool_call_id)
        return tool_call_id

    add("work", handler, read_only=True)
    results = many([ToolCall("work", {}, str(index)) for index in range(3)])
    assert [(result.id, result.text) for result in results] == [("0", "0"), ("1", "1"), ("2", "2")]


def test_dispatch_P1_one_result_for_each_id(many, add):
    """dispatch.P1: calls without an id, and several of one id, have a result each."""
    add("echo", lambda args: args["n"], parallel=True)
    calls = [
        ToolCall("echo", {"n": 1}),
        ToolCall("echo", {"n": 2}, "x"),
        ToolCall("echo", {"n": 3}, "x"),
        ToolCall("", {}, "x"),
    ]
    results = many(calls)
    assert [(result.id, result.text) for result in results][:3] == [(None, "1"), ("x", "2"), ("x", "3")]
    assert (results[3].id, results[3].error_type) == ("x", "unknown_tool")


def test_no_calls_have_no_results(many, rt):
    """An empty batch is one."""
    assert many([]) == []
    assert rt.plan([]).waves == ()
    assert rt.plan(iter(())).explain().startswith("0 calls")


@pytest.mark.parametrize(
    ("calls", "options", "error"),
    [
        (ToolCall("x"), {}, TypeError),
        ("x", {}, TypeError),
        (7, {}, TypeError),
        (None, {}, TypeError),
        ([("x", {})], {}, TypeError),
        ([ToolCall("x"), "x"], {}, TypeError),
        ([], {"max_workers": "8"}, TypeError),
        ([], {"max_workers": True}, TypeError),
        ([], {"max_workers": 0}, ValueError),
        ([], {"timeout": "1"}, TypeError),
        ([], {"timeout": 0}, ValueError),
        ([], {"session": 7}, TypeError),
        ([ToolCall("x")], {"task_id": 7}, TypeError),
    ],
)
def test_wrong_arguments_are_told(many, calls, options, error):
    """A host's mistake is a TypeError or ValueError with a sentence, not a result."""
    with pytest.raises(error, match=r"[a-z]+.*\."):
        many(calls, **options)


# The pipeline is that of every call ----------------------------------------------------------------------------------


def test_dispatch_H1_hooks_see_the_calls_in_their_order(many, rt, add):
    """dispatch.H1: pre hooks run once for each call and in call order, so a policy that counts gives what it would."""
    seen: list[str] = []

    def budget(tool_call_id):
        seen.append(tool_call_id)
        return Block("enough") if len(seen) > 3 else None

    rt.add_hook("pre_tool_call", budget)
    add("work", lambda args: "x", read_only=True)
    results = many([ToolCall("work", {}, str(index)) for index in range(6)])
    assert seen == [str(index) for index in range(6)]
    assert [result.status for result in results] == ["ok"] * 3 + ["blocked"] * 3


def test_dispatch_H1_post_hooks_see_every_call_once(many, rt, add):
    """dispatch.H1: `post_tool_call` once for each, refused ones too."""
    seen: list[tuple[str, str]] = []
    rt.add_hook("post_tool_call", lambda tool_call_id, status: seen.append((tool_call_id, status)))
    add("work", lambda args: 1 / 0 if args else "x", read_only=True)
    many([ToolCall("work", {}, "1"), ToolCall("nope", {}, "2"), ToolCall("work", {"a": 1}, "3")])
    assert sorted(seen) == [("1", "ok"), ("2", "error"), ("3", "error")]


def test_a_session_starts_before_its_first_calls(many, rt, add, events):
    """`on_session_start` has run, once, before any of them."""
    rt.add_hook("on_session_start", lambda session_id: events.tell("start"))
    rt.add_hook("pre_tool_call", lambda: events.tell("hook"))
    add("work", lambda args: events.tell("work"), read_only=True)
    with rt.session() as session:
        many([ToolCall("work")] * 4, session=session)
        many([ToolCall("work")], session=session)
    assert events.all[0] == "start"
    assert sorted(events.all[1:]) == ["hook"] * 5 + ["work"] * 5


def test_a_hook_that_hangs_is_overtaken(rt, add, never, monkeypatch, events):
    """dispatch.P3: a call that doesn't come out of its policy holds the order of the others for a moment only."""
    monkeypatch.setattr("mibyan.dispatch.many_lanes.PATIENCE", 0.05)

    def hook(tool_call_id):
        events.tell(f"hook {tool_call_id}")
        if tool_call_id == "0":
            events.wait_for("work 2")

    rt.add_hook("pre_tool_call", hook)
    add("work", lambda args, tool_call_id: events.tell(f"work {tool_call_id}"), read_only=True)
    results = rt.call_many([ToolCall("work", {}, str(index)) for index in range(3)])
    assert [result.status for result in results] == ["ok"] * 3


def test_typed_tools_know_their_call(rt):
    """A typed tool gets its context, arguments as Python types, and the deadline of the batch."""

    @tool(toolset="t", read_only=True)
    def add_one(ctx: ToolContext, n: int) -> list[Any]:  # noqa: D417 - `ctx` isn't the model's
        """Add one.

        Args:
            n: A number.
        """
        return [n + 1, ctx.tool_call_id, ctx.remaining is not None and ctx.remaining <= SOON]

    rt.registry.add(add_one)
    results = rt.call_many([ToolCall("add_one", {"n": "1"}, "x"), ToolCall("add_one", {"n": 2}, "y")], timeout=SOON)
    assert [result.data for result in results] == [[2, "x", True], [3, "y", True]]


def test_dispatch_B3_context_variables_are_visible(many, rt, add):
    """dispatch.B3: the caller's context variables are there in handlers and in `reads`."""
    import contextvars

    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="no")
    named: list[str] = []
    add("work", lambda args: variable.get(), reads=lambda args: named.append(variable.get()) or ["a"])
    variable.set("yes")
    assert [result.text for result in many([ToolCall("work")] * 2)] == ["yes", "yes"]
    assert set(named) == {"yes"}


# Nested --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
def test_dispatch_B4_batches_within_batches_do_not_starve(many, rt, add, asynchronous):
    """dispatch.B4: a handler that makes many calls waits for them, five levels deep, with one worker each."""

    def sync_handler(args):
        depth = args["depth"]
        if depth == 0:
            return 1
        calls = [ToolCall("nest", {"depth": depth - 1})] * 2
        return sum(int(result.text) for result in rt.call_many(calls, max_workers=1))

    async def async_handler(args):
        return sync_handler(args)

    add("nest", async_handler if asynchronous else sync_handler, parallel=True)
    assert [result.text for result in many([ToolCall("nest", {"depth": 4})] * 2)] == ["16", "16"]


def test_many_calls_in_a_running_loop(rt, add):
    """dispatch.B1: the sync API works inside a running loop, with async handlers too."""

    async def handler(args):
        await asyncio.sleep(0)
        return "x"

    add("work", handler, read_only=True)

    async def main():
        return rt.call_many([ToolCall("work")] * 3)

    assert [result.text for result in asyncio.run(main())] == ["x"] * 3


def test_dispatch_B1_async_handlers_run_on_the_callers_loop(rt, add):
    """dispatch.B1: `acall_many` runs them on the running loop, together, and holds it for none."""
    barrier = None

    async def handler(args):
        await barrier.wait()
        return id(asyncio.get_running_loop())

    add("meet", handler, parallel=True)
    add("thread", lambda args: threading.current_thread() is threading.main_thread(), read_only=True)

    async def main():
        nonlocal barrier
        barrier = asyncio.Barrier(3)
        batch = asyncio.create_task(rt.acall_many([ToolCall("meet"), ToolCall("meet"), ToolCall("thread")]))
        await barrier.wait()
        return id(asyncio.get_running_loop()), await batch

    loop, results = asyncio.run(main())
    assert [result.text for result in results] == [str(loop), str(loop), "false"]
