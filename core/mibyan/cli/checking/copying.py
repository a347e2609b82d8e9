"""Copies of what an author works on: builders and plugins may write beside the sources, and must not write there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from mibyan.errors import MibyanError

#: Bytes of a plugin's folder or project.
LIMIT: Final = 1 << 30

#: Folders that belong to no plugin, wherever they lie.
_JUNK: Final = frozenset({
    ".hg", ".svn", ".tox", ".nox", ".venv", ".eggs", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__", "node_modules",
})  # fmt: skip
#: The same, if they lie at the top; deeper they may be packages.
_TOP_JUNK: Final = frozenset({".git", "build", "dist", "venv"})


def is_junk(path: Path, root: Path) -> bool:
    """Whether a folder below `root` is an environment's, a cache's, a build's or a version control's."""
    return path.name in _JUNK or (path.name in _TOP_JUNK and path.parent == root) or (path / "pyvenv.cfg").exists()


def copy_tree(root: Path, target: Path) -> None:
    """Copy a folder without its junk; links to files become files, links to folders stay, as does the one version control of it.

    Args:
        root: The folder.
        target: Where to; it isn't there yet.

    Raises:
        MibyanError: It is too large.
        OSError: It can't be copied.
    """
    left = LIMIT
    for place, names, files in os.walk(root):
        folder = Path(place)
        here = target / folder.relative_to(root)
        here.mkdir(parents=True, exist_ok=True)
        for name in names.copy():
            path = folder / name
            is_git = name == ".git" and folder == root  # some builders take the version from it
            if is_git or path.is_symlink() or is_junk(path, root):
                names.remove(name)
            if is_git or (path.is_symlink() and not is_junk(path, root)):
                (here / name).symlink_to(path.resolve(), target_is_directory=True)
        for path in (folder / name for name in files):
            if path.is_file():
                left -= path.stat().st_size
                if left < 0:
                    raise MibyanError(f"{root} has more than {LIMIT:,} bytes", hint="Keep data elsewhere.")
                shutil.copy2(path, here / path.name)
