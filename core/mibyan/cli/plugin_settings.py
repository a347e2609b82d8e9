"""What a plugin says about its own settings, asked before `mibyan config set` writes them (plugins.M2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.config.keys import join_key, split_key
from mibyan.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mibyan.cli.invocation import Invocation
    from mibyan.config.edit import Check
    from mibyan.config.problems import Problem
    from mibyan.plugins.candidate import Candidate


def settings_check(invocation: Invocation, key: str) -> Check | None:
    """What checks a config.yaml's text if an edit at `key` may change a plugin's settings; no plugin is imported.

    Returns:
        `None`: the usual check will do.

    Raises:
        ConfigError: It isn't a key.
    """
    place = split_key(key)
    if place[:2] != ("plugins", "entries") or len(place) < 3:
        return None
    candidate = _candidate(invocation, str(place[2]))
    schema = None if candidate is None or candidate.manifest is None else candidate.manifest.config_schema
    if candidate is None or schema is None:
        return None
    return _Check(candidate, str(place[2]), schema)


def _candidate(invocation: Invocation, name: str) -> Candidate | None:
    """The plugin that `plugins.entries.<name>` is about."""
    from mibyan.plugins.sources import ids
    from mibyan.plugins.state import SHADOWED

    try:
        config = invocation.config
    except ConfigError:  # The edit may be what mends it.
        return None
    with invocation.runtime(config, locked=False) as runtime:
        found = [record.candidate for record in runtime.plugins.survey() if record.state != SHADOWED]
    plugin_id = ids.resolve(name, [candidate.id for candidate in found])
    return next((candidate for candidate in found if candidate.id == plugin_id), None)


class _Check:
    """The usual check of a text, and the plugin's own schema."""

    def __init__(self, candidate: Candidate, name: str, schema: Mapping[str, Any]) -> None:
        self._candidate = candidate
        self._name = name
        self._schema = dict(schema)

    def __call__(self, text: str, label: str) -> list[Problem]:
        from mibyan.config.edit import home_problems

        # What is wrong for everybody is told first.
        return home_problems(text, label) or self._problems(text, label)

    def _problems(self, text: str, label: str) -> list[Problem]:
        from mibyan.config.problems import Problem
        from mibyan.config.yamlfile import parse_document
        from mibyan.schema.validate import compile_validator

        document = parse_document(text, label)
        entry = self._entry(document.data)
        if entry.get("source") not in {None, self._candidate.source}:
            return []
        above = ("plugins", "entries", self._name, "config")
        key, line = join_key(above), document.line(above)
        return [
            Problem(label, line, _below(key, violation.path), violation.message)
            for violation in compile_validator(self._schema).violations(entry.get("config") or {})
        ]

    def _entry(self, data: dict[str, Any]) -> dict[str, Any]:
        """What is said about the plugin; nothing, where that isn't written."""
        entries = (data.get("plugins") or {}).get("entries") or {}
        return entries.get(self._name) or {}


def _below(key: str, path: str) -> str:
    """The key of what is at `path` below `key`."""
    return key if not path else f"{key}{path}" if path.startswith("[") else f"{key}.{path}"
