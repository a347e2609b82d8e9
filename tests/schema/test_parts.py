"""Where the schemas are within a schema."""

from __future__ import annotations

import pytest

from mibyan.schema.parts import pointer, rewrite


def marked(schema):
    return {**schema, "seen": True}


def test_D4_every_schema_is_visited_and_nothing_else():
    """registry.D4: property names and values of default, const, enum and examples aren't schemas."""
    schema = {
        "properties": {"properties": {"type": "string"}, "$ref": {"items": {}}},
        "anyOf": [{"enum": [{"type": "x"}]}, True],
        "additionalProperties": False,
        "default": {"type": "string"},
        "const": {"items": {}},
        "examples": [{}],
        "$defs": {"d": {"not": {}}},
    }
    assert rewrite(schema, marked) == {
        "properties": {
            "properties": {"type": "string", "seen": True},
            "$ref": {"items": {"seen": True}, "seen": True},
        },
        "anyOf": [{"enum": [{"type": "x"}], "seen": True}, True],
        "additionalProperties": False,
        "default": {"type": "string"},
        "const": {"items": {}},
        "examples": [{}],
        "$defs": {"d": {"not": {"seen": True}, "seen": True}},
        "seen": True,
    }


@pytest.mark.parametrize("schema", [None, True, 5, {"properties": []}, {"anyOf": {}}, {"items": [1]}, {"$defs": None}])
def test_what_is_no_schema_is_left(schema):
    """What isn't a schema where one should be is left as it is."""
    assert rewrite(schema, lambda each: each) == schema


@pytest.mark.parametrize(
    ("path", "text"),
    [((), "#"), (("properties", "a/b~c %é"), "#/properties/a~1b~0c%20%25%C3%A9"), (("anyOf", 0), "#/anyOf/0")],
)
def test_pointers(path, text):
    """RFC 6901, section 6: tildes, slashes and what a URI can't have are escaped."""
    assert pointer(path) == text
