"""The two forms of `patch`: a piece of text replaced, and a diff over several files applied, all or nothing."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mibyan import ToolError
from mibyan_builtin.files import hunks, unified
from mibyan_builtin.files.encoding import Encoding, decode
from mibyan_builtin.files.opening import not_found, opened
from mibyan_builtin.files.problems import problem, shown
from mibyan_builtin.files.replacing import replace
from mibyan_builtin.files.transaction import Change, commit, replaceable

if TYPE_CHECKING:
    import os

    from mibyan_builtin.files.unified import FileDiff
    from mibyan_builtin.files.workspace import Location, Workspace

#: Bytes of a file that is edited at most.
MAX_FILE = 64 * 1024 * 1024
#: Line numbers in an answer at most.
LISTED = 100


@dataclass(slots=True)
class Draft:
    """A file as it is and as it shall be."""

    location: Location
    #: Its status as it is; `None`: there is no file.
    before: os.stat_result | None
    #: Its text as it is; `None`: there is no file.
    old: str | None
    #: Its text as it shall be; `None`: no file.
    new: str | None
    encoding: Encoding
    executable: bool | None = None

    @property
    def changed(self) -> bool:
        """Whether there is something to do."""
        return self.old != self.new or (self.executable is not None and self.new is not None)

    def change(self) -> Change:
        """What to do."""
        data = None if self.new is None else self.encoding.encode(self.new, self.location.given)
        return Change(self.location, data, self.before, self.executable)


def draft(location: Location) -> Draft:
    """The text file at `location`, ready to be changed; an empty draft when there is none.

    Raises:
        ToolError: It can't be read as text, or may not be written.
    """
    before = replaceable(location)
    if before is None:
        return Draft(location, None, None, None, Encoding())
    with opened(location) as (stream, status):
        if status.st_size > MAX_FILE:
            raise ToolError(f"{shown(location.given)} is too large to edit: {status.st_size} bytes, limit {MAX_FILE}")
        try:
            data = stream.read(MAX_FILE + 1)
        except OSError as error:
            raise problem(error, location.given) from None
    text, encoding = decode(data, location.given)
    return Draft(location, status, text, text, encoding)


def replace_text(workspace: Workspace, path: str, old: str, new: str, *, every: bool) -> dict[str, Any]:
    """Replace `old` by `new` in one file; the answer of `patch(path, old_string, new_string)`."""
    with workspace.locate(path) as location:
        file = draft(location)
        if file.old is None:
            raise not_found(location)
        file.new, lines = replace(file.old, old, new, every=every, path=path)
        commit([file.change()])
    return {"path": str(location.path), "replacements": len(lines), "lines": lines[:LISTED]}


def apply_diff(workspace: Workspace, diff: str) -> dict[str, Any]:
    """Apply a diff to the workspace; the answer of `patch(diff)`.

    Raises:
        ToolError: Some part of it can't be applied (all such parts are told); nothing was written.
    """
    files = unified.parse(diff)
    with ExitStack() as locations:
        drafts = _Drafts(workspace, locations)
        problems = [told for file in files if (told := drafts.try_apply(file))]
        if problems:
            raise _all(problems)
        commit([each.change() for each in drafts.by_path.values() if each.changed])
        return {"files": [drafts.summary(file) for file in files]}


class _Drafts:
    """The files that a diff is about, each as the parts of the diff so far leave it."""

    def __init__(self, workspace: Workspace, locations: ExitStack) -> None:
        self.workspace = workspace
        self.locations = locations
        self.by_path: dict[str, Draft] = {}
        self.by_name: dict[str, Draft] = {}

    def get(self, name: str) -> Draft:
        """The draft of the file that the diff calls `name`; two names may lead to one file."""
        if name not in self.by_name:
            location = self.locations.enter_context(self.workspace.locate(name))
            path = str(location.path)
            if path not in self.by_path:
                self.by_path[path] = draft(location)
            self.by_name[name] = self.by_path[path]
        return self.by_name[name]

    def try_apply(self, file: FileDiff) -> ToolError | None:
        """Apply one file's part; the problem with it, if there is one."""
        try:
            self._apply(file)
        except ToolError as error:
            return error
        return None

    def summary(self, file: FileDiff) -> dict[str, Any]:
        """What was done with one file, for the answer."""
        kind = "created" if file.old is None else "deleted" if file.new is None else "modified"
        told: dict[str, Any] = {"path": str(self.get(file.paths[-1]).location.path), "change": kind}
        if file.old and file.new and file.old != file.new:
            told |= {"change": "renamed", "from": str(self.get(file.old).location.path)}
        return {**told, "added": file.count("+"), "removed": file.count("-")}

    def _apply(self, file: FileDiff) -> None:
        if file.old is None:
            text, encoding = hunks.created(file), Encoding()
        else:
            source = self.get(file.old)
            if source.new is None:
                raise not_found(source.location)
            text, encoding = hunks.applied(source.new, file, file.old), source.encoding
            if file.new is None:
                return self._delete(source, text)
            if self.get(file.new) is source:
                source.new = text
                source.executable = source.executable if file.executable is None else file.executable
                return None
        self._create(file, text, encoding)
        return None

    def _create(self, file: FileDiff, text: str, encoding: Encoding) -> None:
        """Put `text` where no file is yet; a renamed file goes from its old place."""
        target = self.get(file.new or "")
        if target.new is not None:
            raise ToolError(f"{shown(target.location.given)} exists already; the diff would make it anew")
        target.new, target.encoding, target.executable = text, encoding, file.executable
        if file.old is not None:
            source = self.get(file.old)
            source.new = None
            if target.executable is None and source.before is not None:
                target.executable = bool(source.before.st_mode & 0o100)

    def _delete(self, source: Draft, rest: str) -> None:
        if rest:
            raise ToolError(
                f"The diff deletes {shown(source.location.given)}, but removes not all its lines: "
                f"{rest.count(chr(10)) or 1} are left",
                hint="Read the file again; it isn't the one that the diff was made from.",
            )
        source.new = None


def _all(problems: list[ToolError]) -> ToolError:
    """One error for all problems of a diff."""
    if len(problems) == 1:
        first = problems[0]
        return ToolError(f"{first.message}; nothing was written", hint=first.hint)
    listed = "\n".join(f"- {each.message}" for each in problems[:LISTED])
    return ToolError(f"{len(problems)} parts of the diff can't be applied; nothing was written:\n{listed}",
                     hint=problems[0].hint)  # fmt: skip
