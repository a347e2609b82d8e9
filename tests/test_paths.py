"""Paths: the home, the project, and files that are read and written whole or not at all."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.errors import MibyanError
from mibyan.paths import as_path, file_lock, find_project, mibyan_home, read_bytes, read_text, write_atomic


def loop(path: Path) -> Path:
    path.symlink_to(path)
    return path


def fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def below_a_file(path: Path) -> Path:
    path.write_text("")
    return path / "below"


#: What can stand in a file's place, and what the message says about it.
NOT_FILES = [
    pytest.param(loop, "symbolic links", id="loop"),
    pytest.param(fifo, "pipe, a socket or a device", id="fifo"),
    pytest.param(folder, "directory", id="folder"),
    pytest.param(below_a_file, "not a directory", id="below-a-file"),
    pytest.param(lambda _: Path("/dev/zero"), "pipe, a socket or a device", id="device"),
    pytest.param(lambda path: Path(f"{path}\0x"), "NUL character", id="nul"),
]


class TestHome:
    @pytest.mark.parametrize(
        ("given_home", "variable", "expected"),
        [
            (None, None, "{user}/.mibyan"),
            (None, "", "{user}/.mibyan"),
            (None, "/opt/m", "/opt/m"),
            (None, "~/m", "{user}/m"),
            (None, "m/../n", "{cwd}/n"),
            ("/x", "/opt/m", "/x"),
            ("", "/opt/m", "{cwd}"),
            (Path("rel"), None, "{cwd}/rel"),
        ],
    )
    def test_order(self, given_home, variable, expected, monkeypatch, own_home, tmp_path):
        """The argument wins over MIBYAN_HOME, which wins over ~/.mibyan; the answer is absolute."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("MIBYAN_HOME")
        if variable is not None:
            monkeypatch.setenv("MIBYAN_HOME", variable)
        assert mibyan_home(given_home) == Path(expected.format(user=own_home, cwd=tmp_path))

    def test_creates_nothing(self, own_home):
        """Asking for the home makes no folder."""
        assert not mibyan_home().exists()
        assert list(own_home.iterdir()) == []

    def test_without_user(self, monkeypatch):
        """An empty HOME isn't the root of the file system: a sentence says what to set."""
        monkeypatch.delenv("MIBYAN_HOME")
        monkeypatch.setenv("HOME", "")
        with pytest.raises(MibyanError, match="MIBYAN_HOME"):
            mibyan_home()

    @pytest.mark.parametrize("bad", [5, b"/x", "a\0b", "~nobody-by-this-name/x"])
    def test_bad_home(self, bad):
        """What isn't a path, or can't be resolved, is a MibyanError."""
        with pytest.raises(MibyanError):
            mibyan_home(bad)

    def test_vanished_working_directory(self, tmp_path, monkeypatch):
        """A relative home in a deleted working directory is an error, not a traceback."""
        gone = folder(tmp_path / "gone")
        monkeypatch.chdir(gone)
        gone.rmdir()
        with pytest.raises(MibyanError, match="working directory is gone"):
            mibyan_home("x")


class TestProject:
    def test_nearest(self, tmp_path):
        """The nearest folder at or above that has .mibyan is the project."""
        inner = tmp_path / "a" / "b"
        for place in (tmp_path / "a", inner):
            (place / ".mibyan").mkdir(parents=True)
        (inner / "c").mkdir()
        home = tmp_path / "home"
        assert find_project(inner / "c", home) == inner
        assert find_project(inner, home) == inner
        assert find_project(tmp_path / "a", home) == tmp_path / "a"

    def test_home_is_no_project(self, tmp_path):
        """api, Command line: the folder whose .mibyan is the home isn't a project; the search goes on above it."""
        user = tmp_path / "outer" / "user"
        (user / ".mibyan").mkdir(parents=True)
        (user / "work").mkdir()
        assert find_project(user / "work", user / ".mibyan") is None
        (tmp_path / "outer" / ".mibyan").mkdir()
        assert find_project(user / "work", user / ".mibyan") == tmp_path / "outer"

    def test_home_through_links(self, tmp_path):
        """The home is recognised by what links lead to, either way round."""
        real = folder(tmp_path / "real")
        user = folder(tmp_path / "user")
        (user / ".mibyan").symlink_to(real)
        assert find_project(user, real) is None
        (tmp_path / "alias").symlink_to(real)
        assert find_project(user, tmp_path / "alias") is None

    def test_a_file_is_no_project(self, tmp_path):
        """A file called .mibyan doesn't make a project."""
        (tmp_path / ".mibyan").write_text("")
        assert find_project(tmp_path, tmp_path / "home") is None

    def test_missing_start(self, tmp_path):
        """A start that doesn't exist belongs to the project it would be in."""
        (tmp_path / ".mibyan").mkdir()
        assert find_project(tmp_path / "no" / "such", tmp_path / "home") == tmp_path


