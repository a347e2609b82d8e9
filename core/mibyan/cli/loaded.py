"""What commands do once the plugins are loaded: tell what the options ask for and isn't there, keep `--strict`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.cli import exits
from mibyan.cli.output import say
from mibyan.cli.strictness import unknown_toolsets, unready
from mibyan.errors import MibyanError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mibyan.cli.invocation import Invocation
    from mibyan.plugins.candidate import Note
    from mibyan.runtime import Runtime
    from mibyan.toolsets.selection import Selection

#: Where a note says that a name was written, if it was on the command line (or in `MIBYAN_PLUGINS`).
_SAID = frozenset({"--plugin", "--no-plugin"})


def loaded(invocation: Invocation, runtime: Runtime) -> None:
    """Load the plugins.

    Raises:
        MibyanError: An option names a plugin that there isn't.
    """
    _ = runtime.registry
    check_named_plugins(invocation, runtime.plugins.notes)


def check_named_plugins(invocation: Invocation, notes: Iterable[Note]) -> None:
    """Whether the plugins that the options name are there.

    Raises:
        MibyanError: One isn't; with the one that was probably meant.
    """
    if invocation.options.safe_mode:
        return  # Then others aren't even looked for.
    for note in notes:
        if note.kind == "unknown" and note.origin in _SAID:
            raise MibyanError(f"{note.origin}: {note.text}", hint="`mibyan plugins list` shows what there is.")


def is_strictly_fine(invocation: Invocation, runtime: Runtime, selections: Sequence[Selection] = ()) -> bool:
    """Whether `--strict` wasn't given or has nothing to object to; its objections are said."""
    if not invocation.options.strict:
        return True
    objections = [*unready(runtime.plugins.all_records()), *unknown_toolsets(selections)]
    for objection in objections:
        say(f"mibyan: strict: {objection}")
    return not objections


def enforce_strictness(invocation: Invocation, runtime: Runtime, selections: Sequence[Selection] = ()) -> None:
    """Stop before anything is done to which `--strict` objects.

    Raises:
        RefusedError: It does.
    """
    if not is_strictly_fine(invocation, runtime, selections):
        raise exits.RefusedError("nothing was run, because of --strict")
