"""The two engines of `search_files`: ripgrep where it is installed, else a process of our own. They find the same."""

# ruff: noqa: PTH112 - descriptors and the system's own files, which pathlib has no words for

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from mibyan import ToolError
from mibyan_builtin.files.walking import VERSION_CONTROL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Paths: TypeAlias = Callable[[Callable[[], None]], Iterable[str]]

#: Bytes of a file that is searched at most; larger ones are passed over.
MAX_FILE = 64 * 1024 * 1024
#: Matches of one file that are told at most.
MAX_MATCHES = 2000
#: Globs about names that mean the same everywhere, such as `*.py` and `test_*.{js,ts}`.
_SIMPLE_GLOB = re.compile(r"[\w.-]*\*[\w.-]*(?:\{[\w.-]+(?:,[\w.-]+)*\})?")
#: Seconds between two looks whether the search should stop.
TICK = 0.1


@dataclass(frozen=True, slots=True)
class Match:
    """A line that matches."""

    #: Relative to the directory that is searched.
    path: str
    #: From 1.
    line: int
    #: Where in the text the first match begins, in characters from 0.
    column: int
    text: str


class Unanswered(Exception):  # noqa: N818 - a state, not a fault: the other engine is asked then
    """Ripgrep didn't run, or didn't take the pattern."""


def ripgrep(
    program: str, pattern: str, directory: int, stop: Callable[[], None], glob: str | None = None
) -> Iterator[Match]:
    """The matches below an open directory, at most `MAX_MATCHES` in each file.

    Args:
        program: Where ripgrep is.
        pattern: In its own dialect.
        directory: The directory's descriptor.
        stop: Called now and then; raises when the call is over.
        glob: What the caller will choose files by; ripgrep is told only where it certainly means the same.

    Raises:
        Unanswered: It gave no answer.
    """
    chosen = [f"--glob={glob}"] if glob and _SIMPLE_GLOB.fullmatch(glob) else []
    arguments = [
        program, "--json", "--no-config", "--no-ignore", "--hidden", "--no-messages", "--no-mmap", "--crlf",
        "--sort=path", f"--max-filesize={MAX_FILE}", *chosen, f"--glob=!{{{','.join(sorted(VERSION_CONTROL))}}}",
        f"--regexp={pattern}", "--", "./",
    ]  # fmt: skip
    held: list[Match] = []
    ended = False
    with _process(arguments, directory, None) as process:
        for line in _lines(process.stdout, stop):
            event = json.loads(line)
            match event["type"]:
                case "match" if len(held) < MAX_MATCHES:
                    held.append(_match(event["data"]))
                case "end":
                    if event["data"]["binary_offset"] is None:
                        yield from held
                    held = []
                case "summary":
                    ended = True
    if not ended:
        raise Unanswered


def own(pattern: str, paths: Paths, directory: int, stop: Callable[[], None]) -> Iterator[Match]:
    """The matches in some files.

    Args:
        pattern: A regular expression of Python's.
        paths: Gives the files' paths, relative to the directory, when it is called; it is passed what to call meanwhile.
        directory: The directory's descriptor.
        stop: Called now and then; raises when the call is over.

    Raises:
        ToolError: It isn't a pattern, or the process ended before its time.
    """
    request = json.dumps({"pattern": pattern, "limit": MAX_FILE}).encode() + b"\n"
    arguments = [_python(), "-I", "-S", "-X", "utf8", "-c", _program()]
    enough = threading.Event()

    def halt() -> None:
        stop()
        if enough.is_set():
            raise Unanswered

    with _process(arguments, directory, subprocess.PIPE) as process:
        feeder = threading.Thread(target=_feed, args=(process.stdin, request, paths, halt), daemon=True)
        feeder.start()
        try:
            for line in _lines(process.stdout, stop):
                yield _own_match(json.loads(line), pattern)
        finally:
            enough.set()
            process.kill()
            feeder.join()  # it walks the directory, which the caller is about to close
        if process.wait() > 0:
            raise ToolError("The search ended before its time", hint="Search a smaller part, or with another pattern.")


def _own_match(told: list[Any] | dict[str, str], pattern: str) -> Match:
    """A match as the matcher tells it.

    Raises:
        ToolError: It tells that the pattern isn't one.
    """
    if isinstance(told, dict):
        raise ToolError(
            f"The pattern isn't a regular expression: {told['error']}",
            hint=f"To look for this very text, escape it: {re.escape(pattern)[:500]}",
        )
    return Match(*told)


def _match(data: dict[str, Any]) -> Match:
    """A match as ripgrep tells it."""
    raw = _raw(data["lines"])
    text = raw.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
    column = len(raw[: data["submatches"][0]["start"]].decode("utf-8", "replace"))
    return Match(os.fsdecode(_raw(data["path"])).removeprefix("./"), data["line_number"], column, text)


def _raw(told: dict[str, str]) -> bytes:
    """Ripgrep's text or bytes."""
    return told["text"].encode() if "text" in told else base64.b64decode(told["bytes"])


@contextmanager
def _process(arguments: Sequence[str], directory: int, stdin: int | None) -> Iterator[subprocess.Popen[bytes]]:
    """A process in an open directory, ended in any case."""
    here = f"/proc/self/fd/{directory}" if os.path.isdir("/proc/self/fd") else _path_of(directory)
    try:
        process = subprocess.Popen(
            arguments,
            cwd=here,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        raise Unanswered from error
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def _path_of(directory: int) -> str:
    """The path of an open directory, on systems without /proc (macOS)."""
    import fcntl

    # F_GETPATH, which fcntl names from Python 3.9 on macOS only.
    return os.fsdecode(fcntl.fcntl(directory, getattr(fcntl, "F_GETPATH", 50), bytes(1024)).rstrip(b"\0"))


def _lines(stream: IO[bytes] | None, stop: Callable[[], None]) -> Iterator[bytes]:
    """The lines of a pipe as they come, with a look at `stop` between."""
    import selectors

    if stream is None:
        return
    pieces: list[bytes] = []
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            stop()
            if not selector.select(TICK):
                continue
            chunk = os.read(stream.fileno(), 262_144)
            if not chunk:
                return
            *whole, rest = chunk.split(b"\n")
            for line in whole:
                yield b"".join([*pieces, line])
                pieces = []
            pieces.append(rest)


def _feed(stream: IO[bytes], request: bytes, paths: Paths, halt: Callable[[], None]) -> None:
    """Give the process its request and the paths; when it or the time is gone there is nothing more to give."""
    with suppress(Exception), stream:
        stream.write(request)
        for path in paths(halt):
            stream.write(os.fsencode(path) + b"\0")


def _python() -> str:
    if not sys.executable:
        raise ToolError("The search needs ripgrep or a Python interpreter, and found neither")
    return sys.executable


def _program() -> str:
    """The source of the matcher, which is given to the interpreter as it is."""
    import pkgutil

    return (pkgutil.get_data(__package__ or "", "matcher.py") or b"").decode()
