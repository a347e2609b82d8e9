"""Results that are too large: cut for the model, whole in a file (dispatch.C7)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.values import Rendered, data_of, is_json
from mibyan.schema.jsontext import to_json
from mibyan.text import bounded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

#: Whole results kept; the oldest go first.
KEPT_FILES = 200
#: Characters of a result up to which it is read for what it says of an error.
_LEGIBLE = 4_000_000


def limit(rendered: Rendered, most: int, keep: Callable[[str], str | None]) -> Rendered:
    """`rendered` with at most about `most` characters.

    Text is cut in the middle, with a marker; JSON becomes `{"truncated": true, "preview", "size", "full_result"}`, and what
    tells of an error keeps its `error` and `error_type`.
    Images and sound are what they are: only the rest of a result with content parts counts.

    Args:
        rendered: The result.
        most: Characters.
        keep: Puts the whole into a file and gives its path, or `None` when it can't.
    """
    size = len(rendered.text)
    if size <= most or (rendered.content is not None and size - _media(rendered.content) <= most):
        return rendered
    path = keep(rendered.text)
    if rendered.is_json or is_json(rendered.text):
        return Rendered(_cut_json(rendered.text, most, path), is_json=True)
    where = f"; the whole is in {path}" if path else ""
    marker = f"\n[... {size - most} of {size} characters left out{where} ...]\n"
    head = most * 2 // 5
    return Rendered(rendered.text[:head] + marker + rendered.text[size - (most - head) :])


def _media(content: Iterable[Mapping[str, Any]]) -> int:
    """Characters of the images and sounds in a result."""
    found = (part.get("data") for part in content if part.get("type") in {"image", "audio"})
    return sum(len(data) for data in found if isinstance(data, str))


def _cut_json(text: str, most: int, path: str | None) -> str:
    """What stands for JSON that is too large; its preview is escaped once more, so it is shortened until it fits."""
    error = _error_in(text, most // 4)
    preview = text[: most // 2 if not error else most // 4]
    while True:
        cut = to_json({**error, "truncated": True, "preview": preview, "size": len(text), "full_result": path})
        if len(cut) <= most or not preview:
            return cut
        preview = preview[: len(preview) // 2]


def _error_in(text: str, most: int) -> dict[str, str]:
    """What a result that tells of an error says of it, in at most so many characters."""
    data = data_of(text) if len(text) <= _LEGIBLE and '"error"' in text else None
    if not isinstance(data, dict) or not isinstance(data.get("error"), str):
        return {}
    kind = data.get("error_type")
    return {"error": bounded(data["error"], most)} | (
        {"error_type": bounded(kind, 64)} if isinstance(kind, str) else {}
    )


def keep_in(folder: Path) -> Callable[[str], str | None]:
    """What keeps whole results in `folder`, readable by its owner only, the newest `KEPT_FILES`."""

    def keep(text: str) -> str | None:
        from mibyan.errors import MibyanError
        from mibyan.paths import write_atomic

        path = folder / f"{os.urandom(16).hex()}.txt"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomic(path, text, mode=0o600)
            _prune(folder)
        except (OSError, MibyanError):
            return None
        return str(path)

    return keep


def _prune(folder: Path) -> None:
    files = sorted(folder.glob("*.txt"), key=_age)
    for path in files[:-KEPT_FILES]:
        path.unlink(missing_ok=True)


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
