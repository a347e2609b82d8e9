"""What an uninstalled plugin leaves behind on purpose: the operator's words in config.yaml, and its own state."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from mibyan.errors import MibyanError
from mibyan.plugins.sources import ids

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def left_behind(home: Path, plugin_id: str) -> list[dict[str, str]]:
    """What is left of a plugin: each with `key`, what it is, and `command`, which removes it.

    Args:
        home: The profile's folder.
        plugin_id: The plugin's id.
    """
    found = [{"key": f"{key} in config.yaml", "command": command} for key, command in _written(home, plugin_id)]
    state = home / "state" / plugin_id
    if state.is_dir():
        found.append({"key": f"the plugin's own data in {state}", "command": f"rm -r {shlex.quote(str(state))}"})
    return found


def _written(home: Path, plugin_id: str) -> Iterator[tuple[str, str]]:
    """The keys that name the plugin, and the commands that unset them; nothing of a file that can't be read."""
    from mibyan.config.keys import join_key

    section = _section(home)
    entries = section.get("entries")
    for name in entries if isinstance(entries, dict) else ():
        if isinstance(name, str) and ids.same(name, plugin_id):
            key = join_key(("plugins", "entries", name))
            yield key, f"mibyan config unset {shlex.quote(key)}"
    for name in ("disabled", "enabled"):
        words = section.get(name)
        if not isinstance(words, list) or not any(
            isinstance(word, str) and ids.same(word, plugin_id) for word in words
        ):
            continue
        rest = [word for word in words if not (isinstance(word, str) and ids.same(word, plugin_id))]
        told = (
            f"mibyan config set plugins.{name} {shlex.quote(json.dumps(rest))}"
            if rest
            else f"mibyan config unset plugins.{name}"
        )
        yield f"plugins.{name}", told


def _section(home: Path) -> dict[str, Any]:
    from mibyan.config.load import FILE_NAME
    from mibyan.config.yamlfile import parse_document
    from mibyan.paths import read_text

    path = home / FILE_NAME
    try:
        data = parse_document(read_text(path), path.name, origin=path).data if path.is_file() else {}
    except (MibyanError, ValueError, RecursionError):
        return {}
    section = data.get("plugins") if isinstance(data, dict) else None
    return section if isinstance(section, dict) else {}
