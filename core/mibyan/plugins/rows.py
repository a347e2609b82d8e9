"""The rows of `mibyan plugins list`: one JSON object a plugin (api.md, *Command line*)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mibyan.plugins.state import PluginRecord
    from mibyan.tools.store import RegistrySnapshot

#: Characters that count as one token, as providers' tokenisers come to on the average.
_CHARACTERS_A_TOKEN = 4


def row(record: PluginRecord, snapshot: RegistrySnapshot | None = None) -> dict[str, Any]:
    """One plugin as a JSON object.

    Its keys: `id source version state reason fix decided_by origin tools hooks overrides rejected import_ms schema_tokens loaded_at`.

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
        "fix": record.hint,
        "decided_by": record.decided_by,
        "origin": record.origin,
        "tools": list(record.tools),
        "hooks": list(record.hooks),
        "overrides": list(record.overrides),
        "rejected": list(record.rejected),
        "import_ms": record.import_ms,
        "schema_tokens": schema_tokens(record, snapshot),
        "loaded_at": None if record.loaded_at is None else moment(record.loaded_at),
    }


def moment(seconds: float) -> str:
    """A time in seconds since the epoch as ISO 8601 has it, in UTC: `2026-10-01T09:05:00+00:00`."""
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(seconds))


def day(moment: str | None) -> str:
    """The same for people, to the minute: `2026-10-01 09:05Z`; empty for a plugin that wasn't loaded."""
    return "" if moment is None else f"{moment[:10]} {moment[11:16]}Z"


def tool_tokens(record: PluginRecord, snapshot: RegistrySnapshot | None = None) -> dict[str, int]:
    """What the definition of each of a plugin's tools costs in a request: a quarter of its characters.

    Args:
        record: The plugin.
        snapshot: What the registry holds, where plugins are loaded; else what was kept of the last load counts, else the
            manifest's definitions.
    """
    if record.tool_tokens is not None:
        return dict(zip(record.tools, record.tool_tokens, strict=True))
    schemas: dict[str, Mapping[str, Any]] = {}
    if snapshot is not None and record.owner is not None:
        schemas = {name: one.schema for name in record.tools if (one := snapshot.entries.get(name)) is not None}
    elif record.candidate.manifest is not None:
        schemas = {tool.name: {"name": tool.name, **tool.schema} for tool in record.candidate.manifest.tools}
    return {name: _characters(schema) // _CHARACTERS_A_TOKEN for name, schema in sorted(schemas.items())}


def schema_tokens(record: PluginRecord, snapshot: RegistrySnapshot | None = None) -> int:
    """What the definitions of all of a plugin's tools cost in a request; arguments as for `tool_tokens`."""
    return sum(tool_tokens(record, snapshot).values())


def _characters(schema: Mapping[str, Any]) -> int:
    from mibyan.schema.jsontext import to_json

    return len(to_json({"type": "function", "function": schema}))
