"""`Journal`: written ahead of each import of plugin code, so that who ends the process can be named afterwards (plugins.L4).

`$MIBYAN_HOME/journal/<pid>-<random>`: one file for each process that is importing, a JSON array a line: who writes, then
what begins, goes on and ends. The file goes when no import is under way, and its folder with the last file, so a start
that has nothing to learn from it asks the file system once. What a process that died has left is the quarantine
(`mibyan.plugins.quarantine`).

Nothing waits for the disk: what was written is the kernel's, and only a dead machine loses it, not a dead process. Where
it can't be written (a read-only home, a full disk) there is no journal, which is never an error.
"""
# os and text: these run at each import of a plugin.
# ruff: noqa: PTH102, PTH106, PTH108, PTH118, PTH208

from __future__ import annotations

import atexit
import json
import os
import threading
import time
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from mibyan.plugins.contents import LOADED_BY
from mibyan.plugins.writers import lock, this_process
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: What the first line of a file begins with.
HEAD: Final = "mibyan journal 1"
#: The folder in the home.
FOLDER: Final = "journal"
#: `off`: nothing is written, and nothing is kept out. For who looks for a plugin that ends the process (`plugins bisect`).
VARIABLE: Final = "MIBYAN_QUARANTINE"

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)
_AGAIN = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
#: How often the folder is made anew when another process has just removed it.
_ATTEMPTS = 100


@record(frozen=False, eq=False)
class Note:
    """An import that is under way."""

    journal: Journal
    number: int
    #: The process that has begun it: its child, made meanwhile, goes on without it.
    pid: int


#: The innermost import of this context.
_NOTE: ContextVar[Note | None] = ContextVar("mibyan_note", default=None)


