"""Hooks in the pipeline (dispatch.H1 to H4)."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import threading

import pytest

import mibyan
from mibyan import Ask, Block, Modify
from mibyan.dispatch import chains
from mibyan.tools.owner import Owner
from mibyan.tools.results import ToolCall

from .conftest import SOON, make_runtime
from .hostile import EvilDict, EvilText, Liar, NoText, check_well_formed

INT = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "m": {}},
    "required": ["n"],
    "additionalProperties": False,
}


def plugin(rt, name, source="user", **hooks):
    """Give a plugin these hook implementations."""
    options = {key: hooks.pop(key) for key in ("rank", "observer") if key in hooks}
    owner = Owner(name, "plugin", source)
    rt.hooks.register(owner, hooks, **options)
    return owner


# H1: once, with copies, whatever becomes of the call ----------------------------------------------------------------

#: By name: what is called, whether `pre_tool_call` fires, and the status.
PATHS = {
    "ok": (("x", {"n": 1}), True, "ok"),
    "the handler raises": (("bad", {}), True, "error"),
    "unknown": (("nope", {}), False, "error"),
    "unavailable": (("off", {}), False, "error"),
    "invalid arguments": (("x", {"n": "a"}), False, "error"),
    "truncated arguments": (("x", '{"n": 1'), False, "error"),
    "not in the session": (("hidden", {}), False, "error"),
    "agent-level": (("todo", {}), False, "error"),
    "blocked by its own approval": (("guarded", {}), True, "blocked"),
    "denied": (("asking", {}), True, "denied"),
}


@pytest.fixture
def world(rt, add, kind):
    def raising(args, **_):
        raise ValueError

    add(kind(lambda args, **_: "ok"), parameters=INT)
    add(kind(raising), "bad")
    add(kind(lambda args, **_: "ok"), "off", check_fn=lambda: False)
    add(kind(lambda args, **_: "ok"), "todo", handled_by="agent")
    add(kind(lambda args, **_: "ok"), "guarded", approval=lambda args, context: Block("no"))
    add(kind(lambda args, **_: "ok"), "asking", approval=lambda args, context: Ask("sure?"))
    rt.registry.register("hidden", "other", {"description": ""}, lambda args: "ok")
    return rt


@pytest.mark.parametrize("path", PATHS)
def test_dispatch_H1_each_fires_exactly_once(face, world, path):
    """dispatch.H1: `post_tool_call` fires once for every call, `pre_tool_call` once for each that got that far."""
    (name, args), has_pre, status = PATHS[path]
    fired = []
    for hook in ("pre_tool_call", "post_tool_call"):
        plugin(world, f"p{hook}", **{hook: lambda hook=hook, **_: fired.append(hook) or None})
    session = world.session(enabled_toolsets=["tests"])
    result = face(name, args, session=session)
    check_well_formed(result)
    assert result.status == status
    assert fired == (["pre_tool_call"] if has_pre else []) + ["post_tool_call"]


def test_dispatch_H1_what_they_are_told(face, add):
    """dispatch.H1: the hooks get the call's facts; `args` are the model's, coerced, `executed_args` the handler's."""
    told = {}
    add(lambda args: {"got": args}, parameters=INT)
    plugin(face.rt, "p", pre_tool_call=lambda **v: told.update(pre=v) or Modify({"n": 2}),
           post_tool_call=lambda **v: told.update({"post": v}))  # fmt: skip
    session = face.rt.session("s1")
    result = face("X", '{"n": "1"}', call_id="c1", session=session, task_id="t1", user_task="do it")
    common = {"tool_name": "x", "args": {"n": 1}, "toolset": "tests", "task_id": "t1", "session_id": "s1",
              "tool_call_id": "c1", "user_task": "do it"}  # fmt: skip
    assert told["pre"] == common
    assert told["post"].pop("duration_ms") >= 0
    assert told["post"] == {**common, "result": result.text, "status": "ok", "error_type": None, "error_message": None,
                            "executed_args": {"n": 2}}  # fmt: skip
    assert result.data == {"got": {"n": 2}}


