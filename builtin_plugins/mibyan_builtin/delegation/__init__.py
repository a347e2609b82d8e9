"""The `delegation` plugin: work given to an agent of its own, which the agent loop starts."""

# ruff: noqa: ARG001, D417 - the arguments are for the agent loop, and `ctx` isn't the model's

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from mibyan import ToolContext, tool
from mibyan_builtin.agent import left_to_the_agent


class Task(TypedDict):
    """One task: its goal, what the agent must know, and the toolsets that it gets."""

    goal: str
    context: NotRequired[str]
    toolsets: NotRequired[list[str]]


@tool(toolset="delegation", emoji="🤝", handled_by="agent")
def delegate_task(
    ctx: ToolContext,
    goal: str | None = None,
    context: str | None = None,
    toolsets: list[str] | None = None,
    tasks: list[Task] | None = None,
) -> dict[str, Any]:
    """Give a task to an agent of its own and get its report; or several tasks to several agents at the same time.

    It knows nothing of this conversation: goal and context must tell all it needs. Give goal for one task, or tasks for
    several.

    Args:
        goal: What is to be achieved, and what the report must say.
        context: What the agent must know: paths, errors, decisions.
        toolsets: The toolsets that it gets; by default those of this session.
        tasks: Several tasks, each with its own goal, context and toolsets.
    """
    return left_to_the_agent("delegate_task")
