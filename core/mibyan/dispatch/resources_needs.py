"""What a call needs to itself while it runs: what its tool declares, and what it names (dispatch.P2)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mibyan.dispatch.arguments import copy_arguments
from mibyan.dispatch.resources import Resources, resolve
from mibyan.dispatch.steps import ENDINGS, Outcome, Step, Steps, StepTimeout
from mibyan.records import record
from mibyan.text import one_line, plain_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mibyan.dispatch.call import Call
    from mibyan.tools.entry import ToolEntry

#: Seconds that a tool may take to name its resources.
NAMING_SECONDS = 5.0
#: Resources of one call at most.
MAX_RESOURCES = 10_000

Kind: TypeAlias = Literal["free", "named", "barrier"]

#: No resources.
NOTHING = Resources()


@record
class Need:
    """Whether a call may run beside others.

    `free`: beside all but barriers; `named`: beside those that touch other things; `barrier`: beside none.
    """

    kind: Kind
    #: Why it is a barrier, for people.
    why: str = ""
    resources: Resources = NOTHING

    @property
    def writes(self) -> bool:
        """Whether others must keep away from what it touches."""
        return self.kind == "barrier" or bool(self.resources.written)


FREE = Need("free")


def declared(entry: ToolEntry) -> Need | None:
    """What a tool's flags alone say; `None`: it names resources, or its code isn't imported yet."""
    if entry.interactive:
        return Need("barrier", "it talks with a person")
    if entry.parallel is False:
        return Need("barrier", "it is declared parallel=False")
    if entry.reads is not None or entry.writes is not None:
        return None
    if entry.activate is not None and entry.handled_by != "agent":
        return None
    if entry.parallel or entry.read_only:
        return FREE
    return Need("barrier", "it doesn't declare what it touches")


def named(entry: ToolEntry, args: dict[str, Any], call: Call) -> Steps:
    """Ask the tool what a call with these arguments touches; a `Need`.

    A tool that can't say is a barrier. Only what ends the call itself is raised.
    """
    known = declared(entry)
    if known is not None:
        return known
    step = Step(_name, (entry, args, lambda: call.session.cwd(call.task_id)), owner=entry.owner,
                label=f"the resources of {entry.name}", limit=NAMING_SECONDS)  # fmt: skip
    outcome: Outcome = yield step
    if outcome.error is None:
        return Need("named", resources=outcome.value)
    if isinstance(outcome.error, ENDINGS):
        raise outcome.error
    if isinstance(outcome.error, StepTimeout):
        return Need("barrier", f"it took longer than {NAMING_SECONDS:g} s to name what it touches")
    return Need("barrier", f"it couldn't name what it touches ({one_line(str(outcome.error))})")


def _name(entry: ToolEntry, args: dict[str, Any], cwd: Callable[[], Path]) -> Resources:
    """Runs the tool's own functions.

    Raises:
        BaseException: What they raise; TypeError and ValueError for what isn't names.
    """
    reads = _texts(entry.reads, args, "reads")
    writes = _texts(entry.writes, args, "writes")
    return resolve(reads, writes, str(cwd()))


def _texts(function: Callable[[dict[str, Any]], Any] | None, args: dict[str, Any], what: str) -> list[str]:
    if function is None:
        return []
    answer = function(copy_arguments(args))
    if isinstance(answer, str | os.PathLike):
        answer = [answer]
    if not isinstance(answer, Iterable) or isinstance(answer, bytes | bytearray | Mapping):
        close = getattr(answer, "close", None)  # A coroutine that nobody awaits complains otherwise.
        if callable(close):
            close()
        msg = f"{what} gave {type(answer).__name__}, not paths"
        raise TypeError(msg)
    texts = [_text(item, what) for item in islice(answer, MAX_RESOURCES + 1)]
    if len(texts) > MAX_RESOURCES:
        msg = f"{what} gave more than {MAX_RESOURCES} paths"
        raise ValueError(msg)
    return texts


def _text(item: Any, what: str) -> str:
    path = item if isinstance(item, str) else os.fspath(item) if isinstance(item, os.PathLike) else None
    if not isinstance(path, str):
        msg = f"{what} gave {type(item).__name__} for a path"
        raise TypeError(msg)
    return plain_text(path)
