"""Writes the files of fabricated plugins."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from textwrap import dedent
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__tracebackhide__ = True  # a failing test shows its own lines


def write(path: Path, content: str | bytes) -> Path:
    """A file with its folders; text is dedented, and begins with its first line that isn't blank."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content if isinstance(content, bytes) else dedent(content).lstrip("\n").encode("utf-8", "surrogatepass")
    path.write_bytes(data)
    return path


def write_all(folder: Path, files: Mapping[str, str | bytes] | None) -> list[Path]:
    """Files by their paths below a folder.

    Raises:
        ValueError: A path leads out of the folder.
    """
    for name in files or ():
        parts = PurePosixPath(name)
        if parts.is_absolute() or ".." in parts.parts:
            raise ValueError(f"the file {name!r} isn't below the plugin's folder")
    return [write(folder / name, content) for name, content in (files or {}).items()]


def manifest_text(manifest: Mapping[str, Any] | str | bytes) -> str | bytes:
    """The text of a manifest: a mapping as JSON, which is YAML too; text stays as it is, well-formed or not."""
    return manifest if isinstance(manifest, str | bytes) else json.dumps(dict(manifest), indent=2, ensure_ascii=False)


def write_folder_plugin(
    folder: Path,
    source: str | bytes | None,
    manifest: Mapping[str, Any] | str | bytes | None = None,
    files: Mapping[str, str | bytes] | None = None,
) -> Path:
    """A folder plugin; the folder's name is its id.

    Args:
        folder: It needn't be there yet.
        source: Its `__init__.py`; `None`: it has none.
        manifest: Its `plugin.yaml`, as a mapping or as text; `None`: one that says nothing but the id.
        files: Further files by their paths below the folder.

    Returns:
        The folder.
    """
    said = {"manifest_version": 1, "id": folder.name} if manifest is None else manifest
    write(folder / "plugin.yaml", manifest_text(said))
    if source is not None:
        write(folder / "__init__.py", source)
    write_all(folder, files)
    return folder
