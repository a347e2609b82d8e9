"""Installed plugins: every distribution with an entry point in `mibyan.plugins`, each once (plugins.F3, F4)."""
# Paths are text here: a thousand distributions are looked at on each start.
# ruff: noqa: PTH112, PTH119

from __future__ import annotations

import json
import os
import sys
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, TypeAlias

from mibyan.plugins.candidate import Candidate, Discovery, Note, Target
from mibyan.plugins.sources.cache import ContentCache
from mibyan.plugins.sources.distributions import Distribution, Listing
from mibyan.plugins.sources.entrypoints import GROUP, EntryPoint, entry_point, groups, near_misses
from mibyan.plugins.sources.files import is_directory, is_file
from mibyan.plugins.sources.ids import PREFIX, differing, distribution_id, key, name_problem
from mibyan.plugins.sources.manifests import WHEEL_MANIFEST, manifest_of, read_manifest
from mibyan.plugins.sources.modules import data_names, package_folder, package_manifest, top_folders
from mibyan.plugins.sources.sitepaths import searched
from mibyan.records import replace
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from mibyan.plugins.manifest import Manifest
    from mibyan.plugins.sources.imported import ImportedListing

    AnyListing: TypeAlias = Listing | ImportedListing

#: Where hatchling's `extra-metadata` puts the manifest, in editable installs too.
_EXTRA = f"extra_metadata/{WHEEL_MANIFEST}"


def find_installed(
    cache: ContentCache, *, path: Sequence[str] | None = None, inside: Iterable[Path] = (), finders: bool = True
) -> Discovery:
    """The plugins of installed distributions, in the order of their ids; nothing is imported.

    Args:
        cache: Keeps checked manifests.
        path: What is searched; `None`: `sys.path`.
        inside: The project and the current directory, in which only what was installed counts.
        finders: Whether finders on `sys.meta_path` that list distributions are asked too.
    """
    entries, skipped = searched(sys.path if path is None else path, inside)
    notes: list[Note] = []
    listings: list[AnyListing] = [listing for entry in entries if (listing := _listing(entry, cache)) is not None]
    listings += _finder_listings() if finders else []
    found = [candidate for candidate in _candidates(listings, cache, notes) if candidate is not None]
    for listing in listings:
        notes += listing.notes
    installed = {candidate.id for candidate in found}
    notes += [note for entry, border in skipped.items() for note in _skipped(entry, border, installed)]
    found.sort(key=lambda candidate: (candidate.id, candidate.shadowed_by is not None))
    return Discovery(tuple(_without_twins(found)), tuple(notes))


def _skipped(entry: str, border: str, installed: Collection[str]) -> Iterator[Note]:
    """A note for each plugin in an entry that isn't searched (a cloned repository's) and that isn't installed too."""
    for found in Listing(entry, ContentCache()).distributions() if os.path.isdir(entry) else ():
        if (
            GROUP in groups(found.entry_points.decode("utf-8", "replace"))
            and distribution_id(found.name) not in installed
        ):
            text = f"its entry of sys.path is inside {border}, where nothing was installed by you: passed over"
            yield Note("skipped", text, found.info, f"`mibyan plugins install -e {entry}` if it is yours")


def _listing(entry: str, cache: ContentCache) -> AnyListing | None:
    if os.path.isdir(entry):
        return Listing(entry, cache)
    if not is_file(entry):
        return None
    from mibyan.plugins.sources.imported import zip_listing

    return zip_listing(entry)


def _finder_listings() -> list[ImportedListing]:
    """Those of the finders on `sys.meta_path` that aren't the path's own; seldom any."""
    if not any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return []
    from mibyan.plugins.sources.imported import finder_listings

    return finder_listings()


def _candidates(listings: Sequence[AnyListing], cache: ContentCache, notes: list[Note]) -> Iterator[Candidate | None]:
    """A candidate for each distribution with our group; what lies behind one of the same name is shadowed."""
    first: dict[str, str] = {}
    for index, listing in enumerate(listings):
        for found in listing.distributions():
            candidate = _candidate(found, cache, notes)
            if candidate is None:
                continue
            earlier = first.get(found.key) or _earlier(listings[:index], found.key)
            first.setdefault(found.key, found.info)
            yield replace(candidate, shadowed_by=earlier) if earlier else candidate


def _earlier(listings: Iterable[AnyListing], name: str) -> str | None:
    """Where a copy of the distribution lies that is imported instead, even if that one has no plugin in it."""
    return next((listing.entry for listing in listings if listing.has(name)), None)


def _candidate(found: Distribution, cache: ContentCache, notes: list[Note]) -> Candidate | None:
    """The plugin of a distribution, `None` if it has no entry point of ours."""
    plugin_id = distribution_id(found.name)
    plain = Candidate(
        plugin_id, "pip", found.info, found.version, distribution=found.name, editable=_is_editable(found)
    )
    try:
        written = groups(found.entry_points.decode())
    except UnicodeDecodeError as error:
        return replace(
            plain, problem=f"entry_points.txt isn't UTF-8 text (byte {error.start})", hint=_REINSTALL.format(plugin_id)
        )
    if GROUP not in written:
        notes += _near_misses(found, list(written))
        return None
    entry, problem = _entry_point(written[GROUP], plugin_id)
    if entry is None:
        return replace(plain, problem=problem, hint=_AUTHOR.format(plugin_id))
    return _with_manifest(plain, found, entry, cache)


