"""A workbench, as the fixtures of `mibyan.testing` make one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mibyan.testing import Workbench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    """A workbench that is closed when the test ends."""
    with Workbench(tmp_path / "bench") as made:
        yield made
