"""Names as models write them: a repair that loses nothing, and suggestions; never a guess (dispatch.C1)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mibyan.text import suggestions

if TYPE_CHECKING:
    from collections.abc import Collection

    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.store import RegistryStore

_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATOR = re.compile(r"[-\s.]+")


def spelling(name: str) -> str:
    """`name` in one way of writing: `WebSearch`, `web-search` and `web_search` are the same words."""
    return _SEPARATOR.sub("_", _BORDER.sub("_", name.strip())).lower()


def find_entry(store: RegistryStore, name: object, visible: Collection[str] | None) -> ToolEntry | None:
    """The tool that `name` means: exactly, as an alias, or by spelling when that leads to one tool only.

    Args:
        store: Where to look.
        name: What the model wrote.
        visible: The names the session may see; `None`: all.
    """
    if not isinstance(name, str):
        return None
    entry = store.find(name)
    if entry is not None or len(name) > 128:
        return entry
    wanted = spelling(name)
    snapshot = store.snapshot
    found = {held for held in snapshot.entries if spelling(held) == wanted}
    found |= {target for alias, target in snapshot.aliases.items() if spelling(alias) == wanted}
    if visible is not None:
        found &= set(visible)
    return snapshot.entries[found.pop()] if len(found) == 1 else None


def suggest_names(store: RegistryStore, name: object, visible: Collection[str] | None) -> list[str]:
    """Up to three names that the session may see and that look like `name`."""
    names = store.snapshot.entries if visible is None else visible
    if not isinstance(name, str):
        return []
    return suggestions(spelling(name), names)
