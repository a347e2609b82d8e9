"""`Watch`: what a plugin's code does to the world while it is loaded, seen by an audit hook (PEP 578)."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: Acts that are told of one kind; a loop that writes a thousand files is one problem.
_MOST: Final = 5

#: The check that an audit event belongs to, and what it does, in words.
_EVENTS: Final[dict[str, tuple[str, str]]] = {
    "os.mkdir": ("import.files", "makes the folder"),
    "os.rename": ("import.files", "renames"),
    "os.remove": ("import.files", "removes"),
    "os.rmdir": ("import.files", "removes the folder"),
    "os.link": ("import.files", "links"),
    "os.symlink": ("import.files", "links"),
    "os.truncate": ("import.files", "truncates"),
    "os.chmod": ("import.files", "changes the mode of"),
    "os.chown": ("import.files", "changes the owner of"),
    "_thread.start_new_thread": ("import.threads", "starts a thread"),
    "_thread.start_joinable_thread": ("import.threads", "starts a thread"),
    "subprocess.Popen": ("import.processes", "starts the program"),
    "os.system": ("import.processes", "runs in a shell"),
    "os.exec": ("import.processes", "becomes the program"),
    "os.fork": ("import.processes", "forks"),
    "os.forkpty": ("import.processes", "forks"),
    "os.posix_spawn": ("import.processes", "starts the program"),
    "os.spawn": ("import.processes", "starts the program"),
    "pty.spawn": ("import.processes", "starts the program"),
    "socket.__new__": ("import.sockets", "makes a socket"),
    "socket.connect": ("import.sockets", "connects a socket"),
    "socket.bind": ("import.sockets", "binds a socket"),
    "socket.getaddrinfo": ("import.sockets", "asks for the address of"),
    "socket.gethostbyname": ("import.sockets", "asks for the address of"),
}
#: Of these events the first argument says more.
_NAMED: Final = frozenset({
    "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "subprocess.Popen",
    "os.system", "os.exec", "os.posix_spawn", "pty.spawn", "socket.getaddrinfo", "socket.gethostbyname",
})  # fmt: skip


class Watch:
    """Sees what code in some folders does, itself or through others, between `begin` and `end`.

    Args:
        folders: Where the plugin's code lies.
        ignored: Folders in which somebody else writes meanwhile.
    """

    def __init__(self, folders: Sequence[str], ignored: Sequence[str]) -> None:
        self._folders = tuple(_real(folder) for folder in folders)
        self._ignored = tuple(_real(folder) + os.sep for folder in ignored)
        self._watching = False
        self._busy = threading.local()
        #: What was seen: the check, a sentence, and the place in the plugin's code.
        self.seen: dict[tuple[str, str, str], None] = {}
        self._threads: frozenset[threading.Thread] = frozenset()
        sys.addaudithook(self._hook)
        if sys.version_info < (3, 12):
            self._watch_threads()

    def _watch_threads(self) -> None:
        """Let the start of a thread be an event: Python tells it from 3.12 on."""
        start = threading.Thread.start

        def told(thread: threading.Thread) -> None:
            self._hook("_thread.start_new_thread", ())
            start(thread)

        threading.Thread.start = told  # type: ignore[assignment,method-assign]

    def begin(self) -> None:
        """What is done from now on counts."""
        self._threads = frozenset(threading.enumerate())
        self._watching = True

    def end(self) -> None:
        """What is done from now on doesn't count."""
        self._watching = False

    @property
    def running(self) -> list[str]:
        """The names of threads that were started meanwhile, not by Mibyan, and still run."""
        new = [one for one in threading.enumerate() if one not in self._threads and one.is_alive()]
        return sorted(one.name for one in new if not one.name.startswith("mibyan-"))

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._watching or (event != "open" and event not in _EVENTS) or getattr(self._busy, "yes", False):
            return
        self._busy.yes = True
        try:
            with suppress(Exception):  # nothing that happens here may change what the plugin sees
                self._note(event, arguments)
        finally:
            self._busy.yes = False

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            check, what, subject = "import.files", "writes", arguments[0]
            if not isinstance(subject, str | bytes | os.PathLike) or not (arguments[2] or 0) & _WRITING:
                return
        else:
            check, what = _EVENTS[event]
            subject = arguments[0] if event in _NAMED and arguments else None
        path = os.fsdecode(subject) if isinstance(subject, bytes | os.PathLike) else subject
        if check == "import.files" and self._is_ignored(str(path)):
            return
        place = self._place(sys._getframe(2))
        if place is None or sum(key[0] == check for key in self.seen) >= _MOST:
            return
        said = "" if path is None else f" {one_line(str(path), 120)}"
        self.seen[check, f"{what}{said}", place] = None

    def _is_ignored(self, path: str) -> bool:
        return path == os.devnull or _real(path).startswith(self._ignored)

    def _place(self, frame: FrameType | None) -> str | None:
        """The innermost place in the plugin's code that this comes of; `None`: it comes of something else."""
        while frame is not None:
            file = frame.f_code.co_filename
            if os.path.isabs(file) and _real(file).startswith(tuple(f"{folder}{os.sep}" for folder in self._folders)):  # noqa: PTH117 - text
                return f"{_real(file)}:{frame.f_lineno}"
            if _real(file) in self._folders:
                return f"{_real(file)}:{frame.f_lineno}"
            frame = frame.f_back
        return None


#: Kept at hand: a plugin may patch them.
_real: Callable[[str], str] = os.path.realpath