class TestGiven:
    @pytest.mark.parametrize(
        ("given_path", "expected"),
        [("a/b", "a/b"), (Path("a"), "a"), ("~", "{user}"), ("~/x", "{user}/x"), ("./~x", "./~x"), ("", ".")],
    )
    def test_paths(self, given_path, expected, tmp_path, monkeypatch):
        """Text and path objects are paths; `~` is the user's home."""
        monkeypatch.setenv("HOME", str(tmp_path))
        assert as_path(given_path, "cwd") == Path(expected.format(user=tmp_path))

    @pytest.mark.parametrize("value", [None, 3, True, b"x", [], {}, str, float("nan")], ids=repr)
    def test_no_path(self, value):
        """What isn't a path is a TypeError that says what must be one."""
        with pytest.raises(TypeError, match=rf"^cwd must be a path .*, not {type(value).__name__}\.$"):
            as_path(value, "cwd")

    @pytest.mark.parametrize(("text", "said"), [("a\0b", "NUL character"), ("~no-such-user/x", "no such user")])
    def test_paths_that_cannot_be(self, text, said):
        """A text that can't be a path is a sentence."""
        with pytest.raises(MibyanError, match=said):
            as_path(text, "cwd")


class TestRead:
    @pytest.mark.parametrize(("make", "reason"), NOT_FILES)
    def test_not_a_file(self, make, reason, tmp_path):
        """What isn't a regular file is a sentence with its path; a FIFO is never waited for."""
        path = make(tmp_path / "x")
        with pytest.raises(MibyanError, match=reason) as caught:
            read_text(path)
        assert str(path) in str(caught.value)
        assert caught.value.hint

    def test_missing(self, tmp_path):
        """A missing file is a MibyanError that names it."""
        with pytest.raises(MibyanError, match=r"x: no such file"):
            read_text(tmp_path / "x")

    @pytest.mark.parametrize(
        ("content", "text"),
        [(b"", ""), (b"\xef\xbb\xbfa\r\nb\r", "a\r\nb\r"), ("é\U0001f600".encode(), "é\U0001f600")],
    )
    def test_text(self, content, text, tmp_path):
        """UTF-8 is read with its line ends as they are; a byte order mark is dropped."""
        (tmp_path / "x").write_bytes(content)
        assert read_text(tmp_path / "x") == text

    @pytest.mark.parametrize("content", [b"ok\ncaf\xe9\n", b"ok\n\xff\xfeb\x00", b"a\n\xed\xa0\x80"])
    def test_not_utf8(self, content, tmp_path):
        """Latin-1, UTF-16 and encoded surrogates are refused with the line."""
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(MibyanError, match=r"x:2 isn't UTF-8"):
            read_text(tmp_path / "x")

    def test_limit(self, tmp_path):
        """A file of the limit is read, one byte more is refused."""
        (tmp_path / "x").write_bytes(b"12345")
        assert read_bytes(tmp_path / "x", limit=5) == b"12345"
        with pytest.raises(MibyanError, match="larger than 4 bytes"):
            read_bytes(tmp_path / "x", limit=4)


class TestWrite:
    @given(content=st.binary() | st.text())
    def test_round_trip(self, content, tmp_path_factory):
        """What was written is what is there, byte by byte."""
        path = tmp_path_factory.mktemp("w") / "x"
        write_atomic(path, content)
        assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)

    def test_parents_are_made(self, tmp_path):
        """Missing folders above the file are made."""
        write_atomic(tmp_path / "a" / "b" / "x", "1")
        assert (tmp_path / "a" / "b" / "x").read_text() == "1"

    @pytest.mark.parametrize(
        ("old", "mode", "expected"),
        [(None, None, 0o640), (None, 0o600, 0o600), (0o604, None, 0o604), (0o644, 0o600, 0o600), (0o400, None, 0o400)],
    )
    def test_permissions(self, old, mode, expected, tmp_path):
        """An existing file keeps its mode, a new one gets what the umask leaves, an explicit mode wins."""
        path = tmp_path / "x"
        if old is not None:
            path.write_text("")
            path.chmod(old)
        code = f"import os; os.umask(0o027); from pathlib import Path; from mibyan.paths import write_atomic; write_atomic(Path({str(path)!r}), '1', mode={mode})"
        subprocess.run([sys.executable, "-c", code], check=True)
        assert stat.S_IMODE(path.stat().st_mode) == expected

    def test_link_stays(self, tmp_path):
        """A symbolic link stays; the file it points to is replaced, also when it doesn't exist yet."""
        (tmp_path / "dotfiles").mkdir()
        link = tmp_path / "x"
        link.symlink_to(Path("dotfiles") / "y")
        for content in ("1", "2"):
            write_atomic(link, content)
            assert link.is_symlink()
            assert (tmp_path / "dotfiles" / "y").read_text() == content

    @pytest.mark.parametrize(("make", "reason"), NOT_FILES)
    def test_not_a_file(self, make, reason, tmp_path):
        """What isn't a regular file is never replaced, and nothing is left beside it."""
        path = make(tmp_path / "x")
        before = sorted(tmp_path.iterdir())
        with pytest.raises(MibyanError, match=reason):
            write_atomic(path, "1")
        assert sorted(tmp_path.iterdir()) == before

    def test_unwritable_folder(self):
        """A folder in which nobody can make files is a sentence (root too: /proc)."""
        with pytest.raises(MibyanError, match="can't write /proc/mibyan-test/x"):
            write_atomic(Path("/proc/mibyan-test/x"), "1")

    @pytest.mark.parametrize("function", ["fsync", "replace", "fchmod"])
    @pytest.mark.parametrize("error", [OSError(28, "full"), KeyboardInterrupt()])
    def test_failure_leaves_the_old(self, function, error, tmp_path, monkeypatch):
        """Whatever fails on the way: the old content is there, and no temporary file."""
        path = tmp_path / "x"
        path.write_text("old")

        def fail(*_args: object) -> None:
            raise error

        monkeypatch.setattr(os, function, fail)
        with pytest.raises((MibyanError, KeyboardInterrupt)):
            write_atomic(path, "new")
        monkeypatch.undo()
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_long_name(self, tmp_path):
        """The longest name a file can have is written too."""
        path = tmp_path / ("ü" * 127)
        write_atomic(path, "1")
        assert path.read_text() == "1"

    def test_killed_writer_tears_nothing(self, tmp_path):
        """After kill -9 at any moment: the file has one of the contents, whole."""
        path = tmp_path / "x"
        write_atomic(path, "a" * 100_000)
        code = (
            "import sys, itertools; from pathlib import Path; from mibyan.paths import write_atomic\n"
            "print('on', flush=True)\n"
            "for c in itertools.cycle('ab'): write_atomic(Path(sys.argv[1]), c * 100_000)"
        )
        for _ in range(5):
            with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as process:
                process.stdout.readline()
                seen = {path.read_text() for _ in range(20)}
                process.send_signal(signal.SIGKILL)
            assert {*seen, path.read_text()} <= {"a" * 100_000, "b" * 100_000}


