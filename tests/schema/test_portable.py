"""Parameters as each provider accepts them: registry.D4."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mibyan.schema.definition import normalise_schema
from mibyan.schema.formats import FORMATS, render
from mibyan.schema.library import compile_schema
from mibyan.schema.portable import Inexpressible, portable

CORE = Path(__file__).parents[2] / "core"
REFUSED = {
    "openai": {"anyOf", "oneOf", "allOf", "enum", "const", "not", "$ref"},
    "openai-responses": {"anyOf", "oneOf", "allOf", "enum", "const", "not", "$ref"},
    "anthropic": {"anyOf", "oneOf", "allOf", "$ref"},
    "gemini": {"anyOf", "oneOf", "allOf", "$ref"},
    "mcp": {"$ref"},
}
NOT_GEMINI = [name for name in FORMATS if name != "gemini"]
STRING = {"type": "string"}
NULL = {"type": "null"}
NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}


def top(properties=None, **more):
    return {"type": "object", "properties": {} if properties is None else properties, **more}


def one(schema, format_="openai", **more):
    """How a property's schema comes out."""
    return portable(top({"p": schema}, **more), format_)["properties"]["p"]


# What providers accept, as a program -------------------------------------------------------------------------------

ONE = {"additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
       "unevaluatedItems", "unevaluatedProperties"}  # fmt: skip
MANY = {"allOf", "anyOf", "oneOf", "prefixItems"}
NAMED = {"$defs", "dependentSchemas", "patternProperties", "properties"}
FLAGS = {"additionalProperties", "unevaluatedItems", "unevaluatedProperties"}


def schemas(schema, way=()):
    """Every schema in a schema, with the way to it."""
    yield way, schema
    if isinstance(schema, dict):
        for key, part in schema.items():
            if key in ONE:
                yield from schemas(part, (*way, key))
            elif key in MANY:
                for index, each in enumerate(part):
                    yield from schemas(each, (*way, key, index))
            elif key in NAMED:
                for name, each in part.items():
                    yield from schemas(each, (*way, key, name))


def complaints(schema, format_):
    """What a provider would complain about."""
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        yield "the top level isn't an object with properties"
    if REFUSED[format_] & schema.keys():
        yield f"{REFUSED[format_] & schema.keys()} at the top level"
    defined = {f"#/$defs/{name}" for name in schema.get("$defs", ())}
    for way, each in schemas(schema):
        if isinstance(each, bool):
            if way[-1] not in FLAGS or way[-2:-1] == ("properties",):
                yield f"{way} is a boolean"
            continue
        gone = {"$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$schema", "definitions", "nullable"} & each.keys()
        if gone or (way and "$defs" in each):
            yield f"{way} has {gone or '$defs'}"
        if "$ref" in each and each["$ref"] not in defined:
            yield f"{way} refers to {each['$ref']}"
        if "array" in (each.get("type") or ()) and not isinstance(each.get("items"), dict):
            yield f"{way} is an array without items"
        for key in ("exclusiveMinimum", "exclusiveMaximum"):
            if isinstance(each.get(key), bool):
                yield f"{way} has a boolean {key}"
        if format_ == "gemini":
            yield from gemini_complaints(way, each)
    if format_ == "gemini":
        yield from required_cycles(schema.get("$defs", {}))


def gemini_complaints(way, each):
    if "$ref" in each and each.keys() - {"$ref", "description", "default"}:
        yield f"{way} has {each.keys()} beside $ref"
    if set(each.get("required", ())) - set(each.get("properties", ())):
        yield f"{way} requires what it doesn't have"


def required_cycles(definitions):
    """Definitions that contain themselves by way of required properties alone."""
    edges = {}
    for name, schema in definitions.items():
        edges[name] = set()
        pending = [schema]
        while pending:
            each = pending.pop()
            if not isinstance(each, dict):
                continue
            if "$ref" in each:
                edges[name].add(each["$ref"].rpartition("/")[2])
            for key, part in each.items():
                if key == "properties":
                    pending += [inner for prop, inner in part.items() if prop in each.get("required", ())]
                elif key in ONE - {"additionalProperties", "unevaluatedProperties"}:
                    pending.append(part)
                elif key in MANY:
                    pending += part
                elif key == "dependentSchemas":
                    pending += part.values()
    for name in definitions:
        seen, pending = set(), list(edges[name])
        while pending:
            other = pending.pop()
            if other not in seen:
                seen.add(other)
                pending += edges[other]
        if name in seen:
            yield f"{name} is within itself, and that is required"


def is_valid(schema, value):
    return compile_schema(schema).is_valid(value)


# What stays as it is -----------------------------------------------------------------------------------------------

