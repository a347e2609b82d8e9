"""What a host gives to `call_many` and `plan`; wrong types are told in a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mibyan.tools.results import ToolCall


def read_calls(calls: Any) -> list[ToolCall]:
    """The calls.

    Raises:
        TypeError: It isn't an iterable of `ToolCall`.
    """
    if isinstance(calls, ToolCall):
        msg = "Several calls are a list of ToolCall, not one; write [call]."
        raise TypeError(msg)
    if not isinstance(calls, Iterable):
        msg = f"Several calls are a list of ToolCall, not {type(calls).__name__}."
        raise TypeError(msg)
    read = list(calls)
    for index, call in enumerate(read):
        if not isinstance(call, ToolCall):
            msg = f"Several calls are a list of ToolCall; item {index} is {type(call).__name__}."
            raise TypeError(msg)
    return read


def read_workers(workers: int | None, configured: int) -> int:
    """How many calls may run at once; `None`: as configured.

    Raises:
        TypeError: It isn't a whole number.
        ValueError: It is less than 1.
    """
    if workers is None:
        return configured
    if isinstance(workers, bool) or not isinstance(workers, int):
        msg = f"max_workers must be a whole number or None, not {type(workers).__name__}."
        raise TypeError(msg)
    if workers < 1:
        msg = f"max_workers must be at least 1, not {workers}."
        raise ValueError(msg)
    return workers
