"""What a manifest declares that a tool needs: decided without importing anything (registry.V1)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mibyan.tools.entry import Requirements


def missing_requirements(requires: Requirements) -> str | None:
    """What is missing of a manifest's declared requirements, in words; `None`: nothing."""
    if not requires:
        return None
    missing = [f"environment variable {name} is not set" for name in requires.env if not os.environ.get(name)]
    missing += [f"program {name!r} is not on PATH" for name in requires.bins if not _on_path(name)]
    missing += [f"module {name!r} is not installed" for name in requires.modules if not _importable(name)]
    return "; ".join(missing) or None


def _on_path(name: str) -> bool:
    import shutil

    return shutil.which(name) is not None


def _importable(name: str) -> bool:
    import importlib.util

    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False
