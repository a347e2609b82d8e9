"""`DefinitionsSnapshot`: what a model is told, kept in a file beside the tests, so that a change of it is seen."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__tracebackhide__ = True  # a failing test shows its own lines


class DefinitionsSnapshot:
    """Compares definitions with a file: they are part of the prompt, and an edit of a docstring changes them.

    Args:
        folder: Where files are kept.
        update: Whether files are written instead of being compared.

    Examples:
        >>> import pathlib, tempfile
        >>> definition = {"name": "shout", "description": "Shout.", "input_schema": {"type": "object"}}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     DefinitionsSnapshot(pathlib.Path(folder), update=True)([definition])
        ...     DefinitionsSnapshot(pathlib.Path(folder))([definition])
    """

    def __init__(self, folder: Path, *, update: bool = False) -> None:
        self._folder = folder
        self._update = update

    def __call__(self, definitions: Sequence[dict[str, Any]], name: str = "definitions.json") -> None:
        """See that definitions are what the file says.

        Args:
            definitions: As `Runtime.definitions()` or `LoadedPlugin.definitions()` give them.
            name: The file, below the folder.

        Raises:
            AssertionError: They aren't, or there is no such file; the message has the difference and the command.
        """
        path = self._folder / name
        now = json.dumps(list(definitions), indent=2, ensure_ascii=False) + "\n"
        if self._update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(now, encoding="utf-8")
            return
        if not path.exists():
            raise AssertionError(f"{path} isn't there; `pytest --mibyan-update` writes it")
        kept = path.read_text(encoding="utf-8")
        if kept != now:
            lines = difflib.unified_diff(kept.splitlines(), now.splitlines(), str(path), "now", lineterm="")
            raise AssertionError("\n".join(["what a model is told has changed:", *lines, _ADVICE]))


_ADVICE = "If that is meant, `pytest --mibyan-update` takes it over."