@pytest.mark.parametrize("hook", ["pre_tool_call", "post_tool_call", "transform_tool_result"])
def test_dispatch_H1_copies(face, add, hook):
    """dispatch.H1: what an implementation does to its arguments reaches neither the handler nor the next implementation."""
    given, others = {"n": 1, "m": {"deep": [1]}}, []

    def spoil(args):
        args["m"]["deep"].append(2)
        args["n"] = 99

    add(lambda args: {"got": args}, parameters=INT)
    plugin(face.rt, "a", **{hook: spoil})
    plugin(face.rt, "b", **{hook: lambda **values: others.append(values["args"])})
    assert face(args=given).data == {"got": {"n": 1, "m": {"deep": [1]}}}
    assert others == [{"n": 1, "m": {"deep": [1]}}]
    assert given == {"n": 1, "m": {"deep": [1]}}


# H1: block > ask > modify > allow -----------------------------------------------------------------------------------

DECISIONS = {
    "block": (lambda: Block("no"), {"action": "block", "message": "no"}),
    "ask": (lambda: Ask("sure?"), {"action": "approve", "message": "sure?"}),
    "modify": (lambda: Modify({"n": 2}), {"action": "modify", "args": {"n": 2}}),
    "allow": (lambda: None, {"action": "allow"}),
}


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize("order", list(itertools.permutations(DECISIONS)))
def test_dispatch_H1_the_order_of_the_implementations_doesnt_matter(rt, add, order, form):
    """dispatch.H1: all implementations run, and block beats ask beats modify beats allow, in every order and form."""
    add(lambda args: str(args["n"]), parameters=INT)
    counted, asked = [], []
    rt.approvals.notify(lambda request: asked.append(request) or rt.approvals.resolve(request.id, "once"))
    owners = {}
    for name in order:
        answer = DECISIONS[name][form]
        give = answer if callable(answer) else lambda answer=answer: answer
        owners[name] = plugin(rt, name, pre_tool_call=lambda name=name, give=give: counted.append(name) or give())
    result = rt.execute(ToolCall("x", {"n": 1}))
    assert (result.status, result.error, asked) == ("blocked", "no", [])
    assert counted == list(order)
    rt.hooks.remove_owner(owners["block"])
    assert rt.call("x", {"n": 1}) == "2"
    assert [request.reason for request in asked] == ["sure?"]
    rt.hooks.remove_owner(owners["ask"])
    assert rt.call("x", {"n": 1}) == "2"
    rt.hooks.remove_owner(owners["modify"])
    assert rt.call("x", {"n": 1}) == "1"
    assert len(asked) == 1


def test_dispatch_H1_a_block_names_its_plugin(face, add):
    """A blocked call says who blocked it."""
    add(lambda args: pytest.fail("it ran"))
    plugin(face.rt, "strict", pre_tool_call=lambda: Block("not on Sundays"))
    assert json.loads(face().text) == {"error": "not on Sundays", "error_type": "blocked", "blocked_by": "strict"}


def test_dispatch_H1_modifications_are_validated_before_a_person_is_asked(face, add):
    """dispatch.H1: what a hook made of the arguments is coerced and validated again, then a person sees it."""
    shown = []
    rt = face.rt
    add(lambda args: str(args["n"]), parameters=INT)
    rt.approvals.notify(
        lambda request: shown.append(json.loads(request.text)) or rt.approvals.resolve(request.id, "once")
    )
    plugin(rt, "asks", pre_tool_call=lambda: Ask("sure?"))
    owner = plugin(rt, "changes", pre_tool_call=lambda: Modify({"n": "7"}))
    assert face(args={"n": 1}).text == "7"
    assert shown == [{"n": 7}]
    rt.hooks.remove_owner(owner)
    plugin(rt, "spoils", pre_tool_call=lambda: Modify({"n": "seven", "z": 1}))
    result = face(args={"n": 1})
    assert (result.error_type, len(shown)) == ("invalid_arguments", 1)
    assert "spoils" in result.error
    assert {violation["path"] for violation in json.loads(result.text)["violations"]} == {"n", "z"}


