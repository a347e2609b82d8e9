"""`transform_terminal_output`: the hook between a command's cleaned output and its bounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.dispatch.chains import ChainRunner, Round
from mibyan.text import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.dispatch.steps import Steps
    from mibyan.hooks.table import HookTable, Implementation


class OutputHooks:
    """Runs the chain on the thread of the tool whose command it was, within that tool's call.

    Args:
        hooks: The hook implementations.
        chains: Runs chains.
        run_steps: Runs steps that belong to no call.
    """

    def __init__(self, hooks: HookTable, chains: ChainRunner, run_steps: Callable[[Steps], Any]) -> None:
        self._hooks = hooks
        self._chains = chains
        self._run_steps = run_steps

    def are_there(self) -> bool:
        """Whether there is anybody to ask; plugins that announce the hook are imported."""
        return bool(self._hooks.chain("transform_terminal_output"))

    def transform(self, command: str, output: str, returncode: int, task_id: str | None, environment: str) -> str:
        """The output as the implementations make it, one after another; one that fails changes nothing."""
        changed = [output]

        def take(implementation: Implementation, text: str) -> None:
            del implementation
            changed[0] = text

        def values(implementation: Implementation) -> dict[str, Any]:
            del implementation
            told = {"command": command, "output": changed[0], "returncode": returncode}
            return {**told, "task_id": task_id, "environment": environment}

        turn = Round(_nowhere, values, _read_text, take, self._chains.complain)
        self._run_steps(self._chains.run(self._hooks.chain("transform_terminal_output"), turn))
        return changed[0]


def _nowhere(step: str, **facts: Any) -> None:
    """The trace of steps that are in no call's."""
    del step, facts


def _read_text(answer: Any) -> str:
    """What an implementation answered.

    Raises:
        TypeError: It isn't text.
    """
    if not isinstance(answer, str):
        msg = f"expected text or None, got {type(answer).__name__}"
        raise TypeError(msg)
    return plain_text(answer)
