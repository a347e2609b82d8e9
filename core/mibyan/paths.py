"""Where things are kept, and how files are read and written: whole or not at all.

Nothing here caches or creates anything at import; every function asks the file system when it is called.
"""
# os.path never raises on a loop of links, and does no more than it says; pathlib's answers differ by version.
# ruff: noqa: PTH100, PTH103, PTH105, PTH108, PTH111, PTH112, PTH116, PTH118, PTH120, PTH121, PTH123

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mibyan.errors import MibyanError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The folder of a project that is Mibyan's.
PROJECT_FOLDER = ".mibyan"

#: Seconds to wait for another process that holds a file's lock.
LOCK_TIMEOUT = 30.0


def is_set(name: str) -> bool:
    """Whether a variable is a yes: set, and to something that isn't a no."""
    return os.environ.get(name, "").strip().lower() not in {"", "0", "false", "no", "off"}


def mibyan_home(home: str | os.PathLike[str] | None = None) -> Path:
    """The profile's folder: `home`, else `$MIBYAN_HOME`, else `~/.mibyan`.

    Args:
        home: What the caller was told; relative to the working directory, `~` is the user's home.

    Returns:
        An absolute path. The folder may not exist yet.

    Raises:
        MibyanError: It can't be told where that is.
    """
    wanted = home if home is not None else os.environ.get("MIBYAN_HOME") or "~/.mibyan"
    if not isinstance(wanted, str | os.PathLike) or isinstance(os.fspath(wanted), bytes):
        raise MibyanError(f"the home folder must be a path, not {type(wanted).__name__}")
    return _absolute(os.fspath(wanted) or ".")


def as_path(value: object, what: str) -> Path:
    """A path that a host gave, `~` expanded.

    Args:
        value: Text or a path object.
        what: What the error calls it.

    Raises:
        TypeError: It is neither.
        MibyanError: It can't be a path, or its `~` isn't known.
    """
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        msg = f"{what} must be a path (text or a path object), not {type(value).__name__}."
        raise TypeError(msg)
    if "\0" in text:
        raise MibyanError(f"{what} {text!r} isn't a path: it has a NUL character.")
    expanded = os.path.expanduser(text)
    if expanded.startswith("~") and text.startswith("~"):
        hint = "Give an absolute path; for a name that really begins with `~`, put `./` before it."
        raise MibyanError(f"Can't tell where {text!r} is: there is no such user.", hint=hint)
    return Path(expanded)


def find_project(start: Path, home: Path) -> Path | None:
    """The project that `start` is in: the nearest folder at or above it that has a `.mibyan` folder.

    Args:
        start: Where to begin; symbolic links are followed first, as a shell's `pwd -P` does.
        home: The profile's folder: a `.mibyan` that is this one doesn't make a project.

    Returns:
        The folder that holds `.mibyan`, or `None`.
    """
    here = os.path.realpath(start)
    while True:
        candidate = os.path.join(here, PROJECT_FOLDER)
        if os.path.isdir(candidate) and not _is_same(candidate, home):
            return Path(here)
        above = os.path.dirname(here)
        if above == here:
            return None
        here = above


def read_bytes(path: Path, *, limit: int | None = None) -> bytes:
    """The content of a regular file; a FIFO or a device is refused and never waited for.

    Args:
        path: The file; symbolic links are followed.
        limit: Bytes it may have at most.

    Raises:
        MibyanError: It doesn't exist, isn't a regular file, is too large or can't be read.
    """
    try:
        # Without O_NONBLOCK the opening of a FIFO waits for a writer that may never come.
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(number, "rb") as file:
            status = os.fstat(number)
            _require_regular(path, status.st_mode)
            content = file.read() if limit is None else file.read(limit + 1)
    except (OSError, ValueError) as error:
        raise _failure("read", path, error) from error
    if limit is not None and len(content) > limit:
        hint = "Is it the right file? Put it there, or make it smaller."
        raise MibyanError(f"{path} is larger than {limit:,} bytes", origin=str(path), hint=hint)
    return content


