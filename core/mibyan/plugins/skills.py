"""Where a plugin's skills are, and what they are called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mibyan.errors import PluginError

if TYPE_CHECKING:
    from mibyan.plugins.candidate import Candidate


def skill_path(candidate: Candidate, path: str | Path) -> Path:
    """The absolute path of a plugin's skill.

    Raises:
        PluginError: There is nothing, or it leaves the plugin's folder.
    """
    root = candidate.root
    found = (root / path if root is not None else Path(path)).resolve()
    problem = None
    if root is not None and not found.is_relative_to(root.resolve()):
        problem = f"leaves the plugin's folder {root}"
    elif not (found / "SKILL.md").is_file() and not (found.is_file() and found.suffix == ".md"):
        problem = "isn't a folder with a SKILL.md, nor a .md file"
    if problem is not None:
        raise PluginError(f"the skill {str(path)!r} {problem}", plugin_id=candidate.id, origin=str(found))
    return found


def skill_name(path: Path) -> str:
    """The name of the skill at `path`: its folder's, or the file's."""
    return path.name if path.is_dir() else path.parent.name if path.name == "SKILL.md" else path.stem
