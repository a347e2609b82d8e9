"""The files of `$MIBYAN_HOME/cache` (architecture, "What is heavy is lazy"): never an error, never an authority."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan import filecache
from mibyan.filecache import CacheFile, StampedCache, stamp, stamp_of

POSIX = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def cache_file(home: Path, shape: str = "test 1") -> CacheFile:
    return CacheFile(home / "cache" / "things.bin", shape)


def settled(path: Path) -> Any:
    """The file's stamp, once it has one."""
    while (now := stamp(path)) is None:
        time.sleep(0.001)
    return now


# The file -----------------------------------------------------------------------------------------------------------

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(PLAIN)
def test_a_value_comes_back_equal(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    file = cache_file(tmp_path_factory.mktemp("home"))
    assert file.write(value)
    assert file.read() == value


def test_lone_surrogates_and_deep_values(home: Path) -> None:
    """What JSON text can't hold is kept too; what marshal can't is not, and that is no error."""
    file = cache_file(home)
    assert file.write({"\ud800": "\udfff"})
    assert file.read() == {"\ud800": "\udfff"}
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert not file.write(deep)
    assert not file.write(object())
    assert file.read() == {"\ud800": "\udfff"}


@given(st.integers(0, 10_000), st.integers(0, 255), st.booleans())
def test_a_damaged_file_is_an_empty_one(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int, cut: bool
) -> None:
    """Any byte changed or the end missing: nothing of it reaches `marshal`."""
    home = tmp_path_factory.mktemp("home")
    file, path = cache_file(home), home / "cache" / "things.bin"
    file.write({"a": [1, 2.5, "x" * 50], "b": b"\0\1"})
    whole = path.read_bytes()
    at %= len(whole)
    damaged = whole[:at] if cut else whole[:at] + bytes([byte]) + whole[at + 1 :]
    path.write_bytes(damaged)
    assert file.read() == ({"a": [1, 2.5, "x" * 50], "b": b"\0\1"} if damaged == whole else None)


def test_another_shape_or_version_is_an_empty_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_file(home).write([1])
    assert cache_file(home, "test 2").read() is None
    assert cache_file(home, "test").read() is None
    assert cache_file(home).read() == [1]
    monkeypatch.setattr(filecache, "__version__", "0.0.0.other")
    assert cache_file(home).read() is None
    assert cache_file(home).write([2])
    assert cache_file(home).read() == [2]


def test_nothing_is_made_for_a_home_that_isnt_there(home: Path) -> None:
    assert not cache_file(home / "absent").write(1)
    assert not (home / "absent").exists()


@POSIX
def test_what_others_may_write_is_not_read(home: Path) -> None:
    """A file that a group or everybody may write to is nobody's word; writing makes it private again."""
    file, path = cache_file(home), home / "cache" / "things.bin"
    assert file.write(1)
    assert path.stat().st_mode & 0o777 == 0o600
    for mode in (0o620, 0o602, 0o666):
        path.chmod(mode)
        assert file.read() is None
    assert file.write(2)
    assert path.stat().st_mode & 0o777 == 0o600
    assert file.read() == 2


@POSIX
def test_what_somebody_else_owns_is_not_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root isn't an exception: what root left in a user's home is root's, and the other way round."""
    file, path = cache_file(home), home / "cache" / "things.bin"
    assert file.write(1)
    mine = os.geteuid()
    if mine == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert file.read() is None


@POSIX
def test_neither_a_link_nor_a_pipe_nor_a_folder_is_read(home: Path) -> None:
    """A link to another file isn't followed and writing replaces it; a pipe isn't waited for."""
    file, path, elsewhere = cache_file(home), home / "cache" / "things.bin", home / "elsewhere"
    assert file.write(1)
    path.rename(elsewhere)
    before = elsewhere.read_bytes()
    path.symlink_to(elsewhere)
    assert file.read() is None
    assert file.write(2)
    assert not path.is_symlink()
    assert (file.read(), elsewhere.read_bytes()) == (2, before)
    path.unlink()
    os.mkfifo(path)
    assert file.read() is None
    path.unlink()
    path.mkdir()
    assert file.read() is None
    assert not file.write(3)
    assert [entry.name for entry in path.parent.iterdir()] == ["things.bin"]


def test_a_read_only_home_is_no_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that can't be written to: the old value stays, and can be read."""
    file = cache_file(home)
    assert file.write(1)

    def refuse(path: Any, flags: int, *rest: Any, real: Any = os.open) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, "Read-only file system", path)
        return real(path, flags, *rest)

    with monkeypatch.context() as patched:  # what removes the test's folder opens it too
        patched.setattr(os, "open", refuse)
        assert not file.write(2)
        assert file.read() == 1


def test_a_file_where_the_folder_should_be_is_no_error(home: Path) -> None:
    (home / "cache").write_text("")
    assert not cache_file(home).write(1)
    assert cache_file(home).read() is None


def test_readers_see_a_whole_value_whoever_writes(home: Path) -> None:
    """Several writers at once: a reader gets what one of them wrote, never a part, never a mixture."""
    stop, seen = threading.Event(), set()

    def write(letter: str) -> None:
        while not stop.is_set():
            cache_file(home).write([letter] * 5_000)

    assert cache_file(home).write(["c"] * 5_000)
    writers = [threading.Thread(target=write, args=(letter,)) for letter in "ab"]
    for writer in writers:
        writer.start()
    try:
        for _ in range(200):
            value = cache_file(home).read()
            assert len(value) == 5_000
            assert len(set(value)) == 1
            seen.add(value[0])
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert seen & {"a", "b"}
    assert [entry.name for entry in (home / "cache").iterdir()] == ["things.bin"]


