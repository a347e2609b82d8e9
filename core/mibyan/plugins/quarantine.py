"""The quarantine: plugins in whose import a process died aren't imported again until they change (plugins.L4).

It is what dead processes have left in the journal (`mibyan.plugins.journal`), and nothing else: each file names the
innermost import that had begun and not ended. It holds for the content that was imported, by the interpreter and the
Mibyan that did it, so an upgrade gets a new chance; the operator releases a plugin with `mibyan plugins enable ID`.
"""
# ruff: noqa: PTH106, PTH108, PTH118

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mibyan.errors import MibyanError
from mibyan.plugins.contents import LOADED_BY, Contents, content_of, kept_digests
from mibyan.plugins.journal import FOLDER, HEAD, leftovers
from mibyan.plugins.sources.files import read_bytes, reason
from mibyan.plugins.sources.ids import same
from mibyan.plugins.writers import Writer
from mibyan.records import record
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from mibyan.plugins.candidate import Candidate

#: Bytes of a file that are read, and files: what has more isn't ours.
_SIZE, _FILES = 256 * 1024, 1_000
#: Seconds after which a file goes of which it can't be told whose it is, and one whose writer can't be asked about.
_DAY = 86_400.0
_MONTH = 30 * _DAY


@record
class Death:
    """An import in which a process died."""

    plugin_id: str
    #: Where the plugin was found.
    origin: str
    #: What its files were, see `content_of`.
    content: str
    #: The interpreter and the Mibyan that imported it.
    by: str
    #: What was done: `import`, `register` or `import MODULE`.
    step: str
    #: When the import began, and when the process was first found to be gone, in seconds since the epoch.
    began: float
    found: float
    #: The file of the journal that says so.
    path: str

    @property
    def reason(self) -> str:
        """What happened, in one sentence."""
        what = {"import": "its import", "register": "its registration"}.get(self.step)
        what = what or f"the import of its module {one_line(self.step.removeprefix('import '), 100)!r}"
        when = time.strftime("%Y-%m-%d at %H:%M:%SZ", time.gmtime(self.began))
        return f"quarantined: the process died during {what}, which began on {when}, at most {self._duration} later"

    @property
    def hint(self) -> str:
        """The command that releases it."""
        return f"mibyan plugins enable {self.plugin_id}"

    @property
    def _duration(self) -> str:
        seconds = max(1, round(self.found - self.began))
        for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
            if seconds >= 2 * length:
                return f"{seconds // length} {unit}"
        return f"{seconds} s"


class Quarantine:
    """What is kept out in one profile, as it is when this is made.

    Args:
        home: `$MIBYAN_HOME`.
        paths: The journal's files, if they have been listed already.
    """

    def __init__(self, home: Path, paths: Sequence[str] | None = None) -> None:
        self._home = home
        self._files = [_File(path) for path in (leftovers(os.fspath(home)) if paths is None else paths)[:_FILES]]
        self._contents: Contents | None = None
        #: What was asked about and has changed since.
        self._changed: set[Death] = set()

    @property
    def deaths(self) -> tuple[Death, ...]:
        """All of them, in the order of ids."""
        found = [death for file in self._files for death in file.deaths]
        return tuple(sorted(found, key=lambda one: (one.plugin_id, one.origin, one.began, one.path)))

    def of(self, candidate: Candidate) -> Death | None:
        """The death for which a plugin is kept out, if it is."""
        found = [one for one in self.deaths if (one.plugin_id, one.origin) == (candidate.id, candidate.origin)]
        if not found:
            return None
        if self._contents is None:
            self._contents = Contents(kept_digests(self._home))
        content = content_of(candidate, self._contents)
        self._changed.update(one for one in found if one.content != content and one.by == LOADED_BY)
        return next((one for one in reversed(found) if one.content == content), None)

    def sweep(self) -> None:
        """Delete what tells nothing any more: of plugins that are gone or were changed, and what nobody can read."""
        for file in [file for file in self._files if file.is_over(self._changed)]:
            with suppress(OSError):
                self._delete(file)

    def release(self, plugin_id: str) -> bool:
        """Let a plugin be imported again, whatever happened; whether it was kept out.

        Raises:
            MibyanError: That can't be written down.
        """
        about = [file for file in self._files if any(same(one.plugin_id, plugin_id) for one in file.deaths)]
        for file in about:
            try:
                self._delete(file)
            except OSError as error:
                msg = f"can't release {plugin_id!r} from quarantine: {file.path} can't be deleted ({reason(error)})"
                raise MibyanError(msg, origin=file.path, hint="Delete the file.") from error
        return bool(about)

    def _delete(self, file: _File) -> None:
        with suppress(FileNotFoundError):
            os.unlink(file.path)
        self._files.remove(file)
        with suppress(OSError):
            os.rmdir(os.path.join(self._home, FOLDER))


