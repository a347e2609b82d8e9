"""`Watch`: what a plugin's code does to the world while it is loaded, seen by an audit hook (PEP 578)."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import mibyan
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
        ignored: Folders in which Mibyan writes meanwhile.
        kept: The folder of the folders for what plugins keep.
    """

    def __init__(self, folders: Sequence[str], ignored: Sequence[str], kept: str) -> None:
        self._folders = tuple(_real(folder) for folder in folders)
        self._ignored = tuple(_real(folder) + os.sep for folder in ignored)
        self._watching = False
        self._busy = threading.local()
        self._kept = _real(kept) + os.sep
        #: What was seen: the check, a sentence, the place in the plugin's code, and the library that did it for it.
        self.seen: dict[tuple[str, str, str, str], None] = {}
        self._threads: frozenset[threading.Thread] = frozenset()
        sys.addaudithook(self._hook)
        if sys.version_info < (3, 12):
            self._watch_threads()

    def _watch_threads(self) -> None:
        """Let the start of a thread be an event: Python tells it from 3.12 on."""
        start = threading.Thread.start

        def told(thread: threading.Thread) -> None:
            self._hook("_thread.start_new_thread", (thread._bootstrap,))  # type: ignore[attr-defined]
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
        check, what = ("import.files", "writes") if event == "open" else _EVENTS[event]
        subject = _subject(event, arguments)
        if subject is None or (check == "import.files" and self._is_ignored(event, subject)):
            return
        place, library = self._place(sys._getframe(2))
        if place and sum(key[0] == check for key in self.seen) < _MOST:
            self.seen[check, f"{what} {one_line(subject, 120)}".rstrip(), place, library] = None

    def _is_ignored(self, event: str, path: str) -> bool:
        """Whether a path is nobody's, or one where Mibyan writes; of the folders for what plugins keep it makes the folder."""
        real = _real(path)
        return (
            path == os.devnull
            or real.startswith(self._ignored)
            or (event == "os.mkdir" and real.startswith(self._kept))
        )

    def _place(self, frame: FrameType | None) -> tuple[str, str]:
        """The innermost place in the plugin's code that this comes of, and the library by which; empty, if none."""
        library = ""
        while frame is not None:
            file = frame.f_code.co_filename
            if os.path.isabs(file):  # noqa: PTH117 - text
                real = _real(file)
                if real in self._folders or real.startswith(tuple(f"{folder}{os.sep}" for folder in self._folders)):
                    return f"{real}:{frame.f_lineno}", library
                if not (real.startswith(_MIBYAN) or (real.startswith(_PYTHON) and "-packages" not in real)):
                    library = library or str(frame.f_globals.get("__name__", "")).partition(".")[0]
            frame = frame.f_back
        return "", ""


def _subject(event: str, arguments: tuple[Any, ...]) -> str | None:
    """What is done it to, empty: that isn't told; `None`: it doesn't count."""
    if event == "open":
        path, flags = arguments[0], arguments[2] or 0
        return os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) and flags & _WRITING else None
    if event.startswith("_thread."):
        name = str(getattr(getattr(arguments[0], "__self__", None), "name", ""))
        return None if name.startswith("mibyan-") else name
    if event not in _NAMED or not arguments:
        return ""
    return os.fsdecode(arguments[0]) if isinstance(arguments[0], bytes | os.PathLike) else str(arguments[0])


#: Kept at hand: a plugin may patch them.
_real: Callable[[str], str] = os.path.realpath
#: Where Python's own modules lie, and Mibyan's.
_PYTHON: Final = _real(os.path.dirname(os.__file__)) + os.sep  # noqa: PTH120 - text
_MIBYAN: Final = _real(os.path.dirname(mibyan.__file__)) + os.sep  # noqa: PTH120 - text