def read_text(path: Path, *, limit: int | None = None) -> str:
    """The text of a UTF-8 file, line ends as they are; a byte order mark at its start is dropped.

    Args:
        path: The file; symbolic links are followed.
        limit: Bytes it may have at most.

    Raises:
        MibyanError: As `read_bytes`, or it isn't UTF-8 (the message has the line).
    """
    return decode_text(read_bytes(path, limit=limit), path)


def decode_text(content: bytes, path: Path) -> str:
    """The text of a UTF-8 file's content; a byte order mark at its start is dropped.

    Raises:
        MibyanError: It isn't UTF-8 (the message has the line).
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise MibyanError(
            f"{path}:{line} isn't UTF-8 text (byte 0x{content[error.start]:02x})",
            origin=f"{path}:{line}",
            hint="Save the file as UTF-8.",
        ) from error


def write_atomic(path: Path, data: bytes | str, *, mode: int | None = None) -> None:
    """Replace or make a file so that a reader sees the old content or the new, never a part.

    The content reaches the disk before the name does. An existing file keeps its permissions and, where allowed,
    its owner; a symbolic link stays and the file it points to is replaced. Missing parent folders are made.

    Args:
        path: The file.
        data: The content; text is written as UTF-8, line ends as they are.
        mode: Permission bits; `None`: those of the existing file, else what the umask leaves of 0666.

    Raises:
        MibyanError: It can't be written; the old content is still there, and nothing else is.
    """
    content = data.encode("utf-8") if isinstance(data, str) else data
    try:
        target = os.path.realpath(path)
        old = _status(target)
        if old is not None:
            _require_regular(path, old.st_mode)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _replace(target, content, mode, old)
    except (OSError, ValueError) as error:
        raise _failure("write", path, error) from error


@contextmanager
def file_lock(path: Path, *, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
    """Hold the lock of a file that several processes and threads read, change and write.

    The lock is a file of its own, `<path>.lock`, beside the one it is for (behind a symbolic link: beside its target);
    it stays. The lock ends with its process, however that ends. It isn't reentrant.

    Args:
        path: The file that is going to be changed; it needn't exist.
        timeout: Seconds to wait for another holder.

    Raises:
        MibyanError: Somebody holds it for longer, or the folder can't be written to.
    """
    from filelock import FileLock, Timeout

    # The file that is said to be in the way is the lock's own, not the one it is for.
    lock_path = f"{path}.lock"
    try:
        lock_path = os.path.realpath(path) + ".lock"
        os.makedirs(os.path.dirname(lock_path), exist_ok=True)
        lock = FileLock(lock_path)
        lock.acquire(timeout=timeout)
    except Timeout as error:
        message = f"{path} has been locked by another process for {timeout:g} s"
        raise MibyanError(message, origin=str(path), hint="Wait for it to end, or end it, and try again.") from error
    except (OSError, ValueError, NotImplementedError) as error:
        raise _failure("lock", Path(lock_path), error) from error
    try:
        yield
    finally:
        lock.release()


def _absolute(text: str) -> Path:
    """`text` as an absolute path, with `~` expanded."""
    if "\0" in text:
        raise MibyanError(f"the home folder {text!r} isn't a path: it has a NUL character")
    expanded = os.path.expanduser(text)
    # With an empty HOME, `~` would come out as the root of the file system.
    without_home = os.environ.get("HOME") == "" and os.name == "posix" and text.split("/", maxsplit=1)[0] == "~"
    if expanded.startswith("~") or without_home:
        raise MibyanError(
            f"can't tell where {text!r} is: the user's home folder isn't known",
            hint="Set HOME, or MIBYAN_HOME to the folder to use, or pass --home DIR.",
        )
    try:
        return Path(os.path.abspath(expanded))
    except OSError as error:
        raise MibyanError(
            f"can't tell where {text!r} is: the working directory is gone",
            hint="Change to a folder that exists, or pass an absolute path.",
        ) from error


def _is_same(folder: str, home: Path) -> bool:
    """Whether both are one folder, by name or by identity."""
    if os.path.realpath(folder) == os.path.realpath(home):
        return True
    with suppress(OSError, ValueError):
        return os.path.samefile(folder, home)
    return False


def _status(target: str) -> os.stat_result | None:
    """The status of a file, `None` when there is none.

    Raises:
        OSError: It can't be told (a loop of links, a folder that can't be searched).
    """
    try:
        return os.stat(target)
    except FileNotFoundError:
        return None


def _require_regular(path: Path, mode: int) -> None:
    """Raise `OSError` or `ValueError` unless `mode` is a regular file's."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise ValueError("it is a pipe, a socket or a device, not a file")


