"""Changing files: each change whole or not at all, and several changes all or none.

New content is written beside its target first and renamed over it at the end, so that a reader sees the old file or
the new one. With several changes the old files are kept under another name until all are done, and put back if one
fails.
"""

# ruff: noqa: PTH123 - descriptors and the system's own files, which pathlib has no words for

from __future__ import annotations

import os
import stat
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mibyan import ToolError
from mibyan_builtin.files.opening import require_regular
from mibyan_builtin.files.problems import problem, shown
from mibyan_builtin.files.workspace import DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan_builtin.files.workspace import Location

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Change:
    """What a file shall be."""

    location: Location
    #: The new content; `None`: the file shall be gone.
    data: bytes | None
    #: The file's status as it was when the change was worked out; `None`: there was no file.
    before: os.stat_result | None
    #: Whether the file shall be executable; `None`: as it is, and for a new file no.
    executable: bool | None = None


@dataclass(slots=True)
class _Step:
    """A change on its way."""

    change: Change
    #: Descriptor of the directory that the file is in.
    directory: int
    #: The name of the new content until it is renamed.
    staged: str | None = None
    #: The name that the old content is kept under.
    backup: str | None = None
    done: bool = False


def replaceable(location: Location) -> os.stat_result | None:
    """The status of the file that a change would replace; `None` when it would be a new one.

    Raises:
        ToolError: What is there isn't a regular file, or may not be written.
    """
    status = location.stat()
    if status is None:
        if location.name == ".":
            raise ToolError(f"It is a directory: {shown(location.given)}", hint="Give the path of a file.")
        return None
    require_regular(location, status)
    if not os.access(location.name, os.W_OK, dir_fd=location.directory):
        raise ToolError(
            f"Permission denied: {shown(location.given)} is read-only",
            hint=f"Its mode is {stat.filemode(status.st_mode)}; whoever owns it can allow writing.",
        )
    return status


def commit(changes: Sequence[Change]) -> None:
    """Make all changes, or none.

    Raises:
        ToolError: One can't be made, or its file has changed since; everything is as it was.
    """
    with ExitStack() as descriptors:
        commitment = _Commitment(descriptors)
        try:
            for change in changes:
                commitment.stage(change)
            commitment.keep_old()
            commitment.carry_out()
        except BaseException:
            commitment.undo()
            raise
        finally:
            commitment.tidy()


@dataclass(slots=True)
class _Commitment:
    descriptors: ExitStack
    steps: list[_Step] = field(default_factory=list)
    #: Directories that were made, as `(descriptor of the parent, name)`, outermost first.
    made: list[tuple[int, str]] = field(default_factory=list)

    def stage(self, change: Change) -> None:
        """Write the new content beside its target, in directories that are made where they are missing."""
        try:
            step = _Step(change, self._directory(change.location))
            self.steps.append(step)
            if change.data is not None:
                step.staged = _beside(change.location.name)
                _write(step.staged, step.directory, change)
        except OSError as error:
            raise problem(error, change.location.given) from None

    def keep_old(self) -> None:
        """See that nobody has changed the files meanwhile, and keep the old ones where they may be needed again."""
        for step in self.steps:
            _require_unchanged(step)
            if len(self.steps) > 1 and step.change.before is not None:
                step.backup = _beside(step.change.location.name)
                _keep(step, step.backup)

    def carry_out(self) -> None:
        """Put the new content in its place; each file changes in one instant."""
        for step in self.steps:
            name = step.change.location.name
            try:
                if step.staged is None:
                    os.unlink(name, dir_fd=step.directory)
                else:
                    os.replace(step.staged, name, src_dir_fd=step.directory, dst_dir_fd=step.directory)
            except OSError as error:
                raise problem(error, step.change.location.given) from None
            step.staged = None
            step.done = True

    def undo(self) -> None:
        """Put the old files back, and remove what is new."""
        for step in reversed(self.steps):
            name = step.change.location.name
            with suppress(OSError):
                if step.done and step.backup is not None:
                    os.replace(step.backup, name, src_dir_fd=step.directory, dst_dir_fd=step.directory)
                    step.backup = None
                elif step.done and step.change.data is not None:
                    os.unlink(name, dir_fd=step.directory)
        self.tidy()
        for parent, name in reversed(self.made):
            with suppress(OSError):
                os.rmdir(name, dir_fd=parent)

    def tidy(self) -> None:
        """Leave no file of ours behind."""
        for step in self.steps:
            for name in filter(None, (step.staged, step.backup)):
                with suppress(OSError):
                    os.unlink(name, dir_fd=step.directory)
            step.staged = step.backup = None

    def _directory(self, location: Location) -> int:
        """The descriptor of the file's directory; what is missing on the way is made."""
        directory = os.dup(location.directory)
        self.descriptors.callback(os.close, directory)
        for name in location.missing:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=directory)
                self.made.append((directory, name))
            directory = os.open(name, DIRECTORY, dir_fd=directory)
            self.descriptors.callback(os.close, directory)
        return directory


def _beside(name: str) -> str:
    """A name for a file beside `name` that nobody else has."""
    stem = os.fsdecode(os.fsencode(name)[:200])
    return f".{stem}.{os.urandom(6).hex()}.tmp"


def _write(name: str, directory: int, change: Change) -> None:
    """Write a change's content to a new file, with the mode and owner of the file that it will replace."""
    # A file that others may not read must not be readable under its other name either.
    descriptor = os.open(name, _CREATE, 0o666 if change.before is None else 0o600, dir_fd=directory)
    with open(descriptor, "wb") as stream:
        stream.write(change.data or b"")
        stream.flush()
        _set_mode(descriptor, change)
        os.fsync(descriptor)


def _set_mode(descriptor: int, change: Change) -> None:
    now = os.fstat(descriptor)
    # As when a file is written in place, it doesn't keep the right to run as its owner.
    mode = stat.S_IMODE((change.before or now).st_mode) & ~(stat.S_ISUID | stat.S_ISGID)
    if change.before is not None and (change.before.st_uid, change.before.st_gid) != (now.st_uid, now.st_gid):
        with suppress(OSError):  # only root may give a file away
            os.fchown(descriptor, change.before.st_uid, change.before.st_gid)
    if change.executable is not None:
        # Whoever may read may execute, as `chmod +x` under the usual umask has it.
        mode = mode | (mode & 0o444) >> 2 if change.executable else mode & ~0o111
    os.fchmod(descriptor, mode)


def _require_unchanged(step: _Step) -> None:
    change = step.change
    try:
        now = os.stat(change.location.name, dir_fd=step.directory, follow_symlinks=False)
    except FileNotFoundError:
        now = None
    if _identity(now) != _identity(change.before):
        raise ToolError(
            f"{shown(change.location.given)} was changed by somebody else meanwhile; nothing was written",
            hint="Read it again, then repeat the change.",
            retryable=True,
        )


def _identity(status: os.stat_result | None) -> tuple[int, ...] | None:
    return status and (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _keep(step: _Step, backup: str) -> None:
    """Give the old file a second name, `backup`; where links can't be made, a copy."""
    name, directory = step.change.location.name, step.directory
    try:
        os.link(name, backup, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except OSError:
        try:
            with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory), "rb") as old:
                kept = Change(step.change.location, old.read(), step.change.before)
            _write(backup, directory, kept)
        except OSError as error:
            raise problem(error, step.change.location.given) from None
