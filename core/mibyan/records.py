"""`record`: classes that are records of named values, made in a tenth of the time that `dataclasses` takes.

A command that only lists tools would spend half of its time on defining some eighty dataclasses and on importing what
that needs. A record's `__init__` is compiled when the first one is made, everything else is shared. To whoever asks, a
record is a dataclass: `dataclasses.fields`, `replace`, `asdict` and `inspect.signature` know it.
"""

from __future__ import annotations

from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, dataclass_transform, overload

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class _Missing:
    """What stands for a value that isn't given."""

    def __repr__(self) -> str:
        return "<factory>"  # as a dataclass's signature has it


_MISSING: Any = _Missing()


class Field:
    """One value of a record."""

    __slots__ = ("compare", "default", "factory", "shown")

    def __init__(
        self,
        default: Any = _MISSING,
        factory: Any = _MISSING,
        *,
        compare: bool = True,
        shown: bool = True,
    ) -> None:
        self.default = default
        self.factory = factory
        self.compare = compare
        self.shown = shown


def field(
    *, default: Any = _MISSING, default_factory: Any = _MISSING, compare: bool = True, repr: bool = True  # noqa: A002 - dataclasses' name
) -> Any:  # fmt: skip
    """What `dataclasses.field` says.

    Args:
        default: The value where none is given.
        default_factory: Makes it anew each time.
        compare: Whether the value counts for equality and hash.
        repr: Whether it is shown.
    """
    return Field(default, default_factory, compare=compare, shown=repr)


@overload
def record(cls: type[T], /) -> type[T]: ...
@overload
def record(
    *, frozen: bool = True, eq: bool = True, slots: bool = True, weakref_slot: bool = False
) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(
    cls: type[Any] | None = None, /, *, frozen: bool = True, eq: bool = True, slots: bool = True, weakref_slot: bool = False
) -> Any:  # fmt: skip
    """Make a class with annotated attributes a record; the arguments are those of `dataclasses.dataclass`.

    Args:
        cls: The class.
        frozen: Whether a record can't be changed.
        eq: Whether two with the same values are equal (and, if frozen, have the same hash).
        slots: Whether it has slots instead of a `__dict__`.
        weakref_slot: Whether there may be weak references to one with slots.
    """
    if cls is not None:
        return _made(cls, frozen=True, eq=True, slots=True, weakref_slot=False)
    return lambda cls: _made(cls, frozen=frozen, eq=eq, slots=slots, weakref_slot=weakref_slot)


def replace(one: T, /, **changes: Any) -> T:
    """A copy of a record in which these values are others."""
    values = {name: getattr(one, name) for name in type(one).__record_fields__}  # type: ignore[attr-defined]
    return type(one)(**{**values, **changes})


def field_names(kind: type[Any]) -> tuple[str, ...]:
    """The names of a record class's values, in their order."""
    return tuple(kind.__record_fields__)


def as_dict(one: Any) -> dict[str, Any]:
    """The values of a record by name; unlike `dataclasses.asdict` those in it stay what they are."""
    return {name: getattr(one, name) for name in type(one).__record_fields__}


def _made(cls: type[Any], *, frozen: bool, eq: bool, slots: bool, weakref_slot: bool) -> type[Any]:
    """The record class that a plain class describes."""
    own = {name: _own_field(cls, name) for name, kind in cls.__annotations__.items() if not _is_class_variable(kind)}
    fields: dict[str, Field] = {}
    for base in cls.__mro__[:0:-1]:
        fields.update(base.__dict__.get("__record_fields__", ()))
    fields.update(own)
    space = _namespace(cls, own, slots=slots)
    space["__record_fields__"] = fields
    space["__match_args__"] = tuple(fields)
    space["__signature__"] = _SIGNATURE
    space["__dataclass_fields__"], space["__dataclass_params__"] = _FIELDS, _PARAMETERS
    space.setdefault("__repr__", _repr)
    space.setdefault("__replace__", replace)
    if eq:
        _add_equality(space, fields, frozen=frozen)
    if frozen:
        space["__setattr__"], space["__delattr__"] = _refuse_change, _refuse_deletion
    if slots:
        inherited = {name for base in cls.__mro__[1:] for name in base.__dict__.get("__record_fields__", ())}
        space["__slots__"] = (
            *(name for name in own if name not in inherited),
            *(["__weakref__"] if weakref_slot else []),
        )
        space.setdefault("__getstate__", _state)
        space.setdefault("__setstate__", _set_state)
    make: Any = type(cls)  # a metaclass is called as `type` is
    made: type[Any] = make(cls.__name__, cls.__bases__, space)
    made.__qualname__ = cls.__qualname__
    _let_init_come(made, frozen=frozen)
    return made


def _own_field(cls: type[Any], name: str) -> Field:
    value = cls.__dict__.get(name, _MISSING)
    return value if isinstance(value, Field) else Field(value)


def _is_class_variable(kind: Any) -> bool:
    return isinstance(kind, str) and kind.startswith("ClassVar")