def _replace(target: str, content: bytes, mode: int | None, old: os.stat_result | None) -> None:
    """Write `content` beside `target` and rename it into place; on any failure nothing is left behind."""
    folder, name = os.path.split(target)
    # Fifty characters are two hundred bytes at most: the name stays under the file system's limit.
    temporary = os.path.join(folder, f".{name[:50]}.{os.urandom(8).hex()}.tmp")
    # Private until the right permissions are set.
    first_mode = 0o666 if mode is None and old is None else 0o600
    try:
        number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), first_mode)
        with open(number, "wb") as file:
            _take_over(number, mode, old)
            file.write(content)
            file.flush()
            os.fsync(number)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _take_over(number: int, mode: int | None, old: os.stat_result | None) -> None:
    """Give an open file the owner of `old`, where allowed, and the permissions it shall have."""
    if not hasattr(os, "fchown"):  # Windows
        return
    if old is not None and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(OSError):
            os.fchown(number, old.st_uid, old.st_gid)
    wanted = mode if mode is not None else old and stat.S_IMODE(old.st_mode)
    if wanted is not None:
        os.fchmod(number, wanted)


def _sync_folder(folder: str) -> None:
    """Make a rename in `folder` last through a power cut, where the system can."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


#: What to do about the errors that people meet.
_HINTS: Final[dict[int, str]] = {
    errno.EACCES: "Check the permissions of the file and of the folders above it.",
    errno.EPERM: "Check the permissions of the file and of the folders above it.",
    errno.EROFS: "The file system is read-only; use another folder (MIBYAN_HOME, --home).",
    errno.ENOSPC: "The disk is full; make room and try again.",
    errno.EDQUOT: "The disk quota is used up; make room and try again.",
    errno.ELOOP: "The path is a loop of symbolic links; replace the link by the file.",
    errno.EISDIR: "There is a folder where the file should be; move it away.",
    errno.ENOTDIR: "A part of the path is a file, not a folder.",
    errno.EEXIST: "A part of the path is a file or a broken link, not a folder.",
    errno.ENAMETOOLONG: "Use a shorter path.",
}
#: What to do about the others.
_ANOTHER: Final = {
    "read": "Look what is there, and put a file that can be read in its place.",
    "write": "Use another folder (MIBYAN_HOME, --home), or mend this one.",
    "lock": "Use another folder (MIBYAN_HOME, --home), or mend this one.",
}


def _failure(verb: str, path: Path, error: Exception) -> MibyanError:
    """The error a person sees when the operating system refuses."""
    number = getattr(error, "errno", None)
    # Python's own words for a NUL differ by version.
    said = "a path can't have a NUL character" if "\0" in str(path) else str(error)
    why = os.strerror(number).lower() if isinstance(number, int) else said
    hint = (_HINTS.get(number) if isinstance(number, int) else None) or _ANOTHER[verb]
    return MibyanError(f"can't {verb} {path}: {why}", origin=str(path), hint=hint)
