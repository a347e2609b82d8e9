"""`mibyan.tools.origin`: the file and line of what is behind a handler, without running anything of it."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import mibyan
from mibyan.tools.origin import place_of, place_of_code
from mibyan.tools.owner import Owner
from mibyan.tools.registration import build_entry


def plain(args: Any) -> str:
    return "x"


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Callable:
    def __call__(self, args: Any) -> str:
        return "x"

    def method(self, args: Any) -> str:
        return "x"


class Inherits(Callable):
    pass


def trapped(self: Any, args: Any) -> str:
    return "x"


def line_of(function: Any) -> str:
    return f"{__file__}:{function.__code__.co_firstlineno}"


PLAIN, CALL, METHOD = line_of(plain), line_of(Callable.__call__), line_of(Callable.method)


@pytest.mark.parametrize(
    ("handler", "place"),
    [
        (plain, PLAIN),
        (decorated(plain), PLAIN),
        (decorated(decorated(plain)), PLAIN),
        (functools.partial(plain), PLAIN),
        (functools.partial(functools.partial(decorated(plain))), PLAIN),
        (Callable(), CALL),
        (Inherits(), CALL),
        (Callable().method, METHOD),
        (functools.partial(Callable().method), METHOD),
        (print, None),
        (dict, None),
        (None, None),
        (5, None),
    ],
)
def test_the_place_of_a_handler(handler: Any, place: str | None) -> None:
    """Functions, whatever is wrapped around them, methods, objects that can be called; nothing of theirs is asked."""
    assert place_of_code(handler) == place


def test_nothing_of_a_handler_is_asked() -> None:
    """An object and a class that end whoever asks them for anything are looked at all the same."""

    class Hostile(type):
        def __getattribute__(cls, name: str) -> Any:
            raise SystemExit(f"asked for {name}")

    def trap(self: Any, name: str) -> Any:
        raise SystemExit(f"asked for {name}")

    handler = Hostile("Trap", (), {"__call__": trapped, "__getattr__": trap})()
    place = place_of_code(handler)
    assert place == line_of(trapped)


def test_a_function_that_wraps_itself_comes_to_an_end() -> None:
    """A circle of wrappers is followed a few steps only."""

    def circle() -> None: ...

    circle.__wrapped__ = circle
    assert place_of_code(circle) == line_of(circle)


def test_the_place_of_a_tool() -> None:
    """What was said at registration counts; else the handler's place."""
    owner = Owner("host", "host")
    entry = build_entry(owner, "a", "t", {}, plain)
    assert place_of(entry) == PLAIN
    assert place_of(build_entry(owner, "a", "t", {}, plain, origin="elsewhere:1")) == "elsewhere:1"

    @mibyan.tool(toolset="t")
    def typed() -> str:
        return "x"

    assert place_of(typed.entry(owner)) == line_of(typed.function)
