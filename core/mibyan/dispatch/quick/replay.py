"""Going on in the pipeline with a call of which something has run already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.dispatch.arguments import Prepared
    from mibyan.dispatch.steps import Outcome, Step, Steps
    from mibyan.hooks.table import HookChain
    from mibyan.tools.entry import ToolEntry


@record(frozen=False, eq=False)
class Piece:
    """A piece of foreign code that has run."""

    #: What was called: a hook's function, or the entry's handler.
    function: Callable[..., Any]
    value: Any = None
    #: What it raised.
    error: BaseException | None = None
    #: Whether `value` is what the step's `finish` makes of what was given.
    is_finished: bool = False

    def again(self) -> Any:
        """What it gave, once more.

        Raises:
            BaseException: What it raised.
        """
        if self.error is not None:
            raise self.error
        return self.value

    async def again_awaited(self) -> Any:
        """The same, for what is awaited."""
        return self.again()


@record(frozen=False, eq=False)
class Begun:
    """What is settled of a call that didn't begin in the pipeline.

    Args:
        entry: The tool.
        pre: The `pre_tool_call` chain that counts for it.
        post: The `post_tool_call` chain, once it has begun to run; the answer is settled then.
        pieces: What has run, in its order.
        prepared: The arguments, once they were read.
        ended: What ended it before anything ran.
    """

    entry: ToolEntry
    pre: HookChain
    post: HookChain | None = None
    pieces: list[Piece] = field(default_factory=list)
    prepared: Prepared | None = None
    ended: BaseException | None = None

    def replayed(self, steps: Steps) -> Steps:
        """The pipeline's steps, where what has run isn't run again: its step gives what it gave."""
        outcome: Outcome | None = None
        while True:
            try:
                step: Step = steps.send(outcome)
            except StopIteration as stop:
                return stop.value
            piece = self._take(step.function)
            if piece is not None:
                step.function, step.args, step.kwargs = piece.again_awaited if step.is_async else piece.again, (), {}
                step.finish = None if piece.is_finished else step.finish
            outcome = yield step

    def _take(self, function: Callable[..., Any]) -> Piece | None:
        for piece in self.pieces:
            if piece.function is function:
                self.pieces.remove(piece)
                return piece
        return None
