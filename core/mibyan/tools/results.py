"""A call and its result, and the two builders for results."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from mibyan.records import field, record

Status: TypeAlias = Literal["ok", "error", "blocked", "denied", "timeout", "cancelled"]

#: dispatch.C0: what `ToolResult.error_type` can be.
ERROR_TYPES: tuple[str, ...] = (
    "unknown_tool", "tool_not_in_session", "tool_unavailable", "invalid_arguments", "arguments_truncated",
    "blocked", "denied", "timeout", "cancelled", "outcome_unknown", "tool_exception", "result_invalid",
    "limit", "internal",
)  # fmt: skip


@record
class ToolCall:
    """A call as the model makes it.

    Args:
        name: The tool's name or alias.
        arguments: A dict, or JSON text of an object; `None` and blank text are no arguments.
        id: The model's id of the call, given back in the result.
    """

    name: str
    arguments: Any = None
    id: str | None = None


@record
class ToolResult:
    """The one answer to a call."""

    id: str | None
    #: The tool's own name where it is known, else the name that was asked for.
    name: str
    status: Status
    #: What the model gets: the handler's text, or JSON text.
    text: str
    #: Content parts (MCP's `text`, `image`, `audio`, `resource` blocks) where the result has any.
    content: tuple[dict[str, Any], ...] | None = None
    #: The result as JSON types, where it is JSON.
    data: Any = None
    error: str | None = None
    error_type: str | None = None
    #: Milliseconds from the call's entry to its answer.
    duration_ms: float = 0.0
    #: What happened on the way, oldest first: `{"step": ..., ...}`.
    trace: tuple[dict[str, Any], ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether the status is `ok`."""
        return self.status == "ok"

    def to_dict(self) -> dict[str, Any]:
        """A JSON object with every field."""
        return {
            "id": self.id, "name": self.name, "status": self.status, "text": self.text,
            "content": None if self.content is None else list(self.content),
            "data": self.data, "error": self.error, "error_type": self.error_type,
            "duration_ms": self.duration_ms, "trace": list(self.trace),
        }  # fmt: skip


def tool_result(data: Any = None, **fields: Any) -> str:
    """JSON text of a result, as a handler may return it.

    Args:
        data: The result; with `fields` as well it must be a mapping (or `None`), and they are merged.
        **fields: Keys of the result.

    Returns:
        JSON text; whatever can't be JSON degrades to text.
    """
    from mibyan.schema.jsontext import to_json

    if not fields:
        return to_json(data)
    return to_json(
        {**data, **fields} if isinstance(data, dict) else fields if data is None else {"result": data, **fields}
    )


def tool_error(message: Any, **fields: Any) -> str:
    """JSON text of an error, as a handler may return it: `{"error": message, ...}`; it never fails over its message."""
    from mibyan.schema.jsontext import to_json

    return to_json({"error": _message(message), **fields})


def _message(message: Any) -> str:
    """The text of a message, whatever its `str` does."""
    from mibyan.text import plain_text

    try:
        return plain_text(message if isinstance(message, str) else str(message))
    except KeyboardInterrupt:
        raise
    except BaseException:
        return f"{type(message).__name__} (its text can't be read)"
