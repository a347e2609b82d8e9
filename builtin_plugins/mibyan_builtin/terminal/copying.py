"""Copying files and folders, as `upload` and `download` do."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mibyan.environments import BackendError


def copy(source: str, target: str) -> None:
    """Copy a file, or a folder with what is in it; links in it stay links.

    Args:
        source: What is copied.
        target: What it becomes: missing parents are made, a file is replaced, a folder is added to.

    Raises:
        BackendError: It can't be read or written.
    """
    try:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        if Path(source).is_dir():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        else:
            _copy_file(source, target)
    except (OSError, shutil.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BackendError(f"{source} can't be copied to {target}: {reason}") from None


def _copy_file(source: str, target: str) -> None:
    """The file is there whole or not at all."""
    if Path(target).is_dir():
        raise IsADirectoryError(0, "there is a folder of that name")
    fresh = f"{target}.{os.urandom(6).hex()}"
    try:
        shutil.copy2(source, fresh)
        Path(fresh).replace(target)
    finally:
        Path(fresh).unlink(missing_ok=True)
