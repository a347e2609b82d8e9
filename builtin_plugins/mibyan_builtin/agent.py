"""What the tools have in common that the agent loop answers itself (dispatch.C3)."""

from __future__ import annotations


def left_to_the_agent(name: str) -> dict[str, str]:
    """The answer when no agent loop has answered instead."""
    return {"error": f"{name} must be handled by the agent loop", "error_type": "tool_unavailable"}
