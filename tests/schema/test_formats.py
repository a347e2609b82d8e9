"""Definitions in each provider's words: registry.D1 and the shapes of the public surface."""

from __future__ import annotations

import json

import pytest

from mibyan.schema.definition import normalise_schema
from mibyan.schema.formats import FORMATS, render

PARAMETERS = {"type": "object", "properties": {"a": {"type": "string"}}}
SCHEMA = normalise_schema("x", {"description": "D", "parameters": PARAMETERS})
HINTS = {"readOnlyHint": True}

SHAPES = {
    "openai": {"type": "function", "function": {"name": "x", "description": "D", "parameters": PARAMETERS}},
    "openai-responses": {"type": "function", "name": "x", "description": "D", "parameters": PARAMETERS},
    "anthropic": {"name": "x", "description": "D", "input_schema": PARAMETERS},
    "gemini": {"name": "x", "description": "D", "parametersJsonSchema": PARAMETERS},
    "mcp": {"name": "x", "description": "D", "inputSchema": PARAMETERS, "annotations": HINTS},
}


def test_D1_every_format_has_its_shape():
    """registry.D1: the formats are these, and `openai` comes first."""
    assert list(SHAPES) == list(FORMATS)


@pytest.mark.parametrize("format_", FORMATS)
def test_D1_shapes(format_):
    """registry.D1: each format's keys, in its order."""
    found = render(SCHEMA, format_, annotations=HINTS)
    assert json.dumps(found) == json.dumps(SHAPES[format_])


@pytest.mark.parametrize("format_", FORMATS)
def test_R2_no_description_is_no_description(format_):
    """registry.R2: a schema without a description has none in any format."""
    assert "description" not in json.dumps(render(normalise_schema("x", {}), format_))


@pytest.mark.parametrize("format_", FORMATS)
def test_D1_unknown_keys_of_a_schema_stay_here(format_):
    """registry.D1: providers refuse keys they don't know; `strict` is known to OpenAI."""
    schema = normalise_schema("x", {"emoji": "🌦", "strict": True})
    text = json.dumps(render(schema, format_))
    assert "emoji" not in text
    assert ("strict" in text) is format_.startswith("openai")


@pytest.mark.parametrize(
    ("name", "says"),
    [("open-ai", "did you mean 'openai'"), ("x", "there are openai"), (None, "there are"), ([], "there are")],
)
def test_D1_unknown_formats(name, says):
    """registry.D1: an unknown format is a ValueError that names the known ones or the one that was meant."""
    with pytest.raises(ValueError, match=says):
        render(SCHEMA, name)
