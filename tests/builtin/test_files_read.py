"""read_file: bounded, exact, and clear about what isn't text."""

from __future__ import annotations

import errno
import json
import os
import socket
from pathlib import Path

import pytest

from mibyan import ToolError
from mibyan_builtin import files
from mibyan_builtin.files import opening, read_file, reading

REAL = os.open


def test_a_small_file_is_read_as_it_is(context, workspace: Path) -> None:
    """The answer has the text, its lines and that nothing is missing."""
    (workspace / "f").write_text("one\ntwo\n")
    answer = read_file(context, "f")
    assert answer == {
        "path": str((workspace / "f").resolve()), "content": "one\ntwo\n", "first_line": 1, "last_line": 2,
        "total_lines": 2, "truncated": False, "size": 8,
    }  # fmt: skip


def test_an_empty_file_has_no_lines(context, workspace: Path) -> None:
    """An empty file is text."""
    (workspace / "f").touch()
    answer = read_file(context, "f")
    assert (answer["content"], answer["total_lines"], answer["truncated"]) == ("", 0, False)


@pytest.mark.parametrize(
    ("offset", "limit", "content", "truncated", "next_offset"),
    [
        (1, 3, "1\n2\n3\n", True, 4),
        (4, 3, "4\n5\n6\n", True, 7),
        (9, 5, "9\n10", False, None),
        (10, 1, "10", False, None),
    ],
)
def test_a_part_is_read_by_lines(context, workspace: Path, offset, limit, content, truncated, next_offset) -> None:
    """Offset and limit count lines from 1, and the answer says where to read on."""
    (workspace / "f").write_text("\n".join(map(str, range(1, 11))))
    answer = read_file(context, "f", offset, limit)
    assert (answer["content"], answer["truncated"]) == (content, truncated)
    assert answer.get("next_offset") == next_offset
    assert answer["total_lines"] == 10


@pytest.mark.parametrize(
    ("offset", "limit", "message"),
    [(0, 10, "from 1; got 0"), (-1, 10, "got -1"), (1, 0, "got 0"), (1, 2001, "got 2001"), (4, 1, "has 3 lines")],
)
def test_a_range_that_is_none_gets_a_sentence(context, workspace: Path, offset, limit, message) -> None:
    """Line numbers that can't be are told with the limits."""
    (workspace / "f").write_text("1\n2\n3\n")
    with pytest.raises(ToolError, match=message):
        read_file(context, "f", offset, limit)


def test_a_long_line_is_cut(context, workspace: Path) -> None:
    """A line over the limit is cut and says by how much; the lines after it keep their numbers."""
    (workspace / "f").write_text("x" * (reading.MAX_LINE + 5) + "\nshort\n" + "y" * (reading.MAX_LINE + 1))
    first, second, third = read_file(context, "f")["content"].splitlines()
    assert first == "x" * reading.MAX_LINE + " … [5 more characters in this line]"
    assert second == "short"
    assert third.endswith("[1 more characters in this line]")
    assert read_file(context, "f")["truncated"]
    (workspace / "g").write_text("x" * reading.MAX_LINE + "\n")
    assert not read_file(context, "g")["truncated"]


def test_a_large_file_is_read_in_parts(context, workspace: Path) -> None:
    """Characters are bounded as JSON counts them; reading on from next_offset gives every line once."""
    lines = [f"{i} " + '"\\' * 250 for i in range(500)]
    (workspace / "f").write_text("\n".join(lines) + "\n")
    seen, offset = "", 1
    while offset:
        answer = read_file(context, "f", offset, 2000)
        assert len(json.dumps(answer)) < files.MAX_CHARACTERS + 2 * reading.MAX_LINE
        seen += answer["content"]
        offset = answer.get("next_offset")
    assert seen.splitlines() == lines