def test_dispatch_H1_the_later_plugins_modification_counts(face, add):
    """dispatch.H1: of two modifications of one key the later plugin's wins, and the trace says so; other keys stay."""
    add(lambda args: args, parameters=INT)
    plugin(face.rt, "later", "project", pre_tool_call=lambda: Modify({"n": 3}))
    plugin(face.rt, "first", "pip", pre_tool_call=lambda: Modify({"n": 2, "m": "kept"}))
    result = face(args={"n": 1})
    assert result.data == {"n": 3, "m": "kept"}
    assert {"step": "modified_twice", "key": "n", "by": ["first", "later"], "wins": "later"} in result.trace


def test_dispatch_H1_replace_means_all_arguments(face, add):
    """`Modify(args, replace=True)` stands for all arguments; what it leaves out is gone."""
    add(lambda args: args, parameters=INT)
    plugin(face.rt, "p", pre_tool_call=lambda: Modify({"n": 5}, replace=True))
    assert face(args={"n": 1, "m": 2}).data == {"n": 5}


# H2: what fails blocks ----------------------------------------------------------------------------------------------

FAILURES = {
    "ValueError": lambda: ValueError("boo"),
    "SystemExit": lambda: SystemExit(1),
    "GeneratorExit": GeneratorExit,
    "StopIteration": StopIteration,
    "CancelledError": asyncio.CancelledError,
    "BaseException": BaseException,
    "MemoryError": MemoryError,
}
NONSENSE = {
    "a number": lambda: 5,
    "text": lambda: "block",
    "true": lambda: True,
    "a list": lambda: [Block("x")],
    "an unknown action": lambda: {"action": "maybe"},
    "an action that isn't text": lambda: {"action": 5},
    "no action": dict,
    "a class": lambda: Block,
    "a block without text": lambda: Block(5),
    "an ask without text": lambda: Ask(None),
    "an ask with an odd key": lambda: Ask("x", 5),
    "a modification of nothing": lambda: Modify(5),
    "keys that aren't text": lambda: Modify({1: 2}),
    "keys within that aren't text": lambda: Modify({"m": {1: 2}}),
    "cyclic arguments": lambda: Modify(cyclic_dict()),
    "an evil dict": lambda: EvilDict(action="block"),
    "an evil text": EvilText,
    "a liar": Liar,
    "an object": NoText,
}


def cyclic_dict():
    value = {}
    value["m"] = value
    return value


@pytest.mark.parametrize("failure", [*FAILURES, *NONSENSE])
@pytest.mark.parametrize("form", ["sync", "async"])
def test_dispatch_H2_what_fails_blocks(face, add, seen, failure, form):
    """dispatch.H2: an implementation that raises or answers nonsense blocks the call, naming plugin and hook."""
    add(lambda args: pytest.fail("it ran"))

    def answer():
        if failure in FAILURES:
            error = FAILURES[failure]()
            raise error
        return NONSENSE[failure]()

    async def answer_async():
        return answer()

    plugin(face.rt, "broken", pre_tool_call=answer if form == "sync" else answer_async)
    result = face()
    check_well_formed(result)
    assert result.status == "blocked"
    assert "'broken'" in result.error
    assert "pre_tool_call" in result.error
    assert json.loads(result.text)["blocked_by"] == "broken"
    assert len(seen) == 1


@pytest.mark.parametrize("failure", [*FAILURES, *NONSENSE])
def test_dispatch_H2_an_observer_doesnt_block(face, add, caplog, failure):
    """dispatch.H2: an observer's (`on_error: allow`) failure lets the call through, with one WARNING."""
    add(lambda args: "ok")

    def answer():
        if failure in FAILURES:
            error = FAILURES[failure]()
            raise error
        return NONSENSE[failure]()

    plugin(face.rt, "watcher", pre_tool_call=answer, observer=True)
    with caplog.at_level(logging.WARNING):
        assert [face().text for _ in range(3)] == ["ok"] * 3
    assert len([r for r in caplog.records if "watcher" in r.getMessage()]) == 1


def test_dispatch_H2_others_decisions_still_count(face, add):
    """A failing implementation doesn't hide what the others said: all of them run."""
    counted = []
    add(lambda args: "ok")
    plugin(face.rt, "a", pre_tool_call=lambda: counted.append("a") or 1 / 0)
    plugin(face.rt, "b", pre_tool_call=lambda: counted.append("b"))
    assert face().status == "blocked"
    assert counted == ["a", "b"]


