"""The manifest's model in pydantic: the specification, its check and its documentation in one (plugins.M1, M2).

Imported only to say what is wrong with a manifest.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from mibyan.schema.adapters import adapter_class

_TARGET = r"^\.*[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$"
_TOOL = r"^[a-zA-Z0-9_-]{1,64}$"
_NAME = r"^[^\x00-\x1f\x7f]{1,200}$"

#: The patterns in words.
PATTERNS = {
    _TARGET: "'module:attribute'",
    _TOOL: "1 to 64 letters, digits, '_' and '-'",
    _NAME: "a name on one line, 1 to 200 characters",
}

adapter_class()  # before the first model

Name = Annotated[str, Field(pattern=_NAME)]
ToolName = Annotated[str, Field(pattern=_TOOL)]
TargetName = Annotated[str, Field(pattern=_TARGET)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _named(items: Any) -> Any:
    """A list of names stands for a list of objects that have only a name."""
    if not isinstance(items, list):
        return items
    return [{"name": item} if isinstance(item, str) else item for item in items]


def _keyed(items: Any) -> Any:
    """A list of names stands for a mapping of names to empty objects."""
    if isinstance(items, list) and all(isinstance(item, str) for item in items):
        return {item: {} for item in items}
    return items


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Requires(_Model):
    """What must be there for a tool to be available; decided without an import."""

    env: list[Name] = Field(default=[], description="Environment variables that must be set and not empty.")
    bins: list[Name] = Field(default=[], description="Programs that must be on PATH.")
    modules: list[Name] = Field(default=[], description="Python modules that must be importable.")


class ToolFlags(_Model):
    """Keyword arguments of `registry.register` that are data."""

    description: str = Field(default="", description="Text for people; the model sees the schema's.")
    emoji: str = ""
    aliases: list[ToolName] = []
    is_async: bool = False
    timeout: Seconds | None = Field(default=None, description="Seconds.")
    max_result_size_chars: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Characters of a result."
    )
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = True
    parallel: bool | None = None
    interactive: bool = False
    thread: Literal["caller", "pool", "dedicated"] = "caller"
    loop: Literal["runtime"] | None = None
    check_ttl: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(default=None, description="Seconds.")
    check_grace: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(default=None, description="Seconds.")
    cache: bool = False
    defer: bool = False
    untrusted_output: bool = False
    handled_by: Literal["agent"] | None = None
    validate_: bool | None = Field(
        default=None, alias="validate", description="False: arguments are passed as they are."
    )


class Tool(_Model):
    """A frozen tool definition."""

    name: ToolName
    toolset: Name
    schema_: dict[str, Any] = Field(alias="schema", description="`{description, parameters}`, what the model sees.")
    target: TargetName | None = Field(default=None, description="Handler or typed function, `module:attribute`.")
    check: TargetName | None = Field(default=None, description="Availability check, `module:attribute`.")
    flags: ToolFlags = Field(default=ToolFlags())
    requires: Requires = Field(default=Requires())
    requires_env: list[Name] = Field(default=[], description="Environment variables, for people to read.")


class Toolset(_Model):
    """A toolset that the plugin defines."""

    description: str = ""
    tools: list[ToolName] = Field(default=[], description="Tools besides those that name it as their own.")
    includes: list[Name] = Field(default=[], description="Other toolsets that belong to it.")


class Command(_Model):
    """A command, run by `mibyan command NAME`."""

    name: Name
    description: str = ""
    args_hint: str = ""


class ManifestModel(_Model):
    """What a Mibyan plugin offers: `plugin.yaml` of a folder, `mibyan.json` of a wheel."""

    manifest_version: Annotated[int, Field(ge=1)] = 1
    id: str = Field(default="", description="The plugin's id; must be what its folder or distribution gives.")
    version: str = ""
    description: str = ""
    author: str = ""
    homepage: str = ""
    license: str = ""
    module: Name | None = Field(default=None, description="A folder's single `.py` file, or a wheel's dotted module.")
    requires_mibyan: str = Field(default="", description="The versions of Mibyan it works with, a PEP 440 range.")
    requires_plugins: list[Name] = Field(
        [], description="Plugins that must be ready: ids, each with a range if need be."
    )
    after: list[Name] = Field(default=[], description="Plugins of the same tier that load before it if they are there.")
    role: Literal["policy", "observer", "tools"] = "tools"
    tools: list[Tool] | None = Field(
        default=None, description="Frozen definitions; with them nothing is imported until used."
    )
    toolsets: Annotated[dict[Name, Toolset], BeforeValidator(_keyed)] = {}
    hooks: list[Name] = Field(default=[], description="Hooks that it implements.")
    on_error: Literal["block", "allow"] = Field(
        default="block", description="What a failing `pre_tool_call` of it does."
    )
    commands: Annotated[list[Command], BeforeValidator(_named)] = []
    cli: list[Name] = Field(default=[], description="Commands that it adds to the command line.")
    skills: list[Name] = Field(default=[], description="Paths relative to the plugin.")
    environments: dict[Name, TargetName] = Field(default={}, description="Terminal backends by name.")
    config_schema: dict[str, Any] | None = Field(
        default=None, description="JSON Schema of `plugins.entries.<id>.config`."
    )
    requires: Requires = Field(default=Requires())
    overrides: list[ToolName] = Field(default=[], description="Tools of others that it replaces.")
    permissions: list[Name] = Field(default=[], description="What it does to the machine; shown, not enforced.")


#: The models that can occur at a place, for suggestions: the key that leads to a model.
NESTED: dict[str, type[BaseModel]] = {
    "requires": Requires,
    "flags": ToolFlags,
    "tools": Tool,
    "toolsets": Toolset,
    "commands": Command,
}


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys that `model` knows, as they are written in a file."""
    return [field.alias or name for name, field in model.model_fields.items()]


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a manifest: the content of `manifest.schema.json`.

    After a change of the model: `python -m mibyan.plugins.manifest_model > core/mibyan/plugins/manifest.schema.json`.
    """
    schema = _closed(ManifestModel.model_json_schema(by_alias=True))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _closed(schema: Any) -> Any:
    """`schema`, in which names that don't have a mapping's pattern are refused, as the model refuses them."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(part) for key, part in schema.items()}
    return {**closed, "additionalProperties": False} if "patternProperties" in closed else closed


if __name__ == "__main__":
    import json
    import sys

    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")
