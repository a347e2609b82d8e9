"""What a registration must look like, and what it leaves behind (registry.R1 to R3)."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import MISSING, FrozenInstanceError, fields

import pytest

from mibyan import ToolEntry, ToolSchemaError
from mibyan.tools.registration import OPTIONS
from mibyan.tools.registry import ToolRegistry

SCHEMA = {"description": "d", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry()


def register(registry, **changes):
    given = {"name": "x", "toolset": "t", "schema": SCHEMA, "handler": print, **changes}
    return registry.register(
        given.pop("name"), given.pop("toolset"), given.pop("schema"), given.pop("handler"), **given
    )


#: By field: values that aren't right.
WRONG = [
    *(("name", value) for value in ("", "a b", "é", "x" * 65, "a.b", "a\n", None, 5, b"x")),
    *(("toolset", value) for value in ("", "  ", None, 5)),
    *(("handler", value) for value in (None, 5, "print")),
    *(("check_fn", value) for value in (5, "print", True)),
    *(("approval", value) for value in (5, "yes")),
    *(("dynamic_schema_overrides", value) for value in (5, {"description": "x"})),
    *(("schema", value) for value in (None, 5, [], "x", {"parameters": 5}, {"parameters": {"type": "array"}},
                                      {"parameters": {"type": "object", "properties": []}},
                                      {"parameters": {"type": "object", "required": "a"}},
                                      {"parameters": {"type": "object", "properties": {"a": 5}}},
                                      {"parameters": {"type": "object", "default": object()}})),
    *(("read_only", value) for value in (None, 1, "yes")),
    *(("override", value) for value in (None, 1, "yes")),
    *(("timeout", value) for value in (0, -1, True, "5", float("nan"), float("inf"))),
    *(("max_result_size_chars", value) for value in (0, -1, 1.5, True, "5")),
    *(("check_ttl", value) for value in (-1, True, "5", float("inf"))),
    *(("thread", value) for value in ("main", None, 5)),
    *(("loop", value) for value in ("mine", 5)),
    *(("handled_by", value) for value in ("host", 5)),
    *(("validate", value) for value in ("off", 0, 1)),
    *(("aliases", value) for value in (5, ["a b"], [""], [5])),
    *(("description", value) for value in (5, b"x")),
    *(("emoji", value) for value in (5, None)),
    *(("requires_env", value) for value in (5, [5], [""])),
    ("no_such_option", 1),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), WRONG, ids=lambda value: repr(value)[:30])
def test_registry_R1_what_is_wrong_changes_nothing(registry, field, value):
    """registry.R1: a violation names the tool and the field, comes before any change, and leaves the registry as it was."""
    first = register(registry)
    generation = registry.generation
    with pytest.raises((ToolSchemaError, TypeError, ValueError)) as error:
        register(registry, **{field: value})
    assert field in str(error.value) or "name" in str(error.value) or "x" in str(error.value)
    assert registry.get_entry("x") is first
    assert registry.generation == generation


@pytest.mark.parametrize("name", ["x", "X-1_y", "a" * 64, "0"])
def test_registry_R1_names_that_every_provider_takes(registry, name):
    """registry.R1: 1 to 64 of the characters a-z, A-Z, 0-9, `_`, `-`."""
    assert register(registry, name=name).name == name


def test_registry_R1_the_openai_wrapper_is_taken_off(registry):
    """registry.R1: `{"type": "function", "function": ...}` is unwrapped; missing `parameters` are an empty object."""
    entry = register(registry, schema={"type": "function", "function": {"name": "other", "description": "d"}})
    assert entry.schema == {"name": "x", "description": "d", "parameters": {"type": "object", "properties": {}}}


def test_registry_R1_one_text_is_one_variable(registry):
    """registry.R1: a single string in `requires_env` is one name; so is one alias."""
    entry = register(registry, requires_env="API_KEY", aliases="other")
    assert (entry.requires_env, entry.aliases) == (("API_KEY",), ("other",))


def test_registry_R2_names_and_descriptions(registry):
    """registry.R2: the given name wins; the schema's description is the model's, `description=` is for people."""
    assert register(registry, schema={"name": "other", **SCHEMA}).schema["name"] == "x"
    assert register(registry, description="for people").description == "for people"
    assert registry.get_schema("x")["description"] == "d"
    assert register(registry).description == "d"


def test_registry_R3_nothing_done_later_changes_a_tool(registry):
    """registry.R3: neither the caller's dict nor what the registry gives out leads back into it."""
    schema = copy.deepcopy(SCHEMA)
    entry = register(registry, schema=schema)
    schema["parameters"]["properties"]["a"]["type"] = "integer"
    schema["description"] = "changed"
    assert entry.schema["parameters"]["properties"]["a"] == {"type": "string"}
    assert entry.schema["description"] == "d"
    with pytest.raises(TypeError):
        entry.schema["description"] = "changed"
    with pytest.raises(TypeError):
        entry.schema["parameters"]["properties"].clear()
    with pytest.raises(AttributeError):
        entry.name = "y"
    registry.get_all_tool_names().clear()
    registry.get_tool_to_toolset_map().clear()
    assert registry.get_all_tool_names() == ["x"]


def test_registry_R3_read_only_schemas_are_usable(registry):
    """registry.R3: json, pickle, `dict()` and deepcopy work on what is read-only; a deep copy may be changed."""
    schema = register(registry).schema
    assert json.loads(json.dumps(schema)) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert dict(schema) == schema
    mine = copy.deepcopy(schema)
    mine["parameters"]["properties"]["a"]["type"] = "integer"
    assert schema["parameters"]["properties"]["a"]["type"] == "string"


def test_an_entry_has_the_defaults_that_its_class_declares(registry):
    """An entry is put together in a draft: each field that wasn't given has `ToolEntry`'s own default."""
    entry = registry.register("x", "tests", {"parameters": {"type": "object"}}, len)
    given = {"name", "toolset", "schema_source", "handler", "owner"}
    for field in fields(ToolEntry):
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if field.name not in given:
            assert getattr(entry, field.name) == default, field.name
            assert type(getattr(entry, field.name)) is type(default), field.name
    assert type(entry) is ToolEntry
    with pytest.raises(FrozenInstanceError):
        entry.timeout = 3


@pytest.mark.parametrize(("option", "value"), [
    ("aliases", ("other",)), ("timeout", 3), ("max_result_size_chars", 9), ("dynamic_schema_overrides", dict), ("approval", len),
    ("read_only", True), ("destructive", True), ("idempotent", True), ("open_world", False), ("parallel", True),
    ("reads", len), ("writes", len), ("interactive", True), ("thread", "pool"), ("loop", "runtime"), ("check_ttl", 1.5),
    ("check_grace", 2), ("cache", True), ("defer", True), ("untrusted_output", True), ("handled_by", "agent"),
    ("validate", False),
])  # fmt: skip
def test_each_option_counts_when_it_is_the_only_one(registry, option, value):
    """Whichever option a registration gives, it is in the entry."""
    assert getattr(register(registry, **{option: value}), option) == value


def test_every_option_is_tried_above():
    """The table above has each option of `register`, and nothing else."""
    marks = test_each_option_counts_when_it_is_the_only_one.pytestmark
    assert {option for option, _ in marks[0].args[1]} == set(OPTIONS)
