"""`discover`: every plugin of every source, in order, without importing any (plugins.F1-F6)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mibyan.paths import PROJECT_FOLDER
from mibyan.plugins.candidate import Discovery, Note
from mibyan.plugins.sources.builtin import find_builtin
from mibyan.plugins.sources.cache import ContentCache
from mibyan.plugins.sources.folders import find_folders
from mibyan.plugins.sources.ids import PROJECT_TOOLS, covers
from mibyan.plugins.sources.installed import find_installed
from mibyan.plugins.sources.modules import find_modules, is_importable, is_module_name
from mibyan.plugins.sources.order import ordered, shadowed
from mibyan.plugins.sources.selection import Selection
from mibyan.plugins.sources.tools_dir import find_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mibyan.config.sources import PluginSettings
    from mibyan.plugins.candidate import Candidate


def discover(
    settings: PluginSettings,
    home: Path,
    project: Path | None,
    *,
    safe_mode: bool = False,
    also: Sequence[str] = (),
    no: Sequence[str] = (),
    extra_modules: Sequence[str] = (),
    further: Sequence[Callable[[], Discovery]] = (),
    unable: Callable[[Candidate], bool] = lambda _: False,
    path: Sequence[str] | None = None,
    by_host: bool = False,
    cache: ContentCache | None = None,
) -> Discovery:
    """Everything that is there, in the one order of plugins.F1; the same in every process.

    Nothing is imported and nothing raises: what can't be used is a candidate with a problem, what was passed over is a
    note. Candidates that the settings turn off are listed with `disabled`.

    Args:
        settings: The `plugins` section of the configuration.
        home: `$MIBYAN_HOME`.
        project: The folder that has `.mibyan`, if there is one.
        safe_mode: Whether only built-in plugins count; the other sources aren't even looked at.
        also: `--plugin` and `MIBYAN_PLUGINS`: ids, importable modules, or `no:ID`.
        no: `--no-plugin`: ids.
        extra_modules: Modules beside `plugins.modules`.
        further: Other sources, such as bridges to other people's plugins.
        unable: Whether a candidate can't take another's place although it has no problem: it is incompatible.
        path: What is searched for distributions; `None`: `sys.path`.
        by_host: Whether the host itself chose `path`: it counts wherever it lies, and nothing else does.
        cache: Keeps what files came to; `None`: the one in `home`.
    """
    selection = Selection.of(settings, also, no)
    if safe_mode:
        return _put_together([find_builtin()], selection, unable)
    cache = cache or ContentCache.of_home(home)
    found = [
        find_builtin(),
        find_installed(cache, path=path, inside=() if by_host else _borders(project), finders=not by_host),
        find_modules((*settings.modules, *extra_modules), cache),
        *_in_folders(home, project, cache),
        *(source() for source in further),
    ]
    found.append(_named_modules(selection.also, found, cache))
    cache.save()
    return _put_together(found, selection, unable)


def _in_folders(home: Path, project: Path | None, cache: ContentCache) -> Iterator[Discovery]:
    """The folder plugins and tool files of the user and of the project."""
    yield find_folders(home / "plugins", "user", cache)
    yield find_tools(home / "tools", cache)
    if project is not None:
        folder = project / PROJECT_FOLDER
        yield find_folders(folder / "plugins", "project", cache)
        yield find_tools(folder / "tools", cache, prefix=PROJECT_TOOLS)


def _named_modules(words: Iterable[str], found: Iterable[Discovery], cache: ContentCache) -> Discovery:
    """Plugins for those words of `--plugin` that are no id but an importable module, as pytest's `-p` takes both."""
    ids = [candidate.id for discovery in found for candidate in discovery]
    strange = [word for word in words if not any(covers(word, plugin_id) for plugin_id in ids)]
    names = [word for word in strange if is_module_name(word) and is_importable(word)]
    return find_modules(names, cache, said_by="--plugin")


def _put_together(found: Iterable[Discovery], selection: Selection, unable: Callable[[Candidate], bool]) -> Discovery:
    """All that was found, in order, with what the settings and the order say about each."""
    everything = sum(found, Discovery())
    candidates, circles = ordered(map(selection.applied, everything.candidates))
    candidates = shadowed(candidates, lambda one: one.disabled is not None or unable(one))
    unknown = selection.unknown([candidate.id for candidate in candidates])
    notes = [*everything.notes, *circles, *_manifest_warnings(candidates), *unknown]
    return Discovery(tuple(candidates), tuple(sorted(dict.fromkeys(notes), key=_note_position)))


def _manifest_warnings(candidates: Iterable[Candidate]) -> Iterator[Note]:
    for candidate in candidates:
        for warning in candidate.manifest.warnings if candidate.manifest is not None else ():
            yield Note("warning", warning, candidate.origin)


def _note_position(note: Note) -> tuple[str, str, str]:
    return note.kind, note.origin, note.text


def _borders(project: Path | None) -> list[Path]:
    """The folders in which somebody else's files may lie: the project and the current directory."""
    try:
        here = [Path.cwd()]
    except OSError:  # it has been removed
        here = []
    return [*([project] if project is not None else []), *here]
