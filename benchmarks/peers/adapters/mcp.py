"""The MCP SDK's server: a typed async function, called without a transport."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import MCPServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def make(_variant: str, arguments: dict[str, Any], _schema: dict[str, Any]) -> Callable[[], Awaitable[object]]:
    """`call_tool` of the server."""
    logging.disable(logging.CRITICAL)
    server = MCPServer("bench")
    server.add_tool(list_folder)

    async def call() -> object:
        return await server.call_tool("list_folder", dict(arguments))

    return call


async def list_folder(path: str, limit: int = 100, recursive: bool = False) -> dict[str, str]:  # noqa: FBT001, FBT002
    """List the entries of a folder in the workspace."""
    del limit, recursive
    return {"result": path}
