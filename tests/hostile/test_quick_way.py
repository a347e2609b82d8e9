"""The quick way against the pipeline: whatever anybody does, from call to call and within one, there is one answer.

Two worlds play the same story. In one of them tools are compiled when they come again, in the other never.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mibyan import Ask, Block, Modify, Runtime, ToolCall, ToolError, ToolResult

SECRET = "STORY_SECRET_KEY"
SCHEMAS: dict[str, Any] = {
    "flat": {"type": "object", "properties": {"p": {"type": "string"}, "n": {"type": "integer"}}, "required": ["p"]},
    "deep": {
        "type": "object",
        "properties": {"p": {"type": "string"}, "n": {"type": ["integer", "null"]},
                       "l": {"type": "array", "items": {"type": "number"}}},
        "additionalProperties": False,
    },
    "pattern": {"type": "object", "properties": {"p": {"type": "string", "pattern": "^[a-z]*$"}}},
    "any": {"type": "object", "properties": {}},
}  # fmt: skip
RAWS: list[Any] = [
    '{"p": "a", "n": 1}', {"p": "a", "n": 1}, '{"p": "a", "n": "1"}', {"p": "a", "n": 2.0}, '{"p": "a", "l": [1, 2.5]}', "{}",
    None, "null", '{"p": "a"', {"p": "\ud800"}, '{"p": "\\ud800"}', {"p": "a", "n": True}, {"p": 5}, {"p": "a", "x": {}},
    '{"p": "a", "p": "b"}', [], 7, b'{"p": "a"}', {"p": "a", "l": ["1"]}, {1: 2}, '{"p": "A"}', '{"p": "a", "n": 1e2}',
    '"{\\"p\\": \\"a\\"}"', {"p": "x" * 3000}, '{"p": "a", "n": ' + "9" * 5000 + "}", {"p": "a", "n": float("nan")},
    '{"p": "a", "n": -0}', '{"p":"a","n":null}',
]  # fmt: skip


class Evil:
    """Lies or raises whatever it is asked for."""

    __hash__ = None  # type: ignore[assignment]

    def _raise(self, *_: Any) -> Any:
        raise SystemExit("asked")

    __bool__ = __str__ = __repr__ = __iter__ = __len__ = __getattr__ = _raise  # type: ignore[assignment]

    def __eq__(self, other: object) -> Any:
        raise SystemExit("asked")


class Classless(Exception):
    """Has no class that could be asked for."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise SystemExit("class")


class Impostor(ValueError):
    """Says that it is an interrupt."""

    __class__ = KeyboardInterrupt  # type: ignore[assignment]


class Unreadable(BaseException):
    """Has no message."""

    def __str__(self) -> str:
        raise SystemExit("text")


async def coroutine() -> str:
    return "awaited"


async def broken() -> str:
    raise SystemExit(4)


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


#: What foreign code gives, made anew each time.
GIVEN: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None, "text": lambda: "fine", "data": lambda: {"a": [1, {"b": None}]}, "error": lambda: {"error": "bad"},
    "error text": lambda: '{"error": "bad", "error_type": "denied"}', "bytes": lambda: b"\x00", "set": lambda: {2, 1},
    "surrogate": lambda: "\ud800", "nan": lambda: float("nan"), "big": lambda: 10**5000, "deep": lambda: nested(5000),
    "long": lambda: "x" * 3000, "long data": lambda: ["y" * 3000], "long error": lambda: {"error": "z" * 3000},
    "parts": lambda: {"_multimodal": True, "content": [{"type": "text", "text": "t"}]}, "shape": lambda: "ghp_" + "a" * 36,
    "secret": lambda: f"it is {os.environ.get(SECRET)}", "secret data": lambda: {"k": [os.environ.get(SECRET)]},
    "coroutine": coroutine, "broken": broken, "generator": lambda: iter([1]), "evil": Evil, "evil inside": lambda: {"error": Evil()},
    "a result": lambda: ToolResult("i", "n", "ok", "text"), "block": lambda: Block("no"), "ask": lambda: Ask("sure?"),
    "modify": lambda: Modify({"p": "b"}), "wrong": lambda: Modify({"p": 1}), "dict": lambda: {"action": "modify", "args": {"p": "c"}},
    "empty": lambda: "", "true": lambda: True, "keys": lambda: {1: 2, "1": 3},
}  # fmt: skip
RAISED: dict[str, Callable[[], BaseException]] = {
    "value": lambda: ValueError("x"), "exit": lambda: SystemExit(3), "stop": lambda: StopIteration(1), "ends": GeneratorExit,
    "no class": Classless, "impostor": Impostor, "unreadable": Unreadable, "recursion": RecursionError, "memory": MemoryError,
    "interrupt": KeyboardInterrupt, "told": lambda: ToolError("m", hint="h", data={"error_type": "denied"}),
    "leaks": lambda: ValueError(f"it is {os.environ.get(SECRET)}"), "group": lambda: BaseExceptionGroup("g", [SystemExit(1)]),
}  # fmt: skip