PLAIN = [
    top(),
    top({"a": {"type": "string", "enum": ["x"], "description": "d"}, "n": {"type": "integer", "minimum": 1}}, required=["a"]),
    top({"a": {"type": "array", "items": STRING}, "o": top({"x": {"type": ["string", "null"]}})}),
    top({"a": {"anyOf": [STRING, NULL], "default": None}}, additionalProperties=False),
    top({"a": {"type": "number", "exclusiveMinimum": 0}}, patternProperties={"^x": STRING}),
    top({"a": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": {"type": "object", "properties": {"n": {"type": "integer"}}}}}),
    {"$defs": {"A": STRING}, "properties": {"a": {"$ref": "#/$defs/A"}}, "type": "object"},
]  # fmt: skip


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("schema", PLAIN)
def test_D4_what_is_portable_is_not_touched(schema, format_):
    """registry.D4: a schema that everybody accepts is given as it is, the very object."""
    assert portable(schema, format_) is schema


NOT_SCHEMAS = {"$ref": "#/nowhere", "nullable": True, "type": "array", "definitions": {"a": True}, "$schema": "x"}


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("key", ["default", "const", "enum", "examples", "x-anything"])
def test_D4_values_are_no_schemas(key, format_):
    """registry.D4: what looks like a schema in a default, a constant, an enum or an example is data."""
    value = [NOT_SCHEMAS, {"items": [True]}] if key in {"enum", "examples"} else NOT_SCHEMAS
    found = one({key: value, "nullable": False}, format_)
    assert found == {key: value}


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    "name", ["type", "definitions", "nullable", "items", "required", "properties", "const", "allOf"]
)
def test_D4_names_of_properties_are_no_keywords(name, format_):
    """registry.D4: a property may be called as a keyword is, on the outside and within."""
    inner = {"type": "object", "properties": {name: STRING, "$ref": STRING, "$schema": STRING}, "required": ["$ref"]}
    schema = top({name: inner, "a": {"type": "integer", "nullable": True}}, required=[name])
    assert portable(schema, format_) == top({name: inner, "a": {"type": ["integer", "null"]}}, required=[name])


@pytest.mark.parametrize("format_", [name for name in FORMATS if name != "anthropic"])
def test_D4_a_property_called_ref(format_):
    """registry.D4: `$ref` is a property's name like any other, where names are free."""
    schema = top({"$ref": {"type": "string"}, "$defs": {"type": "integer"}}, required=["$ref"])
    assert portable(schema, format_) is schema


@pytest.mark.parametrize("format_", FORMATS)
def test_D4_the_original_is_not_changed(format_):
    """registry.D4, R3: the original stays available as it was registered."""
    schema = top(
        {"a": {"$ref": "#/definitions/A"}, "b": {"type": "array"}}, definitions={"A": NODE | {"nullable": True}}
    )
    before = copy.deepcopy(schema)
    portable(schema, format_)
    assert schema == before
    registered = normalise_schema("x", {"parameters": schema})
    assert render(registered, format_)
    assert registered["parameters"] == before


# References --------------------------------------------------------------------------------------------------------

PERSON = {"type": "object", "properties": {"name": STRING, "age": {"type": "integer"}}, "required": ["name"]}
MOVED = {"$ref": "#/$defs/Person"}

REFERENCES = {
    "definitions go to $defs": (
        top({"p": {"$ref": "#/definitions/Person"}}, definitions={"Person": PERSON}),
        top({"p": MOVED}, **{"$defs": {"Person": PERSON}}),
    ),
    "what nobody refers to goes": (
        top({"p": STRING}, **{"$defs": {"Person": PERSON}}, definitions={"A": {"$ref": "#/definitions/B"}, "B": {}}),
        top({"p": STRING}),
    ),
    "two of one name": (
        top({"p": {"$ref": "#/definitions/A"}, "q": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": PERSON}}, definitions={"A": top()}),
        top({"p": {"$ref": "#/$defs/A_2"}, "q": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": PERSON, "A_2": top()}}),
    ),
    "a small schema elsewhere is resolved": (
        top({"p": {"type": "string", "format": "date", "description": "From."}, "q": {"$ref": "#/properties/p", "description": "To."}}),
        top({"p": {"type": "string", "format": "date", "description": "From."}, "q": {"type": "string", "format": "date", "description": "To."}}),
    ),
    "a larger one is moved": (
        top({"Person": PERSON, "q": {"type": "array", "items": {"$ref": "#/properties/Person"}}}),
        top({"Person": MOVED, "q": {"type": "array", "items": MOVED}}, **{"$defs": {"Person": PERSON}}),
    ),
    "definitions within a part": (
        top({"p": top({"x": {"$ref": "#/properties/p/$defs/Person"}}, **{"$defs": {"Person": PERSON}})}),
        top({"p": top({"x": MOVED})}, **{"$defs": {"Person": PERSON}}),
    ),
    "definitions within a part that thinks it is alone": (
        top({"p": top({"x": {"type": "array", "items": {"$ref": "#/$defs/Person"}}}, **{"$defs": {"Person": PERSON}})}),
        top({"p": top({"x": {"type": "array", "items": MOVED}})}, **{"$defs": {"Person": PERSON}}),
    ),
    "under a keyword that nobody knows": (
        top({"p": {"$ref": "#/components/schemas/Person"}}, components={"schemas": {"Person": PERSON}}),
        top({"p": MOVED}, components={"schemas": {"Person": PERSON}}, **{"$defs": {"Person": PERSON}}),
    ),
    "an anchor": (
        top({"p": {"$ref": "#who"}}, **{"$defs": {"Person": {**PERSON, "$anchor": "who"}}}),
        top({"p": MOVED}, **{"$defs": {"Person": PERSON}}),
    ),
    "an anchor in two places": (
        top({"p": {"$ref": "#who"}, "q": {"$anchor": "who"}, "r": {"$anchor": "who"}}),
        top({"p": {}, "q": {}, "r": {}}),
    ),
    "an anchor in what is no schema": (
        top({"p": {"$ref": "#who"}, "q": {"$ref": "#/other"}}, other={**PERSON, "$anchor": "who"}),
        top({"p": {}, "q": {"$ref": "#/$defs/other"}}, other={**PERSON, "$anchor": "who"}, **{"$defs": {"other": PERSON}}),
    ),
    "a dynamic anchor": (
        top({"p": {"$dynamicRef": "#who"}}, **{"$defs": {"Person": {**PERSON, "$dynamicAnchor": "who"}}}),
        top({"p": MOVED}, **{"$defs": {"Person": PERSON}}),
    ),
    "an address": (
        top({"p": {"$ref": "person.json"}, "q": {"$ref": "/s/tool.json#/$defs/Person"}},
            **{"$id": "https://x.test/s/tool.json", "$schema": "https://json-schema.org/draft/2020-12/schema",
               "$defs": {"Person": {**PERSON, "$id": "person.json"}}}),
        top({"p": MOVED, "q": MOVED}, **{"$defs": {"Person": PERSON}}),
    ),
    "escapes and odd names": (
        top({"p": {"$ref": "#/$defs/List%5Ba~1b%5D"}}, **{"$defs": {"List[a/b]": PERSON}}),
        top({"p": {"$ref": "#/$defs/List_a_b_"}}, **{"$defs": {"List_a_b_": PERSON}}),
    ),
    "nowhere": (top({"p": {"$ref": "#/$defs/None", "description": "d"}}), top({"p": {"description": "d"}})),
    "somewhere else": (top({"p": {"$ref": "https://x.test/y.json"}}), top({"p": {}})),
    "not an address": (top({"p": {"$ref": "http://[::/y"}}), top({"p": {}})),
    "what can't be a schema": (top({"p": {"$ref": "#/required"}}, required=["p"]), top({"p": {}}, required=["p"])),
    "itself": (top({"p": {"$ref": "#/properties/p"}}), top({"p": {"$ref": "#/$defs/p"}}, **{"$defs": {"p": {}}})),
    "each other": (
        top({"p": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/B"}, NULL]}, "B": {"allOf": [{"$ref": "#/$defs/A"}]}}}),
        top({"p": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": {"anyOf": [{}, NULL]}}}),
    ),
    "the whole": (
        top({"p": {"$ref": "#"}}),
        top({"p": {"$ref": "#/$defs/root"}}, **{"$defs": {"root": top({"p": {"$ref": "#/$defs/root"}})}}),
    ),
    "at the top level": (
        {"type": "object", "$ref": "#/$defs/Args", "$defs": {"Args": PERSON}},
        PERSON,
    ),
    "with a rule beside it": (
        top({"p": {"$ref": "#/properties/q", "minLength": 2}, "q": STRING}),
        top({"p": {"minLength": 2, "$ref": "#/$defs/q"}, "q": {"$ref": "#/$defs/q"}}, **{"$defs": {"q": STRING}}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("format_", NOT_GEMINI)
@pytest.mark.parametrize("case", REFERENCES)
def test_D4_references(case, format_):
    """registry.D4: a local `$ref` is resolved or points to `$defs`; one that leads nowhere leaves its place open."""
    schema, expected = REFERENCES[case]
    assert portable(schema, format_) == expected


def test_D4_nothing_beside_a_reference_for_gemini():
    """registry.D4: Gemini takes a description and a default beside `$ref`, and refuses anything else."""
    defs = {"$defs": {"Person": PERSON}}
    assert one({**MOVED, "description": "d", "default": {}, "title": "t", "examples": []}, "gemini", **defs) == {
        **MOVED, "description": "d", "default": {},
    }  # fmt: skip
    assert one({**MOVED, "minProperties": 1}, "gemini", **defs) == MOVED
    assert one({"allOf": [MOVED], "description": "d", "title": "t"}, "gemini", **defs) == {**MOVED, "description": "d"}


RECURSIVE = {
    "not required": (NODE, NODE),
    "required": ({**NODE, "required": ["next"]}, NODE),
    "required among others": (
        top({"next": {"type": "array", "items": {"$ref": "#/$defs/Node"}}, "n": STRING}, required=["n", "next"]),
        top({"next": {"type": "array", "items": {"$ref": "#/$defs/Node"}}, "n": STRING}, required=["n"]),
    ),
    "within no property": (
        {"anyOf": [STRING, {"type": "array", "items": {"$ref": "#/$defs/Node", "description": "d"}}]},
        {"anyOf": [STRING, {"type": "array", "items": {"description": "d"}}]},
    ),
    "as any property": (top(additionalProperties={"$ref": "#/$defs/Node"}), top(additionalProperties={"$ref": "#/$defs/Node"})),
}  # fmt: skip


@pytest.mark.parametrize("case", RECURSIVE)
def test_D4_recursion(case):
    """registry.D4: recursion stays a reference; for Gemini within properties that aren't required, else it is open."""
    node, gemini = RECURSIVE[case]
    schema = top({"p": {"$ref": "#/$defs/Node"}}, required=["p"], **{"$defs": {"Node": node}})
    for format_ in NOT_GEMINI:
        assert portable(schema, format_) is schema
    assert portable(schema, "gemini") == {**schema, "$defs": {"Node": gemini}}


def test_D4_recursion_by_way_of_another_for_gemini():
    """registry.D4: one property of a loop that isn't required is enough."""
    defs = {"A": top({"b": {"$ref": "#/$defs/B"}}, required=["b"]), "B": {"$ref": "#/$defs/A"}}
    found = portable(top({"p": {"$ref": "#/$defs/A"}}, **{"$defs": defs}), "gemini")
    assert found["$defs"] == {"A": top({"b": {"$ref": "#/$defs/B"}}), "B": {"$ref": "#/$defs/A"}}


# Words -------------------------------------------------------------------------------------------------------------

#: schema: what all say, and what Gemini says if it is something else.
WORDS = [
    ({"type": "string", "nullable": True}, {"type": ["string", "null"]}, None),
    ({"type": "string", "nullable": False}, STRING, None),
    ({"type": ["string", "null"], "nullable": True}, {"type": ["string", "null"]}, None),
    ({"nullable": True, "description": "d"}, {"description": "d"}, None),
    ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}, {"anyOf": [{"type": "string", "enum": ["a"]}, NULL]}),
    ({"type": "string", "enum": ["a", None], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}, None),
    ({"enum": ["a"], "nullable": True}, {"enum": ["a", None]}, {"anyOf": [{"enum": ["a"]}, NULL]}),
    ({"const": "a", "nullable": True, "title": "t"}, {"title": "t", "anyOf": [{"const": "a"}, NULL]}, {"title": "t", "anyOf": [{"enum": ["a"], "type": "string"}, NULL]}),
    ({"anyOf": [STRING], "nullable": True}, {"anyOf": [STRING, NULL]}, None),
    ({"anyOf": [STRING, NULL], "nullable": True}, {"anyOf": [STRING, NULL]}, None),
    ({"oneOf": [STRING], "nullable": True, "default": None}, {"default": None, "anyOf": [{"oneOf": [STRING]}, NULL]}, None),
    ({"type": "object", "properties": {"a": STRING}, "nullable": True}, {"type": ["object", "null"], "properties": {"a": STRING}}, None),
    ({"type": "array"}, {"type": "array", "items": {}}, None),
    ({"type": ["array", "null"]}, {"type": ["array", "null"], "items": {}}, None),
    ({"type": "array", "prefixItems": [STRING]}, {"type": "array", "prefixItems": [STRING], "items": {}}, None),
    ({"type": "array", "items": True}, {"type": "array", "items": {}}, None),
    ({"type": "array", "prefixItems": [True, False], "items": False}, {"type": "array", "prefixItems": [{}, {"not": {}}], "items": {"not": {}}}, None),
    ({"type": "array", "items": [STRING], "additionalItems": False}, {"type": "array", "prefixItems": [STRING], "items": {"not": {}}}, None),
    ({"type": "array", "items": []}, {"type": "array", "items": {}}, None),
    (True, {}, None),
    (False, {"not": {}}, None),
    ({"anyOf": [True, {"not": False}]}, {"anyOf": [{}, {"not": {"not": {}}}]}, None),
    (top({"additionalProperties": True}, additionalProperties=True), top({"additionalProperties": {}}, additionalProperties=True), None),
    ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}, None),
    ({"type": "integer", "maximum": 1, "exclusiveMaximum": False}, {"type": "integer", "maximum": 1}, None),
    ({"exclusiveMinimum": True}, {}, None),
    ({"type": "string", "$id": "x", "$schema": "y", "$anchor": "z", "$comment": "c"}, {"type": "string", "$comment": "c"}, None),
    ({"const": "a", "$id": "x"}, {"const": "a"}, {"enum": ["a"], "type": "string"}),
    ({"const": 1.5, "$id": "x"}, {"const": 1.5}, {"enum": [1.5], "type": "number"}),
    ({"const": True, "$id": "x"}, {"const": True}, None),
    ({"$id": "x", **top({"a": STRING}, required=["a", "b"])}, top({"a": STRING}, required=["a", "b"]), top({"a": STRING}, required=["a"])),
    ({"$id": "x", "type": "object", "required": ["b"]}, {"type": "object", "required": ["b"]}, {"type": "object"}),
]  # fmt: skip


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(("schema", "expected", "gemini"), WORDS)
def test_D4_words(schema, expected, gemini, format_):
    """registry.D4: `nullable` is a type, arrays have items, booleans are objects, old drafts are new."""
    assert one(schema, format_) == (gemini if gemini is not None and format_ == "gemini" else expected)


def test_D4_nothing_is_forbidden_by_what_was_opened():
    """registry.D4: where a part is opened, `not`, `if`, `oneOf` and the like may not make less of it."""
    gone = {"$ref": "#/nowhere"}
    schema = {
        "not": gone, "if": gone, "then": False, "oneOf": [gone, STRING], "unevaluatedProperties": False,
        "contains": gone, "maxContains": 1,
    }  # fmt: skip
    assert one(schema) == {"anyOf": [{}, STRING], "contains": {}}
    assert one({"anyOf": [gone], "oneOf": [STRING]}) == {"anyOf": [{}], "allOf": [{"anyOf": [STRING]}]}


# The top level -----------------------------------------------------------------------------------------------------

A = {"properties": {"a": STRING}, "required": ["a"]}
B = {"properties": {"b": {"type": "integer"}}, "required": ["b"]}
BOTH = {"a": STRING, "b": {"type": "integer"}}
REFUSING = [name for name in FORMATS if name != "mcp"]

TOPS = {
    "alternatives": ({"anyOf": [A, B]}, top(BOTH)),
    "exactly one": ({"oneOf": [A, B]}, top(BOTH)),
    "all": ({"allOf": [A, B]}, top(BOTH, required=["a", "b"])),
    "rules about what is there": (
        {"properties": BOTH, "required": ["a"], "anyOf": [{"required": ["a", "b"]}, {"required": ["b"]}]},
        top(BOTH, required=["a", "b"]),
    ),
    "closed alternatives": (
        {"oneOf": [{**A, "additionalProperties": False}, {**B, "additionalProperties": False}]},
        top(BOTH, additionalProperties=False),
    ),
    "one of them is open": ({"oneOf": [{**A, "additionalProperties": False}, B]}, top(BOTH)),
    "a discriminator": (
        {"oneOf": [{"properties": {"k": {"const": "a"}}, "required": ["k"]},
                   {"properties": {"k": {"enum": ["b", "c"], "type": "string"}}, "required": ["k"]}]},
        top({"k": {"type": "string", "enum": ["a", "b", "c"]}}, required=["k"]),
    ),
    "different forms": (
        {"anyOf": [A, {"properties": {"a": {"type": "integer"}}}, A]},
        top({"a": {"anyOf": [STRING, {"type": "integer"}]}}),
    ),
    "what the whole says first": (
        {"properties": {"a": {"type": "string", "description": "d"}}, "anyOf": [{"properties": {"a": {"minLength": 1, "description": "e"}}}]},
        top({"a": {"type": "string", "description": "d", "minLength": 1}}),
    ),
    "objects only": ({"anyOf": [STRING, A, False, {"type": ["object", "null"], "required": ["a"]}]}, top({"a": STRING}, required=["a"])),
    "by reference": (
        {"allOf": [{"$ref": "#/$defs/Base"}], "properties": {"b": {"$ref": "#/$defs/Base"}}, "$defs": {"Base": {"type": "object", **A}}},
        top({"b": {"$ref": "#/$defs/Base"}, "a": STRING}, required=["a"], **{"$defs": {"Base": {"type": "object", **A}}}),
    ),
    "alternatives of alternatives": ({"anyOf": [{"oneOf": [A, {"$ref": "#/$defs/B"}]}, A], "$defs": {"B": B}}, top(BOTH)),
    "alternatives that are the whole": ({"anyOf": [A, {"$ref": "#"}]}, top({"a": STRING})),
    "no properties": ({}, top()),
    "a nullable whole": ({"nullable": True}, top()),
    "nothing that can be read": ({"properties": None, "type": None}, top()),
}  # fmt: skip


@pytest.mark.parametrize("format_", REFUSING)
@pytest.mark.parametrize("case", TOPS)
def test_D4_the_top_level_is_an_object(case, format_):
    """registry.D4: alternatives at the top level become one object with the properties of all."""
    schema, expected = TOPS[case]
    assert portable({"type": "object", **schema}, format_) == expected


def test_D4_mcp_keeps_its_alternatives():
    """registry.D4: MCP takes JSON Schema as it is, if it is an object's."""
    assert portable({"type": "object", "oneOf": [A, B]}, "mcp") == top(oneOf=[A, B])


def test_D4_a_property_of_too_many_forms_is_open():
    """registry.D4: what is put together stays small."""
    branches = [{"properties": {"a": {"type": "integer", "minimum": low}}} for low in range(100)]
    assert portable({"type": "object", "anyOf": branches}, "openai") == top({"a": {}})


#: schema, the formats that have no words for it, the reason.
OUT = [
    (top(enum=[{}]), ["openai", "openai-responses"], "listed as whole objects ('enum' at the top level)"),
    (top(const={"a": 1}), ["openai", "openai-responses"], "listed as whole objects ('const' at the top level)"),
    ({"type": "string"}, list(FORMATS), "its arguments aren't an object, but 'string'"),
    ({"type": ["string", "null"]}, list(FORMATS), "its arguments aren't an object, but ['string', 'null']"),
    (top(anyOf=[STRING, False]), REFUSING, "no object fits its schema"),
    (top({"filter[id]": STRING}), ["anthropic"], "its property 'filter[id]' has a name that the provider refuses"),
    (top({"$top": STRING}), ["anthropic"], "its property '$top' has a name"),
    (top({"x" * 65: STRING}), ["anthropic"], "its property 'xxx"),
    (top({"": STRING}), ["anthropic"], "its property ''"),
    (top({"a": {"nullable": True}, "مدينة": STRING}), ["anthropic"], "its property 'مدينة'"),
    (top(anyOf=[A, {"properties": {"a\n": STRING}}]), ["anthropic"], "its property 'a\\n'"),
]


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(("schema", "formats", "reason"), OUT)
def test_D4_what_a_provider_has_no_words_for(schema, formats, reason, format_):
    """registry.D4: such a tool is left out for that provider, with a reason in words."""
    if format_ not in formats:
        assert not list(complaints(portable(schema, format_), format_))
    else:
        with pytest.raises(Inexpressible) as caught:
            portable(schema, format_)
        assert reason in str(caught.value)
        assert not str(caught.value).endswith(".")


def test_D4_names_within_an_argument_are_free():
    """registry.D4: Anthropic looks at the names of the top level only."""
    schema = top({"a": top({"filter[id]": STRING})})
    assert portable(schema, "anthropic") is schema


# Hostile schemas ---------------------------------------------------------------------------------------------------


def nested(levels):
    schema = {"$ref": "#"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def itself():
    schema = top({"x": {"nullable": True}})
    schema["properties"]["me"] = schema
    schema["properties"]["again"] = schema
    return schema


def twice(levels):
    schema = {"nullable": True}
    for _ in range(levels):
        schema = top({"a": schema, "b": schema})
    return schema


def chain(length, make):
    defs = {f"d{index}": make(f"#/$defs/d{(index + 1) % length}", index) for index in range(length)}
    return {"type": "object", "$ref": "#/$defs/d0", "properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": defs}


def outcome(schema, format_):
    try:
        return portable(schema, format_), ""
    except Inexpressible as reason:
        return None, str(reason)


HOSTILE = {
    "5,000 levels": nested(5000),
    "itself": itself(),
    "doubled at each level": twice(40),
    "no object": [],
    "broken keywords": {"type": "object", "properties": 3, "anyOf": {}, "required": 5},
    "broken parts": top({"a": 3, "b": {"anyOf": 3, "type": 4, "$ref": 5, "enum": 6, "nullable": True, "items": 3}}),
    "keys that are no text": {"type": "object", 3: 4, "properties": {5: {"$ref": 6}}},
    "a ring of references": chain(3000, lambda ref, _: {"$ref": ref}),
    "a ring of objects": chain(3000, lambda ref, _: top({"a": {"$ref": ref}}, required=["a"])),
    "a bomb of references": chain(3000, lambda ref, _: {"allOf": [{"$ref": ref}, {"$ref": ref}]}),
    "a bomb of objects": chain(3000, lambda ref, n: {"anyOf": [{"$ref": ref}, top({"a": {"minimum": n}, "b": {"$ref": ref}})]}),
    "a long pointer": top({"a": {"$ref": "#" + "/properties/a" * 20_000}, "b": {"$ref": "#/properties/" + "9" * 5000}}),
    "many to one large enum": top({"e": {"enum": ["x" * 100] * 200}, **{f"p{i}": {"$ref": "#/properties/e"} for i in range(500)}}),
    "within one another": top({"a": {"properties": {f"x{i}": {"$ref": "#/properties/a"} for i in range(500)}, "not": {"$ref": "#/properties/a/properties/x1"}}}),
}  # fmt: skip


#: One of the formats everywhere, the others on one interpreter.
EACH = [FORMATS[0], *(pytest.param(form, marks=pytest.mark.thorough) for form in FORMATS[1:])]


@pytest.mark.parametrize("format_", EACH)
@pytest.mark.parametrize("case", HOSTILE)
def test_D4_hostile_schemas(case, format_):
    """registry.D4: whatever a schema is, it comes out portable and no more than three times as large, or stays out."""
    schema = HOSTILE[case]
    found, reason = outcome(schema, format_)
    assert (found is None) is bool(reason)
    assert "\n" not in reason
    if found is None:
        return
    if not case.startswith("broken"):
        assert not list(complaints(found, format_))
    assert len(json.dumps(found)) <= 3 * len(json.dumps(schema)) + 200
    assert portable(found, format_) == found


@pytest.mark.thorough
@pytest.mark.parametrize(
    "case", ["a ring of references", "a bomb of references", "a bomb of objects", "within one another"]
)
def test_D4_bombs_are_expressed(case):
    """registry.D4: references that would explode if they were resolved are moved, so there are words for them."""
    for format_ in FORMATS:
        assert portable(HOSTILE[case], format_)["type"] == "object"


# Properties --------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "$ref", "type"])
VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 2.5, -1, "", "a", "ab"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])


def _grown(inner):
    parts = inner | st.booleans()
    several = st.lists(parts, min_size=1, max_size=3)
    members = st.dictionaries(NAMES, parts, max_size=2)
    about = {"title": st.just("t"), "description": st.just("d"), "default": VALUES}
    return st.one_of(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["object", ["object", "null"]])},
            optional={"properties": members, "required": st.lists(NAMES, unique=True, max_size=2),
                      "additionalProperties": parts, "patternProperties": st.dictionaries(st.just("^a"), parts, max_size=1),
                      "propertyNames": parts, "unevaluatedProperties": parts, "minProperties": st.integers(0, 2), **about},
        ),
        st.fixed_dictionaries(
            {"type": st.sampled_from(["array", ["array", "string"]])},
            optional={"items": parts, "prefixItems": several, "contains": parts, "maxContains": st.integers(0, 2),
                      "unevaluatedItems": parts, "uniqueItems": st.booleans(), **about},
        ),
        st.fixed_dictionaries({}, optional={"anyOf": several, "oneOf": several, "allOf": several, "not": parts, "if": parts,
                                            "then": parts, "else": parts, "dependentSchemas": members, **about}),
    )  # fmt: skip


def _trees(*pointers):
    """Schemas with these references."""
    leaves = [
        st.builds(lambda kind: {"type": kind}, TYPES),
        st.builds(lambda kinds: {"type": kinds}, st.lists(TYPES, min_size=1, max_size=2, unique=True)),
        st.builds(lambda values: {"enum": values}, st.lists(VALUES, min_size=1, max_size=2)),
        st.builds(lambda value: {"const": value}, VALUES),
        st.builds(lambda low: {"type": "integer", "minimum": low, "$anchor": "here"}, st.integers(-1, 1)),
        st.just({}),
    ]
    if pointers:
        refs = st.sampled_from(pointers)
        leaves += [st.builds(lambda ref: {"$ref": ref}, refs)] * 2
        leaves += [st.builds(lambda ref: {"$ref": ref, "description": "d", "minLength": 1}, refs)]
    return st.recursive(st.one_of(leaves), _grown, max_leaves=4)


def _documents(a, x, y, z):
    return st.builds(
        lambda a, b, x, y, z, more: {
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {"a": a, "b": b},
            **more, "$defs": {"x": x, "y": y}, "definitions": {"x": y}, "other": {"z": z},
        },
        a, a, x, y, z,
        st.fixed_dictionaries({}, optional={"required": st.lists(NAMES, unique=True, max_size=2), "additionalProperties": st.booleans()}),
    )  # fmt: skip


ANYTHING = _trees(
    "#", "#/properties/a", "#/properties/b", "#/properties/a/items", "#/$defs/x", "#/definitions/x", "#/$defs/y",
    "#/properties/a/anyOf/0", "#/properties/b/properties/a", "#/$defs/x/properties/a", "#here", "#/nowhere", "#/other/z",
)  # fmt: skip
SCHEMAS = _documents(*[ANYTHING] * 4)
#: All references lead somewhere, and never in place back to where they are.
SOUND = _documents(
    _trees("#", "#/$defs/x", "#/definitions/x", "#/$defs/y", "#/other/z"), _trees("#", "#/$defs/y", "#/definitions/x", "#/other/z"),
    _trees("#", "#/other/z"), _trees("#"),
)  # fmt: skip
ARGUMENTS = st.dictionaries(NAMES, VALUES, max_size=3)
THOROUGH = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def compiled(schema):
    try:
        return compile_schema(schema)
    except Exception:
        return None


def said(schema, format_):
    return outcome(schema, format_)[0]


@given(schema=SCHEMAS, arguments=st.lists(ARGUMENTS, min_size=1, max_size=5), format_=st.sampled_from(FORMATS))
@THOROUGH
def test_D4_what_was_valid_stays_valid(schema, arguments, format_):
    """registry.D4: a portable schema never refuses arguments that the original accepts."""
    found, original = said(schema, format_), compiled(schema)
    assume(found is not None and original is not None)
    checked = compile_schema(found)
    for each in arguments:
        if original.is_valid(each):
            assert checked.is_valid(each)


@given(schema=SOUND, arguments=st.lists(ARGUMENTS, min_size=1, max_size=5), format_=st.sampled_from(NOT_GEMINI))
@THOROUGH
def test_D4_what_was_invalid_stays_invalid(schema, arguments, format_):
    """registry.D4: where nothing has to be opened, a portable schema says exactly what the original says."""
    assume("unevaluatedItems" not in json.dumps(schema))
    found, original = said(schema, format_), compiled(schema)
    assume(found is not None and original is not None)
    checked = compile_schema(found)
    for each in arguments:
        assert checked.is_valid(each) is original.is_valid(each)


@given(schema=SCHEMAS, format_=st.sampled_from(FORMATS))
@THOROUGH
def test_D4_it_is_portable_and_stays_so(schema, format_):
    """registry.D4: no provider has a complaint, it can be compiled, and making it portable again changes nothing."""
    found = said(schema, format_)
    assume(found is not None)
    assert not list(complaints(found, format_))
    assert compiled(found) is not None
    assert json.dumps(portable(found, format_)) == json.dumps(found)


@given(branches=st.lists(ANYTHING, min_size=1, max_size=3), format_=st.sampled_from(REFUSING),
       key=st.sampled_from(["anyOf", "oneOf", "allOf"]), root=SCHEMAS)  # fmt: skip
@THOROUGH
def test_D4_any_top_level_is_portable(branches, format_, key, root):
    """registry.D4: whatever stands at the top level, no provider has a complaint, or there is a reason."""
    found = said({**root, key: branches}, format_)
    assume(found is not None)
    assert not list(complaints(found, format_))
    assert compiled(found) is not None
    assert json.dumps(portable(found, format_)) == json.dumps(found)


@given(one_=st.dictionaries(NAMES, _trees(), max_size=2), other=st.dictionaries(NAMES, _trees(), max_size=2),
       required=st.lists(NAMES, max_size=2, unique=True), key=st.sampled_from(["anyOf", "oneOf"]), arguments=ARGUMENTS)  # fmt: skip
@THOROUGH
def test_D4_an_alternatives_own_arguments_stay_valid(one_, other, required, key, arguments):
    """registry.D4: arguments that fit an alternative and are all its own fit the object that was put together."""
    branches = [{"properties": one_, "required": required, "additionalProperties": False},
                {"properties": other, "additionalProperties": False}]  # fmt: skip
    schema = {"type": "object", key: branches}
    original = compiled(schema)
    assume(original is not None and original.is_valid(arguments))
    assert is_valid(portable(schema, "openai"), arguments)


# The rest ----------------------------------------------------------------------------------------------------------


def test_D3_the_same_in_any_process():
    """registry.D3: the same schema gives byte-identical JSON, whatever the hash seed."""
    schema = {
        **HOSTILE["within one another"],
        "anyOf": [A, B],
        **{key: chain(9, lambda ref, _: top({"a": {"$ref": ref}}))[key] for key in ("$defs", "$ref")},
    }
    script = (
        "import json, sys; from mibyan.schema.portable import portable\n"
        "schema = json.load(sys.stdin)\n"
        "print([json.dumps(portable(schema, f)) for f in ('openai', 'anthropic', 'gemini', 'mcp')])"
    )
    outputs = {
        subprocess.run([sys.executable, "-c", script], input=json.dumps(schema), env={"PYTHONPATH": str(CORE), "PYTHONHASHSEED": seed},
                       capture_output=True, text=True, check=True).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(outputs) == 1


@pytest.mark.parametrize("format_", FORMATS)
def test_D4_render_is_portable(format_):
    """registry.D1, D4: every format's definition has the portable parameters; the rest of it is as it was."""
    schema = normalise_schema("x", {"parameters": top({"a": {"type": "string", "nullable": True}})})
    text = json.dumps(render(schema, format_))
    assert '"nullable"' not in text
    assert '["string", "null"]' in text


def test_D4_render_says_why():
    """registry.D4: rendering what a provider has no words for raises the reason."""
    with pytest.raises(Inexpressible, match="no object fits its schema"):
        render(normalise_schema("x", {"parameters": top(anyOf=[False])}), "openai")


def test_D4_left_out_with_the_reason_in_words(caplog):
    """registry.D4: the log says which tool, which format and why; the other tools are shown."""
    from mibyan.config.settings import Settings
    from mibyan.report import DecisionLog
    from mibyan.tools.availability import Availability
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.owner import Owner
    from mibyan.tools.store import RegistryStore
    from mibyan.toolsets.definitions import DefinitionBuilder
    from mibyan.toolsets.resolver import ToolsetResolver

    log = DecisionLog()
    store = RegistryStore(log=log)
    for name, schema in {"odd": top({"$top": STRING}), "plain": top({"p": {"type": "array"}})}.items():
        entry = ToolEntry(
            name, "t", normalise_schema(name, {"parameters": schema}), lambda args: "", Owner("h", kind="host")
        )
        store.register(entry, override=False)
    resolver = ToolsetResolver(lambda: store.snapshot, Settings(), lambda: store.declared_toolsets, log)
    builder = DefinitionBuilder(resolver, lambda: store.snapshot, Availability(log=log), log)
    assert [shown["name"] for shown in builder.build(format="anthropic")] == ["plain"]
    assert [shown["name"] for shown in builder.build(format="gemini")] == ["odd", "plain"]
    told = "Tool 'odd' is left out of the format 'anthropic': its property '$top' has a name that the provider refuses"
    assert caplog.messages == [f"{told} (it wants [a-zA-Z0-9_.-]{{1,64}})."]
    original = store.snapshot.entries["plain"].schema["parameters"]
    assert original == top({"p": {"type": "array"}})
