"""What makes two checks one, asked of nothing but the objects' places: a check's own `__eq__` may do anything."""

from __future__ import annotations

import weakref
from types import MethodType
from typing import Any, TypeAlias

Identity: TypeAlias = tuple[int, int]


def identity(check: Any) -> Identity:
    """What makes two checks one: the object, or for a bound method its function and its object."""
    if type(check) is MethodType:
        return id(check.__func__), id(check.__self__)
    return id(check), 0


def target(check: Any) -> Any:
    """The object that a check lives with; the check itself is asked nothing."""
    return check.__self__ if type(check) is MethodType else check


def reference(check: Any) -> Any:
    """A weak reference where one can be had (closures must not be kept alive by a cache)."""
    try:
        return weakref.ref(target(check))
    except TypeError:
        return target(check)


def same(reference: Any, check: Any) -> bool:
    """Whether a reference that `reference` gave still leads to this check: an id is given again."""
    held = reference() if isinstance(reference, weakref.ref) else reference
    return held is target(check)
