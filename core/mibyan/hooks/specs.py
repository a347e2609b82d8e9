"""The hook specifications, for pluggy (this module imports it: load it only when a plugin has hooks).

An implementation is a function of the hook's name, marked with `@mibyan.hookimpl`; it may take any subset of the
arguments, be a coroutine function, and be a wrapper in pluggy's sense.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pluggy import HookimplMarker, HookspecMarker

if TYPE_CHECKING:
    from collections.abc import Mapping

hookspec = HookspecMarker("mibyan")
hookimpl = HookimplMarker("mibyan")


class Specs:
    """One method a hook; its docstring says when it is called and what its answer does."""

    @hookspec
    def mibyan_register(self, ctx: Any) -> None:
        """Register what the plugin offers, through its owner-bound context."""

    @hookspec
    def pre_tool_call(
        self, tool_name: str, args: dict[str, Any], toolset: str, task_id: str | None, session_id: str | None,
        tool_call_id: str | None, user_task: str | None,
    ) -> Any:  # fmt: skip
        """Before a call's handler runs, once its arguments are valid: `None`, `Block`, `Ask` or `Modify`.

        `args` is a copy. All implementations run; block beats ask beats modify. One that raises blocks the call.
        """

    @hookspec
    def post_tool_call(
        self, tool_name: str, args: dict[str, Any], toolset: str | None, task_id: str | None, session_id: str | None,
        tool_call_id: str | None, user_task: str | None, result: str, status: str, error_type: str | None,
        error_message: str | None, duration_ms: float, executed_args: dict[str, Any] | None,
    ) -> None:  # fmt: skip
        """After every call, whatever became of it; the answer is ignored.

        `args` are the arguments as the model gave them (coerced), `executed_args` those the handler got (`None`: it
        didn't run), `result` is the text the model gets.
        """

    @hookspec
    def transform_tool_result(
        self, tool_name: str, args: dict[str, Any], toolset: str | None, task_id: str | None, session_id: str | None,
        tool_call_id: str | None, user_task: str | None, result: str, status: str, error_type: str | None,
        error_message: str | None, duration_ms: float, executed_args: dict[str, Any] | None,
    ) -> str | None:  # fmt: skip
        """Text replaces the result; each implementation gets what the one before it made."""

    @hookspec
    def transform_terminal_output(
        self, command: str, output: str, returncode: int, task_id: str | None, environment: str
    ) -> str | None:
        """Text replaces a command's cleaned output, before it is bounded; chained."""

    @hookspec
    def mibyan_patch_definitions(
        self, definitions: Mapping[str, Any], names: frozenset[str]
    ) -> Mapping[str, Any] | None:
        """Changes of schemas by tool name, made once it is known which tools (`names`) the model will see."""

    @hookspec
    def mibyan_terminal_environments(self) -> Mapping[str, str] | None:
        """Terminal backends: `{name: "module:Class"}`."""

    @hookspec
    def mibyan_cli(self, group: Any) -> None:
        """Add commands to a click group (only those the manifest names)."""

    @hookspec
    def on_session_start(self, session_id: str, platform: str | None) -> None:
        """Once, before a session's first call."""

    @hookspec
    def on_session_end(self, session_id: str, platform: str | None) -> None:
        """Once, when a session that made a call is closed."""

    @hookspec
    def pre_approval_request(self, request: Any) -> None:
        """Before a person is asked."""

    @hookspec
    def post_approval_response(self, request: Any, answer: str, outcome: str) -> None:
        """After a person was asked."""

    @hookspec
    def mibyan_unload(self) -> None:
        """When the plugin is unloaded or the runtime closes."""
