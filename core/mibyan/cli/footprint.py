"""`footprint`: all that a listing stands on, noted when it was worked out; see `mibyan.cli.answers`.

Where that can't be told by looking at paths there is none: when another plugin's code than a built-in's was imported or a
check was asked, for plugins that somebody works on where they lie, in projects, and while something is being changed.
"""
# os and text: some two thousand paths are noted.
# ruff: noqa: PTH109, PTH110, PTH112, PTH116, PTH117, PTH118, PTH120, PTH208

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import mibyan
from mibyan.plugins.journal import FOLDER
from mibyan.plugins.learned import module_place
from mibyan.plugins.sources.builtin import builtin_folder
from mibyan.plugins.state import ACTIVE, DISABLED, INCOMPATIBLE, READY, SHADOWED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mibyan.cli.answers import Answers, Looks
    from mibyan.cli.output import Output
    from mibyan.plugins.candidate import Candidate
    from mibyan.plugins.contents import Contents
    from mibyan.plugins.slots import PluginSlot
    from mibyan.runtime import Runtime
    from mibyan.tools.entry import Requirements

#: Nanoseconds before the run in which a change may have had the time of the one before it: two ticks of a slow kernel's
#: clock, and of a file system that keeps whole seconds.
_TICK, _SECONDS = 20_000_000, 2_000_000_000
#: States that come of what is written and installed alone.
_TELLABLE = frozenset({READY, DISABLED, INCOMPATIBLE, SHADOWED})
#: Files of one folder that are noted.
_MOST = 3_000
#: Files in the home that change with use and decide nothing.
_IN_USE = ("sessions.db",)


class Noting:
    """While a command runs: what it writes, and whether it says anything else; then what it stands on is kept with that.

    Args:
        asked: Where the answer is kept.
        out: The command's output.
    """

    def __init__(self, asked: Answers, out: Output) -> None:
        self._asked = asked
        self._out = out
        self._looks: Looks | None = None

    def look(self, runtime: Runtime) -> None:
        """Note what the runtime stands on."""
        self._looks = footprint(runtime, self._asked.started)

    def run(self, command: Callable[[], Any]) -> Any:
        """Run the command; its exit code."""
        written = self._out.copied = []
        before, sys.stderr = sys.stderr, (listener := _Listener(sys.stderr))
        try:
            code = command()
        finally:
            sys.stderr, self._out.copied = before, None
        if code == 0 and self._looks is not None and not listener.heard:
            self._asked.keep(self._looks, "".join(written), code)
        return code


class _Listener:
    """Standard error, with an ear on it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.heard = False

    def __getattr__(self, name: str) -> Any:
        if name in {"write", "writelines", "buffer", "fileno"}:
            self.heard = True
        return getattr(self._stream, name)


class _UntellableError(Exception):
    """It can't be told by looking at paths."""


def footprint(runtime: Runtime, started: int) -> Looks | None:
    """What was there when a listing was worked out.

    Args:
        runtime: What it was worked out with.
        started: When that began, in nanoseconds since the epoch: what has changed since then might not have been seen.

    Returns:
        Folders with names and states, `None` where that doesn't tell all.
    """
    try:
        _require_plain(runtime)
        paths = dict.fromkeys(_paths(runtime))
        looks: dict[str, tuple[list[str], list[Any]]] = {}
        for path in paths:
            folder, name = os.path.split(path)
            names, states = looks.setdefault(folder, ([], []))
            names.append(name)
            states.append(_state(path, started))
        return {folder: (tuple(names), tuple(states)) for folder, (names, states) in looks.items()}
    except Exception:  # no footprint is no error
        return None


def _state(path: str, started: int) -> tuple[int, int, int, int] | None:
    """What is at a path.

    Raises:
        _UntellableError: It has changed lately.
    """
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if status.st_ctime_ns >= started - (_TICK if status.st_ctime_ns % 1_000_000_000 else _SECONDS):
        raise _UntellableError
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _require_plain(runtime: Runtime) -> None:
    """Raise unless data alone decided."""
    parts = runtime._parts
    settings = parts.config.settings
    if parts.store.guard is not None:  # the files of all plugins count
        raise _UntellableError
    if parts.project is not None or parts.safe_mode or settings.mcp_servers or settings.plugins.modules:
        raise _UntellableError
    if settings.plugins.bridges.hermes or settings.plugins.bridges.llm:
        raise _UntellableError
    for slot in parts.plugins._slots:
        one = slot.candidate
        if not _is_tellable(slot) or one.source == "project" or one.editable:
            raise _UntellableError
        if one.manifest is not None and _needs_more(one.manifest.requires):
            raise _UntellableError
    for entry in parts.store.snapshot.entries.values():
        if entry.check_fn is not None or _needs_more(entry.requires):
            raise _UntellableError


