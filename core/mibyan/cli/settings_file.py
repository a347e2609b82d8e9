"""A file with a plugin's own settings, for commands that run its code outside of any home."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mibyan.errors import MibyanError
from mibyan.plugins.sources.authored import read

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_settings(path: str | None) -> dict[str, Any]:
    """The settings in a file, YAML or (by its name) JSON; none without a file.

    Raises:
        MibyanError: It can't be read, or is no mapping.
    """
    return {} if path is None else read(Path(path), "a plugin's settings are")[0]


def require_valid(settings: Mapping[str, Any], schema: Any, path: str | None) -> None:
    """Raise unless settings are what a plugin's `config_schema` wants; its defaults count as written.

    Raises:
        MibyanError: They aren't; the message lists why.
    """
    if not settings or not isinstance(schema, dict):
        return
    from mibyan.plugins.defaults import defaults_of
    from mibyan.schema.validate import compile_validator

    violations = compile_validator(dict(schema)).violations({**defaults_of(schema), **settings})
    if violations:
        told = "; ".join(f"{one.path}: {one.message}" if one.path else one.message for one in violations[:5])
        raise MibyanError(f"{path}: {told}", origin=path, hint="The manifest's config_schema says what there is.")
