"""Strict reading of JSON text: dispatch.A1's parser."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.schema.reading import MAX_NESTING, JSONProblem, parse_strict

from .strategies import VALUES

SAMPLE = '{"a": [1, -2.5e+3, true, null, "x\\u00e9\\n\\"y\\\\"], "b:": {"c": false, "d": {}}, "e": []}'


@given(VALUES)
def test_A1_valid_text_is_read_as_json_reads_it(value):
    """dispatch.A1: whatever is JSON comes out as the standard library reads it, whole floats and key order included."""
    text = json.dumps(value)
    assert repr(parse_strict(text)) == repr(json.loads(text))


@pytest.mark.parametrize("end", range(1, len(SAMPLE)))
def test_A1_every_beginning_is_truncated(end):
    """dispatch.A1: text that was cut off anywhere is told apart from junk."""
    with pytest.raises(JSONProblem) as caught:
        parse_strict(SAMPLE[:end])
    assert caught.value.truncated


@given(VALUES.filter(lambda value: isinstance(value, dict | list | str)), st.data())
def test_A1_beginnings_of_any_json_are_truncated(value, data):
    """dispatch.A1: also the beginning of any other object, array or string."""
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    end = data.draw(st.integers(1, len(text) - 1))
    with pytest.raises(JSONProblem) as caught:
        parse_strict(text[:end])
    assert caught.value.truncated


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Expecting value"),
        ("  ", "Expecting value"),
        ('{"a": 1} x', "Extra data at line 1 column 10"),
        ("{a: 1}", "property name"),
        ("{'a': 1}", "property name"),
        ('{"a": 1,}', "property name|trailing comma"),
        ("[1,]", "Expecting value|trailing comma"),
        ('{"a" 1', "delimiter"),
        ('{"a": 1]', "delimiter"),
        ("hello", "Expecting value"),
        ("\ufeff{}", "Expecting value"),
        ('{"a": "\n', "control character at line"),
        ("01", "Extra data"),
        ("٣", "Expecting value"),
        ('{"a": NaN}', "NaN isn't JSON"),
        ("[-Infinity", "-Infinity isn't JSON"),
        ("1e999", "too large"),
        ("9" * 4301, "4,300 digits"),
        ('{"n": ' + "9" * 4301, "4,300 digits"),
        ('{"a": 1, "a": 2}', "'a' stands twice"),
        ('{"a": 1, "a": true}', "'a' stands twice"),
        ('{"a": 1, "a": 1.0}', "'a' stands twice"),
        ('[{"x": {"a": [1], "a": [true]}}]', "'a' stands twice"),
        ('{"a": {"b": 1, "b": 2}}', "'b' stands twice"),
        ("[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1), "levels deep"),
        ("[" * 100_000, "levels deep"),
        (None, "expected JSON text, got NoneType"),
        (b"{}", "expected JSON text, got bytes"),
    ],
)
def test_A1_junk_is_refused_and_not_truncated(text, says):
    """dispatch.A1: what isn't strict JSON is refused, with what and where, and isn't taken for a beginning."""
    with pytest.raises(JSONProblem, match=says) as caught:
        parse_strict(text)
    assert not caught.value.truncated


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, "a": 1}', {"a": 1}),
        ('{"a": ":", "b": {"c:": "::"}}', {"a": ":", "b": {"c:": "::"}}),
        ('{"\\u0061": 1, "b": 2}', {"a": 1, "b": 2}),
        ("9" * 4300, int("9" * 4300)),
        ("12345678901234567890", 12345678901234567890),
        (' \n{"a":\t1}\r', {"a": 1}),
        ('"\\ud83d\\ude00"', "😀"),
        ("[" * MAX_NESTING + "]" * MAX_NESTING, None),
    ],
)
def test_A1_what_has_one_meaning_is_read(text, value):
    """dispatch.A1: a key twice with one value, large integers, colons in text and the deepest nesting are all right."""
    found = parse_strict(text)
    assert value is None or found == value


@given(st.text())
def test_A4_reading_is_total(text):
    """dispatch.A4: any text is read or is a JSONProblem."""
    try:
        parse_strict(text)
    except JSONProblem as problem:
        assert str(problem)  # noqa: PT017 - either outcome is right
