"""Mibyan: the tools runtime of an AI agent, built as a plugin framework.

A host asks a `Runtime` two things: which tools may the model see, and run this call. A tool author decorates a function
with `tool`; a hook author marks one with `hookimpl`. Importing this package has no effect: every name loads on first use.
"""

from __future__ import annotations

# `typing` itself isn't imported: this is the first thing that every program pays for.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from mibyan._version import __version__
    from mibyan.dispatch.session import Session
    from mibyan.errors import MibyanError, ToolError, ToolOverrideError, ToolSchemaError
    from mibyan.facade import (
        discover_builtin_tools,
        discover_plugins,
        get_runtime,
        get_tool_definitions,
        handle_function_call,
        registry,
    )
    from mibyan.hooks.decisions import Ask, Block, Modify
    from mibyan.hooks.specs import hookimpl, hookspec
    from mibyan.runtime import Runtime
    from mibyan.tools.context import ToolContext
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.function import tool
    from mibyan.tools.registry import ToolRegistry
    from mibyan.tools.results import ToolCall, ToolResult, tool_error, tool_result

#: Where each public name lives.
_HOMES = {
    "Runtime": "runtime",
    "Session": "dispatch.session",
    "get_runtime": "facade",
    "registry": "facade",
    "get_tool_definitions": "facade",
    "handle_function_call": "facade",
    "discover_builtin_tools": "facade",
    "discover_plugins": "facade",
    "tool": "tools.function",
    "tool_result": "tools.results",
    "tool_error": "tools.results",
    "ToolContext": "tools.context",
    "hookimpl": "hooks.specs",
    "hookspec": "hooks.specs",
    "Block": "hooks.decisions",
    "Ask": "hooks.decisions",
    "Modify": "hooks.decisions",
    "ToolCall": "tools.results",
    "ToolResult": "tools.results",
    "ToolEntry": "tools.entry",
    "ToolRegistry": "tools.registry",
    "MibyanError": "errors",
    "ToolError": "errors",
    "ToolSchemaError": "errors",
    "ToolOverrideError": "errors",
    "__version__": "_version",
}

__all__ = [
    "Ask",
    "Block",
    "MibyanError",
    "Modify",
    "Runtime",
    "Session",
    "ToolCall",
    "ToolContext",
    "ToolEntry",
    "ToolError",
    "ToolOverrideError",
    "ToolRegistry",
    "ToolResult",
    "ToolSchemaError",
    "__version__",
    "discover_builtin_tools",
    "discover_plugins",
    "get_runtime",
    "get_tool_definitions",
    "handle_function_call",
    "hookimpl",
    "hookspec",
    "registry",
    "tool",
    "tool_error",
    "tool_result",
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