class World:
    """One of the two, and what has been seen in it."""

    def __init__(self, home: Path, schema: str, *, quick: bool, is_async: bool = False) -> None:
        self.rt = Runtime(home=home, config={"dispatch": {"max_result_chars": 2000}})
        self.rt._parts._loaded = True  # No plugins.
        self.is_async = is_async
        if not quick:
            self.rt._parts.dispatcher.went_well = None
        self.home = home
        self.schema = schema
        self.session = self.rt.session()
        self.seen: list[Any] = []
        self.raw: Any = None
        self.waits = 0
        #: What each piece of foreign code does in this call: (whether it raises, what, what else it does).
        self.plan: dict[str, tuple[bool, str, str]] = {}
        # Async tools have a quick way where no hook looks at them.
        for number, hook in enumerate(() if is_async else ("pre_tool_call",) * 2 + ("post_tool_call",) * 2):
            self.add_hook(hook, f"{hook} {number}")
        self.register("handler")

    def register(self, label: str) -> None:
        def handler(args: dict[str, Any], task_id: Any = None, enabled_tools: Any = None) -> Any:
            return self.act(label, {"args": args, "task_id": task_id, "enabled_tools": enabled_tools})

        async def waiting(args: dict[str, Any], task_id: Any = None) -> Any:
            for _ in range(self.waits):
                await asyncio.sleep(0)
            return self.act(label, {"args": args, "task_id": task_id})

        schema = {"description": "d", "parameters": SCHEMAS[self.schema]}
        function = waiting if self.is_async else handler
        self.rt.registry.register(
            "x", "t", schema, function, requires_env=[SECRET], override=True, is_async=self.is_async
        )

    def add_hook(self, hook: str, label: str) -> None:
        if hook == "pre_tool_call":
            self.rt.add_hook(
                hook, lambda args, tool_call_id, user_task: self.act(label, (args, tool_call_id, user_task))
            )
        elif hook == "post_tool_call":
            self.rt.add_hook(hook, lambda **told: self.act(label, told))
        else:
            self.rt.add_hook(hook, lambda result, args: self.act(label, (result, args)))

    def act(self, label: str, told: Any) -> Any:
        """Do what the story says; without a word of it the usual."""
        self.seen.append(f"{label}: {told!r}")
        key = label.removesuffix(" new")
        raises, what, deed = self.plan.get(key, (False, "text" if key == "handler" else "nothing", ""))
        self.do(deed, told)
        if raises:
            error = RAISED[what]()
            raise error
        return GIVEN[what]()

    def do(self, deed: str, told: Any) -> None:
        """Something that nobody expects within a call."""
        match deed:
            case "change the arguments":
                args = told["args"] if isinstance(told, dict) else told[0]
                args.clear() if isinstance(args, dict) else None
            case "change the caller's":
                if isinstance(self.raw, dict):
                    self.raw.update(p=5, z=[1])
            case "hook before" | "hook after" | "transform":
                names = {"hook before": "pre_tool_call", "hook after": "post_tool_call"}
                self.add_hook(names.get(deed, "transform_tool_result"), f"{deed} new")
            case "take the tool away":
                self.rt.registry.deregister("x")
            case "another handler":
                self.register("handler new")
            case "a secret":
                os.environ[SECRET] = "sesame-open-me"
            case "interrupt":
                self.session.interrupt()
            case "close the session":
                self.session.close()
            case "call again" if len(self.seen) < 30:
                self.plan = {}
                self.seen.append(self.rt.call("x", '{"p": "inner"}', session=self.session))

    def play(self, step: dict[str, Any]) -> Any:
        """One step of the story: what everybody saw of it."""
        self.seen.clear()
        self.raw = dict(step["raw"]) if isinstance(step["raw"], dict) else step["raw"]
        self.plan, self.waits = dict(step["plan"]), step["waits"]
        self.do(step["before"], {})
        try:
            answer = FACES[step["face"]](self, step["ids"])
        except KeyboardInterrupt:
            answer = "interrupted"
        kept = len(list(self.home.rglob("*.txt")))
        return self.same([repr(answer), *map(str, self.seen), repr(kept)])

    def same(self, told: list[str]) -> list[str]:
        """Without what is another each time."""
        hide = re.compile(r"(duration_ms\W{1,4})[\d.]+|('request': ')\w+|[0-9a-f]{32}")
        return [
            hide.sub(r"\1\2~", text.replace(str(self.home), "HOME").replace(self.session.id, "SESSION"))
            for text in told
        ]


def execute(world: World, ids: dict[str, Any], **options: Any) -> Any:
    call = ToolCall("x", world.raw, ids.pop("tool_call_id", None))
    return world.rt.execute(call, session=world.session, **ids, **options).to_dict()


