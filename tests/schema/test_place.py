"""Paths in the words a model wrote them."""

from __future__ import annotations

import pytest

from mibyan.schema.place import place


@pytest.mark.parametrize(
    ("parts", "path"),
    [([], ""), (["days"], "days"), (["items", 0, "name"], "items[0].name"), ([0, 1], "[0][1]"), (["a", "b"], "a.b")],
)
def test_places_read_like_code(parts, path):
    """A path is written as one would write it in code."""
    assert place(parts) == path
