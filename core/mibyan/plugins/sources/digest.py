"""What a folder's files are: the digest that trust is given to (plugins.S1)."""
# os and text: links have to be seen as links, and every step must be able to fail alone.
# ruff: noqa: PTH100, PTH112, PTH114, PTH118, PTH120, PTH206

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from mibyan.errors import PluginError
from mibyan.plugins.sources.files import names_in, read_bytes, reason
from mibyan.plugins.sources.manifests import FOLDER_MANIFEST
from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

#: Files and bytes that a folder may have; more can't be looked through by a person anyway.
FILES_LIMIT = 10_000
BYTES_LIMIT = 256 * 1024 * 1024

#: The one thing that doesn't count: Python writes there, and trusted code is never read from there.
_IGNORED = "__pycache__"


@record
class FolderDigest:
    """Every file of a folder with its SHA-256, and one digest for all."""

    root: Path
    #: Path below `root` with `/`, and the hexadecimal SHA-256 of the bytes; sorted.
    files: Mapping[str, str]
    #: Bytes in all.
    size: int
    #: The very bytes that were hashed of the Python sources and of `plugin.yaml`, by path.
    sources: Mapping[str, bytes] = field(repr=False, compare=False, default_factory=dict)

    @property
    def digest(self) -> str:
        """The digest of all paths and their digests, hexadecimal."""
        return combined(self.files)


def combined(files: Mapping[str, str]) -> str:
    """One digest for many files: it changes when one changes, comes, goes or is renamed."""
    whole = hashlib.sha256()
    for path, digest in sorted(files.items()):
        # A length in front of the path: no two sets of files run into the same bytes.
        name = path.encode("utf-8", "surrogateescape")
        whole.update(b"%d:%b %b\n" % (len(name), name, digest.encode()))
    return whole.hexdigest()


def digest_folder(root: Path) -> FolderDigest:
    """Read every file of `root` once and hash it; `__pycache__` alone doesn't count.

    Links are followed as long as they stay in the folder.

    Args:
        root: The folder of a plugin, or a tools directory.

    Raises:
        PluginError: A link leaves the folder or goes in a circle, something isn't a file or can't be read, or there
            is too much of it.
    """
    real = os.path.realpath(root)
    if os.path.islink(root) and os.path.dirname(real) != os.path.realpath(os.path.dirname(os.path.abspath(root))):
        raise _refused(root, f"it is a link that leads elsewhere ({real})")
    files: dict[str, str] = {}
    sources: dict[str, bytes] = {}
    size = 0
    for name, path in _files(root, real):
        data = _read(root, name, path)
        size += len(data)
        if size > BYTES_LIMIT:
            raise _refused(root, f"it has more than {BYTES_LIMIT:,} bytes")
        files[name] = hashlib.sha256(data).hexdigest()
        if name.endswith(".py") or name == FOLDER_MANIFEST:
            sources[name] = data
    return FolderDigest(root, dict(sorted(files.items())), size, sources)


def _files(root: Path, real: str) -> Iterator[tuple[str, str]]:
    """All files below `root`: the path below it, and the real path, which is inside it."""
    waiting: list[tuple[str, str, tuple[str, ...]]] = [("", real, (real,))]
    seen = 0
    while waiting:
        name, folder, above = waiting.pop()
        for entry in _names(root, name, folder):
            below, path = f"{name}{entry}", _inside(root, real, f"{name}{entry}", os.path.join(folder, entry))
            if not os.path.isdir(path):
                yield below, path
            elif path in above:
                raise _refused(root, f"the link {below!r} goes in a circle")
            else:
                waiting.append((f"{below}/", path, (*above, path)))
            seen += 1
            if seen > FILES_LIMIT:
                raise _refused(root, f"it has more than {FILES_LIMIT:,} files and folders")


def _names(root: Path, name: str, folder: str) -> list[str]:
    try:
        return [entry for entry in names_in(folder) if entry != _IGNORED]
    except OSError as error:
        raise _refused(root, f"the folder {name or '.'!r} can't be read: {reason(error)}") from error


def _inside(root: Path, real: str, name: str, path: str) -> str:
    """The real path of what may be a link.

    Raises:
        PluginError: It leads out of the folder.
    """
    if not os.path.islink(path):
        return path
    target = os.path.realpath(path)
    if not target.startswith(real.rstrip(os.sep) + os.sep) and target != real:
        raise _refused(root, f"the link {name!r} leaves the folder (to {target})")
    if _IGNORED in target[len(real) :].split(os.sep):
        raise _refused(root, f"the link {name!r} leads into {_IGNORED}, which isn't looked at")
    return target


def _read(root: Path, name: str, path: str) -> bytes:
    try:
        return read_bytes(path, BYTES_LIMIT)
    except OSError as error:
        raise _refused(root, f"the file {name!r} can't be read: {reason(error)}") from error


def _refused(root: Path, why: str) -> PluginError:
    return PluginError(f"{root} can't be trusted: {why}", origin=str(root))
