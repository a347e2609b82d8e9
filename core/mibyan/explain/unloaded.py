"""The claims of plugins that aren't loaded, told from their manifests and sources; and of files that are no plugin's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from mibyan.explain.answer import Claim
from mibyan.explain.places import code_of, place_of_tool
from mibyan.explain.sources import places_of, python_files, registrations_in
from mibyan.paths import PROJECT_FOLDER
from mibyan.plugins.sources.tools_dir import SKIPPED
from mibyan.plugins.state import RULES, standing
from mibyan.plugins.telling import rule_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mibyan.explain.answer import ClaimState
    from mibyan.plugins.candidate import Note
    from mibyan.plugins.state import PluginRecord

#: What is said of a file that registers the tool and isn't looked at by anybody.
_NOBODYS = "nothing loads this file: a tool file lies directly in tools/, a plugin has a folder with a plugin.yaml"


def of_plugins(name: str, records: Sequence[PluginRecord]) -> Iterator[Claim]:
    """The claims of plugins whose tools aren't registered."""
    for record in records:
        if not record.is_usable:
            yield from _of_plugin(name, record)


def _of_plugin(name: str, record: PluginRecord) -> Iterator[Claim]:
    manifest = record.candidate.manifest
    if manifest is not None and manifest.frozen:
        for tool in manifest.tools:
            if name == tool.name or name in tool.flags.get("aliases", ()):
                yield _claim(tool.name, record, tool.toolset, place_of_tool(record.candidate, tool))
        return
    for one in places_of(name, code_of(record.candidate)):
        yield _claim(one.name or name, record, one.toolset, one.place)


def unregistered(name: str, records: Sequence[PluginRecord]) -> Iterator[Claim]:
    """The claims of plugins that are loaded and could have registered the tool, and haven't."""
    for record in records:
        if record.is_usable and record.source != "builtin":
            yield from _unregistered(name, record)


def _unregistered(name: str, record: PluginRecord) -> Iterator[Claim]:
    manifest = record.candidate.manifest
    frozen = manifest is not None and manifest.frozen
    announced = {tool.name: tool for tool in manifest.tools} if manifest is not None else {}
    if name in announced:
        yield _absent(name, announced[name].toolset, record, place_of_tool(record.candidate, announced[name]),
                      "its code took it away again", "registry.R12", f"tell the author of {record.id}")  # fmt: skip
        return
    for one in places_of(name, code_of(record.candidate)):
        if frozen:
            reason = "its manifest lists its tools and doesn't list this one, so the registration doesn't count"
            fix = _freezing(record)
            yield _absent(one.name or name, one.toolset, record, one.place, reason, "registry.R12", fix)
        else:
            reason = "it was loaded without this registration being reached: look what it depends on there"
            yield _absent(one.name or name, one.toolset, record, one.place, reason, "plugins.L2", f"read {one.place}")


def _freezing(record: PluginRecord) -> str:
    """What makes the manifest say what the code does: where the plugin's sources are, or by those who have them."""
    candidate = record.candidate
    if candidate.source == "pip" and not (candidate.editable and candidate.root is not None):
        return f"tell the author of {record.id}: in its project, `mibyan plugins manifest . --write`"
    return f"mibyan plugins manifest {candidate.root or Path(record.origin).parent} --write"


def _absent(
    tool: str, toolset: str | None, record: PluginRecord, place: str, reason: str, rule: str, fix: str
) -> Claim:  # fmt: skip
    return Claim(tool, "unregistered", f"plugin {record.id!r} {standing(record.state)}, but {reason}", rule, record.id,
                 record.source, toolset, place, None, fix)  # fmt: skip


def _claim(tool: str, record: PluginRecord, toolset: str | None, place: str) -> Claim:
    reason = f"plugin {record.id!r} {standing(record.state, record.reason)}"
    state = cast("ClaimState", record.state)
    return Claim(tool, state, reason, record.rule or RULES[record.state], record.id, record.source, toolset,
                 place, record.decided_by, record.hint or f"mibyan plugins show {record.id}")  # fmt: skip


def of_files(
    name: str, records: Sequence[PluginRecord], notes: Sequence[Note], home: Path, project: Path | None
) -> Iterator[Claim]:
    """The claims of files in the home and in the project that no plugin has: near misses, files at the wrong place."""
    missed = {
        note.origin: note for note in notes if note.origin and note.kind in {"near_miss", "skipped", "unreadable"}
    }
    owned = [Path(record.origin) for record in records if record.source == "tools"]
    owned += [record.candidate.root for record in records if record.candidate.root and record.source != "tools"]
    roots = [base / kind for base in _bases(home, project) for kind in ("plugins", "tools")]
    for file in (Path(file) for root in roots if root.is_dir() for file in python_files(root)):
        if any(file == own or own in file.parents for own in owned):
            continue
        for one in places_of(name, [str(file)]):
            note = next((missed[str(path)] for path in (file, *file.parents) if str(path) in missed), None)
            yield _missed(one.name or name, one.toolset, one.place, note)


def _missed(tool: str, toolset: str | None, place: str, note: Note | None) -> Claim:
    reason, fix = (_NOBODYS, "Move it there.") if note is None else (note.text, note.hint)
    if note is None and Path(place.rpartition(":")[0]).name in SKIPPED:
        reason, fix = f"files called {', '.join(sorted(SKIPPED))} are no tools in a tools directory", "Rename it."
    rule = (None if note is None else rule_of(note)) or "plugins.F6"
    return Claim(tool, "near_miss", reason, rule, None, None, toolset, place, None, fix)


def _bases(home: Path, project: Path | None) -> list[Path]:
    return [home] if project is None else [home, project / PROJECT_FOLDER]


def cloned(name: str, notes: Sequence[Note]) -> Iterator[Claim]:
    """The claims of installed plugins that aren't looked at, since they lie in the project (plugins.F3)."""
    for note in notes:
        if note.kind != "skipped" or not note.origin.endswith("-info"):
            continue
        above = Path(note.origin).parent
        files = [str(file) for file in sorted(above.glob("*/*.py"))] + [
            str(file) for file in sorted(above.glob("*.py"))
        ]
        for one in places_of(name, files[:400]):
            yield Claim(one.name or name, "near_miss", note.text, "plugins.F3", None, None, one.toolset, one.place, None,
                        note.hint)  # fmt: skip


def open_questions(records: Sequence[PluginRecord]) -> list[str]:
    """A sentence for each plugin that isn't loaded and whose tools its text doesn't tell."""
    questions = []
    for record in records:
        manifest = record.candidate.manifest
        if record.is_usable or (manifest is not None and manifest.frozen):
            continue
        told = registrations_in(code_of(record.candidate))
        if told.more or not told.found:
            questions.append(
                f"which tools plugin {record.id!r} ({record.state}) would register can't be told without running its code"
            )
    return questions
