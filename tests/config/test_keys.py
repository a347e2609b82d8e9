"""Keys as text: any key can be written, and reads back as its parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.config.keys import join_key, split_key, value_at
from mibyan.errors import ConfigError

parts = st.text(min_size=1) | st.integers(0, 10**8)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("dispatch.timeout", ("dispatch", "timeout")),
        ("plugins.entries.'a.b'.config", ("plugins", "entries", "a.b", "config")),
        ('plugins.entries."a.\\"b".x', ("plugins", "entries", 'a."b', "x")),
        ("a.'it''s'", ("a", "it's")),
        ("hooks.pre_tool_call[0].command", ("hooks", "pre_tool_call", 0, "command")),
        ("a[0][1]", ("a", 0, 1)),
        ("a.0", ("a", "0")),
        (("a.b", 0), ("a.b", 0)),
        (["x"], ("x",)),
    ],
)
def test_split(text, path):
    """Parts are separated by dots, quoted where they have some, and items have numbers in brackets."""
    assert split_key(text) == path


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".a", "a..b", "a b", "a.'b", "a[", "a[x]", "a[-1]", "'a'b", "a[0]b", "\n"]
)
def test_not_a_key(text):
    """What isn't a key is an error that shows how keys are written."""
    with pytest.raises(ConfigError, match="isn't a key"):
        split_key(text)


@given(path=st.lists(parts, min_size=1).filter(lambda path: isinstance(path[0], str)))
def test_round_trip(path):
    """What `join_key` writes, `split_key` reads."""
    assert split_key(join_key(path)) == tuple(path)


@pytest.mark.parametrize(("path", "found"), [((), {"a": [1]}), (("a",), [1]), (("a", 0), 1)])
def test_value_at(path, found):
    """A path leads to what is there."""
    assert value_at({"a": [1]}, path) == found


@pytest.mark.parametrize("path", [("b",), ("a", 1), ("a", "0"), (0,), ("a", 0, "x"), ("a", 0, 0)])
def test_nothing_there(path):
    """A path to nothing is a LookupError, whatever it meets on the way."""
    with pytest.raises(LookupError):
        value_at({"a": [1]}, path)
