"""In whose name plugin code runs: what the facade means meanwhile (registry.R6)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mibyan.tools.current import CURRENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.tools.current import Current


@contextmanager
def acting(current: Current) -> Iterator[None]:
    """Let `mibyan.registry` and `mibyan.get_runtime` mean the plugin's runtime and the plugin meanwhile."""
    token = CURRENT.set(current)
    try:
        yield
    finally:
        CURRENT.reset(token)