def _namespace(cls: type[Any], own: dict[str, Field], *, slots: bool) -> dict[str, Any]:
    """The class's attributes, without what becomes a slot; without slots a default stays an attribute."""
    space = {name: value for name, value in cls.__dict__.items() if name not in {"__dict__", "__weakref__"}}
    for name, one in own.items():
        space.pop(name, None)
        if not slots and one.default is not _MISSING:
            space[name] = one.default
    return space


def _add_equality(space: dict[str, Any], fields: dict[str, Field], *, frozen: bool) -> None:
    """`__eq__` and `__hash__`, where the class hasn't its own."""
    names = [name for name, one in fields.items() if one.compare]
    values: Callable[[Any], Any] = attrgetter(*names) if names else lambda _: ()

    def equal(self: Any, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    hashed_by_itself = "__hash__" in space and not (space["__hash__"] is None and "__eq__" in space)
    space.setdefault("__eq__", equal)
    if not hashed_by_itself:
        space["__hash__"] = (lambda self: hash(values(self))) if frozen else None


def _let_init_come(cls: Any, *, frozen: bool) -> None:
    """Let the first record that is made compile `__init__`."""
    if "__init__" in cls.__dict__:
        return

    def first(self: Any, *args: Any, **named: Any) -> None:
        compile_init()(self, *args, **named)

    def compile_init() -> Any:
        if cls.__init__ is first:
            cls.__init__ = _compiled_init(cls, frozen=frozen)
        return cls.__init__

    first.compiled = compile_init  # type: ignore[attr-defined]
    cls.__init__ = first


def _compiled_init(cls: Any, *, frozen: bool) -> Any:
    """`__init__` with the fields as its parameters."""
    space: dict[str, Any] = {"_missing": _MISSING}
    parameters, lines = [], []
    for name, one in cls.__record_fields__.items():
        value = name
        if one.factory is not _MISSING:
            space[f"_make_{name}"] = one.factory
            parameters.append(f"{name}=_missing")
            value = f"_make_{name}() if {name} is _missing else {name}"
        elif one.default is not _MISSING:
            space[f"_default_{name}"] = one.default
            parameters.append(f"{name}=_default_{name}")
        else:
            parameters.append(name)
        lines.append(_setting(cls, name, value, space, frozen=frozen))
    body = "\n ".join(lines) or "pass"
    exec(f"def __init__(self{''.join(f', {one}' for one in parameters)}):\n {body}", space)  # noqa: S102 - as dataclasses do
    init = space["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    init.__annotations__ = {**_annotations(cls), "return": None}
    return init


def _setting(cls: Any, name: str, value: str, space: dict[str, Any], *, frozen: bool) -> str:
    """The statement that sets an attribute of a record that may be frozen."""
    if not frozen:
        return f"self.{name} = {value}"
    slot: Any = getattr(cls, name, None)
    if type(slot).__name__ == "member_descriptor":
        space[f"_set_{name}"] = slot.__set__
        return f"_set_{name}(self, {value})"
    return f"self.__dict__[{name!r}] = {value}"


def _annotations(cls: Any) -> dict[str, Any]:
    """What the fields are annotated with."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if "__record_fields__" in base.__dict__:
            found.update(base.__annotations__)
    return {name: found[name] for name in cls.__record_fields__}


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{name}={getattr(self, name)!r}" for name, one in self.__record_fields__.items() if one.shown)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_change(self: object, name: str, value: object) -> NoReturn:
    del self, value
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> NoReturn:
    del self
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__record_fields__]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__record_fields__, state, strict=True):
        object.__setattr__(self, name, value)


class _Signature:
    """`inspect.signature` of a record class."""

    def __get__(self, instance: object, owner: Any) -> Any:
        if instance is not None:
            raise AttributeError("__signature__")
        from inspect import signature

        compiled = getattr(owner.__init__, "compiled", None)
        whole = signature(compiled() if compiled is not None else owner.__init__)
        return whole.replace(parameters=list(whole.parameters.values())[1:])


class _OfDataclass:
    """What `dataclasses` wants to know of a record class: taken from a dataclass with the same fields."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: Any) -> Any:
        import dataclasses

        kinds = _annotations(owner)
        fields = [(name, kinds[name], _dataclass_field(one)) for name, one in owner.__record_fields__.items()]
        frozen = owner.__setattr__ is _refuse_change
        twin = dataclasses.make_dataclass(owner.__name__, fields, frozen=frozen)
        return getattr(twin, self._name)


def _dataclass_field(one: Field) -> Any:
    import dataclasses

    if one.factory is not _MISSING:
        return dataclasses.field(default_factory=one.factory, compare=one.compare, repr=one.shown)
    if one.default is not _MISSING and type(one.default).__hash__ is not None:
        return dataclasses.field(default=one.default, compare=one.compare, repr=one.shown)
    if one.default is not _MISSING:  # what could be changed is refused as a default there
        return dataclasses.field(default_factory=lambda: one.default, compare=one.compare, repr=one.shown)
    return dataclasses.field(compare=one.compare, repr=one.shown)


_SIGNATURE = _Signature()
_FIELDS = _OfDataclass("__dataclass_fields__")
_PARAMETERS = _OfDataclass("__dataclass_params__")
