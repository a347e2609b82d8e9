"""The workspace: the only directories that the file tools touch, and the way to a file in them.

A path is walked from a root's open descriptor, one name at a time, without letting the kernel follow a symbolic link:
links are read and walked in turn, so nothing that changes meanwhile can lead the way out. What lies outside is never
looked at, so the answer can't tell whether it exists.
"""

# ruff: noqa: PTH100, PTH111, PTH118 - descriptors and the system's own files, which pathlib has no words for

from __future__ import annotations

import errno
import os
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mibyan import ToolError
from mibyan_builtin.files.problems import problem, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: What Linux follows before it answers ELOOP.
MAX_LINKS = 40
#: Bytes of a path; Linux's PATH_MAX.
MAX_PATH = 4096

#: O_PATH needs no read permission on a directory (Linux); elsewhere a plain descriptor does.
DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Location:
    """Where a path leads: a name, not a symbolic link, in a directory that is open."""

    #: The path as the model wrote it.
    given: str
    #: The absolute path, without symbolic links.
    path: Path
    #: Descriptor of the deepest directory on the way that exists; it is open as long as the location is in use.
    directory: int
    #: The parents below `directory` that don't exist, outermost first.
    missing: tuple[str, ...]
    #: The name in its parent; `.` for a root of the workspace.
    name: str

    def stat(self) -> os.stat_result | None:
        """The file's status; `None` when there is no such file.

        Raises:
            ToolError: The operating system refuses to tell.
        """
        if self.missing:
            return None
        try:
            return os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise problem(error, self.given) from None


class Workspace:
    """The session's working directory and the operator's `files.roots`.

    Args:
        cwd: The directory that relative paths start from.
        roots: Further directories; `~` is the user's home, relative ones start from `cwd`.
    """

    #: Where relative paths start, absolute.
    cwd: Path
    #: Each root as `(path as given, path without symbolic links)`.
    roots: tuple[tuple[Path, Path], ...]

    def __init__(self, cwd: Path, roots: Sequence[str | Path] = ()) -> None:
        self.cwd = Path(os.path.abspath(cwd))
        named = [self.cwd, *(self.cwd / expand_home(str(root)) for root in roots)]
        absolute = [Path(os.path.abspath(root)) for root in named]
        self.roots = tuple((root, Path(os.path.realpath(root))) for root in absolute)

    @contextmanager
    def locate(self, path: str) -> Iterator[Location]:
        """Walk to `path` and keep its directory open meanwhile.

        Raises:
            ToolError: It isn't a path, it is outside the workspace, or the way to it is barred.
        """
        walk = _Walk(self, _checked(path))
        try:
            yield walk.location()
        finally:
            walk.close()

    def relative(self, path: Path) -> str:
        """`path` as the model would write it: relative to the working directory where it lies in it."""
        try:
            return str(path.relative_to(self.roots[0][1]))
        except ValueError:
            return str(path)

    def refusal(self, path: str) -> ToolError:
        """The one answer to every path outside, whether there is something or not."""
        roots = ", ".join(dict.fromkeys(str(literal) for literal, _ in self.roots))
        return ToolError(
            f"The path is outside the workspace: {shown(path)}",
            hint=f"The file tools reach {roots} only; the operator can add directories under files.roots.",
        )


def expand_home(path: str) -> str:
    """`path` with a leading `~` replaced by the user's home; a file may be called `~x`."""
    if path == "~" or path.startswith("~/"):
        return os.path.expanduser(path)
    return path


def _checked(path: str) -> str:
    """`path`, if it can be one."""
    if not path.strip():
        raise ToolError("The path is empty", hint="Give a path, relative to the working directory or absolute.")
    if "\0" in path:
        raise ToolError("The path has a NUL character in it")
    try:
        length = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise ToolError("The path has characters that no file name can have (lone surrogates)") from None
    if length > MAX_PATH:
        raise ToolError(f"The path is {length} bytes long; the limit is {MAX_PATH}")
    return path


class _Walk:
    """One walk along a path.

    While it is outside the roots it is lexical: `position` is a list of names and nothing is looked up. Inside,
    `position` is the real path of the last of `descriptors`.
    """

    def __init__(self, workspace: Workspace, given: str) -> None:
        self.workspace = workspace
        self.given = given
        self.descriptors: list[int] = []
        self.missing: list[str] = []
        self.position: list[str] = []
        self.pending: deque[str] = deque()
        self.name = "."
        self.links = 0

    def location(self) -> Location:
        """Walk, and say where it led."""
        try:
            self._walk(os.path.join(self.workspace.cwd, expand_home(self.given)))
            if not self.descriptors:
                # The way may lead over a link outside, such as /home -> /data/home; only where it arrives counts.
                self._walk(os.path.realpath("/" + "/".join(self.position)))
        except OSError as error:
            raise problem(error, self.given) from None
        if not self.descriptors:
            raise self.workspace.refusal(self.given)
        missing = tuple(self.missing[:-1])
        name = self.missing[-1] if self.missing else self.name
        path = Path("/", *self.position, *missing, *(() if name == "." else (name,)))
        return Location(self.given, path, self.descriptors[-1], missing, name)

    def close(self) -> None:
        """Close what the walk opened."""
        while self.descriptors:
            os.close(self.descriptors.pop())

    def _walk(self, path: str) -> None:
        self._start(path)
        while self.pending:
            part = self.pending.popleft()
            if part == "..":
                self._up()
            elif part not in {"", "."}:
                self._down(part)

    def _start(self, path: str) -> None:
        """Begin at `/`, with the names of `path` still to go."""
        self.close()
        self.missing.clear()
        self.position.clear()
        self.name = "."
        self.pending.extendleft(reversed(path.split("/")))
        self._enter()

    def _enter(self) -> None:
        """Open the root that the lexical position is, if it is one."""
        here = Path("/", *self.position)
        for literal, real in self.workspace.roots:
            if here in {literal, real}:
                self.descriptors.append(os.open(real, DIRECTORY))
                self.position = list(real.parts[1:])
                return

    def _up(self) -> None:
        if self.missing:
            self.missing.pop()
        elif len(self.descriptors) > 1:
            os.close(self.descriptors.pop())
            self.position.pop()
        elif self.descriptors:
            self._start("/".join(["", *self.position[:-1]]))
        elif self.position:
            self.position.pop()
            self._enter()

    def _down(self, part: str) -> None:
        if not self.descriptors:
            self.position.append(part)
            self._enter()
        elif self.missing:
            self.missing.append(part)
        elif not self._follow(part):
            self._step(part)

    def _follow(self, part: str) -> bool:
        """Take the way of `part` if it is a symbolic link; true when that was all there is to do about `part`."""
        try:
            target = os.readlink(part, dir_fd=self.descriptors[-1])
        except FileNotFoundError:
            self.missing.append(part)
            return True
        except OSError as error:
            if error.errno == errno.EINVAL:
                return False
            raise
        self.links += 1
        if self.links > MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith("/"):
            self._start(target)
        else:
            self.pending.extendleft(reversed(target.split("/")))
        return True

    def _step(self, part: str) -> None:
        """Go into the directory `part`, or stop at it when it is the last name."""
        if all(rest in {"", "."} for rest in self.pending):
            self.pending.clear()
            self.name = part
            return
        self.descriptors.append(os.open(part, DIRECTORY, dir_fd=self.descriptors[-1]))
        self.position.append(part)
