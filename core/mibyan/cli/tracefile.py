"""`TraceFile`: what `--trace FILE` writes, a JSON line for each step of a call (dispatch.O1)."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from mibyan.errors import MibyanError
from mibyan.schema.jsontext import to_json

if TYPE_CHECKING:
    from mibyan.tools.results import ToolCall, ToolResult


class TraceFile:
    """A file that traces are appended to; nothing that is in it is lost.

    Args:
        path: The file; it is made if there is none.

    Raises:
        MibyanError: It can't be written, which is known before anything runs.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._append("")

    def add(self, call: ToolCall, result: ToolResult) -> None:
        """Append a call: a line for its beginning, for each step and for its result, each with `call_id` and `step`.

        Raises:
            MibyanError: It can't be written.
        """
        ended = {"step": "result", "name": result.name, "status": result.status, "error_type": result.error_type,
                 "duration_ms": result.duration_ms}  # fmt: skip
        began = {"step": "call", "name": call.name, "at": _began(result.duration_ms)}
        steps: list[dict[str, Any]] = [began, *result.trace, ended]
        self._append("".join(to_json({"call_id": call.id, **step}) + "\n" for step in steps))

    def _append(self, text: str) -> None:
        try:
            # One write: the lines of two processes don't run into each other.
            with open(self._path, "ab", buffering=0) as file:  # noqa: PTH123 - it may be a device or a pipe
                file.write(text.encode())
        except (OSError, ValueError) as error:
            number = getattr(error, "errno", None)
            why = os.strerror(number).lower() if number else str(error)
            raise MibyanError(
                f"can't write the trace to {self._path}: {why}",
                hint="Give --trace a file in a folder you can write to.",
            ) from error


def _began(duration_ms: float) -> str:
    """The moment before so many milliseconds, in UTC (ISO 8601)."""
    return (datetime.now(UTC) - timedelta(milliseconds=duration_ms)).isoformat(timespec="milliseconds")