@pytest.fixture
def quick(tmp_path):
    """A runtime whose hooks may take 50 ms."""
    runtime = make_runtime(tmp_path / "quick", dispatch={"hook_timeout": 0.05})
    yield runtime
    runtime.close()


@pytest.mark.parametrize("way", ["guarded", "awaited"])
@pytest.mark.parametrize("form", ["sync", "async"])
@pytest.mark.parametrize("observer", [False, True])
def test_dispatch_H2_what_hangs_blocks_and_rests(quick, monkeypatch, way, form, observer):
    """dispatch.H2: in a guarded call a hook over its time blocks; for 60 s it isn't run: a policy blocks at once."""
    release, runs, now = threading.Event(), [], [1000.0]
    quick.registry.register("x", "t", {"description": ""}, lambda args: "ok")

    def hang():
        runs.append(1)
        release.wait(SOON)

    async def hang_async():
        runs.append(1)
        await asyncio.sleep(SOON)

    plugin(quick, "slow", pre_tool_call=hang if form == "sync" else hang_async, observer=observer)
    monkeypatch.setattr(chains, "time", type("Clock", (), {"monotonic": staticmethod(lambda: now[0])}))

    def run():
        call = ToolCall("x")
        return quick.execute(call, timeout=SOON) if way == "guarded" else asyncio.run(quick.aexecute(call))

    try:
        for moment, expected in ((1000.0, 1), (1059.0, 1), (1061.0, 2), (1062.0, 2)):
            now[0] = moment
            result = run()
            assert len(runs) == expected
            assert result.status == ("ok" if observer else "blocked")
            if not observer:
                assert "'slow'" in result.error
    finally:
        release.set()


def test_dispatch_H2_inline_nothing_is_enforced(rt, add):
    """dispatch.B2: where no time-out is written anywhere an inline call's hooks run on the caller's thread."""
    add(lambda args: "ok")
    threads = []
    plugin(rt, "p", pre_tool_call=lambda: threads.append(threading.current_thread()))
    assert rt.call("x") == "ok"
    assert threads == [threading.current_thread()]


# H3: observers and transformations change nothing by failing ----------------------------------------------------------


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("hook", ["post_tool_call", "transform_tool_result", "on_session_start"])
def test_dispatch_H3_failing_changes_nothing(face, add, caplog, hook, failure):
    """dispatch.H3: the outcome is what it was, the other implementations run, and there is one WARNING for many calls."""
    others = []
    add(lambda args: "ok")

    def fail():
        error = FAILURES[failure]()
        raise error

    plugin(face.rt, "broken", **{hook: fail})
    plugin(face.rt, "fine", **{hook: lambda: others.append(1) and None})
    with caplog.at_level(logging.WARNING):
        results = [face(session=face.rt.session()) for _ in range(3)]
    assert [result.text for result in results] == ["ok"] * 3
    assert len(others) == 3
    assert len([r for r in caplog.records if "'broken'" in r.getMessage()]) == 1
    assert [decision.plugin_id for decision in face.rt.report().problems] == ["broken"]


def test_dispatch_H3_transformations_are_chained(face, add, seen):
    """`transform_tool_result`: text replaces the result, each gets what the one before it made; the observers see the end."""
    add(lambda args: "a")
    plugin(face.rt, "one", transform_tool_result=lambda result: result + "b")
    plugin(face.rt, "two", transform_tool_result=lambda result: None)
    plugin(face.rt, "three", transform_tool_result=lambda result, status: f"{result}c {status}")
    assert face().text == "abc ok"
    assert seen[0]["result"] == "abc ok"


@pytest.mark.parametrize("answer", [5, b"x", ["x"], {"a": 1}])
def test_dispatch_H3_what_isnt_text_replaces_nothing(face, add, answer):
    """`transform_tool_result` takes text or `None`; anything else is a failure."""
    add(lambda args: "a")
    plugin(face.rt, "odd", transform_tool_result=lambda: answer)
    assert face().text == "a"


