"""Which tools a script may call: those of its session that answer without the agent and without a person's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan import get_runtime

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: The tool itself: a script that starts scripts would have as many calls as it likes.
OWN = "execute_code"


def reachable(names: Iterable[str]) -> list[str]:
    """Those of some tools that a script may call, sorted."""
    registry = get_runtime().registry
    found = []
    for name in names:
        entry = registry.get_entry(name)
        if name != OWN and entry is not None and entry.handled_by != "agent" and not entry.interactive:
            found.append(name)
    return sorted(found)


def functions(definitions: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The definitions of the tools that a script may call, by name, of those that its session may see."""
    shown = {definition["function"]["name"]: definition["function"] for definition in definitions}
    return {name: shown[name] for name in reachable(shown)}


def refusal(name: str) -> tuple[str, str]:
    """What a script is told of a tool that it may not call: a message and an error type."""
    if name == OWN:
        return "A script can't call execute_code: run the code itself", "blocked"
    if get_runtime().registry.get_entry(name) is None:
        return f"Unknown tool: {name[:100]}", "unknown_tool"
    return f"The tool {name[:100]!r} can't be called from a script in this session", "tool_not_in_session"
