"""Hostile plugins and a runtime that loads them, without those that are built in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mibyan import Runtime
from mibyan.plugins.candidate import Discovery

from .world import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Folders for plugins, and runtimes over them; what was opened is closed."""
    monkeypatch.setattr("mibyan.plugins.sources.scan.find_builtin", Discovery)
    made = World(tmp_path)
    monkeypatch.syspath_prepend(made.site)
    yield made
    made.close()


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Callable[..., Runtime]]:
    """Makes runtimes that look for no plugins; they are closed."""
    made: list[Runtime] = []

    def make(name: str = "home", **config: object) -> Runtime:
        runtime = Runtime(home=tmp_path / name, config=config or None)
        runtime._parts._loaded = True
        made.append(runtime)
        return runtime

    yield make
    for runtime in made:
        runtime.close()
