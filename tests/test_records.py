"""`mibyan.records`: what a dataclass promises, a record keeps."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import weakref
from typing import Any, ClassVar, Generic, TypeVar

import pytest
from pydantic import TypeAdapter

from mibyan.records import as_dict, field, field_names, record, replace

T = TypeVar("T")


@record
class Point:
    """A point."""

    x: int
    #: Unseen.
    y: int = 2
    tags: list[str] = field(default_factory=list)
    note: str = field(default="", compare=False, repr=False)
    KIND: ClassVar[str] = "point"

    @property
    def both(self) -> tuple[int, int]:
        return self.x, self.y


@record(frozen=False)
class Counter:
    count: int = 0


@record(eq=False, weakref_slot=True)
class Identity:
    name: str


@record(frozen=False, slots=False)
class Open:
    name: str = "x"


@record
class Spot(Point):
    z: int = 3


@record
class Box(Generic[T]):
    value: T


@record
class Own:
    a: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own)

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "own"


@dataclasses.dataclass(frozen=True, slots=True)
class Twin:
    """The same as `Point`, as a dataclass."""

    x: int
    y: int = 2
    tags: list[str] = dataclasses.field(default_factory=list)
    note: str = dataclasses.field(default="", compare=False, repr=False)


def test_it_is_made_as_a_dataclass_is() -> None:
    for arguments, named in (((1,), {}), ((1, 3, ["a"], "n"), {}), ((), {"x": 1, "note": "n"})):
        one, twin = Point(*arguments, **named), Twin(*arguments, **named)
        assert as_dict(one) == dataclasses.asdict(twin)
    assert Point(1).tags is not Point(1).tags


@pytest.mark.parametrize(
    ("arguments", "named"), [((), {}), ((1, 2, [], "", 5), {}), ((1,), {"x": 1}), ((1,), {"w": 1})]
)
def test_wrong_arguments_are_refused_as_a_dataclass_refuses_them(arguments: Any, named: Any) -> None:
    """The same sentence, whether it is the first record of its class or not."""
    with pytest.raises(TypeError) as of_twin:
        Twin(*arguments, **named)

    @record
    class Fresh:
        x: int
        y: int = 2
        tags: list[str] = field(default_factory=list)
        note: str = ""

    for kind in (Fresh, Fresh, Point):
        with pytest.raises(TypeError) as caught:
            kind(*arguments, **named)
        assert str(caught.value).split(".__init__")[-1] == str(of_twin.value).split(".__init__")[-1]


def test_a_frozen_record_cant_be_changed() -> None:
    point = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    with pytest.raises(AttributeError):
        point.other = 1
    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)
    with pytest.raises(AttributeError):
        counter.other = 1
    assert not hasattr(point, "__dict__")
    assert vars(Open("y")) == {"name": "y"}


def test_equality_and_hash() -> None:
    """By value, for the same class only; frozen ones can be hashed if their values can."""
    assert Point(1, note="a") == Point(1, note="b")
    assert Point(1) != Point(2)
    assert Point(1) != Twin(1)
    assert Point(1) != Spot(1)
    assert hash(Point(1, tags=())) == hash(Point(1, tags=(), note="x"))
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        hash(Point(1))
    with pytest.raises(TypeError, match="unhashable type: 'Counter'"):
        hash(Counter())
    one = Identity("a")
    assert one != Identity("a")
    assert len({one, Identity("a")}) == 2
    assert weakref.ref(one)() is one
    assert Own(1) == Own(2)
    assert (hash(Own(1)), repr(Own(1))) == (7, "own")


def test_repr_is_a_dataclass_s() -> None:
    assert repr(Point(1)) == repr(Twin(1)).replace("Twin", "Point")
    loop = Counter()
    loop.count = loop
    assert repr(loop) == "Counter(count=...)"


def test_inheritance_and_generics() -> None:
    assert Spot(1, z=4).both == (1, 2)
    assert field_names(Spot) == ("x", "y", "tags", "note", "z")
    assert Spot.__slots__ == ("z",)
    assert Box[int](5).value == 5
    assert Point.KIND == "point"


def test_copies_and_pickles() -> None:
    for one in (Point(1, 2, ["a"], "n"), Spot(1, z=9), Counter(3), Identity("a"), Open("z")):
        for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            assert type(other) is type(one)
            assert as_dict(other) == as_dict(one)
    assert copy.deepcopy(Point(1, 2, ["a"])).tags is not Point(1, 2, ["a"]).tags


def test_replacing() -> None:
    assert replace(Point(1), y=5) == Point(1, 5)
    assert dataclasses.replace(Point(1), y=5) == Point(1, 5)
    with pytest.raises(TypeError, match="unexpected keyword argument 'w'"):
        replace(Point(1), w=5)


def test_matching_by_position() -> None:
    match Point(1, 5):
        case Point(x, 5):
            assert x == 1
        case _:
            pytest.fail("it should match")


def test_dataclasses_knows_it() -> None:
    assert dataclasses.is_dataclass(Point)
    assert dataclasses.is_dataclass(Point(1))
    shown = [(one.name, one.type, one.compare, one.repr) for one in dataclasses.fields(Point)]
    assert shown == [(one.name, one.type, one.compare, one.repr) for one in dataclasses.fields(Twin)]
    assert dataclasses.fields(Point)[1].default == 2
    assert dataclasses.asdict(Point(1)) == dataclasses.asdict(Twin(1))


@pytest.mark.parametrize("used", [False, True])
def test_inspect_and_pydantic_know_it(used: bool) -> None:
    @record
    class Fresh:
        x: int
        y: int = 2

    if used:
        Fresh(1)
    assert str(inspect.signature(Fresh)) == "(x: 'int', y: 'int' = 2) -> None"
    assert inspect.signature(Point).parameters["y"].default == 2
    assert str(inspect.signature(Point)) == str(inspect.signature(Twin))
    assert TypeAdapter(Point).validate_python({"x": "1"}) == Point(1)


def test_threads_that_make_the_first_one_at_once() -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):

            @record
            class Fresh:
                x: int

            made = list(pool.map(Fresh, range(16)))
            assert [one.x for one in made] == list(range(16))


def test_defining_records_needs_neither_dataclasses_nor_inspect() -> None:
    code = (
        "import sys; from mibyan.records import record, field, replace\n"
        "@record\nclass A:\n    a: int\n    b: list[int] = field(default_factory=list)\n"
        "print(replace(A(1), a=2), A(1) == A(1), sorted({'dataclasses', 'inspect'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "A(a=2, b=[]) True []\n"
