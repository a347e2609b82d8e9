"""llm: a typed function, called as its chains call it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import llm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class _Silent(llm.Model):
    """A model that asks for nothing."""

    model_id = "silent"
    supports_tools = True
    can_stream = False

    def execute(self, *_told: Any, **_more: Any) -> Iterator[str]:
        """Answer with nothing."""
        yield ""


def make(_variant: str, arguments: dict[str, Any], _schema: dict[str, Any]) -> Callable[[], object]:
    """`execute_tool_calls` of one call."""
    response = _Silent().prompt("none", tools=[llm.Tool.function(list_folder)])
    response.text()

    def call() -> object:
        asked = llm.ToolCall(name="list_folder", arguments=dict(arguments), tool_call_id="call")
        return response.execute_tool_calls(tool_calls_list=[asked])

    return call


def list_folder(path: str, limit: int = 100, recursive: bool = False) -> str:  # noqa: FBT001, FBT002
    """List the entries of a folder in the workspace."""
    del limit, recursive
    return path
