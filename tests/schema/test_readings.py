"""What text stands for: dispatch.A2's numbers, booleans, null and containers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.schema.readings import NOTHING, read_boolean, read_container, read_null, read_number, same

ARABIC = str.maketrans("0123456789.-", "٠١٢٣٤٥٦٧٨٩٫−")
FULL_WIDTH = str.maketrans("0123456789.-+", "０１２３４５６７８９．－＋")
SCRIPTS = st.sampled_from([{}, ARABIC, FULL_WIDTH])


@given(st.integers(), SCRIPTS, st.booleans())
def test_A2_integers_of_any_size_and_script_are_exact(number, script, whole):
    """dispatch.A2: the digits of any script give exactly the integer, an `int`."""
    found = read_number(f" {str(number).translate(script)}\n", whole=whole)
    assert type(found) is int
    assert found == number


@given(st.floats(allow_nan=False, allow_infinity=False), SCRIPTS)
def test_A2_floats_come_back_as_they_were_written(number, script):
    """dispatch.A2: a float's own text gives the float, its sign of zero included."""
    assert repr(read_number(str(number).translate(script), whole=False)) == repr(number)


@given(
    st.decimals(allow_nan=False, allow_infinity=False, min_value=Decimal("-1e40"), max_value=Decimal("1e40")),
    st.booleans(),
)
def test_A2_no_number_loses_anything(number, whole):
    """dispatch.A2: what is read is what is written, or nothing is: a float that is only near isn't taken."""
    found = read_number(str(number), whole=whole)
    if found is not NOTHING:
        assert Decimal(repr(found)) == number
    else:
        assert whole or float(number) != Fraction(number)
    if whole and number == number.to_integral_value():
        assert type(found) is int


@pytest.mark.parametrize(
    ("text", "whole", "value"),
    [
        ("1.0", True, 1),
        ("1e3", True, 1000),
        ("1.50e1", True, 15),
        ("-0.0", True, 0),
        (".5", False, 0.5),
        ("007", True, 7),
        ("+5", True, 5),
        ("१२३", True, 123),
        ("٣٫١٤", False, 3.14),
        ("9007199254740993.0", False, 9007199254740993),
        ("1e400", True, 10**400),
        ("1e23", False, 1e23),
    ],
)
def test_A2_spellings_of_numbers(text, whole, value):
    """dispatch.A2: exponents, leading zeros and signs are numbers; what no float can say is an exact integer."""
    found = read_number(text, whole=whole)
    assert type(found) is type(value)
    assert found == value


@pytest.mark.parametrize(
    "text",
    ["NaN", "nan", "inf", "-Infinity", "", " ", "-", ".", "5.", "e5", "1e", "1 2", "1_000", "1,000", "٬", "0x10", "0b1", "²",
     "½", "Ⅷ", "五", "1.2.3", "--1", "12px", "true", "3.14159265358979323846", "1e-400", "1e99999", "9" * 4301, "9" * 10**6],
    ids=lambda text: text[:12] or "empty",
)  # fmt: skip
def test_A2_what_isnt_the_number_stays_text(text):
    """dispatch.A2: NaN, infinities, separators, other notations and what a float can't hold are no readings."""
    assert read_number(text, whole=False) is NOTHING


def test_A2_a_fraction_is_no_integer():
    """dispatch.A2: where only an integer will do, 1.5 stays text."""
    assert read_number("1.5", whole=True) is NOTHING
    assert read_number("1e-1", whole=True) is NOTHING


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        (" TRUE\t", True),
        ("False", False),
        ("yes", NOTHING),
        ("1", NOTHING),
        ("", NOTHING),
        ("t", NOTHING),
    ],
)
def test_A2_booleans_by_name_only(text, value):
    """dispatch.A2: true and false in any letter case with blanks around them; nothing else is a boolean."""
    assert read_boolean(text) is value


@pytest.mark.parametrize(
    ("text", "value"), [("null", None), (" null ", None), ("NULL", NOTHING), ("None", NOTHING), ("", NOTHING)]
)
def test_A2_null_is_jsons_literal(text, value):
    """dispatch.A2: only JSON's literal is null."""
    assert read_null(text) is value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1]}', {"a": [1]}),
        (" [] ", []),
        ("[1", NOTHING),
        ("{'a': 1}", NOTHING),
        ("[NaN]", NOTHING),
        ('{"a": 1, "a": 2}', NOTHING),
        ('"[]"', NOTHING),
        ("5", NOTHING),
        ("[" * 10_000, NOTHING),
    ],
    ids=lambda value: str(value)[:20],
)
def test_A2_containers_are_read_strictly(text, value):
    """dispatch.A2: JSON text of an object or array; what is ambiguous or broken stays text."""
    found = read_container(text)
    assert found is value if value is NOTHING else found == value


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True), (True, 1, False), (False, 0, False), (True, True, True), (None, None, True), (None, 0, False),
        ("1", 1, False), ([1, {"a": 2}], [1.0, {"a": 2.0}], True), ([True], [1], False), ({"a": 0}, {"a": False}, False),
        ({}, [], False), ((1,), [1], True), (10**5000, 10**5000, True),
    ],
    ids=lambda value: repr(value)[:10] if not isinstance(value, int) or value < 9 else "big",
)  # fmt: skip
def test_equality_is_json_schemas(one, other, equal):
    """JSON Schema Core 4.2.2: numbers are equal by value, booleans aren't numbers."""
    assert same(one, other) is equal
    assert same(other, one) is equal
