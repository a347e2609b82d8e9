"""The `memory` plugin: what is kept from session to session, which the agent loop keeps."""

# ruff: noqa: ARG001, D417 - the arguments are for the agent loop, and `ctx` isn't the model's

from __future__ import annotations

from typing import Any, Literal

from mibyan import ToolContext, tool
from mibyan_builtin.agent import left_to_the_agent


@tool(toolset="memory", emoji="🧠", handled_by="agent", open_world=False)
def memory(
    ctx: ToolContext,
    action: Literal["add", "replace", "remove"],
    target: Literal["memory", "user"] = "memory",
    content: str | None = None,
    old_text: str | None = None,
) -> dict[str, Any]:
    """Keep something for later sessions: what is kept is shown at the beginning of each.

    Keep what will still be true and useful then, such as preferences, conventions and facts about the environment; not
    the progress of the work at hand.

    Args:
        action: Add an entry, replace one, or remove one.
        target: memory: notes about the work and the environment; user: what is known about the user.
        content: The entry's text, for add and replace.
        old_text: A part of the entry to replace or remove that no other entry has.
    """
    return left_to_the_agent("memory")
