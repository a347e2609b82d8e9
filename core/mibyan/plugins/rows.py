"""The rows of `mibyan plugins list`: one JSON object a plugin (api.md, *Command line*)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mibyan.plugins.state import PluginRecord
    from mibyan.tools.store import RegistrySnapshot

#: Characters that count as one token, as providers' tokenisers come to on the average.
_CHARACTERS_A_TOKEN = 4


def row(record: PluginRecord, snapshot: RegistrySnapshot | None = None) -> dict[str, Any]:
    """One plugin as a JSON object: `{id source version state reason hint origin tools hooks overrides import_ms schema_tokens}`.

    Args:
        record: The plugin.
        snapshot: What the registry holds, where plugins are loaded; else the manifest's definitions count.
    """
    return {
        "id": record.id,
        "source": record.source,
        "version": record.version,
        "state": record.state,
        "reason": record.reason,
        "hint": record.hint,
        "origin": record.origin,
        "tools": list(record.tools),
        "hooks": list(record.hooks),
        "overrides": list(record.overrides),
        "import_ms": record.import_ms,
        "schema_tokens": _tokens(record, snapshot),
    }


def _tokens(record: PluginRecord, snapshot: RegistrySnapshot | None) -> int:
    """What the definitions of its tools cost in a request: a quarter of their characters."""
    schemas: list[Mapping[str, Any]] = []
    if snapshot is not None and record.owner is not None:
        schemas = [entry.schema for name in record.tools if (entry := snapshot.entries.get(name)) is not None]
    elif record.candidate.manifest is not None:
        schemas = [{"name": tool.name, **tool.schema} for tool in record.candidate.manifest.tools]
    return sum(_characters(schema) for schema in schemas) // _CHARACTERS_A_TOKEN


def _characters(schema: Mapping[str, Any]) -> int:
    from mibyan.schema.jsontext import to_json

    return len(to_json({"type": "function", "function": schema}))
