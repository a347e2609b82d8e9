"""Read-only JSON values: `dict` and `list` subclasses that everything can read and nobody can change (registry.R3)."""

from __future__ import annotations

from typing import Any, NoReturn

#: Containers inside one another; what is deeper can be neither frozen nor thawed.
MAX_DEPTH = 100


def _refuse(self: object, *_args: object, **_kwargs: object) -> NoReturn:
    """Every mutator of a read-only value.

    Raises:
        TypeError: Always.
    """
    msg = f"this {'dict' if isinstance(self, dict) else 'list'} is read-only; take a copy first (copy.deepcopy)"
    raise TypeError(msg)


class FrozenDict(dict[str, Any]):
    """A read-only `dict`: json, pickle, `dict()`, `|` and copies work; copies are plain and may be changed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def copy(self) -> dict[str, Any]:
        """A plain `dict` with the same (still read-only) values."""
        return dict(self)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: thaw(value) for key, value in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        # The default protocol would fill the new object through `__setitem__`.
        return freeze, (dict(self),)


class FrozenList(list[Any]):
    """A read-only `list`: json, pickle, `list()`, `+`, slices and copies work; copies are plain and may be changed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def copy(self) -> list[Any]:
        """A plain `list` with the same (still read-only) items."""
        return list(self)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [thaw(item) for item in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return freeze, (list(self),)


class UsualParameters(FrozenDict):
    """The parameters that most tools have (`mibyan.schema.usual`): no provider wants them in other words."""

    __slots__ = ()


def freeze(value: Any) -> Any:
    """A read-only deep copy of a JSON value.

    Args:
        value: JSON types; tuples become lists, what isn't a container is kept as it is.

    Returns:
        `FrozenDict`, `FrozenList` or the scalar itself; a value that is frozen already is returned as it is.

    Raises:
        ValueError: More than `MAX_DEPTH` containers inside one another (a cycle too).
    """
    return _freeze(value, MAX_DEPTH)


def thaw(value: Any) -> Any:
    """A plain, changeable deep copy of a JSON value, frozen or not.

    Raises:
        ValueError: More than `MAX_DEPTH` containers inside one another (a cycle too).
    """
    return _thaw(value, MAX_DEPTH)


#: What needs no copy: scalars, and what is frozen already.
_FROZEN = frozenset((str, bool, int, float, type(None), FrozenDict, FrozenList, UsualParameters))
_set = dict.__setitem__


def _freeze(value: Any, depth: int) -> Any:
    if type(value) in _FROZEN:
        return value
    if isinstance(value, dict):
        depth = _deeper(depth)
        found = FrozenDict(value)
        for key, item in found.items():
            if type(item) not in _FROZEN:
                _set(found, key, _freeze(item, depth))
        return found
    if isinstance(value, list | tuple):
        depth = _deeper(depth)
        return FrozenList([_freeze(item, depth) for item in value])
    return value


def _thaw(value: Any, depth: int) -> Any:
    if type(value) is str:
        return value
    if isinstance(value, dict):
        depth = _deeper(depth)
        return {key: _thaw(item, depth) for key, item in value.items()}
    if isinstance(value, list | tuple):
        depth = _deeper(depth)
        return [_thaw(item, depth) for item in value]
    return value


def _deeper(depth: int) -> int:
    """One level less to go.

    Raises:
        ValueError: There is none left.
    """
    if depth == 0:
        msg = f"nested more than {MAX_DEPTH} levels deep"
        raise ValueError(msg)
    return depth - 1
