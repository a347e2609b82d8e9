"""An interrupt wherever Python looks for one while a call runs: it leaves, and nothing of the call stays behind (dispatch.C4)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import mibyan
from mibyan import Runtime, ToolCall
from mibyan.dispatch.steps import RUNNING
from mibyan.tools.current import CURRENT
from mibyan.tools.owner import Owner

CODE = str(Path(mibyan.__file__).parent)
SCHEMA = {"description": "d", "parameters": {"type": "object", "properties": {"p": {"type": "string"}}}}


class Interrupting:
    """Interrupts this thread where Python does: when a function begins, and when one written in C has returned.

    Args:
        at: At which of these moments in Mibyan's own code.
    """

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event in {"call", "c_return"} and frame.f_code.co_filename.startswith(CODE):
            self.left -= 1
            if self.left == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt


@pytest.fixture
def rt(tmp_path: Path) -> Iterator[Runtime]:
    """A runtime with a tool and hooks that a plugin has, called so often that it is compiled."""
    runtime = Runtime(home=tmp_path)
    runtime._parts._loaded = True
    owner = Owner("p", "plugin", "user")
    mibyan.ToolRegistry._bound(runtime._parts.store, owner).register("x", "t", SCHEMA, lambda args: "fine")
    hooks = {"pre_tool_call": lambda args: None, "post_tool_call": lambda status: None}
    runtime._parts.hooks.register(owner, hooks)
    for _ in range(3):
        assert runtime.call("x", {"p": "a"}) == "fine"
        assert runtime.call("x", {"p": "a"}, timeout=60) == "fine"
    yield runtime
    runtime.close()


FACES: dict[str, Callable[[Runtime], str]] = {
    "quick": lambda rt: rt.call("x", {"p": "a"}),
    "pipeline": lambda rt: rt.call("X", {"p": "a"}),
    "structured": lambda rt: rt.execute(ToolCall("x", {"p": "a"})).text,
}


@pytest.mark.parametrize("face", FACES)
def test_dispatch_C4_an_interrupt_anywhere_leaves_nothing_behind(rt, face):
    """Nobody is running afterwards, in nobody's name, no call is kept, and the next one works."""
    kept = rt._parts.sessions.default._guards
    interrupted = 0
    for at in range(1, 2000):
        tracing = Interrupting(at)
        sys.setprofile(tracing)
        try:
            FACES[face](rt)
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.setprofile(None)
        running = RUNNING.get()
        assert running is None or running.done, at
        assert CURRENT.get() is None, at
        assert not kept, at
        assert not rt._parts.dispatcher._active, at
        assert FACES[face](rt) == "fine", at
        if tracing.left > 0:
            break
    assert interrupted > 10
