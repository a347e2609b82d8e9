"""`Whole`: the file with all of an output that is too long for an answer (terminal.E4)."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Characters that are looked at together for secrets, and written.
BLOCK = 1 << 20
#: Characters of a file at most; what is beyond that isn't kept.
LONGEST = 256 * BLOCK
#: Files that are kept, and bytes of all of them; the oldest go first.
KEPT_FILES, KEPT_BYTES = 200, 4 * LONGEST


class Whole:
    """Takes cleaned text; a file is made once that is more than the answer has room for.

    Args:
        folder: Where the file goes; readable by its owner only, as the file is.
        limit: Characters for which there need be no file.
        redact: Takes secrets out of a text.
    """

    #: The file; `None`: none was needed, or it couldn't be made.
    path: str | None = None

    def __init__(self, folder: Path, limit: int, redact: Callable[[str], str]) -> None:
        self._folder = folder
        self._limit = limit
        self._redact = redact
        self._pending: list[str] = []
        self._size = 0
        self._written = 0
        self._stream: TextIO | None = None
        self._broken = False

    def write(self, text: str) -> None:
        """Take the next lines."""
        if self._broken or self._written >= LONGEST:
            return
        self._pending.append(text)
        self._size += len(text)
        if self._size > (self._limit if self._stream is None else BLOCK):
            self._flush()

    def close(self) -> None:
        """Write what is left."""
        if self._stream is not None and not self._broken:
            self._flush()
        if self._stream is not None:
            with suppress(OSError):
                self._stream.close()
            self._stream = None

    def _flush(self) -> None:
        text, self._pending, self._size = "".join(self._pending), [], 0
        try:
            if self._stream is None:
                self._stream = self._opened()
            self._stream.write(self._redact(text))
        except OSError:  # a full disk is no reason to lose the answer
            self._broken, self.path = True, None
        self._written += len(text)

    def _opened(self) -> TextIO:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        prune(self._folder)
        path = self._folder / f"{os.urandom(16).hex()}.txt"
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self.path = str(path)
        return os.fdopen(opened, "w", encoding="utf-8", errors="replace", newline="")


def prune(folder: Path) -> None:
    """Remove the oldest files, until there is room for one more."""
    found = []
    for path in folder.glob("*.txt"):
        with suppress(OSError):
            told = path.stat()
            found.append((told.st_mtime, told.st_size, path))
    found.sort(reverse=True)
    total = 0
    for count, (_, size, path) in enumerate(found, 1):
        total += size
        if count >= KEPT_FILES or total > KEPT_BYTES - LONGEST:
            path.unlink(missing_ok=True)
