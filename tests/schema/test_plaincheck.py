"""`mibyan.schema.plaincheck`: its yes is the library's, and nothing would be repaired (dispatch.A2, A3)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.schema.arguments import ArgumentCheck
from mibyan.schema.plaincheck import plain_check

NUMBERS = st.integers(-5, 5) | st.sampled_from([10**20, -(10**20), 2**53, 2**63, 2**64, True, None, 1.5, -1])
PROPERTY = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer", "number", "boolean", "array", "null", ["string", "null"]])},
    optional={
        "description": st.just("x"), "default": st.none(), "minimum": NUMBERS, "maximum": NUMBERS, "minLength": NUMBERS,
        "maxLength": NUMBERS, "enum": st.sampled_from([["a", "bc"], [], ["a", 1], None, "a"]), "nullable": st.booleans(),
        "format": st.just("date"), "required": st.booleans(),
    },
)  # fmt: skip
SCHEMA = st.fixed_dictionaries(
    {"type": st.sampled_from(["object", "object", "object", "any"]), "properties": st.dictionaries(st.sampled_from("abc"), PROPERTY, max_size=3)},
    optional={
        "required": st.lists(st.sampled_from("abc"), unique=True) | st.just(True), "additionalProperties": st.booleans() | st.just({}),
        "description": st.just("x"), "minProperties": st.integers(0, 2), "$defs": st.just({}),
    },
)  # fmt: skip
VALUES = st.sampled_from(
    ["", "a", "bc", "é", "\ud800", "long text", "1", "true", 0, 1, -1, 3, 10**20, 10**400, 2**53 + 1, 2**64, 0.5, -2.5, 1.0, 1e300,
     float("nan"), float("inf"), True, False, None, [], {}, ["a"]]
)  # fmt: skip
ARGUMENTS = st.dictionaries(st.sampled_from(["a", "b", "c", "d", "é"]), VALUES, max_size=4) | st.sampled_from(
    [[], None, "x", 1]
)


@given(SCHEMA, ARGUMENTS)
def test_a_yes_is_the_librarys_yes(schema: Any, args: Any) -> None:
    check = plain_check(schema)
    if check is not None and check(args):
        whole = ArgumentCheck(schema)
        whole._first = None
        assert whole.check(args) == (args, [], [])
        assert whole.problem is None


@given(SCHEMA, ARGUMENTS)
def test_the_first_look_and_the_later_ones_agree(schema: Any, args: Any) -> None:
    """Whatever the arguments: the same answer the first time and the second."""
    check = ArgumentCheck(schema)
    assert repr(check.check(args)) == repr(check.check(args))


def test_the_plain_is_plain() -> None:
    schema = {
        "type": "object", "required": ["city"], "additionalProperties": False,
        "properties": {
            "city": {"type": "string", "description": "Name."}, "days": {"type": "integer", "minimum": 1, "default": 3},
            "units": {"type": "string", "enum": ["c", "f"]}, "share": {"type": "number", "maximum": 1}, "now": {"type": "boolean"},
        },
    }  # fmt: skip
    check = plain_check(schema)
    assert check is not None
    right = {"city": "Oslo", "days": 2, "units": "c", "share": 0.5, "now": True}
    assert check(right)
    for wrong in ({}, {**right, "more": 1}, {**right, "days": 0}, {**right, "days": True}, {**right, "days": "2"}, {**right, "units": "k"},
                  {**right, "share": 1.5}, {**right, "now": 1}, {**right, "city": None}):  # fmt: skip
        assert not check(wrong)


@pytest.mark.parametrize(
    "word", ["pattern", "format", "anyOf", "const", "$ref", "nullable", "multipleOf", "exclusiveMinimum"]
)
def test_what_isnt_understood_is_left_to_the_library(word: str) -> None:
    assert plain_check({"type": "object", "properties": {"a": {"type": "string", word: "x"}}}) is None
    assert plain_check({"type": "object", word: {}}) is None


def test_a_first_call_imports_no_library() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from mibyan.schema.arguments import ArgumentCheck\n"
        "check = ArgumentCheck({'type': 'object', 'properties': {'a': {'type': 'string'}}})\n"
        "print(check.check({'a': 'x'}), 'jsonschema_rs' in sys.modules)\n"
        "print(check.check({'a': 'x'}), 'jsonschema_rs' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "({'a': 'x'}, [], []) False\n({'a': 'x'}, [], []) True\n"
