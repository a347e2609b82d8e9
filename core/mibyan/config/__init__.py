"""What the operator said: `config.yaml` read, checked, narrowed by a project's, and edited without loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mibyan.config.load import LoadedConfig, default_config, load_config
    from mibyan.config.problems import InvalidConfigError, Problem
    from mibyan.config.settings import Settings, settings_from_data

__all__ = [
    "InvalidConfigError",
    "LoadedConfig",
    "Problem",
    "Settings",
    "default_config",
    "load_config",
    "settings_from_data",
]

_MODULES = {
    "InvalidConfigError": "problems", "Problem": "problems",
    "LoadedConfig": "load", "default_config": "load", "load_config": "load",
    "Settings": "settings", "settings_from_data": "settings",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