def _entry_point(lines: Sequence[tuple[str, str]], plugin_id: str) -> tuple[EntryPoint | None, str | None]:
    """The one entry point of a plugin, or what is wrong."""
    if len(lines) != 1:
        names = ", ".join(one_line(name, 60) for name, _ in lines) or "none"
        return None, f"a distribution is one plugin, with one entry point in {GROUP!r}; this has {len(lines)}: {names}"
    found = entry_point(*lines[0])
    if not found.well_formed:
        return None, f"the entry point {one_line(found.value, 80)!r} isn't of the form 'module' or 'module:attribute'"
    problem = name_problem(plugin_id) or differing(found.name, plugin_id, "entry point's name")
    return (None, problem) if problem else (found, None)


def _with_manifest(plain: Candidate, found: Distribution, entry: EntryPoint, cache: ContentCache) -> Candidate:
    """The candidate with its manifest, if it has one, and with what is imported."""
    tops = _top_folders(found, entry, editable=plain.editable)
    manifest, problem = _manifest(found, entry, tops, cache)
    if manifest is not None:
        problem = differing(manifest.id, plain.id, "manifest")
    return replace(
        plain,
        manifest=manifest,
        problem=problem,
        target=None if problem else Target("entry_point", entry.value),
        root=package_folder(entry.module, tops) if found.on_disk else None,
        hint=_AUTHOR.format(plain.id) if problem else None,
    )


def _manifest(
    found: Distribution, entry: EntryPoint, tops: Sequence[str], cache: ContentCache
) -> tuple[Manifest | None, str | None]:
    """The manifest in the dist-info, else the one that is package data; both `None` if it has none."""
    if not found.on_disk:
        return _zipped_manifest(found, entry)
    path = f"{found.info}/{_EXTRA}"
    if os.access(path, os.F_OK):
        return read_manifest(path, cache)
    return package_manifest(entry.module, tops, cache)


def _zipped_manifest(found: Distribution, entry: EntryPoint) -> tuple[Manifest | None, str | None]:
    data = found.read(_EXTRA)
    if data is not None:
        return manifest_of(data, f"{found.info}/{_EXTRA}")
    top = entry.module.partition(".")[0]
    for name in data_names(entry.module):
        if (data := found.read_code(f"{top}/{name}")) is not None:
            return manifest_of(data, f"{found.entry}/{top}/{name}")
    return None, None


def _top_folders(found: Distribution, entry: EntryPoint, *, editable: bool) -> list[str]:
    """The folders of a plugin's top package: beside its dist-info; for an editable install where its code lies."""
    top = entry.module.partition(".")[0]
    beside = f"{found.entry}/{top}"
    if not editable or os.path.isdir(beside):
        return [beside]
    on_path = [f"{base}/{top}" for base in sys.path if base and is_directory(f"{base}/{top}")]
    return on_path or top_folders(entry.module)


def _is_editable(found: Distribution) -> bool:
    """Whether its code lies where somebody works on it (PEP 610, or a setuptools egg-info in a source tree)."""
    data = found.read("direct_url.json")
    if data is not None and b"editable" in data:
        try:
            return json.loads(data)["dir_info"]["editable"] is True
        except (ValueError, KeyError, TypeError, RecursionError):
            return False
    in_packages = os.path.basename(found.entry.rstrip(os.sep)).endswith("-packages")
    return found.on_disk and found.info.endswith(".egg-info") and not in_packages


def _without_twins(found: Sequence[Candidate]) -> Iterator[Candidate]:
    """The candidates; where differently named distributions have one id, all of them are off."""
    alike: dict[str, list[Candidate]] = {}
    for candidate in found:
        if candidate.shadowed_by is None:
            alike.setdefault(key(candidate.id), []).append(candidate)
    for candidate in found:
        rivals = [other for other in alike.get(key(candidate.id), ()) if other is not candidate]
        yield _refused(candidate, rivals) if rivals and candidate.shadowed_by is None else candidate


def _refused(candidate: Candidate, rivals: Sequence[Candidate]) -> Candidate:
    paths = " and ".join(sorted({candidate.origin, *(rival.origin for rival in rivals)}))
    names = ", or ".join(sorted({candidate.distribution, *(rival.distribution for rival in rivals)}))
    problem = f"several distributions have the plugin id {candidate.id!r}: {paths}; all are off"
    return replace(candidate, target=None, problem=problem, hint=f"mibyan plugins uninstall {names}")


def _near_misses(found: Distribution, written: list[str]) -> Iterator[Note]:
    """Notes of a distribution that looks as if it were meant to be a plugin."""
    name, hint = one_line(found.name, 60), f"plugins for Mibyan use the group {GROUP!r}"
    wrong = near_misses(written)
    for group in wrong:
        text = f"distribution {name!r} has entry points in the group {group!r}, which nobody reads"
        yield Note("near_miss", text, found.info, hint)
    if not wrong and found.key.startswith(PREFIX):
        yield Note("near_miss", f"distribution {name!r} has no entry point in the group {GROUP!r}", found.info, hint)


_REINSTALL = "install the distribution again, or: mibyan plugins uninstall {}"
_AUTHOR = "tell the plugin's author, or turn it off: `mibyan plugins disable {}`"
