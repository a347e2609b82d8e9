"""Environments: where commands run. The contract of a backend, and the environments of a runtime's sessions.

Names load lazily: who only announces a backend needs none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mibyan.environments.environment import Environment
    from mibyan.environments.process import CommandProcess
    from mibyan.environments.records import BackendError, CommandResult, EnvironmentContext

_PLACES = {
    "BackendError": "records", "CommandProcess": "process", "CommandResult": "records", "Environment": "environment",
    "EnvironmentContext": "records",
}  # fmt: skip

__all__ = ["BackendError", "CommandProcess", "CommandResult", "Environment", "EnvironmentContext"]


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{place}"), name)
