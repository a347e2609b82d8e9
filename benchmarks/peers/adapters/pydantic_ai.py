"""Pydantic AI: a typed async function, called as its graph calls it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from pydantic_ai import RunContext
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def make(_variant: str, arguments: dict[str, Any], _schema: dict[str, Any]) -> Callable[[], Awaitable[object]]:
    """`ToolManager.handle_call`, with the arguments as text."""
    text = json.dumps(arguments)
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    manager = asyncio.run(_step(ToolManager(FunctionToolset([list_folder])), context))

    async def call() -> object:
        return await manager.handle_call(ToolCallPart("list_folder", text, tool_call_id="call"))

    return call


async def _step(manager: Any, context: Any) -> Any:
    return await manager.for_run_step(context)


async def list_folder(path: str, limit: int = 100, recursive: bool = False) -> dict[str, str]:  # noqa: FBT001, FBT002
    """List the entries of a folder in the workspace."""
    del limit, recursive
    return {"result": path}
