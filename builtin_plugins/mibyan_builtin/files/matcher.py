"""The search's own engine: a program that is run as a process of its own, so that no pattern can hold up its caller.

Standard input: a line of JSON, `{"pattern": ..., "limit": bytes}`, then paths relative to the working directory, each
ended by a NUL. Standard output: a line of JSON for each line that matches, `[path, line, column, text]`, or one
`{"error": ...}` when the pattern isn't a regular expression.
It uses nothing but the standard library and imports nothing of its package.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
import warnings
from stat import S_ISREG
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKS = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip


def main() -> None:
    """Search the files that standard input names."""
    warnings.simplefilter("ignore")
    request = json.loads(first_line(sys.stdin.fileno()))
    try:
        pattern = re.compile(request["pattern"])
    except (re.error, OverflowError, RecursionError, ValueError) as error:
        print(json.dumps({"error": str(error)}))  # noqa: T201 - its answer
        return
    for path in paths(sys.stdin.fileno()):
        text = read(path, request["limit"])
        for match in matches(pattern, text) if text else ():
            print(json.dumps([path, *match]))  # noqa: T201 - its answer
        sys.stdout.flush()


def first_line(descriptor: int) -> bytes:
    """The request; byte by byte, so that nothing of the paths is taken."""
    line = bytearray()
    while (byte := os.read(descriptor, 1)) not in {b"", b"\n"}:
        line += byte
    return bytes(line)


def paths(descriptor: int) -> Iterator[str]:
    """The paths on standard input, each as soon as it is there."""
    rest = b""
    while chunk := os.read(descriptor, 65_536):
        *whole, rest = (rest + chunk).split(b"\0")
        yield from map(os.fsdecode, whole)


def read(path: str, limit: int) -> str:
    """The text of a file; nothing when it isn't a text file, or can't be read."""
    try:
        with open(opened(path), "rb") as stream:
            status = os.fstat(stream.fileno())
            data = stream.read() if S_ISREG(status.st_mode) and status.st_size <= limit else b""
    except OSError:
        return ""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            text = data[len(mark) :].decode(encoding, "replace")
            return "" if "\0" in text else text
    return "" if b"\0" in data else data.decode("utf-8", "replace")


def opened(path: str) -> int:
    """The file's descriptor, reached without following a symbolic link."""
    *parents, name = path.split("/")
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        for parent in parents:
            above, here = here, os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(above)
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
    finally:
        os.close(here)


def matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int, str]]:
    """The lines that match, as `(line, column, text)`; lines count from 1, columns from 0."""
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        bare = line.removesuffix("\r")
        if match := pattern.search(bare):
            yield number, match.start(), bare


if __name__ == "__main__":
    main()
