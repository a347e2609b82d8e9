"""`TrustStore`: which project code the operator has looked at and allowed, byte for byte (plugins.S1).

`$MIBYAN_HOME/trust.json`: `{"version": 1, "projects": {<project>: {<id>: {"trusted_at", "files": {<path>: <sha256>}}}}}`.
Only the operator's commands write it; what it doesn't say is untrusted.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from mibyan.errors import MibyanError, PluginError
from mibyan.plugins.sources.digest import digest_folder
from mibyan.plugins.sources.files import read_bytes, reason
from mibyan.plugins.sources.ids import key, trust_word
from mibyan.records import record
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from mibyan.plugins.sources.digest import FolderDigest

_VERSION = 1
_SIZE_LIMIT = 64 * 1024 * 1024
#: Differing files that a reason names.
_MOST_NAMED = 5


@record
class TrustVerdict:
    """Whether something may run, and why not."""

    trusted: bool
    #: Why not, in one sentence; empty when it is trusted.
    reason: str = ""
    #: The command that would change it.
    hint: str | None = None
    #: What was hashed; `None` when that wasn't possible or nothing was ever trusted.
    digest: FolderDigest | None = None


class TrustStore:
    """The trust that was given in one profile.

    Args:
        home: `$MIBYAN_HOME`; it needn't exist.
    """

    def __init__(self, home: Path) -> None:
        self.path = home / "trust.json"

    def check(self, plugin_id: str, root: Path, project: Path) -> TrustVerdict:
        """Whether the files in `root` are those that were trusted as `plugin_id` in `project`; never raises.

        Args:
            plugin_id: The plugin's id, or `project-tools` for the tools directory (`project-tools.<stem>` means it).
            root: The plugin's folder, or the tools directory.
            project: The folder that has `.mibyan`.
        """
        known, problem = self._trusted_files(trust_id(plugin_id), project)
        if known is None:
            return TrustVerdict(trusted=False, reason=problem or "never trusted", hint=_hint(plugin_id))
        try:
            digest = digest_folder(root)
        except PluginError as error:
            return TrustVerdict(trusted=False, reason=error.message, hint=_hint(plugin_id))
        difference = _difference(known, digest.files)
        if difference:
            return TrustVerdict(trusted=False, reason=difference, hint=_hint(plugin_id), digest=digest)
        return TrustVerdict(trusted=True, digest=digest)

    def trust(self, plugin_id: str, digest: FolderDigest, project: Path) -> str | None:
        """Trust the files of `digest` as `plugin_id` in `project`: those that were shown, not those there now.

        Returns:
            A sentence when the file had to be begun anew, with the place of the broken one.

        Raises:
            MibyanError: trust.json can't be written.
        """
        entry = {"trusted_at": _now(), "files": dict(digest.files)}
        trusted = {trust_id(plugin_id): entry}
        return self._change(lambda projects: projects.setdefault(_key(project), {}).update(trusted))

    def untrust(self, plugin_id: str, project: Path) -> bool:
        """Take back the trust; false when there was none.

        Raises:
            MibyanError: trust.json can't be written, or is broken (then nothing is trusted anyway).
        """
        content, problem = self._read()
        if problem is not None:
            raise PluginError(problem, origin=str(self.path))
        if trust_id(plugin_id) not in content.get(_key(project), {}):
            return False
        self._change(lambda projects: projects.get(_key(project), {}).pop(trust_id(plugin_id), None))
        return True

    def problem(self) -> str | None:
        """What is wrong with trust.json, in one sentence; `None` if nothing is."""
        return self._read()[1]

    def _trusted_files(self, plugin_id: str, project: Path) -> tuple[dict[str, str] | None, str | None]:
        projects, problem = self._read()
        entry = projects.get(_key(project), {}).get(plugin_id)
        return (None, problem) if entry is None else (entry["files"], None)

    def _read(self) -> tuple[dict[str, dict[str, Any]], str | None]:
        """The projects, and what is wrong with the file; a broken one says nothing, so that nothing is trusted."""
        try:
            content = json.loads(read_bytes(self.path, _SIZE_LIMIT))
            return _checked(content), None
        except FileNotFoundError:
            return {}, None
        except (OSError, ValueError, RecursionError) as error:
            said = reason(error) if isinstance(error, OSError) else one_line(str(error))
            return {}, f"{self.path} can't be used, so no project code is trusted: {said}"

    def _change(self, change: Callable[[dict[str, dict[str, Any]]], object]) -> str | None:
        """Read, change and write the file under its lock; a broken file is kept under another name."""
        from mibyan.paths import file_lock, write_atomic

        with file_lock(self.path):
            projects, problem = self._read()
            kept = self._put_aside() if problem is not None else None
            change(projects)
            content = {"version": _VERSION, "projects": {name: ids for name, ids in projects.items() if ids}}
            write_atomic(self.path, json.dumps(content, indent=2, sort_keys=True) + "\n", mode=0o600)
        return f"{problem}; it was moved to {kept}" if kept else None

    def _put_aside(self) -> Path:
        """Rename the broken file to the first free `trust.json.broken-N`."""
        number = 1
        while os.path.lexists(kept := self.path.with_name(f"{self.path.name}.broken-{number}")):
            number += 1
        try:
            self.path.rename(kept)
        except OSError as error:
            raise MibyanError(f"{self.path} is broken and can't be moved away: {reason(error)}") from error
        return kept


def trust_id(plugin_id: str) -> str:
    """What trust is given to: `project-tools` for each file of the tools directory, else the plugin."""
    return key(trust_word(plugin_id))


def read_trusted_sources(store: TrustStore, plugin_id: str, root: Path, project: Path) -> Mapping[str, bytes]:
    """The Python sources (and `plugin.yaml`) of a trusted folder: the very bytes that were hashed, by path below `root`.

    Trusted code is compiled from these, so that what was checked is what runs.

    Raises:
        PluginError: It isn't trusted (any more).
    """
    verdict = store.check(plugin_id, root, project)
    if not verdict.trusted or verdict.digest is None:
        message = f"{trust_id(plugin_id)!r} isn't trusted: {verdict.reason}"
        raise PluginError(message, plugin_id=plugin_id, origin=str(root), hint=verdict.hint)
    return verdict.digest.sources


def _checked(content: Any) -> dict[str, dict[str, Any]]:
    """The projects of a file whose every part has the right type.

    Raises:
        ValueError: It hasn't.
    """
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        raise ValueError(f"it isn't a trust file of version {_VERSION}")
    projects = content.get("projects")
    if not isinstance(projects, dict) or not all(map(_is_project, projects.values())):
        raise ValueError("its projects aren't what Mibyan writes")
    return projects


def _is_project(ids: Any) -> bool:
    return isinstance(ids, dict) and all(
        isinstance(entry, dict)
        and isinstance(entry.get("files"), dict)
        and all(isinstance(digest, str) for digest in entry["files"].values())
        for entry in ids.values()
    )


def _difference(known: Mapping[str, str], files: Mapping[str, str]) -> str:
    """Which files aren't as they were, in one sentence; empty when all are."""
    changed = [path for path in known if path in files and files[path] != known[path]]
    parts = (
        ("changed", changed),
        ("added", [path for path in files if path not in known]),
        ("removed", [path for path in known if path not in files]),
    )
    return "; ".join(f"{what} since it was trusted: {_named(paths)}" for what, paths in parts if paths)


def _named(paths: list[str]) -> str:
    shown = ", ".join(one_line(path, 80) for path in sorted(paths)[:_MOST_NAMED])
    return f"{shown} and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else shown


def _key(project: Path) -> str:
    return os.path.realpath(project)


def _hint(plugin_id: str) -> str:
    return f"look at it and allow it: `mibyan plugins trust {trust_id(plugin_id)}`"


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds")