class TestLock:
    def test_excludes(self, tmp_path):
        """Two threads never hold one file's lock at once, and no increment is lost."""
        path = tmp_path / "n"
        path.write_text("0")

        def count() -> None:
            for _ in range(20):
                with file_lock(path):
                    path.write_text(str(int(path.read_text()) + 1))

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert path.read_text() == "80"

    def test_timeout(self, tmp_path):
        """A lock that stays held is an error after the timeout, with what to do."""
        with (
            file_lock(tmp_path / "x"),
            pytest.raises(MibyanError, match="locked by another process"),
            file_lock(tmp_path / "x", timeout=0),
        ):
            pass

    def test_released_after_an_error(self, tmp_path):
        """An exception inside releases the lock."""
        with pytest.raises(ZeroDivisionError), file_lock(tmp_path / "x"):
            raise ZeroDivisionError
        with file_lock(tmp_path / "x", timeout=0):
            pass

    def test_one_lock_behind_a_link(self, tmp_path):
        """A file and a symbolic link to it share one lock."""
        (tmp_path / "x").write_text("")
        (tmp_path / "y").symlink_to("x")
        with file_lock(tmp_path / "x"), pytest.raises(MibyanError), file_lock(tmp_path / "y", timeout=0):
            pass

    def test_ends_with_its_process(self, tmp_path):
        """A killed holder's lock is free at once."""
        code = "import sys; from pathlib import Path; from mibyan.paths import file_lock\nwith file_lock(Path(sys.argv[1])): print('on', flush=True); sys.stdin.read()"
        with subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "x")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            process.stdout.readline()
            with pytest.raises(MibyanError), file_lock(tmp_path / "x", timeout=0):
                pass
            process.kill()
        with file_lock(tmp_path / "x", timeout=0):
            pass

    def test_unwritable_folder(self):
        """A folder that can't be written to is a sentence, not a wait."""
        with pytest.raises(MibyanError, match="can't lock /proc/mibyan-test/x"), file_lock(Path("/proc/mibyan-test/x")):
            pass

    def test_folder_in_the_way(self, tmp_path):
        """A folder where the lock file should be is a sentence."""
        (tmp_path / "x.lock").mkdir()
        with pytest.raises(MibyanError, match=r"can't lock .*x\.lock: is a directory\n.*move it away"):
            file_lock(tmp_path / "x", timeout=0.1).__enter__()

    @pytest.mark.parametrize("change", [file_lock, lambda path: write_atomic(path, "x")], ids=["lock", "write"])
    @pytest.mark.parametrize(
        "home",
        [loop, fifo, lambda path: Path("/proc/mibyan-test"), below_a_file],
        ids=["loop", "fifo", "proc", "below-a-file"],
    )
    def test_what_to_do_where_no_folder_can_be(self, home, change, tmp_path):
        """A file in a place that can't be a folder is a sentence that ends with what to do."""
        with pytest.raises(MibyanError, match=r"can't (lock|write) .+: .+\n.+\.$") as caught, ExitStack() as stack:
            stack.enter_context(change(home(tmp_path / "home") / "config.yaml"))
        assert caught.value.hint
