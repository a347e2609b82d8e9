"""`Manifest`: what a plugin offers, as data (plugins.M1, M2).

The vocabulary: a manifest is *checked* once against the model of `manifest_model` (pydantic); what comes out is
*trusted data*: plain JSON types, kept in caches and built into a `Manifest` without pydantic. A manifest is *frozen*
when it has `tools`: then nothing has to be imported to know what the plugin offers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from mibyan.records import as_dict, field, field_names, record
from mibyan.schema.frozen import FrozenDict, freeze
from mibyan.schema.kept import KeptSchema
from mibyan.tools.entry import Requirements

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mibyan.config.keys import KeyPath

#: The newest `manifest_version` that this version of Mibyan knows.
MANIFEST_VERSION = 1
#: What most tools and plugins require; one for all, as nobody can change it.
_NOTHING = Requirements()


@record
class FrozenTool:
    """A tool's definition, taken from the code once so that listing it imports nothing."""

    name: str
    toolset: str
    #: The schema, or what reads it on first use; read it as `schema`.
    schema_source: Mapping[str, Any] | KeptSchema
    #: `module:attribute` of the handler or typed function; `None`: the plugin's registration supplies it.
    target: str | None = None
    #: `module:attribute` of the check, if it has one.
    check: str | None = None
    #: Keyword arguments of `registry.register` that are data: see `manifest_model.ToolFlags`.
    flags: Mapping[str, Any] = field(default_factory=dict)
    #: What must be there for the tool to be available; decided without an import.
    requires: Requirements = field(default=_NOTHING)
    #: Environment variables, for people to read; they don't decide anything.
    requires_env: tuple[str, ...] = ()

    @property
    def schema(self) -> Mapping[str, Any]:
        """`{"description", "parameters"}`, the model-facing schema, read-only."""
        source = self.schema_source
        return source() if isinstance(source, KeptSchema) else source


@record
class ToolsetDefinition:
    """A toolset that a plugin defines."""

    description: str = ""
    #: Tools it has besides those that name it as their own.
    tools: tuple[str, ...] = ()
    #: Other toolsets that belong to it.
    includes: tuple[str, ...] = ()


@record
class CommandDefinition:
    """A command of a plugin, for `mibyan command NAME`."""

    name: str
    description: str = ""
    #: What its arguments look like, for people.
    args_hint: str = ""


@record
class Manifest:
    """A plugin's manifest; each attribute is a key of `plugin.yaml` (plugins.M2)."""

    manifest_version: int = MANIFEST_VERSION
    #: The plugin's id, which must be the one that its folder or distribution gives; empty: not said.
    id: str = ""
    version: str = ""
    description: str = ""
    author: str = ""
    homepage: str = ""
    license: str = ""
    #: For a folder: the one `.py` file in it that is the plugin; for a wheel or a built-in: a dotted module.
    module: str | None = None
    #: The versions of Mibyan it works with, a PEP 440 range; empty: any.
    requires_mibyan: str = ""
    #: Plugins that must be ready, each an id with an optional PEP 440 range.
    requires_plugins: tuple[str, ...] = ()
    #: Plugins of the same tier that load before it, if they are there.
    after: tuple[str, ...] = ()
    #: What kind of plugin it is: `policy`, `observer` or `tools`.
    role: Literal["policy", "observer", "tools"] = "tools"
    tools: tuple[FrozenTool, ...] = ()
    toolsets: Mapping[str, ToolsetDefinition] = field(default_factory=dict)
    #: Names of the hooks it implements.
    hooks: tuple[str, ...] = ()
    #: What a failing `pre_tool_call` of it does: `block` the call, or `allow` it.
    on_error: Literal["block", "allow"] = "block"
    commands: tuple[CommandDefinition, ...] = ()
    #: Names of the commands it adds to the command line.
    cli: tuple[str, ...] = ()
    #: Paths of its skills, relative to the plugin.
    skills: tuple[str, ...] = ()
    #: Terminal backends: the name and `module:Class`.
    environments: Mapping[str, str] = field(default_factory=dict)
    #: JSON Schema of `plugins.entries.<id>.config`.
    config_schema: Mapping[str, Any] | None = None
    #: What must be there for any of its tools to be available.
    requires: Requirements = field(default=_NOTHING)
    #: Tools of others that it replaces.
    overrides: tuple[str, ...] = ()
    #: What it says it does to the machine; shown, not enforced.
    permissions: tuple[str, ...] = ()
    #: Whether `tools` is the whole truth, so that the plugin is imported only when used (plugins.M4).
    frozen: bool = False
    #: What isn't an error but should be known, such as a newer `manifest_version`.
    warnings: tuple[str, ...] = ()

    @classmethod
    def from_trusted(cls, data: Mapping[str, Any], *, warnings: tuple[str, ...] = ()) -> Manifest:
        """Build a manifest from data that `check_manifest` gave or that ships with Mibyan; nothing is checked.

        Args:
            data: Plain JSON types, as in `mibyan.json`; a tool's schema may be the arguments of `KeptSchema`.
            warnings: What the check had to say.
        """
        parts = {key: _READERS.get(key, _as_is)(value) for key, value in data.items() if key in _DEFAULTS}
        return cls(**parts, frozen="tools" in data, warnings=warnings)

    def to_data(self) -> dict[str, Any]:
        """The manifest as plain JSON types, without what has its default; `from_trusted` reads it back."""
        data = {name: _plain(getattr(self, name)) for name in _FIELDS if getattr(self, name) != _DEFAULTS[name]}
        if self.frozen:
            data["tools"] = _plain(self.tools)
        return {"manifest_version": self.manifest_version, **data}


