"""What a section of config.yaml is: a class whose annotated attributes are the keys, each with a default and a sentence.

No pydantic here: settings are made from checked data by `Section.from_data`; `mibyan.config.validation` checks it.
Sections aren't dataclasses: the thirty of them would take longer to define than `mibyan tools list` may take as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, cast, dataclass_transform

from mibyan.schema.frozen import FrozenDict, freeze, thaw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Self

#: Keys whose values may hold secrets: neither a message nor a `repr` shows them.
PRIVATE = frozenset({"env", "headers", "config"})

T = TypeVar("T")
S = TypeVar("S", bound="Section")


class Key:
    """One key of a section."""

    __slots__ = ("default", "description", "kind", "levels", "shape")

    def __init__(
        self,
        default: Any,
        description: str,
        shape: Callable[[Any], Any],
        kind: type[Section] | None = None,
        levels: int = 0,
    ) -> None:
        #: What it is when nobody writes it; immutable.
        self.default = default
        #: One sentence, with the unit; the reference documentation and editors show it.
        self.description = description
        #: Makes the value from checked data.
        self.shape = shape
        #: The section below it, if there is one.
        self.kind = kind
        #: How many names and numbers stand between the key and that section.
        self.levels = levels


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Section:
    """The base of every section: a record that can't be changed, compared by its values.

    Lists are tuples, mappings are read-only dicts.
    """

    #: The keys by name, in the order of the documentation.
    KEYS: ClassVar[dict[str, Key]] = {}

    def __init_subclass__(cls) -> None:
        cls.KEYS = {name: part for name, part in vars(cls).items() if isinstance(part, Key)}
        for name, part in cls.KEYS.items():
            setattr(cls, name, part.default)

    def __init__(self, **values: Any) -> None:
        if not values.keys() <= self.KEYS.keys():
            unknown = ", ".join(sorted(values.keys() - self.KEYS.keys()))
            raise TypeError(f"{type(self).__name__} has no key {unknown}")
        vars(self).update(values)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The section made from data that has been checked before; missing keys have their defaults.

        Args:
            data: JSON types, as `to_data` gives them.

        Raises:
            TypeError: A key that the section doesn't have: the data wasn't checked.
        """
        keys = cls.KEYS
        return cls(**{name: keys[name].shape(value) if name in keys else value for name, value in data.items()})

    def to_data(self) -> dict[str, Any]:
        """The section as plain JSON types, every key present; the caller's to change."""
        return {name: to_plain(getattr(self, name)) for name in self.KEYS}

    def replacing(self, **values: Any) -> Self:
        """A copy in which these keys have other values."""
        return type(self)(**{**vars(self), **values})

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """For pydantic: the section's model, in which unknown keys are errors."""
        from mibyan.config.model import section_schema

        return section_schema(cls, handler)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} can't be changed; make another one with replacing({name}=...)")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} can't be changed")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.KEYS)

    __hash__ = None  # type: ignore[assignment] # it holds dicts

    def __repr__(self) -> str:
        # Only what was given: the whole of the settings fills pages.
        given = (f"{name}={'...' if name in PRIVATE else repr(value)}" for name, value in vars(self).items())
        return f"{type(self).__name__}({', '.join(given)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_data, (self.to_data(),)


def key(default: T, description: str) -> T:
    """A key with a plain value: a scalar or a list of scalars.

    Args:
        default: What it is when nobody writes it.
        description: One sentence, with the unit.
    """
    return cast(T, Key(default, description, _read_only))


def mapping(default: Mapping[str, T], description: str) -> Mapping[str, T]:
    """A key with a mapping of names to plain values."""
    return cast("Mapping[str, T]", Key(_read_only(default), description, _read_only))


def free(description: str) -> Mapping[str, Any]:
    """A key with a mapping of whatever JSON allows, empty by default; lists in it stay lists (read-only ones)."""
    return cast("Mapping[str, Any]", Key(FrozenDict(), description, freeze))


def section(kind: type[S], description: str) -> S:
    """A key with a section below it."""
    return cast(S, Key(kind(), description, kind.from_data, kind))


def optional(kind: type[S], description: str) -> S | None:
    """A key with a section below it, or nothing, which is the default."""

    def shape(value: Mapping[str, Any] | None) -> S | None:
        return None if value is None else kind.from_data(value)

    return cast("S | None", Key(None, description, shape, kind))


def named(kind: type[S], description: str) -> Mapping[str, S]:
    """A key with sections by name, none by default."""

    def shape(value: Mapping[str, Any]) -> FrozenDict:
        return FrozenDict({name: kind.from_data(part) for name, part in value.items()})

    return cast("Mapping[str, S]", Key(FrozenDict(), description, shape, kind, 1))


def named_lists(kind: type[S], description: str) -> Mapping[Any, tuple[S, ...]]:
    """A key with lists of sections by name, none by default."""

    def shape(value: Mapping[str, Any]) -> FrozenDict:
        return FrozenDict({name: tuple(map(kind.from_data, parts)) for name, parts in value.items()})

    return cast("Mapping[Any, tuple[S, ...]]", Key(FrozenDict(), description, shape, kind, 2))


def listed(kind: type[S], description: str) -> tuple[S, ...]:
    """A key with a list of sections, none by default."""

    def shape(value: Sequence[Mapping[str, Any]]) -> tuple[S, ...]:
        return tuple(map(kind.from_data, value))

    return cast("tuple[S, ...]", Key((), description, shape, kind, 1))


def _read_only(value: Any) -> Any:
    """`value` with its lists as tuples and its mappings read-only."""
    if isinstance(value, dict):
        return FrozenDict({name: _read_only(part) for name, part in value.items()})
    return tuple(map(_read_only, value)) if isinstance(value, list | tuple) else value


def to_plain(value: Any) -> Any:
    """`value` with sections and mappings as dicts, and tuples as lists."""
    if isinstance(value, Section):
        return value.to_data()
    if isinstance(value, dict):
        return {name: to_plain(part) for name, part in value.items()}
    return [to_plain(part) for part in value] if isinstance(value, list | tuple) else thaw(value)


def section_at(root: type[Section], path: Sequence[str | int]) -> type[Section] | None:
    """The section that a key's parts lead to; `None` where they lead to something else, or to nothing."""
    found: type[Section] | None = root
    rest = list(path)
    while rest and found is not None:
        part = found.KEYS.get(str(rest.pop(0)))
        found = part.kind if part and len(rest) >= part.levels else None
        rest = rest[part.levels :] if part else rest
    return found


def all_keys(root: type[Section], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The parts of every key that has a fixed place, sections before what is below them."""
    for name, part in root.KEYS.items():
        yield (*above, name)
        if part.kind is not None and part.levels == 0:
            yield from all_keys(part.kind, (*above, name))