def _is_tellable(slot: PluginSlot) -> bool:
    """Whether a plugin's state comes of files alone; a built-in's code is noted, and its patches depend on nothing else."""
    return slot.state in _TELLABLE or (slot.state == ACTIVE and slot.candidate.source == "builtin")


def _needs_more(requires: Requirements) -> bool:
    """Whether something counts that is no path of these and not in the environment."""
    return bool(requires.bins or requires.modules)


def _paths(runtime: Runtime) -> Iterator[str]:
    """Every path that was looked at, or that would be if it were there."""
    parts = runtime._parts
    yield from _home(str(parts.home))
    yield from _projects()
    yield from _own_files()
    for entry in sys.path:
        yield from _entry(entry or os.getcwd())
    for slot in parts.plugins._slots:
        if slot.candidate.source == "pip":
            yield from _wheel(slot.candidate)
        if slot.learned is not None:
            yield f"{parts.home}/cache/learned.bin"
            yield from _code(slot, parts.plugins._lessons.contents)


def _home(home: str) -> Iterator[str]:
    """What stands directly in the profile's folder, and the folders of plugins and tools."""
    yield from (f"{home}/{name}" for name in ("config.yaml", "trust.json", "mibyan.lock", "plugins", "tools", FOLDER))
    if os.path.isdir(home):
        yield from (f"{home}/{name}" for name in os.listdir(home) if _counts(home, name))
    yield from _below(f"{home}/plugins")
    yield from _below(f"{home}/tools")


def _counts(home: str, name: str) -> bool:
    return not name.startswith(_IN_USE) and not os.path.isdir(f"{home}/{name}")


def _projects() -> Iterator[str]:
    """Where a `.mibyan` would make the current directory a project's."""
    folder = os.path.realpath(os.getcwd())
    while True:
        yield os.path.join(folder, ".mibyan")
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _own_files() -> Iterator[str]:
    """Mibyan's own code, and the manifests of its plugins: somebody may be working on them."""
    builtin = builtin_folder()
    for top in [*mibyan.__path__, *([str(builtin)] if builtin is not None else [])]:
        yield from _below(top)


def _below(top: str) -> Iterator[str]:
    """A folder and everything in it, but bytecode."""
    seen = 0
    for folder, folders, files in os.walk(top, followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__"]
        seen += len(files) + len(folders)
        if seen > _MOST:
            raise _UntellableError
        yield folder
        yield from (f"{folder}/{name}" for name in files)


def _entry(entry: str) -> Iterator[str]:
    """An entry of `sys.path`: its own state says which distributions and modules there are."""
    yield entry
    if not os.path.isdir(entry):
        if os.path.exists(entry):  # an archive
            raise _UntellableError
        return
    for name in os.listdir(entry):
        if name.endswith((".dist-info", ".egg-info")):
            yield f"{entry}/{name}"
            if os.path.exists(f"{entry}/{name}/entry_points.txt"):
                yield f"{entry}/{name}/entry_points.txt"
        elif name.endswith(".pth"):
            yield f"{entry}/{name}"


def _wheel(candidate: Candidate) -> Iterator[str]:
    """What says what an installed plugin is, beside its dist-info's own state; its manifest may be package data."""
    info = candidate.origin
    yield from (
        f"{info}/METADATA",
        f"{info}/direct_url.json",
        f"{info}/extra_metadata",
        f"{info}/extra_metadata/mibyan.json",
    )
    if candidate.target is not None:
        folder = os.path.dirname(info)
        for name in candidate.target.value.partition(":")[0].split("."):
            folder = f"{folder}/{name}"
            yield from (folder, f"{folder}/plugin.yaml")


def _code(slot: PluginSlot, contents: Contents) -> Iterator[str]:
    """What the registration of a plugin depends on whose code was learned (`Learned.conditions`)."""
    candidate, learned = slot.candidate, slot.learned
    files = contents.files(candidate)
    if files is None or learned is None:
        raise _UntellableError
    yield from (path for path, _ in files)
    if candidate.root is not None:
        yield from _below(str(candidate.root))
    for name, _ in learned.conditions.modules:
        place = module_place(name)
        if os.path.isabs(place):
            yield place
