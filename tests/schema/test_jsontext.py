"""Writing JSON text, whatever the value: dispatch.C6."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import json
import math
import pathlib
import subprocess
import sys
import types
import uuid

import pydantic
import pytest
from hypothesis import given

from mibyan.schema.jsontext import to_data, to_json
from mibyan.schema.reading import parse_strict

from .strategies import HOSTILE_VALUES, VALUES, Exiting, Raising, RaisingDict, cycle, deep


class Colour(enum.Enum):
    RED = "red"
    PAIR = (1, 2)


class Level(enum.IntEnum):
    HIGH = 3


class Word(str):
    __slots__ = ()


class Secretive(pydantic.BaseModel):
    when: dt.date = dt.date(2024, 1, 2)
    key: pydantic.SecretStr = pydantic.SecretStr("hush")


class Unserialisable(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    thing: object = None
    n: int = 1


@dataclasses.dataclass
class Point:
    x: int
    y: object = None


def nothing() -> object:
    """An object whose class hasn't even a name."""

    class Unnameable(type):
        @property
        def __name__(cls):
            raise ValueError("no")

    class Nothing(metaclass=Unnameable):
        def __repr__(self):
            raise ValueError("no")

    return Nothing()


class Liar:
    __class__ = str


@given(VALUES)
def test_C6_json_values_are_written_as_they_are(value):
    """dispatch.C6: plain JSON values are written as the standard library writes them, readable."""
    assert to_json(value) == json.dumps(value, ensure_ascii=False)
    assert to_data(value) == value


@given(HOSTILE_VALUES)
def test_C6_writing_is_total(value):
    """dispatch.C6: any object has a text that is strict JSON, can be encoded, and is what to_data stands for."""
    text = to_json(value)
    text.encode()
    parse_strict(text)
    assert to_json(to_data(value)) == text == to_json(value)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (math.nan, None),
        ([math.inf, -math.inf], [None, None]),
        (decimal.Decimal("1.10"), "1.10"),
        (decimal.Decimal("NaN"), None),
        (fractions.Fraction(1, 3), "1/3"),
        ([10**5000, -(10**5000)], ["<integer of about 5001 digits>"] * 2),
        ([10**4299], [10**4299]),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ({"\udc80": 1}, {"\ufffd": 1}),
        ((1, (2,)), [1, [2]]),
        ({3, 1, 10, "b", "a"}, [1, 3, 10, "a", "b"]),
        (frozenset(), []),
        (collections.deque([1]), [1]),
        (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        ({"a": 1}.keys(), ["a"]),
        ({"a": 1}.values(), [1]),
        (array.array("i", [1, 2]), [1, 2]),
        (b"abc", "data:application/octet-stream;base64,YWJj"),
        (memoryview(b"abc"), "data:application/octet-stream;base64,YWJj"),
        (dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC), "2024-01-02T03:00:00+00:00"),
        (dt.timedelta(minutes=1), 60.0),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (pathlib.PurePosixPath("/a/\udcff"), "/a/\ufffd"),
        (Colour.RED, "red"),
        (Colour.PAIR, [1, 2]),
        ([Level.HIGH], [3]),
        ({"w": Word("x")}, {"w": "x"}),
        (Point(1, Colour.RED), {"x": 1, "y": "red"}),
        (Point, "<class '*.Point'>"),
        (Secretive(), {"when": "2024-01-02", "key": "**********"}),
        (ValueError("x"), "ValueError: x"),
        (range(3), "range(0, 3)"),
        (1j, "1j"),
        (object(), "<object object>"),
        (RaisingDict(a=1), {"a": 1}),
        ((i for i in ()), "<generator object <genexpr>>"),
    ],
)
def test_C6_what_json_cannot_say_degrades(value, data):
    """dispatch.C6: each kind of value has its nearest JSON value."""
    found = to_data(value)
    if isinstance(data, str) and "*." in data:
        assert found.endswith(data.partition("*")[2])
    else:
        assert repr(found) == repr(data)


@pytest.mark.parametrize(
    ("make", "data"),
    [
        (Raising, "<Raising object>"),
        (Exiting, "<Exiting object>"),
        (nothing, "<object>"),
        (lambda: Unserialisable(thing=Exiting()), {"thing": "<Exiting object>", "n": 1}),
        (lambda: ValueError(Exiting()), "<ValueError object>"),
    ],
)
def test_C6_what_a_value_raises_stays_inside(make, data):
    """dispatch.C6: a value whose text, items or class's name raise, SystemExit too, is written by its type."""
    assert to_data([make()]) == [data]
    assert json.loads(to_json({"a": make()})) == {"a": data}


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ({1: "a", "1": "b"}, {"1": "a", "1 (2)": "b"}),
        ([{"x": {None: 1, "null": 2, True: 3}}], [{"x": {"null": 1, "null (2)": 2, "true": 3}}]),
        ({(1, 2): 3, Colour.RED: 4, 1.5: 5, b"x": 6}, None),
    ],
)
def test_C6_keys_become_text_and_none_is_lost(value, data):
    """dispatch.C6: keys of any type become text; two that would be equal both stay."""
    found = json.loads(to_json(value))
    assert found == data or (data is None and set(found.values()) == {3, 4, 5, 6})


def test_C6_cycles_are_cut():
    """dispatch.C6: what contains itself is cut where it would begin again; what only stands twice isn't."""
    assert to_data(cycle()) == [{"again": "<cycle>"}]
    twice = [1]
    assert to_data([twice, {"a": twice, 1: 1}]) == [[1], {"a": [1], "1": 1}]


def test_C6_depth_is_cut_at_a_hundred():
    """dispatch.C6: a hundred levels are written, the next is cut; also where the stack wouldn't bear the value."""
    assert json.loads(to_json(deep(100, "end"))) == deep(100, "end")
    assert "end" not in to_json(deep(101, "end"))
    assert "<nested too deeply>" in to_json(deep(101, ["end"]))
    assert "<nested too deeply>" in to_json(deep(50_000))


def test_C6_no_memory_address():
    """dispatch.C6: no text contains a memory address, in whatever way it is written."""

    class Telling:
        def __repr__(self):
            return f"<Telling {id(self)} {id(self):#x} at {hex(id(self))}>"

    values = [object(), Telling(), lambda: 0, Liar(), print, [].append, {"k": {object(): 1}}]
    text = to_json(values)
    assert "0x" not in text
    assert str(id(values[1])) not in text


def test_C6_only_keyboard_interrupt_leaves():
    """dispatch.C6: SystemExit and its like become text; KeyboardInterrupt leaves."""

    class Interrupting:
        def __str__(self):
            raise KeyboardInterrupt

    for write in (to_json, to_data):
        with pytest.raises(KeyboardInterrupt):
            write({"a": [Interrupting()]})


def test_C6_near_the_end_of_the_stack():
    """dispatch.C6: with hardly any stack left there is still a text."""

    def down():
        try:
            down()
        except RecursionError:
            assert json.loads(to_json({"a": [object()]}))
            raise

    with pytest.raises(RecursionError):
        down()


def test_C6_the_text_is_the_same_in_every_process():
    """dispatch.C6: another hash seed changes nothing."""
    program = (
        "from mibyan.schema.jsontext import to_json; print(to_json({'s': {'a', 'b', 'c', 3, 1, None}, 'o': object()}))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(texts) == 1
