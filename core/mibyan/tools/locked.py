"""`Lock`: the plugins and the tools' texts that an operator has accepted (plugins.S3); the file is `mibyan.tools.lockfile`.

A tool's text is what its owner registered: name, description, schema. What a session makes of it (`dynamic_schema_overrides`,
`mibyan_patch_definitions`) is code's doing, and locked by the plugin's digest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mibyan.tools.entry import ToolEntry


@record
class LockedPlugin:
    """A plugin as it was accepted."""

    id: str
    #: `builtin`, `pip`, `user` or `tools`.
    source: str
    version: str = ""
    #: SHA-256 of its files, hexadecimal; empty: that couldn't be told.
    digest: str = ""


@record
class LockedTool:
    """A tool as it was accepted."""

    name: str
    #: The id of the plugin it belongs to.
    owner: str
    toolset: str
    #: What the model reads.
    description: str
    #: The other keys of its schema, plain JSON: `{"parameters": ...}`.
    schema: Mapping[str, Any]
    #: Whether its plugin's code changes the schema at run time.
    dynamic: bool = False

    @property
    def hash(self) -> str:
        """SHA-256 of name, description and schema, hexadecimal; the order of keys doesn't count."""
        from hashlib import sha256

        return sha256(_canonical([self.name, self.description, self.schema]).encode()).hexdigest()

    def differs_in(self, other: LockedTool) -> tuple[str, ...]:
        """What of two tools of one name isn't the same: `owner`, `toolset`, `description`, `schema`, `dynamic`."""
        names = ("owner", "toolset", "description", "schema", "dynamic")
        return tuple(name for name in names if _canonical(getattr(self, name)) != _canonical(getattr(other, name)))


@record
class Lock:
    """What was accepted, by id and by name, both sorted."""

    plugins: Mapping[str, LockedPlugin] = field(default_factory=dict)
    tools: Mapping[str, LockedTool] = field(default_factory=dict)

    def tools_of(self, owner: str) -> tuple[str, ...]:
        """The names of a plugin's tools, sorted."""
        return tuple(sorted(name for name, tool in self.tools.items() if tool.owner == owner))


def locked_tool(entry: ToolEntry, clean: Callable[[str], str] = str) -> LockedTool:
    """A registered tool as a lock has it.

    Args:
        entry: The tool; a schema that is made on first use is made now.
        clean: Takes secrets out of a text.

    Raises:
        ToolSchemaError: Its schema can't be made.
        ValueError: It can't be written as JSON.
        RecursionError: Likewise.
    """
    from mibyan.schema.definition import normalise_schema

    # What a plugin gives as its schema may be a function: it is asked once, and what it says then is what counts.
    schema = normalise_schema(entry.name, entry.schema) if callable(entry.schema_source) else entry.schema
    rest = {key: _plain(value, clean) for key, value in schema.items() if key not in {"name", "description"}}
    return LockedTool(entry.name, entry.owner.id, entry.toolset, clean(schema.get("description") or ""), rest,
                      entry.dynamic_schema_overrides is not None)  # fmt: skip


def _canonical(value: Any) -> str:
    """JSON data as one text: for Python `1`, `1.0` and `true` are equal, for a model they aren't."""
    import json

    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _plain(value: Any, clean: Callable[[str], str]) -> Any:
    """JSON data as plain, changeable containers, its texts cleaned."""
    if isinstance(value, dict):
        return {clean(key): _plain(item, clean) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, clean) for item in value]
    return clean(value) if isinstance(value, str) else value
