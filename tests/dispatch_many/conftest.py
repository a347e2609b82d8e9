"""A runtime without plugins, tools made of plain functions, and handlers that wait for one another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mibyan import Runtime, ToolEntry

#: Seconds for what must happen at once but may be late on a busy machine.
SOON = 20.0
ANY = {"type": "object", "properties": {}}


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


@pytest.fixture
def add(rt: Runtime) -> Callable[..., ToolEntry]:
    """Registers a handler as a tool."""
    return adder(rt)


def adder(rt: Runtime) -> Callable[..., ToolEntry]:
    def register(name: str, handler: Callable[..., Any], parameters: Any = None, **options: Any) -> ToolEntry:
        schema = {"description": "d", "parameters": ANY if parameters is None else parameters}
        entry = rt.registry.register(name, "tests", schema, handler, **options)
        assert entry is not None
        return entry

    return register


class Events:
    """What happened, in its order; told from any thread."""

    def __init__(self) -> None:
        self._told: list[Any] = []
        self._changed = threading.Condition()

    def tell(self, what: Any) -> None:
        with self._changed:
            self._told.append(what)
            self._changed.notify_all()

    def wait_for(self, *what: Any) -> None:
        """Wait until each of these was told; fails when that takes too long."""
        with self._changed:
            if not self._changed.wait_for(lambda: all(each in self._told for each in what), SOON):
                pytest.fail(f"{what} never came; there is {self._told}")

    def wait_for_some(self, number: int) -> None:
        """Wait until as many things were told, or it takes too long."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._told) >= number, SOON)

    @property
    def all(self) -> list[Any]:
        with self._changed:
            return list(self._told)


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """An event that comes only when the test is over: what waits for it is stuck."""
    event = threading.Event()
    yield event
    event.set()
