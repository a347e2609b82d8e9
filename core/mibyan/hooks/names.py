"""The hooks of Mibyan and their arguments, as data: known without importing pluggy."""

from __future__ import annotations

from typing import Final

_CALL: Final = ("tool_name", "args", "toolset", "task_id", "session_id", "tool_call_id", "user_task")
_OUTCOME: Final = (*_CALL, "result", "status", "error_type", "error_message", "duration_ms", "executed_args")

#: Argument names by hook; an implementation may take any subset of them.
HOOK_ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "mibyan_register": ("ctx",),
    "pre_tool_call": _CALL,
    "post_tool_call": _OUTCOME,
    "transform_tool_result": _OUTCOME,
    "transform_terminal_output": ("command", "output", "returncode", "task_id", "environment"),
    "mibyan_patch_definitions": ("definitions", "names"),
    "mibyan_terminal_environments": (),
    "mibyan_cli": ("group",),
    "on_session_start": ("session_id", "platform"),
    "on_session_end": ("session_id", "platform"),
    "pre_approval_request": ("request",),
    "post_approval_response": ("request", "answer", "outcome"),
    "mibyan_unload": (),
}

#: The hooks around a question to a person.
APPROVAL_HOOKS: Final = ("pre_approval_request", "post_approval_response")