class Journal:
    """What this process imports for one profile; `journal_of` gives it.

    Args:
        home: `$MIBYAN_HOME`.
    """

    def __init__(self, home: str) -> None:
        self._home = home
        self._folder = os.path.join(home, FOLDER)
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Be the journal of this process, which may be a child of the one that had it."""
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._path = os.path.join(self._folder, f"{self._pid}-{os.urandom(6).hex()}")
        self._open: set[int] = set()
        self._number = 0
        self._file: tuple[int, int, int] | None = None
        self._made_home = False

    @contextmanager
    def importing(
        self, plugin_id: str, origin: str, content: str, step: str = "import", *, makes_home: bool = False
    ) -> Iterator[None]:
        """While this lasts it is written down that a plugin's code is being imported.

        Args:
            plugin_id: The plugin.
            origin: Where it was found.
            content: What its files are, as one text.
            step: What is done: `import`, `register` or `import MODULE`.
            makes_home: Whether a home that isn't there is made while this lasts.
        """
        outer = _NOTE.get()
        self.after_fork()  # of one that nobody has told about
        self._number += 1
        note = Note(self, self._number, self._pid)
        within = outer.number if outer is not None and (outer.journal, outer.pid) == (self, self._pid) else 0
        token = _NOTE.set(note)
        try:
            self._begin(
                note,
                ["begin", note.number, within, plugin_id, origin, content, LOADED_BY, step, time.time()],
                makes_home,
            )
            yield
        finally:
            _NOTE.reset(token)
            try:
                self._end(note)
            except BaseException:  # Ctrl-C: what has ended mustn't look as if it hadn't
                self._end(note)
                raise

    def write(self, note: Note, *line: Any) -> None:
        """Add a line about an import that is under way."""
        if note.pid != os.getpid():
            return
        with self._lock:
            if note.number in self._open:
                self._add(list(line))

    def remove(self) -> None:
        """Take the file away: this process ends in good order, whatever it is importing."""
        if self._pid == os.getpid():
            with self._lock:
                self._remove()

    def after_fork(self) -> None:
        """In a child process: the file is the parent's, and so is the lock on it."""
        if self._pid != os.getpid():
            if self._file is not None and self._is_open():
                os.close(self._file[0])
            self._begin_anew()

    def _begin(self, note: Note, line: list[Any], makes_home: bool) -> None:  # noqa: FBT001 - private
        if os.name != "posix" or os.environ.get(VARIABLE) == "off":
            return
        with self._lock, suppress(OSError):
            if self._file is None:
                self._create(makes_home=makes_home)
            self._open.add(note.number)
            self._add(line)

    def _end(self, note: Note) -> None:
        if note.pid != os.getpid():
            return
        with self._lock:
            if note.number not in self._open:
                return
            if len(self._open) == 1:
                self._remove()
            else:
                self._add(["end", note.number])
            self._open.discard(note.number)

    # The file ----------------------------------------------------------------------------------------------------

    def _create(self, *, makes_home: bool) -> None:
        """Make the file anew, with who writes it.

        Raises:
            OSError: That can't be done.
        """
        self._path = os.path.join(self._folder, f"{self._pid}-{os.urandom(6).hex()}")
        self._hold(self._opened(makes_home=makes_home))
        me = this_process()
        self._add([HEAD, me.pid, me.started, me.boot, me.space, me.machine])
        _AT_EXIT.see_to_it()

    def _opened(self, *, makes_home: bool) -> int:
        for _ in range(_ATTEMPTS):
            try:
                return os.open(self._path, _FLAGS, 0o600)
            except FileNotFoundError:
                with suppress(FileExistsError):
                    if makes_home and not os.path.lexists(self._home):
                        os.mkdir(self._home)
                        self._made_home = True
                    os.mkdir(self._folder)
        raise FileNotFoundError(self._folder)

    def _hold(self, descriptor: int) -> None:
        """Take the file's lock: where no process can be asked about, that tells that this one lives."""
        status = os.fstat(descriptor)
        self._file = descriptor, status.st_dev, status.st_ino
        lock(descriptor)

    def _is_open(self) -> bool:
        """Whether the file is open; a plugin may have closed all descriptors, and this one may be another's by now."""
        if self._file is None:
            return False
        try:
            status = os.fstat(self._file[0])
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._file[1:]

    def _add(self, line: list[Any]) -> None:
        """One write, which a reader and the end of the process see whole or not at all."""
        if self._file is None:
            return
        with suppress(OSError):
            if not self._is_open():
                self._hold(os.open(self._path, _AGAIN))
            os.write(self._file[0], json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def _remove(self) -> None:
        """Take the file away, and the folder if it was the last one."""
        if self._file is None:
            return
        with suppress(OSError):
            os.unlink(self._path)
            os.rmdir(self._folder)
            if self._made_home:
                os.rmdir(self._home)
        if self._is_open():
            os.close(self._file[0])
        self._file = None


class _AtExit:
    """At the end of the interpreter no import counts that is still under way: it was merely slow."""

    def __init__(self) -> None:
        self._asked = False

    def see_to_it(self) -> None:
        """See that the journals are removed then."""
        if not self._asked:
            self._asked = True
            atexit.register(_remove_all)


_AT_EXIT = _AtExit()
#: Modules are the process's, and so is what is known of their imports.
_JOURNALS: dict[str, Journal] = {}


def _remove_all() -> None:
    for journal in list(_JOURNALS.values()):
        journal.remove()


def journal_of(home: Path) -> Journal:
    """The journal of this process in a profile."""
    key = os.fspath(home)
    known = _JOURNALS.get(key)
    return known if known is not None else _JOURNALS.setdefault(key, Journal(key))


def now_registering() -> None:
    """The plugin that is being imported in this context has been, and registers."""
    note = _NOTE.get()
    if note is not None:
        note.journal.write(note, "step", note.number, "register")


def leftovers(home: str) -> list[str]:
    """The paths of all files of the journal: of processes that are importing, and of those that died of it."""
    folder = os.path.join(home, FOLDER)
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [os.path.join(folder, name) for name in sorted(names)]
