"""The answers that aren't a handler's: one maker for each way a call can be refused or fail (dispatch.C0 to C5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.records import field, record
from mibyan.schema.jsontext import to_data, to_json
from mibyan.text import describe_exception, for_model, plain_text
from mibyan.tools.results import ERROR_TYPES, Status, ToolResult

if TYPE_CHECKING:
    from mibyan.dispatch.call import Call
    from mibyan.errors import ToolError
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.store import RegistryStore

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


def locked_out(call: Call, store: RegistryStore, name: object) -> ToolResult | None:
    """plugins.S3: a tool that `mibyan.lock` keeps out, with the reason and never the text that wasn't accepted; else `None`."""
    decision = None if store.guard is None else store.guard.refusal(name)
    if decision is None:
        return None
    return failure(call, f"Blocked: {decision.reason}", "blocked", blocked_by="mibyan.lock")


def unavailable(call: Call, reason: str | None) -> ToolResult:
    """dispatch.C2: with what is missing."""
    return failure(
        call, f"The tool {call.name!r} isn't available: {reason or 'its check says no'}.", "tool_unavailable"
    )


def gone(call: Call, store: RegistryStore, entry: ToolEntry) -> ToolResult:
    """A tool that was announced, and that its plugin's code, imported now, doesn't bring, or not as it was accepted."""
    missing = unavailable(call, f"plugin {entry.owner.id!r} no longer provides it")
    return locked_out(call, store, entry.name) or missing


def agent_level(call: Call) -> ToolResult:
    """dispatch.C3."""
    return failure(call, f"{call.name} must be handled by the agent loop", "tool_unavailable")


def blocked(call: Call, message: str, by: str, **fields: Any) -> ToolResult:
    """A hook's or approval's refusal."""
    return failure(call, message or "blocked by policy", "blocked", blocked_by=by, **fields)


def denied(call: Call, message: str) -> ToolResult:
    """A person's refusal, or nobody there to ask."""
    return failure(call, message, "denied")


def timed_out(call: Call, what: str) -> ToolResult:
    """The deadline passed while `what` ran."""
    seconds = f" after {call.timeout:g} s" if call.timeout is not None else ""
    running = f" ({what} was still running)" if what else ""
    return failure(call, f"{call.name} timed out{seconds}{running}.", "timeout")


def cancelled(call: Call, why: str) -> ToolResult:
    """The call was ended from outside."""
    return failure(call, f"{call.name} was cancelled: {why}.", "cancelled")


def invalid_arguments(
    call: Call, message: str, violations: list[dict[str, Any]] | None = None, **fields: Any
) -> ToolResult:
    """dispatch.A3: every violation with its path and what was expected."""
    told = [{key: for_model(text) for key, text in each.items()} for each in violations or ()]
    return failure(call, message, "invalid_arguments", violations=told or None, **fields)


@record(frozen=False)
class Told:
    """What a handler's exception says, in plain types."""

    message: str
    kind: str = "tool_exception"
    fields: dict[str, Any] = field(default_factory=dict)


def told(error: BaseException) -> Told:
    """What an exception says; it may run the code of whoever made the exception."""
    from mibyan.errors import ToolError

    if issubclass(type(error), ToolError):
        return _told_by_author(error)  # type: ignore[arg-type]
    return Told(f"Tool execution failed: {describe_exception(error)}")


def _told_by_author(error: ToolError) -> Told:
    """What a tool's author says of an error; details may name one of dispatch.C0's types as `error_type`."""
    message = plain_text(error.message) if isinstance(error.message, str) else ""
    made = Told(message or f"Tool execution failed: {describe_exception(error)}")
    if isinstance(error.hint, str):
        made.fields["hint"] = plain_text(error.hint)
    if error.retryable is True:
        made.fields["retryable"] = True
    if error.data is not None:
        data = to_data(error.data)
        if isinstance(data, dict) and data.get("error_type") in ERROR_TYPES:
            made.kind = data.pop("error_type")
        made.fields["data"] = data or None
    return made


def exception(call: Call, said: Told | str) -> ToolResult:
    """dispatch.C4: what a handler raised."""
    if isinstance(said, str):
        said = Told(f"Tool execution failed: {said}")
    fields = {**said.fields, "hint": for_model(said.fields["hint"])} if "hint" in said.fields else said.fields
    return failure(call, said.message, said.kind, **fields)


def internal(call: Call, what: str) -> ToolResult:
    """dispatch.C4, the second level: something went wrong around the handler."""
    return failure(call, f"Error executing {call.name}: {what}", "internal")


def closed(call: Call) -> ToolResult:
    """dispatch.B5: after `close()`."""
    return failure(call, f"Error executing {call.name}: the runtime is closed.", "cancelled")
