"""Where something is within a JSON value, in the words a model wrote it: `days`, `items[0].name`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def place(parts: Iterable[str | int]) -> str:
    """The path from the outermost value inwards; empty for that value itself.

    Args:
        parts: Keys of objects and indexes of arrays.
    """
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return path.removeprefix(".")
