"""The `sessions` plugin: a search through earlier sessions, which the agent loop answers."""

# ruff: noqa: ARG001, D417 - the arguments are for the agent loop, and `ctx` isn't the model's

from __future__ import annotations

from typing import Any

from mibyan import ToolContext, tool
from mibyan_builtin.agent import left_to_the_agent


@tool(toolset="sessions", emoji="🔍", handled_by="agent", read_only=True, idempotent=True, open_world=False)
def session_search(ctx: ToolContext, query: str = "", limit: int = 5) -> dict[str, Any]:
    """Search earlier sessions for what was said and done in them.

    Args:
        query: Words to look for; a phrase stands in double quotes. Empty: the latest sessions.
        limit: How many sessions at most.
    """
    return left_to_the_agent("session_search")
