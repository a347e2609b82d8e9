"""The test kit for authors of plugins and for hosts: fixtures for pytest, and the objects behind them.

With Mibyan installed, pytest has the fixtures of `mibyan.testing.pytest_plugin`; `-p no:mibyan` turns them off. They
are thin: whoever tests without pytest uses `Workbench` itself.

Importing this needs the standard library only, and importing the fixtures pytest as well.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from mibyan.testing.approving import ApprovalRecorder
    from mibyan.testing.calling import AsyncToolCaller, CallFailed, ToolCaller
    from mibyan.testing.distributions import FabricatedDistribution
    from mibyan.testing.loaded import LoadedPlugin
    from mibyan.testing.makers import LoadPlugin, MakeDist, MakePlugin, MakeRuntime, WritePlugin
    from mibyan.testing.portability import assert_portable
    from mibyan.testing.recording import HookCall, HookRecorder
    from mibyan.testing.snapshots import DefinitionsSnapshot
    from mibyan.testing.workbench import Workbench

#: Where each public name lives.
_HOMES = {
    "ApprovalRecorder": "approving",
    "AsyncToolCaller": "calling",
    "CallFailed": "calling",
    "DefinitionsSnapshot": "snapshots",
    "FabricatedDistribution": "distributions",
    "HookCall": "recording",
    "HookRecorder": "recording",
    "LoadPlugin": "makers",
    "LoadedPlugin": "loaded",
    "MakeDist": "makers",
    "MakePlugin": "makers",
    "MakeRuntime": "makers",
    "ToolCaller": "calling",
    "Workbench": "workbench",
    "WritePlugin": "makers",
    "assert_portable": "portability",
}

__all__ = [
    "ApprovalRecorder",
    "AsyncToolCaller",
    "CallFailed",
    "DefinitionsSnapshot",
    "FabricatedDistribution",
    "HookCall",
    "HookRecorder",
    "LoadPlugin",
    "LoadedPlugin",
    "MakeDist",
    "MakePlugin",
    "MakeRuntime",
    "ToolCaller",
    "Workbench",
    "WritePlugin",
    "assert_portable",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
