"""The directory that a command runs in (terminal.E2)."""

# ruff: noqa: PTH100, PTH110, PTH111, PTH112 - links stay as they are written, which pathlib has no words for

from __future__ import annotations

import os
from pathlib import Path

from mibyan.environments import BackendError


def working_directory(asked: str | None, cwd: str) -> tuple[str, str | None]:
    """Where a command runs, and a note when that isn't where it should.

    Args:
        asked: The directory that was asked for: relative to `cwd`, or absolute; `~` is the user's home.
        cwd: The directory that it would run in otherwise.

    Raises:
        BackendError: `asked` isn't a directory.
    """
    if asked is not None:
        return _asked(asked, cwd), None
    if os.path.isdir(cwd):
        return cwd, None
    parent = next(str(parent) for parent in [*Path(cwd).parents, Path("/")] if parent.is_dir())
    return parent, f"The working directory {cwd} doesn't exist any more; the command ran in {parent}."


def located(path: str, cwd: str) -> str:
    """`path` as an absolute one.

    Raises:
        BackendError: It is no path.
    """
    if "\0" in path or not path.strip():
        raise BackendError("the path is empty or has a NUL character in it")
    return os.path.abspath(os.path.join(cwd, os.path.expanduser(path)))  # noqa: PTH118 - likewise


def _asked(asked: str, cwd: str) -> str:
    path = located(asked, cwd)
    if os.path.isdir(path):
        return path
    what = "isn't a directory" if os.path.exists(path) else "doesn't exist"
    # For an absolute one nobody has asked where relative ones start.
    hint = "Give one that exists." if asked.startswith(("/", "~")) else f"Relative ones start from {cwd}."
    raise BackendError(f"The directory {asked[:300]} {what}", hint=hint)
