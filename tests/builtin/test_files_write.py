"""write_file and the transaction under it: whole or not at all, and like what was there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from mibyan import ToolError
from mibyan_builtin.files import transaction, write_file


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_new_file_is_made_with_its_parents(context, workspace: Path) -> None:
    """Missing directories are made; the mode is the usual one."""
    answer = write_file(context, "a/b/c.txt", "hello\n")
    assert (workspace / "a/b/c.txt").read_text() == "hello\n"
    assert answer == {"path": str((workspace / "a/b/c.txt").resolve()), "created": True, "bytes": 6, "lines": 1}
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((workspace / "a/b/c.txt").stat().st_mode) == 0o666 & ~umask


def test_a_file_keeps_its_mode(context, workspace: Path) -> None:
    """What is replaced keeps its permissions, but never the right to run as its owner."""
    script = workspace / "run.sh"
    script.write_text("old")
    for mode, kept in [(0o755, 0o755), (0o600, 0o600), (0o4755, 0o755)]:
        script.chmod(mode)
        answer = write_file(context, "run.sh", "new")
        assert stat.S_IMODE(script.stat().st_mode) == kept
        assert answer["created"] is False


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "x\r\ny\n", b"x\r\ny\n"),
        (b"a\r\nb\n", "x\n", b"x\n"),
        (b"\xef\xbb\xbfa\n", "x\n", b"\xef\xbb\xbfx\n"),
        ("\ufeffa\r\n".encode("utf-16-le"), "é\n", "\ufeffé\r\n".encode("utf-16-le")),
        (b"\x89PNG\0", "x\n", b"x\n"),
        (b"", "", b""),
        (b"x", "ﷺ\n", "ﷺ\n".encode()),
    ],
)
def test_a_file_keeps_its_style(context, workspace: Path, before: bytes, content: str, after: bytes) -> None:
    """Encoding, byte order mark and uniform line endings stay; line endings that are sent count as they are."""
    (workspace / "f").write_bytes(before)
    write_file(context, "f", content)
    assert (workspace / "f").read_bytes() == after


def test_a_link_is_followed_within_the_workspace(context, workspace: Path) -> None:
    """The file a link leads to is written and the link stays; a link out is refused."""
    (workspace / "real.txt").write_text("old")
    (workspace / "link").symlink_to("real.txt")
    (workspace / "new_link").symlink_to("made.txt")
    (workspace / "out").symlink_to(workspace.parent / "outside.txt")
    write_file(context, "link", "new")
    write_file(context, "new_link", "made")
    assert (workspace / "link").is_symlink()
    assert ((workspace / "real.txt").read_text(), (workspace / "made.txt").read_text()) == ("new", "made")
    with pytest.raises(ToolError, match="outside"):
        write_file(context, "out", "x")
    assert (workspace.parent / "outside.txt").read_text() == "not yours\n"


def test_what_isnt_a_file_isnt_written(context, workspace: Path) -> None:
    """Directories, the workspace itself and FIFOs are refused at once."""
    (workspace / "d").mkdir()
    os.mkfifo(workspace / "fifo")
    for path, kind in [
        ("d", "directory"),
        (".", "directory"),
        ("fifo", "named pipe"),
        ("d/../fifo/x", "not a directory"),
    ]:
        with pytest.raises(ToolError, match=kind):
            write_file(context, path, "x")
    assert names(workspace) == ["d", "fifo"]


def test_half_a_character_isnt_written(context, workspace: Path) -> None:
    """Text that can't be encoded is refused before anything is made."""
    with pytest.raises(ToolError, match=r"U\+D800"):
        write_file(context, "new/f", "ab\ud800")
    assert names(workspace) == []


@pytest.mark.parametrize("step", ["open", "fsync", "replace", "fchmod"])
def test_a_failure_leaves_everything_as_it_was(
    context, workspace: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Whatever the operating system refuses: the old file is whole, and nothing of ours is left."""
    (workspace / "f").write_text("old")
    real = os.open

    def refuse(*args, **kwargs):
        if step == "open" and not (len(args) > 1 and args[1] & os.O_CREAT):
            return real(*args, **kwargs)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(transaction.os, step, refuse)
    with pytest.raises(ToolError, match="No space is left on the device for f"):
        write_file(context, "f", "new")
    monkeypatch.undo()
    assert (workspace / "f").read_text() == "old"
    assert names(workspace) == ["f"]


def test_made_directories_go_with_the_failure(context, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories that were made for a file that couldn't be written are removed again."""

    def refuse(*args, **kwargs):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(transaction.os, "replace", refuse)
    with pytest.raises(ToolError, match="Input/output error"):
        write_file(context, "a/b/f", "new")
    monkeypatch.undo()
    assert names(workspace) == []


def test_an_interrupt_leaves_everything_as_it_was(context, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KeyboardInterrupt leaves the tool, and no half-written file stays."""
    (workspace / "f").write_text("old")

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(transaction.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_file(context, "f", "new")
    monkeypatch.undo()
    assert (workspace / "f").read_text() == "old"
    assert names(workspace) == ["f"]


def test_somebody_elses_change_isnt_overwritten(context, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that changed between the look at it and the writing is left alone."""
    (workspace / "f").write_text("old")
    real = os.fsync

    def meanwhile(descriptor):
        (workspace / "f").write_text("theirs, longer")
        real(descriptor)

    monkeypatch.setattr(transaction.os, "fsync", meanwhile)
    with pytest.raises(ToolError, match="changed by somebody else") as refusal:
        write_file(context, "f", "mine")
    assert refusal.value.retryable
    assert (workspace / "f").read_text() == "theirs, longer"
    assert names(workspace) == ["f"]


def test_a_longest_name_can_be_written(context, workspace: Path) -> None:
    """The name under which new content waits isn't longer than a name may be."""
    for name in ("n" * 255, "é" * 127):
        write_file(context, name, "x")
        assert (workspace / name).read_text() == "x"
    with pytest.raises(ToolError, match="too long"):
        write_file(context, "n" * 256, "x")


def test_a_read_only_file_stays(context, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without write permission isn't replaced although its directory would allow it."""
    (workspace / "f").write_text("old")
    (workspace / "f").chmod(0o444)
    if os.geteuid() == 0:  # who may write everything
        monkeypatch.setattr(transaction.os, "access", lambda *args, **kwargs: False)
    with pytest.raises(ToolError, match="read-only") as refusal:
        write_file(context, "f", "new")
    assert "-r--r--r--" in (refusal.value.hint or "")
    assert (workspace / "f").read_text() == "old"
