"""`once`: an attribute that is worked out when it is first asked for.

Unlike `functools.cached_property`, which up to Python 3.11 has one lock for all objects of a class, no lock is taken: a
slow one holds nobody up, and a fork leaves none locked. Two threads that come at once may both work it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

T = TypeVar("T")


class once(Generic[T]):  # noqa: N801 - used as a decorator
    """A method that becomes an attribute; the object needs a `__dict__`."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self._name = function.__name__
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self._name, self._function(instance))
