"""What can still be read of a config.yaml that has problems, so that plugins can be turned off all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.errors import ConfigError
from mibyan.records import replace

if TYPE_CHECKING:
    from pathlib import Path

    from mibyan.config.load import LoadedConfig


def salvaged(home: Path) -> LoadedConfig:
    """The defaults with what the home's config.yaml says about which plugins are on.

    Args:
        home: The profile's folder.

    Raises:
        ConfigError: Even that can't be told.
    """
    from mibyan.config.load import default_config
    from mibyan.config.settings import settings_from_data

    config = default_config(home)
    said = _section(config.path)
    lists = {name: said.get(name) or [] for name in ("disabled", "enabled")}
    if not all(isinstance(words, list) and all(isinstance(word, str) for word in words) for words in lists.values()):
        raise _unreadable(config.path)
    autoload = said.get("autoload", True) is not False
    return replace(config, settings=settings_from_data({"plugins": {**lists, "autoload": autoload}}))


def _section(path: Path) -> dict[str, Any]:
    """The section `plugins` as it is written."""
    from mibyan.config.layers import file_layer

    layer = file_layer(path, path.name)
    said = layer.document.data.get("plugins") or {}
    if not isinstance(said, dict) or (layer.problems and not layer.document.data):
        raise _unreadable(path)
    return said


def _unreadable(path: Path) -> ConfigError:
    """For somebody who has been told already what is wrong with the file."""
    message = f"nothing was changed: which plugins {path} turns off can't be told"
    return ConfigError(message, origin=str(path), hint="Mend first what is listed above.")
