"""`Candidate`: a plugin that was found, and `Note`: what was passed over while looking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mibyan.plugins.manifest import Manifest

    Source: TypeAlias = Literal["builtin", "pip", "user", "project", "tools"]
    NoteKind: TypeAlias = Literal["leftover", "near_miss", "shadowed", "skipped", "unknown", "unreadable", "warning"]


@record
class Target:
    """What has to be imported to load a plugin."""

    #: `module`: an importable module; `entry_point`: `module[:attribute]`, a module or a callable;
    #: `package_dir`: a folder with an `__init__.py`; `file`: a single `.py`.
    kind: Literal["module", "entry_point", "package_dir", "file"]
    #: The module's dotted name, the entry point's value, or the path as text.
    value: str
    #: The folder or file, for `package_dir` and `file`.
    path: Path | None = None


@record
class Candidate:
    """One plugin as it was found; nothing of it has been imported."""

    #: The plugin's id (plugins.F2).
    id: str
    source: Source
    #: Where it was found: a path; for a wheel that of its `*.dist-info`.
    origin: str
    version: str = ""
    #: The folder that is the plugin's own (what is hashed for trust), if there is one.
    root: Path | None = None
    #: `None` when `problem` says why there is nothing to import.
    target: Target | None = None
    manifest: Manifest | None = None
    #: Why it can't be loaded, in one sentence.
    problem: str | None = None
    #: What to do about it.
    hint: str | None = None
    #: The origin of the plugin that takes its place.
    shadowed_by: str | None = None
    #: Why the operator's settings keep it off, in one sentence; `hint` then is the command that lets it on.
    disabled: str | None = None
    #: The distribution's name as it is written, for wheels.
    distribution: str = ""
    #: Whether it is an editable install: its code may change at any time.
    editable: bool = False

    @property
    def usable(self) -> bool:
        """Whether it may be loaded as far as finding it can tell."""
        return self.problem is None and self.shadowed_by is None and self.disabled is None


@record
class Note:
    """Something that was seen and passed over; `doctor` prints it."""

    kind: NoteKind
    #: What it is and why it was passed over, in one sentence.
    text: str
    #: Where: a path.
    origin: str = ""
    #: What to do about it.
    hint: str | None = None


def unreadable(text: str, origin: str) -> Note:
    """The note on a place that may hold plugins and can't be read.

    Args:
        text: What can't be done and why, in one sentence.
        origin: The place's path.
    """
    return Note("unreadable", text, origin, "check its permissions and those of the folders above it, or take it away")


@record
class Discovery:
    """What a search has found: the candidates in the order of plugins.F1, and the notes."""

    candidates: tuple[Candidate, ...] = ()
    notes: tuple[Note, ...] = field(default=())

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self.candidates)

    def __add__(self, other: Discovery) -> Discovery:
        return Discovery(self.candidates + other.candidates, self.notes + other.notes)