@POSIX
def test_a_writer_that_is_killed_leaves_the_old_value(home: Path) -> None:
    """`kill -9` in the midst of writing: the old value is whole, and what was left is swept up by a later writer."""
    file, folder = cache_file(home), home / "cache"
    assert file.write("old")
    code = (
        "import os, sys, signal; from mibyan import filecache\n"
        "write = os.write\n"
        "def half(descriptor, content):\n"
        "    write(descriptor, bytes(content)[:len(content) // 2])\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "filecache.os.write = half\n"
        "filecache.CacheFile(sys.argv[1], 'test 1').write('new' * 1000)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder / "things.bin")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert file.read() == "old"
    (left,) = folder.glob(".things.bin.*.tmp")
    assert file.write("newer")
    assert left.exists()  # its writer might still be alive
    os.utime(left, (0, 0))
    assert file.write("newest")
    assert [entry.name for entry in folder.iterdir()] == ["things.bin"]


# Stamps -------------------------------------------------------------------------------------------------------------


def test_an_edit_is_seen_whatever_its_size_and_time(tmp_path: Path) -> None:
    """The same size and the same time of change, set back on purpose: still another stamp."""
    path = tmp_path / "file"
    path.write_text("one")
    before, status = settled(path), path.stat()
    path.write_text("two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert settled(path) != before
    replacement = tmp_path / "other"
    replacement.write_text("six")
    os.utime(replacement, ns=(status.st_atime_ns, status.st_mtime_ns))
    between = settled(path)
    replacement.replace(path)
    assert settled(path) != between


def test_what_has_only_just_changed_has_no_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two changes within a tick of the clock can't be told apart, so nothing is kept of the first."""
    path = tmp_path / "file"
    path.write_text("one")
    at = path.stat().st_ctime_ns
    ages = {0: False, 19_999_999: False, 20_000_000: True, 10**12: True, -(10**12): True}
    for age, has_stamp in ages.items():
        monkeypatch.setattr(time, "time_ns", lambda age=age: at + age)
        assert (stamp_of(path.stat()) is not None) == has_stamp, age


def test_a_file_system_that_keeps_whole_seconds_is_given_two(monkeypatch: pytest.MonkeyPatch) -> None:
    status = os.stat_result(
        (0o100600, 1, 1, 1, 0, 0, 3, 50, 50, 50, 50.0, 50.0, 50.0, 50 * 10**9, 50 * 10**9, 50 * 10**9)
    )
    for age, has_stamp in {10**9: False, 2 * 10**9: True}.items():
        monkeypatch.setattr(time, "time_ns", lambda age=age: 50 * 10**9 + age)
        assert (stamp_of(status) is not None) == has_stamp


def test_a_file_from_the_future_has_a_stamp(tmp_path: Path) -> None:
    """Archives bring any time of change; only the time of status counts for whether it is fresh."""
    path = tmp_path / "file"
    path.write_text("one")
    os.utime(path, (2**33, 2**33))
    assert settled(path)[0] == 2**33 * 10**9


def test_what_isnt_there_has_no_stamp(tmp_path: Path) -> None:
    assert stamp(tmp_path / "absent") is None
    assert stamp("a\0b") is None


# Values by key and stamp --------------------------------------------------------------------------------------------


def test_a_value_is_good_for_its_stamp(home: Path) -> None:
    cache = StampedCache(cache_file(home))
    assert cache.look_up("a", (1, 1, 1), lambda: "first") == "first"
    assert cache.look_up("a", (1, 1, 1), lambda: "again") == "first"
    assert cache.look_up("a", (1, 2, 1), lambda: "second") == "second"
    cache.save()
    later = StampedCache(cache_file(home))
    assert later.look_up("a", (1, 2, 1), lambda: "third") == "second"
    assert later.look_up("a", (1, 1, 1), lambda: "fourth") == "fourth"


def test_without_a_stamp_nothing_is_kept(home: Path) -> None:
    cache = StampedCache(cache_file(home))
    assert [cache.look_up("a", None, lambda n=n: n) for n in (1, 2)] == [1, 2]
    cache.save()
    assert not (home / "cache").exists()


def test_what_raises_is_not_kept(home: Path) -> None:
    cache = StampedCache(cache_file(home))
    with pytest.raises(ZeroDivisionError):
        cache.look_up("a", 1, lambda: 1 / 0)
    assert cache.look_up("a", 1, lambda: 5) == 5


def test_what_others_have_written_meanwhile_stays(home: Path) -> None:
    """Two processes that begin with an empty cache and learn different things: the second keeps the first's too."""
    one, two = StampedCache(cache_file(home)), StampedCache(cache_file(home))
    one.look_up("a", 1, lambda: "one")
    two.look_up("b", 1, lambda: "two")
    one.save()
    two.save()
    third = StampedCache(cache_file(home))
    assert third.look_up("a", 1, lambda: "new") == "one"
    assert third.look_up("b", 1, lambda: "new") == "two"


def test_a_file_that_is_too_full_keeps_what_is_in_use(home: Path) -> None:
    first = StampedCache(cache_file(home), limit=3)
    for key in "abc":
        first.look_up(key, 1, lambda key=key: key)
    first.save()
    second = StampedCache(cache_file(home), limit=3)
    for key in "bd":
        second.look_up(key, 1, lambda key=key: key)
    second.save()
    assert cache_file(home).read() == {"b": (1, "b"), "d": (1, "d")}


def test_an_unchanged_cache_is_not_written(home: Path) -> None:
    first = StampedCache(cache_file(home))
    first.look_up("a", 1, lambda: 1)
    first.save()
    before = (home / "cache" / "things.bin").stat().st_ino
    again = StampedCache(cache_file(home))
    again.look_up("a", 1, lambda: 2)
    again.save()
    assert (home / "cache" / "things.bin").stat().st_ino == before
