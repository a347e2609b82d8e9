"""What a wheel or a project says of its plugin before it is installed; none of its code runs (plugins.W4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.cli.pluginview import needs
from mibyan.errors import MibyanError
from mibyan.records import record
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mibyan.plugins.candidate import Candidate
    from mibyan.plugins.manifest import Manifest


@record
class Look:
    """What was seen of a wheel or a project."""

    #: The plugin's id; empty: it isn't a plugin.
    id: str = ""
    #: The distribution's canonical name, if it is known.
    distribution: str = ""
    manifest: Manifest | None = None
    #: Why it isn't a plugin, or why it can't be loaded.
    problem: str = ""
    #: What to do instead.
    hint: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        manifest = None if self.manifest is None else self.manifest.to_data()
        return {"id": self.id or None, "problem": self.problem or None, "manifest": manifest}


def look_at(path: Path) -> Look:
    """What lies at a path.

    Args:
        path: A wheel, or a project's folder.
    """
    return _folder(path) if path.is_dir() else _wheel(path)


def _wheel(path: Path) -> Look:
    import zipfile

    from mibyan.plugins.sources.cache import ContentCache
    from mibyan.plugins.sources.installed import find_installed

    if not zipfile.is_zipfile(path):
        return Look(problem="it isn't a zip archive, so it is no wheel", hint="Build it again, or fetch it again.")
    found = find_installed(ContentCache(), path=[str(path)], finders=False)
    for candidate in found:
        return _of_candidate(candidate, candidate.manifest)
    told = "; ".join(note.text for note in found.notes)
    return Look(problem=told or "it has no entry point in the group 'mibyan.plugins', so it isn't a plugin")


def _of_candidate(candidate: Candidate, manifest: Manifest | None) -> Look:
    from mibyan.plugins.sources.ids import canonical

    return Look(candidate.id, canonical(candidate.distribution), manifest, candidate.problem or "", candidate.hint)


def _folder(path: Path) -> Look:
    from mibyan.plugins.manifest import parse_manifest
    from mibyan.plugins.sources.authored import NotAPluginError, find_authored

    try:
        found = find_authored(path)
        manifest = parse_manifest(dict(found.data), str(found.path)) if found.data else None
    except NotAPluginError as error:
        return Look(problem=error.message, hint=error.hint)
    except MibyanError as error:  # It is one; what is wrong with it is its author's business.
        return Look(problem=str(error), hint=error.hint, id=path.name)
    if found.candidate.source != "pip" or not (path / "pyproject.toml").is_file():
        return Look(
            problem=f"{path} is a plugin's folder, and no project that an installer could build",
            hint=f"Copy it: cp -r {path} $MIBYAN_HOME/plugins/ (mibyan config path says where that is).",
        )
    return _of_candidate(found.candidate, manifest)


def told(look: Look) -> Iterator[str]:
    """What a plugin's manifest says, in lines for people."""
    manifest = look.manifest
    yield f"plugin {look.id}" + (f": {one_line(manifest.description)}" if manifest and manifest.description else "")
    if look.problem:
        yield f"  it can't be loaded: {one_line(look.problem, 500)}"
    if manifest is None and look.problem:
        return
    if manifest is None:
        yield "  it has no manifest: what it offers is known once it is loaded"
        return
    lacks = needs(manifest.to_data())
    lists = {
        "tools": [tool.name for tool in manifest.tools],
        "overrides": manifest.overrides,
        "hooks": manifest.hooks,
        "lets no call through without it": ["role: policy"] if manifest.role == "policy" else [],
        "commands": [command.name for command in manifest.commands],
        "commands below mibyan": manifest.cli,
        "skills": manifest.skills,
        "terminal backends": list(manifest.environments),
        "what it says it does to the machine": manifest.permissions,
        **{f"needs the {what}": names for what, names in lacks.items()},
        "needs the plugins": manifest.requires_plugins,
        "works with Mibyan": [manifest.requires_mibyan] if manifest.requires_mibyan else [],
    }
    for what, names in lists.items():
        if names:
            yield f"  {what}: {', '.join(one_line(name, 100) for name in names)}"
    if not manifest.permissions:
        yield "  what it says it does to the machine: nothing is said"
    if not manifest.tools:
        yield "  its manifest defines no tools: what it registers is known once it is loaded"
