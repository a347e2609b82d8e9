"""`adapter_class`: pydantic's `TypeAdapter`, ready to be used whatever else is installed."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@cache
def adapter_class() -> type[TypeAdapter]:  # type: ignore[type-arg]
    """`pydantic.TypeAdapter`.

    The first schema in a process makes pydantic look for plugins of its own, in the entry points of every distribution
    that is installed; what it can't read there, or what such a plugin raises, leaves it, once. Here that is over.
    """
    from pydantic import TypeAdapter

    try:
        TypeAdapter(int)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: S110 - whatever is installed; it doesn't concern Mibyan's own types
        pass
    return TypeAdapter