def test_dispatch_H3_a_transformations_text_is_plain(face, add):
    """Evil text of a transformation is plain text for the next one."""
    add(lambda args: "a")
    plugin(face.rt, "evil", transform_tool_result=lambda: EvilText("b\ud800"))
    plugin(face.rt, "next", transform_tool_result=lambda result: result.upper())
    assert face().text == "B\ufffd"


# H4: signatures, wrappers, order --------------------------------------------------------------------------------------


class Instance:
    """Hooks on an instance of a class."""

    def __init__(self, log):
        self.log = log

    @mibyan.hookimpl
    def pre_tool_call(self, args):
        self.log.append(args)


def all_forms(log):
    """Implementations of `pre_tool_call` in every form that is supported; each notes the arguments of the call."""

    def subset(args):
        log.append(args)

    def with_default(args=None, tool_name="none"):
        log.append(args if tool_name == "x" else "default")

    def any_keyword(**values):
        log.append(values["args"])

    def keyword_only(*, args):
        log.append(args)

    def nothing():
        log.append({"n": 1})

    def foreign_default(args, retries=3):
        log.append(args if retries == 3 else retries)

    async def awaited(args):
        await asyncio.sleep(0)
        log.append(args)

    @mibyan.hookimpl(wrapper=True)
    def wrapper(args):
        log.append(args)
        return (yield)

    @mibyan.hookimpl(hookwrapper=True)
    def old_wrapper(args):
        log.append(args)
        yield

    forms = (subset, with_default, any_keyword, keyword_only, nothing, foreign_default, awaited, wrapper, old_wrapper)
    return {form.__name__: {"pre_tool_call": form} for form in forms} | {"instance": Instance(log)}


@pytest.mark.parametrize("form", list(all_forms([])))
def test_dispatch_H4_implementations_get_the_arguments_they_name(face, add, form):
    """dispatch.H4: any subset, defaults included, `**kwargs`, async, wrappers of both kinds, methods of an instance."""
    log = []
    add(lambda args: "ok")
    face.rt.hooks.register(Owner("p", "plugin", "user"), all_forms(log)[form])
    assert face(args={"n": 1}).text == "ok"
    assert log == [{"n": 1}]


def test_dispatch_H4_wrappers_stand_around_the_others(face, add):
    """dispatch.H4: wrappers run before and after the others, the first plugin's outermost; they see the answers."""
    log = []

    def wrapper(name, **options):
        @mibyan.hookimpl(**options)
        def pre_tool_call():
            log.append(f"{name} in")
            answers = yield
            log.append((f"{name} out", answers.get_result() if "hookwrapper" in options else answers))
            return answers

        return pre_tool_call

    add(lambda args: "ok")
    plugin(face.rt, "plain", "builtin", pre_tool_call=lambda: log.append("plain") or Modify({"n": 1}))
    plugin(face.rt, "silent", "pip", pre_tool_call=lambda: None)
    plugin(face.rt, "outer", "user", pre_tool_call=wrapper("outer", wrapper=True))
    plugin(face.rt, "inner", "project", pre_tool_call=wrapper("inner", hookwrapper=True))
    assert face().text == "ok"
    seen = [Modify({"n": 1})]
    assert log == ["outer in", "inner in", "plain", ("inner out", seen), ("outer out", seen)]


def adding(answer, **options):
    """A wrapper that adds an answer to what the others answered."""

    def wrapper():
        answers = yield
        if "hookwrapper" in options:
            answers.force_result([*answers.get_result(), answer])
            return None
        return [*answers, answer]

    return mibyan.hookimpl(**options)(wrapper)


@pytest.mark.parametrize("options", [{"wrapper": True}, {"hookwrapper": True}])
def test_dispatch_H4_a_wrapper_may_add_a_block_but_not_take_one_away(face, add, options):
    """dispatch.H1: a wrapper's own answers count; dropping another's block doesn't unblock."""

    def dropping():
        answers = yield
        if "hookwrapper" in options:
            answers.force_result([])
        return []

    add(lambda args: "ok")
    owner = plugin(face.rt, "adds", pre_tool_call=adding(Block("from the wrapper"), **options))
    assert face().error == "from the wrapper"
    face.rt.hooks.remove_owner(owner)
    plugin(face.rt, "blocks", pre_tool_call=lambda: Block("stays"))
    plugin(face.rt, "drops", pre_tool_call=mibyan.hookimpl(**options)(dropping))
    assert face().error == "stays"


