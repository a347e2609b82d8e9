"""The types that need no library say what pydantic would say."""

# ruff: noqa: PYI061, UP007, UP045 - the older spellings are to be understood too
from __future__ import annotations

from typing import Any, Literal, Optional, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from mibyan.schema.parts import rewrite
from mibyan.schema.plaintypes import converter, is_plain, plain_schema

SIMPLE = [
    str,
    int,
    float,
    bool,
    list,
    dict,
    Any,
    None,
    type(None),
    Literal["a"],
    Literal["a", "b"],
    Literal[1, "a", True],
    Literal[1, 2],
]
PLAIN = st.recursive(
    st.sampled_from(SIMPLE),
    lambda inner: st.one_of(
        st.builds(lambda item: list[item], inner),
        st.builds(lambda item: dict[str, item], inner),
        st.builds(lambda one: Optional[one], inner),
        st.builds(lambda one, other: Union[one, other], inner, inner),
    ),
    max_leaves=4,
)


@given(PLAIN)
def test_the_schema_is_pydantics(annotation):
    """A plain type's schema is the one pydantic gives, but for titles."""
    assert is_plain(annotation)
    expected = rewrite(
        TypeAdapter(annotation).json_schema(), lambda schema: {k: v for k, v in schema.items() if k != "title"}
    )
    assert plain_schema(annotation) == expected


@given(PLAIN)
def test_each_schema_is_a_copy(annotation):
    """Nobody's change to a schema shows in the next one."""
    first = plain_schema(annotation)
    for part in [first, *(value for value in first.values() if isinstance(value, dict))]:
        part["changed"] = True
    assert "changed" not in str(plain_schema(annotation))


@pytest.mark.parametrize(
    "annotation",
    [
        set,
        tuple,
        bytes,
        object,
        list[set],
        dict[int, str],
        set[int],
        "str",
        Literal[b"x"],
        Literal[None],
        type,
        ...,
        [1],
    ],
)
def test_other_types_are_not_plain(annotation):
    """Everything else is pydantic's business."""
    assert not is_plain(annotation)


@pytest.mark.parametrize(
    ("annotation", "value", "converted"),
    [
        (float, 1, 1.0), (float, 1.5, 1.5), (float, True, True), (float, "x", "x"), (list[float], [1, "x"], [1.0, "x"]),
        (list[float], "x", "x"), (dict[str, float], {"a": 1}, {"a": 1.0}), (float | None, 1, 1.0), (float | None, None, None),
        (list[dict[str, list[float]]], [{"a": [1]}], [{"a": [1.0]}]),
    ],
)  # fmt: skip
def test_whole_numbers_become_floats(annotation, value, converted):
    """Where a float is due, an integer becomes one; what isn't a number is left for validation."""
    assert repr(converter(annotation)(value)) == repr(converted)


def test_what_no_float_can_be_stays():
    """An integer beyond the floats stays exact."""
    assert converter(float)(10**400) == 10**400


@pytest.mark.parametrize("annotation", [str, int, int | float, list[int], dict[str, Any], Literal[1], None])
def test_other_values_are_their_own(annotation):
    """No conversion where a JSON value is the Python value."""
    assert converter(annotation) is None
