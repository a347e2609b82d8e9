"""`mibyan.cli.arguments`: what stands behind a tool's name."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.cli.arguments import read_arguments
from mibyan.cli.exits import UsageError


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], None),
        (["city=Bern"], {"city": "Bern"}),
        (["city="], {"city": ""}),
        (["query=a=b:=c"], {"query": "a=b:=c"}),
        (["text=two\nlines"], {"text": "two\nlines"}),
        (["days:=3", "city=Bern"], {"days": 3, "city": "Bern"}),
        (["days=3"], {"days": "3"}),
        (["flags:=[true, null]"], {"flags": [True, None]}),
        (["größe=1", "a.b-c_d=2"], {"größe": "1", "a.b-c_d": "2"}),
        (["x=--json"], {"x": "--json"}),
        (['{"a": 1}'], '{"a": 1}'),
        (['{"a": '], '{"a": '),
        (["[1]"], "[1]"),
        (["null"], "null"),
        (["42"], "42"),
        ([""], ""),
        (["  "], "  "),
        (['"{}"'], '"{}"'),
    ],
)
def test_words(words: list[str], expected: Any) -> None:
    """api.md: key=text is text, key:=JSON a JSON value; JSON goes to the pipeline as it is, broken JSON too."""
    assert read_arguments(words) == expected


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{}", "a=1"], "is JSON and 'a=1' a pair"),
        (["a=1", "{}"], "is JSON and 'a=1' a pair"),
        (["-", "a=1"], "is standard input and 'a=1' a pair"),
        (["ls", "a=1"], "is neither and 'a=1' a pair"),
        (["{}", "{}"], "one argument too many"),
        (["-", "-"], "one argument too many"),
        (["{command:", "ls}"], "one argument too many"),
        (["ls"], "'ls' isn't JSON and not a pair"),
        (["=x"], "'=x' isn't JSON and not a pair"),
        (["1x=2"], "'1x=2' isn't JSON"),
        (["a:=x"], "For text write 'a=x'"),
        (["a:="], "isn't JSON"),
        (["a:=NaN"], "isn't JSON"),
        (["a:=" + "[" * 100_000], "nested more than"),
        (["a:=" + "9" * 5000], "digits"),
        (["a=1", "a:=1"], "'a' is given twice"),
        (["a\x1b[31m\u202e"], r"a\\x1b[31m\\u202e"),
    ],
)
def test_words_that_cannot_be_told(words: list[str], said: str) -> None:
    """Both forms at once, a key twice, and what is neither: usage errors that say what to write."""
    with pytest.raises(UsageError) as caught:
        read_arguments(words)
    assert said in caught.value.message
    assert len(caught.value.message) < 1000


@given(st.dictionaries(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True), st.text()))
def test_text_arrives_as_it_was_typed(pairs: dict[str, str]) -> None:
    """key=text: whatever the text, nothing of it is lost or read as something else."""
    assert (read_arguments([f"{key}={value}" for key, value in pairs.items()]) or {}) == pairs


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(_JSON)
def test_json_arrives_as_it_was_meant(value: Any) -> None:
    """key:=JSON: every JSON value, whatever is in it."""
    assert read_arguments([f"x:={json.dumps(value)}"]) == {"x": value}


class Stdin:
    """A standard input of bytes."""

    def __init__(self, data: bytes | Exception) -> None:
        self.buffer = self
        self._data = data

    def read(self, size: int) -> bytes:
        if isinstance(self._data, Exception):
            raise self._data
        return self._data[:size]


@pytest.mark.parametrize(
    ("data", "expected"), [(b'{"a": 1}\n', '{"a": 1}\n'), (b"\xef\xbb\xbf{}", "{}"), ("ü".encode(), "ü"), (b"", "")]
)
def test_standard_input(monkeypatch: pytest.MonkeyPatch, data: bytes, expected: str) -> None:
    """`-`: the text of standard input, UTF-8 whatever the locale, with or without a byte order mark."""
    monkeypatch.setattr(sys, "stdin", Stdin(data))
    assert read_arguments(["-"]) == expected


@pytest.mark.parametrize(
    ("stdin", "said"),
    [
        (None, "closed"),
        (Stdin(b"\xff"), "isn't UTF-8 text (byte 0)"),
        (Stdin(IsADirectoryError(21, "x")), "is a directory"),
        (Stdin(ValueError("read of closed file")), "closed file"),
    ],
)
def test_standard_input_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, stdin: Any, said: str) -> None:
    """A standard input that is closed, isn't text or can't be read is a usage error."""
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(UsageError) as caught:
        read_arguments(["-"])
    assert said in caught.value.message


def test_standard_input_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input that never ends is a usage error at the limit; what just fits is read."""
    monkeypatch.setattr("mibyan.cli.arguments._LARGEST", 10)
    monkeypatch.setattr(sys, "stdin", Stdin(b"1" * 10))
    assert read_arguments(["-"]) == "1" * 10
    endless = Stdin(b"")
    monkeypatch.setattr(endless, "read", lambda size: b"1" * size)
    monkeypatch.setattr(sys, "stdin", endless)
    with pytest.raises(UsageError, match="more than 10 bytes"):
        read_arguments(["-"])


def test_standard_input_is_left_alone_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `-` nothing is read from standard input."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("never read"))
    assert read_arguments(["a=-"]) == {"a": "-"}
    assert sys.stdin.read() == "never read"
