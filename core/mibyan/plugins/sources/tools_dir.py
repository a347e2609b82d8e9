"""Tools directories: Python files that register tools at their top level (plugins.F6, seed 000)."""

# Paths are text until a file is a tool: a folder of them is looked through on each start.
# ruff: noqa: PTH119

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mibyan.plugins.candidate import Candidate, Discovery, Note, Target, unreadable
from mibyan.plugins.sources.files import is_file, read_bytes, reason
from mibyan.plugins.sources.ids import TOOLS
from mibyan.records import as_dict, replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.plugins.sources.cache import ContentCache

#: Files that aren't tools by their names (seed 000).
SKIPPED = frozenset({"__init__.py", "registry.py", "mcp_tool.py"})
#: The file of a package in a tools directory that counts.
PACKAGE_FILE = "tool.py"


def find_tools(root: Path, cache: ContentCache, *, prefix: Literal["tools.", "project-tools."] = TOOLS) -> Discovery:
    """The files in `root` that register tools, sorted; a `root` that isn't there has none.

    Args:
        root: The tools directory; it is the `root` of each candidate, since its files may import one another.
        cache: Keeps verdicts.
        prefix: What the ids begin with: `tools.` or `project-tools.`.
    """
    found: list[Candidate] = []
    notes: list[Note] = []
    for path, stem in _files(root, notes):
        said = _verdict(path, cache)
        if said.get("registers") is True:
            found.append(_candidate(root, path, f"{prefix}{stem}"))
        elif said.get("near_miss") is True:
            notes.append(Note("near_miss", f"not loaded: {said['reason']}", path, _TOP_LEVEL))
        elif (why := said.get("reason")) is not None:
            found.append(_broken(root, path, f"{prefix}{stem}", str(why)))
    return Discovery(tuple(_each_once(found)), tuple(notes))


_TOP_LEVEL = "a tool file calls `registry.register(...)`, or has a function with `@mibyan.tool`, at its top level"


def _files(root: Path, notes: list[Note]) -> Iterator[tuple[str, str]]:
    """The files that are looked at, each with the stem that its id has: `<stem>.py` and `<stem>/tool.py`."""
    try:
        with os.scandir(root) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    except OSError as error:
        notes.append(unreadable(f"can't be searched for tools: {reason(error)}", str(root)))
        return
    for entry in entries:
        name, path = entry.name, entry.path
        if name.startswith(".") or name in SKIPPED:
            continue
        if name.endswith(".py") and not _is_directory(entry):
            yield path, name.removesuffix(".py")
        elif is_file(f"{path}/__init__.py") and is_file(f"{path}/{PACKAGE_FILE}"):
            yield f"{path}/{PACKAGE_FILE}", name


def _is_directory(entry: os.DirEntry[str]) -> bool:
    """Whether it is one, links followed; false when that can't be told."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _verdict(path: str, cache: ContentCache) -> dict[str, Any]:
    """The verdict on a file (`toolscan.Verdict` as a dict), from the cache if it hasn't changed."""
    try:
        kept = cache.look_up("tools", path, lambda: _scanned(path))
        return kept if isinstance(kept, dict) else _scanned(path)
    except FileNotFoundError:  # a link to nowhere, or it is being replaced right now
        return {}
    except OSError as error:
        return {"reason": f"can't be read: {reason(error)}"}


def _scanned(path: str) -> dict[str, Any]:
    from mibyan.plugins.sources.toolscan import verdict

    return as_dict(verdict(read_bytes(path)))


def _candidate(root: Path, path: str, plugin_id: str) -> Candidate:
    return Candidate(plugin_id, "tools", path, root=root, target=Target("file", path, Path(path)))


def _broken(root: Path, path: str, plugin_id: str, why: str) -> Candidate:
    hint = f"mend {path}, or take it away"
    return Candidate(plugin_id, "tools", path, root=root, problem=why, hint=hint)


def _each_once(found: list[Candidate]) -> Iterator[Candidate]:
    """The candidates; beside a package the file of the same name is shadowed, as when Python imports."""
    packages = {
        candidate.id: candidate.origin for candidate in found if os.path.basename(candidate.origin) == PACKAGE_FILE
    }
    for candidate in found:
        other = packages.get(candidate.id)
        yield candidate if other in {None, candidate.origin} else replace(candidate, shadowed_by=other)
