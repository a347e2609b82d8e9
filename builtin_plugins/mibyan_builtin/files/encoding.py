"""Text and bytes: UTF-8, and what a byte order mark says; anything else is told, never guessed."""

from __future__ import annotations

from dataclasses import dataclass

from mibyan import ToolError
from mibyan_builtin.files.problems import shown

#: Bytes at the beginning of a file in which a NUL says that it is binary (as git does).
SNIFFED = 8192

#: Byte order marks; UTF-32's little-endian one begins like UTF-16's.
_MARKS: tuple[tuple[bytes, str], ...] = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)

#: How some binary formats begin, for the message.
_FORMATS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a zip archive or an office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\x00", "an SQLite database"),
)


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file's text is written."""

    #: Python's name of the codec.
    name: str = "utf-8"
    #: The byte order mark at the beginning, or nothing.
    mark: bytes = b""

    def encode(self, text: str, path: str) -> bytes:
        """`text` as the file's bytes, mark included.

        Raises:
            ToolError: A character can't be written.
        """
        try:
            return self.mark + text.encode(self.name)
        except UnicodeEncodeError as error:
            code = f"U+{ord(text[error.start]):04X}"
            raise ToolError(
                f"Character {error.start + 1} of the text for {shown(path)} can't be written as {self.name}: {code}",
                hint="It is half of a surrogate pair; send the whole character.",
            ) from None

    def __str__(self) -> str:
        return f"{self.name} with a byte order mark" if self.mark else self.name


def detect(head: bytes, path: str) -> Encoding:
    """The encoding that the first bytes of a file tell.

    Raises:
        ToolError: It is a binary file.
    """
    for mark, name in _MARKS:
        if head.startswith(mark):
            return Encoding(name, mark)
    binary_format = next((text for magic, text in _FORMATS if head.startswith(magic)), None)
    if binary_format or b"\0" in head[:SNIFFED]:
        raise ToolError(
            f"It is a binary file{f', {binary_format}' if binary_format else ''}: {shown(path)}",
            hint="The file tools read and write text; use another program for this file.",
        )
    return Encoding()


def decode(data: bytes, path: str) -> tuple[str, Encoding]:
    """The text of a whole file, without its byte order mark, and how it is written.

    Raises:
        ToolError: It is a binary file, or its bytes aren't the text they should be.
    """
    encoding = detect(data[:SNIFFED], path)
    try:
        return data[len(encoding.mark) :].decode(encoding.name), encoding
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start + len(encoding.mark)) + 1
        raise undecodable(error, encoding, path, line) from None


def undecodable(error: UnicodeDecodeError, encoding: Encoding, path: str, line: int) -> ToolError:
    """The error for bytes that aren't text of the file's encoding."""
    byte = error.object[error.start]
    return ToolError(
        f"It isn't {encoding.name} text: byte 0x{byte:02x} in line {line} of {shown(path)}",
        hint=f"It may be in an older encoding; convert it first, for instance: iconv -f latin1 -t utf-8 {shown(path)}",
    )


def line_ending(text: str) -> str:
    r"""What ends the lines of `text`: `"\n"`, `"\r\n"`, or `""` when they differ."""
    windows = text.count("\r\n")
    if not windows:
        return "\n"
    return "\r\n" if windows == text.count("\n") else ""


def usual_line_ending(text: str) -> str:
    """What ends most lines of `text`, and so should end a new one."""
    return "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"
