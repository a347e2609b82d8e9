"""The `planning` plugin: the session's todo list, which the agent loop keeps."""

# ruff: noqa: ARG001, D417, FBT001, FBT002 - the arguments are for the agent loop, and `ctx` isn't the model's

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from mibyan import ToolContext, tool
from mibyan_builtin.agent import left_to_the_agent


class Todo(TypedDict):
    """One thing to do: a short id of its own such as 1, what it is, and how far it is; pending is a new one's status."""

    id: str
    content: NotRequired[str]
    status: NotRequired[Literal["pending", "in_progress", "completed", "cancelled"]]


@tool(toolset="planning", emoji="📋", aliases=("todo",), handled_by="agent", open_world=False)
def todo_list(ctx: ToolContext, todos: list[Todo] | None = None, merge: bool = False) -> dict[str, Any]:
    """Read or write the list of what is to be done in this session.

    Use it for work of three steps and more. One item at a time is in_progress; an item is completed as soon as it is
    done. The answer is the whole list.

    Args:
        todos: The items to write, in their order; without them the list is read.
        merge: Change the items with these ids and add new ones; otherwise the items replace the whole list.
    """
    return left_to_the_agent("todo_list")