async def aexecute(world: World, ids: dict[str, Any]) -> Any:
    call = ToolCall("x", world.raw, ids.pop("tool_call_id", None))
    return (await world.rt.aexecute(call, session=world.session, **ids)).to_dict()


FACES: dict[str, Callable[[World, dict[str, Any]], Any]] = {
    "execute": lambda world, ids: execute(world, dict(ids)),
    "guarded": lambda world, ids: execute(world, dict(ids), timeout=60),
    "call": lambda world, ids: world.rt.call("x", world.raw, session=world.session, **ids),
    "awaited": lambda world, ids: asyncio.run(aexecute(world, dict(ids))),
    "dispatch": lambda world, ids: world.rt.registry.dispatch("x", world.raw, session=world.session, **ids),
}
DEEDS = [
    "change the arguments", "change the caller's", "hook before", "hook after", "transform", "take the tool away",
    "another handler", "a secret", "interrupt", "close the session", "call again",
]  # fmt: skip
PIECES = [
    "handler",
    "pre_tool_call 0",
    "pre_tool_call 1",
    "post_tool_call 2",
    "post_tool_call 3",
    "transform",
    "hook after",
]

deeds = st.just("") | st.sampled_from(DEEDS)
acts = st.tuples(st.just(False), st.sampled_from(sorted(GIVEN)), deeds) | st.tuples(
    st.just(True), st.sampled_from(sorted(RAISED)), deeds
)
usual = st.builds(dict)
steps = st.fixed_dictionaries({
    "raw": st.sampled_from(RAWS[:2]) | st.sampled_from(RAWS),
    "plan": usual | usual | st.dictionaries(st.sampled_from(PIECES), acts, max_size=3),
    "before": st.just("") | st.just("") | st.sampled_from(["hook before", "another handler", "a secret", "transform"]),
    "face": st.sampled_from(sorted(FACES)),
    "waits": st.sampled_from([0, 0, 1, 3]),
    "ids": st.fixed_dictionaries({}, optional={
        "tool_call_id": st.sampled_from(["i", "", "\ud800"]), "task_id": st.just("t"), "user_task": st.just("u"),
    }),
})  # fmt: skip
PLAIN: dict[str, Any] = {"raw": RAWS[0], "plan": {}, "before": "", "face": "execute", "ids": {}, "waits": 0}


def both(story: list[dict[str, Any]], schema: str = "flat", *, is_async: bool = False) -> tuple[list[Any], list[Any]]:
    """What is seen in the pipeline's world, and in the quick one's; two usual calls come first."""
    told = []
    for quick in (False, True):
        os.environ.pop(SECRET, None)
        with tempfile.TemporaryDirectory() as folder:
            world = World(Path(folder), schema, quick=quick, is_async=is_async)
            try:
                told.append([world.play(step) for step in [PLAIN, PLAIN, *story]])
                if quick and not story:
                    assert world.session._express["x"].express is not None
            finally:
                os.environ.pop(SECRET, None)
                world.rt.close()
    return told[0], told[1]


@given(st.sampled_from(sorted(SCHEMAS)), st.lists(steps, min_size=1, max_size=5), st.booleans())
@settings(max_examples=150)
def test_dispatch_H5_the_quick_way_tells_the_pipelines_story(schema, story, is_async):
    """Answers, traces, what hooks and handler were told and how often, files that were kept: all is the same."""
    # A coroutine that has ended as the interrupt comes is as right as one that hasn't.
    assume(not any(deed == "interrupt" and value in {"broken", "coroutine"}
                   for step in story for _, value, deed in step["plan"].values()))  # fmt: skip
    pipeline, quick = both(story, schema, is_async=is_async)
    assert quick == pipeline


@pytest.mark.parametrize("is_async", [False, True])
def test_dispatch_H5_the_story_begins_on_the_quick_way(is_async):
    """The property above compares two ways indeed."""
    pipeline, quick = both([], is_async=is_async)
    assert quick == pipeline


@pytest.mark.parametrize("face", sorted(FACES))
@pytest.mark.parametrize("piece", PIECES[:5])
@pytest.mark.parametrize("raised", sorted(RAISED))
def test_dispatch_C4_whatever_is_raised_on_the_quick_way_is_answered_as_in_the_pipeline(piece, raised, face):
    pipeline, quick = both([{**PLAIN, "face": face, "plan": {piece: (True, raised, "")}}, PLAIN])
    assert quick == pipeline


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("piece", PIECES[:5])
@pytest.mark.parametrize("raw", [RAWS[0], RAWS[1]], ids=["text", "dict"])
def test_dispatch_H1_what_changes_within_a_call_counts_as_in_the_pipeline(piece, deed, raw):
    for what in ("text", "nothing", "bytes"):
        pipeline, quick = both([{**PLAIN, "raw": raw, "plan": {piece: (False, what, deed)}}, PLAIN])
        assert quick == pipeline
