"""A world of plugins, without those that are built in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mibyan.plugins.candidate import Discovery

from .world import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Folders for plugins of every source; what was loaded is unloaded."""
    made = World(tmp_path)
    monkeypatch.setattr("mibyan.plugins.sources.scan.find_builtin", Discovery)
    monkeypatch.syspath_prepend(made.site)
    yield made
    made.close()
