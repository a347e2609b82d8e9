"""`Collected`: the output of one command on its way into the answer: cleaned, seen by hooks, bounded, kept whole in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mibyan_builtin.terminal.output import Output, bounded
from mibyan_builtin.terminal.whole import Whole

if TYPE_CHECKING:
    from collections.abc import Callable

#: Characters of output that hooks are given at most: of more than that they get the beginning and the end.
TRANSFORMED = 4_000_000


@dataclass(frozen=True, slots=True)
class Told:
    """What the answer says of a command's output."""

    text: str
    truncated: bool
    #: The file that has all of it, if the text hasn't.
    file: str | None


class Collected:
    """Takes output as it comes, within bounds.

    Args:
        limit: Characters of it in the answer.
        outputs: The runtime's say in it (`ToolContext.outputs`); `None`: it has none.
    """

    def __init__(self, limit: int, outputs: Any = None) -> None:
        self._limit = limit
        self._outputs = outputs
        self._transformed = outputs is not None and outputs.is_transformed()
        # What hooks take out must not be in a file either: then the file is made of what they leave.
        self._whole = None if outputs is None or self._transformed else self._new_file()
        keep: Callable[[str], None] | None = None if self._whole is None else self._whole.write
        self._output = Output(TRANSFORMED if self._transformed else limit, keep)

    def _new_file(self) -> Whole:
        return Whole(self._outputs.folder, self._limit, self._outputs.redact)

    def write(self, data: bytes) -> None:
        """Take what came."""
        self._output.write(data)

    def close(self) -> None:
        """Nothing more comes."""
        self._output.close()
        if self._whole is not None:
            self._whole.close()

    def told(self, command: str, exit_code: int, task_id: str | None, environment: str) -> Told:
        """What the answer says.

        Args:
            command: The command, for hooks.
            exit_code: How it ended.
            task_id: Whose it is.
            environment: The backend's name.
        """
        if not self._transformed:
            file = None if self._whole is None else self._whole.path
            return Told(self._output.text(file), self._output.truncated, file)
        text: str = self._outputs.transform(command, self._output.text(), exit_code, task_id, environment)
        if len(text) <= self._limit:
            return Told(text, self._output.truncated, None)
        self._whole = self._new_file()
        self._whole.write(text)
        self._whole.close()
        return Told(bounded(text, self._limit, self._whole.path), truncated=True, file=self._whole.path)