def test_a_huge_file_isnt_counted_to_its_end(context, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the limit the number of lines is left out instead of read for."""
    monkeypatch.setattr(reading, "COUNTED", 100)
    (workspace / "f").write_text("line\n" * 100)
    answer = read_file(context, "f", 1, 10)
    assert "total_lines" not in answer
    assert (answer["truncated"], answer["next_offset"]) == (True, 11)


def test_a_long_read_stops_with_the_call(make_context, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who has cancelled the call isn't read for any more."""
    monkeypatch.setattr(reading, "PATIENCE", 10)
    (workspace / "f").write_text("line\n" * 100)
    with pytest.raises(ToolError, match="cancelled"):
        read_file(make_context(cancelled=lambda: True), "f")


@pytest.mark.parametrize(
    ("data", "content", "extra"),
    [
        ("é ﷺ שלום 🌦\n".encode(), "é ﷺ שלום 🌦\n", {}),
        (b"\xef\xbb\xbfa\n", "a\n", {"encoding": "utf-8 with a byte order mark"}),
        ("\ufeffa\nb".encode("utf-16-le"), "a\nb", {"encoding": "utf-16-le with a byte order mark"}),
        ("\ufeffa\nb".encode("utf-16-be"), "a\nb", {"encoding": "utf-16-be with a byte order mark"}),
        ("\ufeffa\nb".encode("utf-32-le"), "a\nb", {"encoding": "utf-32-le with a byte order mark"}),
        (b"a\r\nb\r\nc", "a\nb\nc", {"line_endings": "crlf"}),
        (b"a\r\nb\n", "a\r\nb\n", {}),
        (b"a\rb\n", "a\rb\n", {}),
        ("a\u2028b\x0cc\x85d\n".encode(), "a\u2028b\x0cc\x85d\n", {}),
    ],
)
def test_text_of_many_kinds_is_read(context, workspace: Path, data: bytes, content: str, extra: dict) -> None:
    """UTF-8 and what a byte order mark says are text; only a line feed ends a line."""
    (workspace / "f").write_bytes(data)
    answer = read_file(context, "f")
    assert answer["content"] == content
    assert {key: answer.get(key) for key in ("encoding", "line_endings") if key in answer} == extra


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x89PNG\r\n\x1a\n", "binary file, a PNG image"),
        (b"abc\0def", "binary file"),
        (b"caf\xe9\n", "isn't utf-8 text: byte 0xe9 in line 1"),
        (b"ok\nna\xefve\n", "line 2"),
        (b"\xff\xfea", "isn't utf-16-le text"),
    ],
)
def test_what_isnt_text_is_told(context, workspace: Path, data: bytes, message: str) -> None:
    """Binary files and unknown encodings are named, never shown as something else."""
    (workspace / "f").write_bytes(data)
    with pytest.raises(ToolError, match=message):
        read_file(context, "f")


def test_what_isnt_a_file_is_refused_at_once(context, workspace: Path) -> None:
    """FIFOs, sockets, devices and directories are refused without waiting for anything."""
    os.mkfifo(workspace / "fifo")
    (workspace / "d/sub").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(workspace)  # a socket's path has to be short
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        for path, kind in [("fifo", "named pipe"), ("socket", "socket")]:
            with pytest.raises(ToolError, match=kind):
                read_file(context, path)
    with pytest.raises(ToolError, match="directory") as refusal:
        read_file(context, "d")
    assert "sub" in (refusal.value.hint or "")


def test_a_device_is_refused(make_context) -> None:
    """A device isn't even opened."""
    with pytest.raises(ToolError, match="a device"):
        read_file(make_context(roots=["/dev"]), "/dev/zero")


def test_a_missing_file_brings_a_suggestion(context, workspace: Path) -> None:
    """What is there instead is suggested, in the directory where the way ended."""
    (workspace / "src").mkdir()
    (workspace / "src/config.yaml").touch()
    for path, suggestion in [("src/confg.yaml", "config.yaml"), ("scr/config.yaml", "src")]:
        with pytest.raises(ToolError, match="File not found") as refusal:
            read_file(context, path)
        assert suggestion in (refusal.value.hint or "")


def test_an_unreadable_file_gets_a_sentence(context, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Permissions are the operating system's to decide, and are told."""
    (workspace / "f").write_text("x")

    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(
        opening.os, "open", lambda name, *rest, **kw: refuse() if name == "f" else REAL(name, *rest, **kw)
    )
    with pytest.raises(ToolError, match="Permission denied: f"):
        read_file(context, "f")


def test_a_file_without_a_size_is_read(make_context) -> None:
    """Files of /proc say that they are empty and aren't."""
    if not Path("/proc/self/status").exists():
        pytest.skip("there is no /proc here")
    assert "Name:" in read_file(make_context(roots=["/proc"]), f"/proc/{os.getpid()}/status")["content"]
