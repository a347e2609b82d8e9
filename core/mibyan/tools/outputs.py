"""`CommandOutputs`: what a tool that runs commands does with their output: hooks, secrets, the file for what is too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@record(eq=False)
class CommandOutputs:
    """A runtime's say in the output of commands; `ToolContext.outputs`."""

    #: The folder for output that is too long for an answer; it may have to be made.
    folder: Path
    #: Takes secrets out of a text, as is done with every answer.
    redact: Callable[[str], str]
    #: Whether a plugin has the hook `transform_terminal_output`: then it must see the output before it is bounded.
    is_transformed: Callable[[], bool]
    #: `transform(command, output, returncode, task_id, environment)`: the cleaned output as those hooks make it.
    transform: Callable[[str, str, int, str | None, str], str]
