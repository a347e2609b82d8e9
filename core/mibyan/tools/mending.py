"""What to do about a requirement that isn't met, as commands (registry.V1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.report import turn_off
from mibyan.tools.origin import place_of_code

if TYPE_CHECKING:
    from mibyan.tools.entry import Requirements, ToolEntry


def mending(requires: Requirements) -> str | None:
    """The commands that would provide what is missing; `None`: nothing is.

    Args:
        requires: What a manifest says is needed.
    """
    from mibyan.tools.requirements import missing_requirements

    commands: list[str] = []
    for kind, names, command in (
        ("env", requires.env, "export {}=…"),
        ("bins", requires.bins, "install the program {} so that it is on PATH"),
        ("modules", requires.modules, "install what has the module {0}: python -m pip install {0}"),
    ):
        commands += [
            command.format(name)
            for name in names
            if missing_requirements(type(requires)(**{kind: (name,)})) is not None
        ]
    return "; ".join(commands) or None


def mending_check(entry: ToolEntry) -> str:
    """What to do about a check that fails."""
    place = place_of_code(entry.check_fn)
    mend = f"Mend its check ({place})" if place else "Mend its check"
    off = turn_off(entry.plugin_id)
    return f"{mend}, or `{off}`." if off else f"{mend}."
