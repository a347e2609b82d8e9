"""`ToolContext`: what a tool may know about the call it runs in."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mibyan.records import field, record

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Mapping

    from mibyan.config.settings import Settings
    from mibyan.dispatch.nested import NestedCalls
    from mibyan.tools.outputs import CommandOutputs


@record
class ToolContext:
    """The call a tool runs in; a parameter annotated with this class gets it."""

    tool_name: str
    session: Any = None
    session_id: str | None = None
    task_id: str | None = None
    tool_call_id: str | None = None
    #: What the user asked for, in the user's words, where the host says it.
    user_task: str | None = None
    #: Moment of `time.monotonic()` at which the call is answered without the tool; `None`: no deadline is enforced.
    deadline: float | None = None
    plugin_id: str | None = None
    #: The plugin's own settings: `plugins.entries.<id>.config`.
    config: Mapping[str, Any] = field(default_factory=dict)
    #: The whole configuration, read-only.
    settings: Settings | None = None
    #: The names of the tools that the session may see.
    enabled_tools: tuple[str, ...] | None = None
    is_cancelled: Callable[[], bool] | None = None
    #: Names of environment variables that hold secrets: those that tools need and those that config.yaml names.
    secret_names: frozenset[str] = frozenset()
    make_nested: Callable[[], Any] | None = None
    #: Gives `command_rules`.
    find_command_rules: Callable[[], tuple[Any, ...]] | None = None
    #: For tools that run commands: the runtime's say in their output.
    outputs: CommandOutputs | None = None

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the result any more: a long-running tool should look, and stop."""
        return self.is_cancelled is not None and self.is_cancelled()

    @property
    def command_rules(self) -> tuple[Any, ...]:
        """The operator's and the plugins' own rules about commands, for `CommandContext(rules=...)`.

        Raises:
            ConfigError: One in config.yaml isn't right.
        """
        return () if self.find_command_rules is None else self.find_command_rules()

    @property
    def remaining(self) -> float | None:
        """Seconds until the deadline (0 when it has passed); `None`: there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def nested_calls(self) -> NestedCalls:
        """What a handler calls other tools with, from its own threads too: each goes through the whole pipeline.

        They belong to this call's session and task, stand under its deadline and end with it.

        Raises:
            MibyanError: No runtime runs this call, or it isn't the handler's own code that asks.
        """
        if self.make_nested is None:
            from mibyan.errors import MibyanError

            raise MibyanError("nested_calls() needs a runtime.", hint="Call the tool through Runtime.call.")
        made: NestedCalls = self.make_nested()
        return made

    @property
    def logger(self) -> logging.Logger:
        """The logger of the tool's plugin."""
        import logging

        return logging.getLogger(
            f"mibyan.plugins.{self.plugin_id}" if self.plugin_id else f"mibyan.tools.{self.tool_name}"
        )