class _File:
    """One file of the journal.

    Args:
        path: Where it is.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._writer, begun, found = _parsed(_lines(path))
        self.is_dead = found is not None
        if found is None and self._writer is not None and self._writer.is_gone(path):
            # What it has written since, or that it ended in good order and took the file away.
            self._writer, begun, found = _parsed(_lines(path))
            self.is_dead = self._writer is not None
            if begun and found is None:
                found = time.time()
                _append(path, ["found", found])
        self.deaths = tuple(Death(*(*one, found or 0.0, path)) for one in begun if self.is_dead)

    def is_over(self, changed: Iterable[Death]) -> bool:
        """Whether the file tells nothing any more."""
        if self.is_dead:
            return all(one in changed or _has_gone(one.origin) for one in self.deaths)
        try:
            age = time.time() - os.lstat(self.path).st_mtime
        except OSError:
            return False
        return age > (_DAY if self._writer is None else _MONTH) and (
            self._writer is None or self._writer.is_gone(self.path) is None
        )


def _lines(path: str) -> list[list[Any]]:
    """The lines of a file that are JSON arrays."""
    found = []
    try:
        for line in read_bytes(path, _SIZE).splitlines():
            with suppress(ValueError, RecursionError):
                value = json.loads(line)
                if isinstance(value, list) and value:
                    found.append(value)
    except OSError:
        pass
    return found


def _parsed(lines: list[list[Any]]) -> tuple[Writer | None, list[tuple[Any, ...]], float | None]:
    """Who wrote it, the innermost imports that haven't ended, and when the writer was found to be gone."""
    writer: Writer | None = None
    open_: dict[int, list[Any]] = {}
    found: float | None = None
    for line in lines:
        match line:
            case [head, int(pid), int(started), str(boot), str(space), str(machine)] if head == HEAD:
                writer = Writer(pid, started, boot, space, machine)
            case ["begin", int(number), int(), str(), str(), str(), str(), str(), float(began)] if _is_time(began):
                open_[number] = line[2:]
            case ["step", int(number), str(step)] if number in open_:
                open_[number][5] = step
            case ["end", int(number)]:
                open_.pop(number, None)
            case ["found", float(at)] if found is None and _is_time(at):
                found = at
    around = {one[0] for one in open_.values()}
    innermost = [tuple(one[1:]) for number, one in open_.items() if number not in around]
    return (writer, innermost, found) if writer is not None else (None, [], None)


def _is_time(seconds: float) -> bool:
    """Whether it can be written as a date."""
    return 0 <= seconds < 32_503_680_000  # the year 3000


def _append(path: str, line: list[Any]) -> None:
    """Add a line to the file of a writer that is gone; nothing happens where that isn't allowed."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0))
        try:
            os.write(descriptor, json.dumps(line).encode() + b"\n")
        finally:
            os.close(descriptor)


def _has_gone(origin: str) -> bool:
    """Whether nothing is at a place any more; what isn't a path is a module's name."""
    return os.sep in origin and not os.path.lexists(origin)
