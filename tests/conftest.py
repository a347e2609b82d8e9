"""What holds for every test: a home of its own, and no thread left behind."""

from __future__ import annotations

import itertools
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A shared machine can stall any example; a wrong result is a fault, a slow one is a benchmark's business. The examples
# are the same in every run, so that a red run is about the change at hand; `nox -s search` looks for new ones.
settings.register_profile("house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("house"), max_examples=20)
settings.register_profile("search", settings.get_profile("house"), derandomize=False, max_examples=2000)
settings.load_profile("house")

#: Seconds that a test's threads have to end after it.
GRACE = 2.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with tests that take long go first, so that at the end no worker waits for another's."""
    slow = {item.path for item in items if item.get_closest_marker("system")}
    items.sort(key=lambda item: item.path not in slow)


#: What would make a table or a help text look otherwise than the tests expect.
_TERMINAL = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests see no wish about colours and sizes that belongs to whoever runs them."""
    for name in _TERMINAL:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Names for homes: pytest's own way to find a free name reads the whole folder, which thousands of tests fill."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def own_home(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh HOME with an absent `.mibyan` in it as MIBYAN_HOME, and no other MIBYAN_* variable."""
    for name in [name for name in os.environ if name.startswith("MIBYAN_")]:
        monkeypatch.delenv(name)
    home = next(homes)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MIBYAN_HOME", str(home / ".mibyan"))
    return home


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """Fail a test that leaves a thread running which would hold the interpreter open."""
    before = set(threading.enumerate())
    yield
    until = time.monotonic() + GRACE
    left = [thread for thread in threading.enumerate() if not thread.daemon and thread not in before]
    for thread in left:
        thread.join(max(0.0, until - time.monotonic()))
    left = [thread for thread in left if thread.is_alive()]
    if left:
        pytest.fail(f"threads left running: {', '.join(thread.name for thread in left)}")
