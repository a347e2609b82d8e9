"""`Output`: where a command's data goes, whatever has become of standard output; `say`: everything else."""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any

from mibyan.errors import MibyanError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

#: What could command a terminal, turn text around on it or hide text from its reader: controls but tab and line feed,
#: bidirectional marks, what takes no room (zero-width blanks, fillers, tags). Joiners and variation selectors stay:
#: Persian, Indic scripts and emoji need them.
_TRICKS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_NOT_ASCII = re.compile("[^\x00-\x7f]")


class OutputError(MibyanError):
    """Standard output can't be written to."""


class Output:
    """Standard output as it was when the command began.

    What reads it may go away (`| head`): then nothing more is written, and nobody complains.
    """

    def __init__(self) -> None:
        self._stream: TextIO | None = sys.stdout
        self._abandoned = False
        #: What is written, where somebody wants to know it.
        self.copied: list[str] | None = None

    @property
    def stream(self) -> TextIO | None:
        """The stream; `None` if the process was started without one."""
        return self._stream

    @property
    def is_terminal(self) -> bool:
        """Whether a person looks at it."""
        return is_terminal(self._stream)

    def write(self, text: str) -> None:
        """Write text as it is; characters that the stream's encoding doesn't have are escaped.

        Raises:
            OutputError: It can't be written (a closed stream, a full disk).
        """
        if self.copied is not None:
            self.copied.append(text)
        if self._abandoned:
            return
        if self._stream is None:
            raise OutputError("standard output is closed, there is nowhere to write to")
        try:
            self._stream.write(_encodable(text, self._stream))
            self._stream.flush()
        except BrokenPipeError:
            self._abandon()
        except (OSError, ValueError) as error:
            self._abandon()
            raise OutputError(f"can't write to standard output: {_why(error)}") from error

    def line(self, text: str) -> None:
        """Write text for people, with a line end; on a terminal without what could play tricks on it."""
        shown = safe(text) if self.is_terminal else text
        self.write(shown if shown.endswith("\n") else f"{shown}\n")

    def json_text(self, text: str) -> None:
        """Write text that is JSON and stays JSON: in ASCII where the stream isn't UTF-8, on a terminal without tricks."""
        if self.is_terminal:
            text = _TRICKS.sub(_escaped, text)
        self.line(text if _is_unicode(self._stream) else _NOT_ASCII.sub(_escaped, text))

    def document(self, value: Any) -> None:
        """Write a value as one JSON document; what JSON can't say degrades."""
        import json

        from mibyan.schema.jsontext import to_data

        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)
            text.encode()
            _require_text_keys(value)
        except (TypeError, ValueError, RecursionError):
            text = json.dumps(to_data(value), ensure_ascii=False, indent=2)
        self.json_text(text)

    # Apart from what others write --------------------------------------------------------------------------------

    @contextmanager
    def apart(self) -> Iterator[None]:
        """While this lasts only this object reaches standard output.

        What other code prints, and what the programs it starts print, goes to standard error: a plugin that greets its
        reader, or a tool that runs `git`, must not end up in the midst of somebody's JSON.
        """
        with redirect_stdout(sys.stderr if sys.stderr is not None else io.StringIO()):
            kept = self._descriptor_of_its_own()
            try:
                yield
            finally:
                if kept is not None:
                    self._give_back(kept)

    def _descriptor_of_its_own(self) -> TextIO | None:
        """Let descriptor 1 be standard error's, and write to a copy of the old one; the stream as it was before."""
        stream = self._stream
        try:
            if stream is None or stream.fileno() != 1 or stream.isatty():
                return None
            self._stream = open(os.dup(1), "w", encoding=stream.encoding, errors=stream.errors)  # noqa: PTH123, SIM115
        except (OSError, ValueError, AttributeError):  # not a real stream
            return None
        try:
            os.dup2(2, 1)
        except OSError:  # standard error is closed
            _point_nowhere(1)
        return stream

    def _give_back(self, stream: TextIO) -> None:
        mine, self._stream = self._stream, stream
        with suppress(OSError, ValueError):
            os.dup2(mine.fileno(), 1)  # type: ignore[union-attr]
            mine.close()  # type: ignore[union-attr]

    def _abandon(self) -> None:
        """Write nothing more; what is left in the stream's buffer must not complain when the interpreter ends."""
        self._abandoned = True
        stream = self._stream
        with suppress(OSError, ValueError, AttributeError):
            _point_nowhere(stream.fileno())  # type: ignore[union-attr]


def _require_text_keys(value: Any) -> None:
    """Raise `TypeError` if a key isn't text: as JSON it could be the same as another one."""
    if isinstance(value, dict):
        "".join(value)
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for item in value:
        _require_text_keys(item)


def _point_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def close_to_others() -> None:
    """Let nothing more reach standard output: what plugins print while the interpreter ends goes to standard error."""
    stream = sys.__stdout__
    with suppress(OSError, ValueError, AttributeError):
        stream.flush()  # type: ignore[union-attr]
        if stream.fileno() == 1 and not stream.isatty():  # type: ignore[union-attr]
            os.dup2(2, 1)


def say(text: str, *, end: str = "\n") -> None:
    """Write text for people to standard error, if there is one that can be written to."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(_encodable(safe(text) + end, sys.stderr))
        sys.stderr.flush()


def safe(text: str) -> str:
    """`text` with what could play tricks on a terminal written as escapes; what is readable stays."""
    return _TRICKS.sub(_shown, text)


def _shown(match: re.Match[str]) -> str:
    """A character as an escape, as Python writes it."""
    number = ord(match[0])
    if number > 0xFFFF:
        return f"\\U{number:08x}"
    return f"\\u{number:04x}" if number > 0xFF else f"\\x{number:02x}"


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person is at the other end of a stream."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def _encodable(text: str, stream: TextIO) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    return text


def _is_unicode(stream: TextIO | None) -> bool:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return codecs.lookup(encoding).name.startswith("utf")


def _escaped(match: re.Match[str]) -> str:
    """A character as JSON escapes it, one beyond the basic plane as a pair."""
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _why(error: Exception) -> str:
    number = getattr(error, "errno", None)
    return os.strerror(number).lower() if isinstance(number, int) else str(error)
