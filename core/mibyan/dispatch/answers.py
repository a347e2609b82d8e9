"""The answers that aren't a handler's: one maker for each way a call can be refused or fail (dispatch.C0 to C5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.schema.jsontext import to_data, to_json
from mibyan.text import describe_exception, for_model
from mibyan.tools.results import ERROR_TYPES, Status, ToolResult

if TYPE_CHECKING:
    from mibyan.dispatch.call import Call
    from mibyan.errors import ToolError

_STATUS: dict[str, Status] = {"blocked": "blocked", "denied": "denied", "timeout": "timeout", "cancelled": "cancelled"}


def status_of(error_type: str) -> Status:
    """The status of a result with this error type."""
    return _STATUS.get(error_type, "error")


def failure(call: Call, message: str, error_type: str, /, **fields: Any) -> ToolResult:
    """An error result: `{"error": message, "error_type": ..., **fields}`."""
    message = for_model(message)
    data: dict[str, Any] = {"error": message, "error_type": error_type}
    data.update({key: value for key, value in fields.items() if value is not None})
    return ToolResult(
        call.id, call.name, status_of(error_type), to_json(data), None, data, message, error_type, call.duration_ms,
        tuple(call.trace),
    )  # fmt: skip


def unknown_tool(call: Call, suggestions: list[str]) -> ToolResult:
    """dispatch.C1."""
    return failure(call, f"Unknown tool: {call.asked}", "unknown_tool", suggestions=suggestions)


def not_in_session(call: Call, suggestions: list[str]) -> ToolResult:
    """dispatch.C2."""
    message = f"The tool {call.name!r} isn't among this session's tools."
    return failure(call, message, "tool_not_in_session", suggestions=suggestions)


def unavailable(call: Call, reason: str | None) -> ToolResult:
    """dispatch.C2: with what is missing."""
    return failure(
        call, f"The tool {call.name!r} isn't available: {reason or 'its check says no'}.", "tool_unavailable"
    )


def agent_level(call: Call) -> ToolResult:
    """dispatch.C3."""
    return failure(call, f"{call.name} must be handled by the agent loop", "tool_unavailable")


def blocked(call: Call, message: str, by: str) -> ToolResult:
    """A hook's or approval's refusal."""
    return failure(call, message, "blocked", blocked_by=by)


def denied(call: Call, message: str) -> ToolResult:
    """A person's refusal, or nobody there to ask."""
    return failure(call, message, "denied")


def timed_out(call: Call, what: str) -> ToolResult:
    """The deadline passed while `what` ran."""
    seconds = f" after {call.timeout:g} s" if call.timeout is not None else ""
    return failure(call, f"{call.name} timed out{seconds} ({what} was still running).", "timeout")


def cancelled(call: Call, why: str) -> ToolResult:
    """The call was ended from outside."""
    return failure(call, f"{call.name} was cancelled: {why}.", "cancelled")


def invalid_arguments(
    call: Call, message: str, violations: list[dict[str, Any]] | None = None, **fields: Any
) -> ToolResult:
    """dispatch.A3: every violation with its path and what was expected."""
    return failure(call, message, "invalid_arguments", violations=violations, **fields)


def exception(call: Call, error: BaseException) -> ToolResult:
    """dispatch.C4: what a handler raised."""
    from mibyan.errors import ToolError

    if isinstance(error, ToolError):
        return tool_error_result(call, error)
    return failure(call, f"Tool execution failed: {describe_exception(error)}", "tool_exception")


def tool_error_result(call: Call, error: ToolError) -> ToolResult:
    """What a tool's author says of an error; details may name one of dispatch.C0's types as `error_type`."""
    fields: dict[str, Any] = {"hint": for_model(error.hint) if isinstance(error.hint, str) else None}
    if error.retryable:
        fields["retryable"] = True
    kind = "tool_exception"
    if error.data is not None:
        data = to_data(error.data)
        if isinstance(data, dict) and data.get("error_type") in ERROR_TYPES:
            kind = data.pop("error_type")
        fields["data"] = data or None
    return failure(call, _message(error), kind, **fields)


def _message(error: ToolError) -> str:
    message = error.message
    return message if isinstance(message, str) and message else describe_exception(error)


def internal(call: Call, error: BaseException) -> ToolResult:
    """dispatch.C4, the second level: something went wrong around the handler."""
    return failure(call, f"Error executing {call.name}: {describe_exception(error)}", "internal")


def closed(call: Call) -> ToolResult:
    """dispatch.B5: after `close()`."""
    return failure(call, f"Error executing {call.name}: the runtime is closed.", "cancelled")
