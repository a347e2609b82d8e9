"""Unpacking a stranger's wheel or sdist: nothing gets out of the folder that is meant, and nothing fills the disk."""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
from typing import IO, TYPE_CHECKING, Final, cast

from mibyan.errors import MibyanError
from mibyan.text import describe_exception, one_line

if TYPE_CHECKING:
    from pathlib import Path

#: Bytes of an archive's content, and of the archive itself.
LIMIT: Final = 256 * 1024 * 1024
#: Entries of an archive.
ENTRIES: Final = 20_000
_PIECE = 1 << 16


class ArchiveError(MibyanError):
    """An archive isn't one, or isn't harmless."""


def unpack(path: Path, folder: Path) -> None:
    """Unpack a wheel or an sdist.

    Args:
        path: A `.whl` or a `.tar.gz`.
        folder: An empty folder.

    Raises:
        ArchiveError: It can't be read, an entry leads out of it, is a link, a device, or there twice, or it is too large.
    """
    try:
        if path.stat().st_size > LIMIT:
            raise ArchiveError(f"it is larger than {LIMIT:,} bytes", hint="Leave data and models out of it.")
        if path.suffix == ".whl":
            _unpack_zip(path, folder)
        else:
            _unpack_tar(path, folder)
    except ArchiveError:
        raise
    except Exception as error:  # what a broken archive raises differs by where it is broken
        what = "a zip file, as wheels are" if path.suffix == ".whl" else "a gzipped tar file, as sdists are"
        raise ArchiveError(f"it can't be read as {what}: {one_line(describe_exception(error), 200)}",
                           hint="Build it again: python -m build") from error  # fmt: skip


def _unpack_zip(path: Path, folder: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        _require_few(len(entries))
        left = LIMIT
        for entry in entries:
            name = _inside(entry.filename)
            if stat.S_ISLNK(entry.external_attr >> 16):
                raise ArchiveError(f"its entry {name!r} is a symbolic link", hint=_NO_LINKS)
            target = folder / name
            if entry.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source:
                left = _copied(source, target, name, left)


def _unpack_tar(path: Path, folder: Path) -> None:
    if not hasattr(tarfile, "data_filter"):
        raise ArchiveError("this Python can't unpack a stranger's sdist safely", hint="Use Python 3.11.4 or newer.")
    with gzip.open(path) as plain, tarfile.open(fileobj=cast("IO[bytes]", _Bounded(plain)), mode="r|") as archive:
        for number, entry in enumerate(archive, 1):
            _require_few(number)
            name = _inside(entry.name)
            if entry.issym() or entry.islnk():
                raise ArchiveError(f"its entry {name!r} is a link", hint=_NO_LINKS)
            if entry.isfile() and (folder / name).exists():
                raise ArchiveError(f"its entry {name!r} is there twice", hint=_AGAIN)
            try:
                archive.extract(entry, folder, set_attrs=False, filter="data")
            except tarfile.FilterError as error:
                raise ArchiveError(f"its entry {name!r} is refused: {one_line(str(error), 200)}", hint=_AGAIN) from None


class _Bounded:
    """A stream that gives no more than `LIMIT` bytes: a bomb ends here, also within its headers."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream = stream
        self._left = LIMIT + ENTRIES * 1024

    def read(self, size: int = _PIECE) -> bytes:
        """The next bytes."""
        data = self._stream.read(min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise _too_large()
        return data


def _copied(source: IO[bytes], target: Path, name: str, left: int) -> int:
    """Copy a file; how many bytes may still come."""
    try:
        with target.open("xb") as file:
            while data := source.read(_PIECE):
                left -= len(data)
                if left < 0:
                    raise _too_large()
                file.write(data)
    except FileExistsError:
        raise ArchiveError(f"its entry {name!r} is there twice", hint=_AGAIN) from None
    return left


def _inside(name: str) -> str:
    """The name of an entry that stays where it is unpacked."""
    plain = name.replace("\\", "/")
    parts = plain.split("/")
    if not plain.isprintable():
        raise ArchiveError(f"its entry {one_line(ascii(name), 120)} has a name that no file should have", hint=_AGAIN)
    if plain.startswith("/") or ".." in parts or ":" in parts[0]:
        raise ArchiveError(f"its entry {one_line(ascii(name), 120)} leads out of it", hint=_AGAIN)
    return plain


def _require_few(number: int) -> None:
    if number > ENTRIES:
        raise ArchiveError(f"it has more than {ENTRIES:,} entries", hint="Leave data out of it.")


def _too_large() -> ArchiveError:
    return ArchiveError(f"it unpacks to more than {LIMIT:,} bytes", hint="Leave data and models out of it.")


_NO_LINKS = "Put the file itself there: links in an archive are refused, as installers do."
_AGAIN = "Build it again: python -m build"
