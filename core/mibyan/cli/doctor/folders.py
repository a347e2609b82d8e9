"""The home's and the project's files: are they there, whose are they, who may write them; what is kept in the cache."""
# os and text: every step must be able to fail alone, and links are seen as links.
# ruff: noqa: PTH118, PTH208, PTH116

from __future__ import annotations

import json
import os
import stat
import time
from typing import TYPE_CHECKING

from mibyan.cli.doctor.finding import Finding
from mibyan.paths import PROJECT_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mibyan.cli.doctor.finding import Patient

#: What lies in a home or a project's folder, and whether it is a folder.
_PARTS = {
    "plugins": True,
    "tools": True,
    "cache": True,
    "config.yaml": False,
    "trust.json": False,
    "mibyan.lock": False,
}
#: Bytes of a cache file; larger ones aren't read.
_CACHE_LIMIT = 64 * 1024 * 1024
#: Bytes of kept results after which somebody may want to know.
_LARGE = 1024 * 1024 * 1024
#: Seconds after which what a killed writer has left is in nobody's use.
_ABANDONED = 24 * 3600.0


def rights(patient: Patient) -> Iterator[Finding]:
    """What can't be read or written, and what others could put code or settings into."""
    if patient.home is not None:
        yield from _home(patient.home)
        yield from _contents(patient.home)
        yield from _trust(patient.home)
    if patient.project is not None:
        yield from _contents(patient.project / PROJECT_FOLDER)


def _home(home: Path) -> Iterator[Finding]:
    if not os.path.lexists(home):
        yield Finding("info", "the home isn't there yet; it is made when something is kept", str(home))
    elif not home.is_dir():
        yield Finding("error", "the home isn't a folder", str(home), "move it away, or set MIBYAN_HOME")
    elif not os.access(home, os.R_OK | os.X_OK):
        yield Finding("error", "the home can't be read", str(home), f"chmod u+rwx {home}")
    elif not os.access(home, os.W_OK):
        yield Finding(
            "warning",
            "the home can't be written to: caches and what you trust aren't kept",
            str(home),
            f"chmod u+w {home}",
        )


def _contents(folder: Path) -> Iterator[Finding]:
    """The rights of a folder of Mibyan's and of what lies in it."""
    yield from _who_may_write(str(folder))
    for name, is_folder in _PARTS.items():
        path = str(folder / name)
        if not os.path.lexists(path):
            continue
        if os.path.isdir(path) is not is_folder:  # noqa: PTH112 - text
            kind = "a folder" if is_folder else "a file"
            yield Finding("error", f"it isn't {kind} that can be used", path, f"move {path} away")
            continue
        if not os.access(path, os.R_OK | (os.X_OK if is_folder else 0)):
            yield Finding("error", "it can't be read", path, f"chmod u+r{'x' if is_folder else ''} {path}")
            continue
        yield from _who_may_write(path)
        for entry in _names(path) if name in {"plugins", "tools"} else ():
            yield from _who_may_write(os.path.join(path, entry))


def _who_may_write(path: str) -> Iterator[Finding]:
    """Others that could change what is there: what they put there would be run or believed."""
    try:
        status = os.stat(path)
    except OSError:
        return
    if os.name == "nt":
        return
    own_group = status.st_gid == os.getgid()
    if status.st_uid not in {os.geteuid(), 0}:
        yield Finding("warning", "it belongs to another user, who can change it", path, f"chown {os.geteuid()} {path}")
    if status.st_mode & stat.S_IWOTH:
        yield Finding(
            "error",
            "everybody on this machine can change it, and what is there is run or believed",
            path,
            f"chmod o-w {path}",
        )
    elif status.st_mode & stat.S_IWGRP and not own_group:
        yield Finding("warning", "a group that isn't your own can change it", path, f"chmod g-w {path}")


def _trust(home: Path) -> Iterator[Finding]:
    from mibyan.plugins.sources.trust import TrustStore

    store = TrustStore(home)
    problem = store.problem()
    if problem is not None:
        yield Finding(
            "error", problem, str(store.path), f"look at it, then rm {store.path}; trust again what you want to"
        )


def caches(patient: Patient) -> Iterator[Finding]:
    """What was kept of earlier runs and can't be used: never wrong, only slow."""
    if patient.home is None:
        return
    from mibyan.plugins.lessons import problem

    folder = patient.home / "cache"
    slow = problem(patient.home)
    if slow is not None:
        yield Finding("warning", slow, str(folder), f"chmod u+w {folder}" if folder.is_dir() else f"move {folder} away")
    for name in _names(str(folder)):
        path = str(folder / name)
        if name.endswith(".tmp"):
            yield from _abandoned(path)
        elif name.endswith((".json", ".bin")):
            yield from _damaged(path)
    yield from _results(folder / "results")


def _damaged(path: str) -> Iterator[Finding]:
    from mibyan.filecache import is_sound
    from mibyan.plugins.sources.files import read_bytes

    try:
        content = read_bytes(path, _CACHE_LIMIT)
        sound = json.loads(content) is not None if path.endswith(".json") else is_sound(content)
        private = not path.endswith(".bin") or os.name == "nt" or _is_private(os.lstat(path))
    except (OSError, ValueError, RecursionError):
        sound = private = False
    if not sound:
        yield Finding(
            "warning", "what was kept there can't be read, so it is worked out at each start", path, f"rm {path}"
        )
    elif not private:
        yield Finding(
            "warning",
            "others could have written it, so it isn't believed and worked out at each start",
            path,
            f"rm {path}",
        )


def _is_private(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _abandoned(path: str) -> Iterator[Finding]:
    try:
        old = time.time() - os.stat(path).st_mtime > _ABANDONED
    except OSError:
        return
    if old:
        yield Finding("info", "left by a program that was ended while it wrote", path, f"rm {path}")


def _results(folder: Path) -> Iterator[Finding]:
    total = 0
    for name in _names(str(folder)):
        try:
            total += os.stat(os.path.join(folder, name)).st_size
        except OSError:
            continue
    if total > _LARGE:
        yield Finding(
            "info",
            f"results that were too long for a model take {total // 2**20:,} MiB",
            str(folder),
            f"rm -r {folder}",
        )


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
