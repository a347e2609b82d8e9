"""Questions about nodes of the tree."""

from __future__ import annotations

from typing import Any


def succeeds(node: dict[str, Any]) -> bool:
    """Whether a statement is `true` or `:`."""
    args: list[Any] = (node.get("Cmd") or {}).get("Args") or []
    parts: list[Any] = args[0].get("Parts") or [] if len(args) == 1 else []
    return len(parts) == 1 and parts[0].get("Value") in {"true", ":"} and not node.get("Negated")


def assigned_names(nodes: list[Any]) -> set[str]:
    """The variables that an arithmetic expression sets."""
    names: set[str] = set()
    todo = list(nodes)
    while todo:
        one = todo.pop()
        if isinstance(one, list):
            todo += one
        elif isinstance(one, dict):
            if one.get("Type") == "BinaryArithm" and str(one.get("Op", "")).endswith("="):
                names |= {part["Value"] for part in one.get("X", {}).get("Parts", ()) if "Value" in part}
            todo += [value for value in one.values() if isinstance(value, dict | list)]
    return names