def check_manifest(
    data: object, origin: str, *, lines: Mapping[KeyPath, int] | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Check `data` against the model; pydantic is imported if something is wrong.

    Args:
        data: What YAML or JSON gave.
        origin: The file's path, for messages.
        lines: The line of each key (`("tools", 0, "name")`), where the file has lines.

    Returns:
        Trusted data for `Manifest.from_trusted`, and warnings.

    Raises:
        ManifestError: It isn't a manifest; the message lists every problem.
    """
    from mibyan.plugins.manifest_check import check

    return check(data, origin, lines or {})


def parse_manifest(data: object, origin: str, *, lines: Mapping[KeyPath, int] | None = None) -> Manifest:
    """Check `data` and build the manifest; arguments and errors as for `check_manifest`."""
    trusted, warnings = check_manifest(data, origin, lines=lines)
    return Manifest.from_trusted(trusted, warnings=tuple(warnings))


def manifest_json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a manifest, for editors, the documentation and the check.

    It is what `manifest_model.json_schema` made of the model, kept in a file.
    """
    import json
    from pathlib import Path

    schema: dict[str, Any] = json.loads(Path(__file__).with_name("manifest.schema.json").read_bytes())
    return schema


def _as_is(value: Any) -> Any:
    return value


def _requirements(value: Mapping[str, Any]) -> Requirements:
    return Requirements(**{key: tuple(names) for key, names in value.items()})


def _frozen_tool(value: Mapping[str, Any]) -> FrozenTool:
    parts = dict(value)
    schema = parts.pop("schema")
    parts["schema_source"] = KeptSchema(*schema) if type(schema) is tuple else freeze(schema)
    if "flags" in parts:
        parts["flags"] = freeze(parts["flags"])
    if "requires" in parts:
        parts["requires"] = _requirements(parts["requires"])
    if "requires_env" in parts:
        parts["requires_env"] = tuple(parts["requires_env"])
    return FrozenTool(**parts)


def _toolset(value: Mapping[str, Any]) -> ToolsetDefinition:
    parts: dict[str, Any] = {key: tuple(part) if isinstance(part, list) else part for key, part in value.items()}
    return ToolsetDefinition(**parts)


def _plain(value: Any) -> Any:
    """`value` as JSON types; what has its default in a nested record is left out."""
    match value:
        case FrozenTool() | ToolsetDefinition() | CommandDefinition() | Requirements():
            parts = as_dict(value)
            if isinstance(value, FrozenTool):
                parts = {"schema" if name == "schema_source" else name: part for name, part in parts.items()}
                parts["schema"] = value.schema
            return {name: _plain(part) for name, part in parts.items() if part or part is False}
        case tuple() | list():
            return [_plain(part) for part in value]
        case dict():
            return {key: _plain(part) for key, part in value.items()}
    return value


_READERS: dict[str, Any] = {
    **dict.fromkeys(
        ("requires_plugins", "after", "hooks", "cli", "skills", "overrides", "permissions"),
        tuple,
    ),
    "tools": lambda value: tuple(_frozen_tool(tool) for tool in value),
    "toolsets": lambda value: FrozenDict({name: _toolset(toolset) for name, toolset in value.items()}),
    "environments": freeze,
    "config_schema": freeze,
    "commands": lambda value: tuple(CommandDefinition(**command) for command in value),
    "requires": _requirements,
}
_EMPTY = Manifest()
_FIELDS = tuple(name for name in field_names(Manifest) if name not in {"frozen", "warnings"})
_DEFAULTS = {name: getattr(_EMPTY, name) for name in _FIELDS}