def no_yield():
    return
    yield


def two_yields():
    yield
    yield


def raises_before():
    raise ValueError
    yield


def raises_after():
    yield
    raise ValueError


@pytest.mark.parametrize("options", [{"wrapper": True}, {"hookwrapper": True}])
@pytest.mark.parametrize("body", [no_yield, two_yields, raises_before, raises_after])
def test_dispatch_H4_a_broken_wrapper_blocks(face, add, options, body):
    """dispatch.H2: a wrapper that raises, or yields not once, blocks, naming itself."""
    add(lambda args: pytest.fail("it ran"))
    plugin(face.rt, "broken", pre_tool_call=mibyan.hookimpl(**options)(body))
    result = face()
    assert (result.status, "'broken'" in result.error) == ("blocked", True)


@pytest.mark.parametrize("form", ["new", "old"])
def test_dispatch_H4_a_wrapper_around_a_transformation(face, add, form):
    """dispatch.H4: wrappers work around transformations too: a text that they add replaces the result."""
    add(lambda args: "a")
    options = {"wrapper": True} if form == "new" else {"hookwrapper": True}
    plugin(face.rt, "plain", transform_tool_result=lambda result: result + "b")
    plugin(face.rt, "wraps", transform_tool_result=adding("wrapped", **options))
    assert face().text == "wrapped"


def test_dispatch_H4_the_order(face, add):
    """dispatch.H4: tier, then the plugin's rank, then the order of registration; tryfirst and trylast inside a tier."""
    log = []

    def note(name, **options):
        def pre_tool_call():
            log.append(name)

        return mibyan.hookimpl(**options)(pre_tool_call)

    add(lambda args: "ok")
    face.rt.add_hook("pre_tool_call", note("host", tryfirst=True))
    for source in ("tools", "project", "user", "pip", "builtin"):
        for name, rank, options in (
            ("last", 0, {"trylast": True}),
            ("b", 2, {}),
            ("a", 1, {}),
            ("first", 3, {"tryfirst": True}),
        ):
            plugin(face.rt, f"{source}-{name}", source, pre_tool_call=note(f"{source}-{name}", **options), rank=rank)
    assert face().text == "ok"
    tiers = ("builtin", "pip", "user", "project", "tools")
    assert log == [f"{tier}-{name}" for tier in tiers for name in ("first", "a", "b", "last")] + ["host"]


def test_dispatch_H5_without_an_implementation_nothing_is_made(rt, add, monkeypatch):
    """dispatch.H5: a call without hooks copies no arguments and makes no chain."""
    add(lambda args: "ok")
    monkeypatch.setattr(chains.ChainRunner, "run", lambda *_: pytest.fail("a chain was run"))
    assert rt.call("x") == "ok"


def test_a_session_starts_once_before_its_first_call_and_ends_once(face, add):
    """`on_session_start` fires once, before the session's first call, `on_session_end` once, on close; both with its platform."""
    log = []
    rt = face.rt
    add(lambda args: log.append("call") or "ok")
    plugin(rt, "p", on_session_start=lambda session_id, platform: log.append(("start", session_id, platform)),
           on_session_end=lambda session_id, platform: log.append(("end", session_id, platform)))  # fmt: skip
    with rt.session("s1", platform="cli", enabled_toolsets=["tests"]) as session:
        face(session=session)
        face(session=session)
    session.close()
    rt.session("s2").close()
    assert log == [("start", "s1", "cli"), "call", "call", ("end", "s1", "cli")]


def test_a_sessions_start_fires_for_a_call_that_fails_too(face):
    """The first call counts whatever becomes of it."""
    log = []
    plugin(face.rt, "p", on_session_start=lambda: log.append("start"), on_session_end=lambda: log.append("end"))
    face("nope", session=(session := face.rt.session()))
    session.close()
    assert log == ["start", "end"]
