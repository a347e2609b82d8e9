"""`mibyan plugins lock` and `mibyan tools diff`: what was accepted, and how it differs from what there is (plugins.S3)."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mibyan.cli import exits
from mibyan.cli.loaded import loaded
from mibyan.cli.output import say
from mibyan.errors import ConfigError, MibyanError
from mibyan.text import counted, did_you_mean, one_line, suggest
from mibyan.tools.lockdiff import differences
from mibyan.tools.locked import Lock
from mibyan.tools.lockfile import LOCK_NAME, escaped, read_lock, write_lock

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from mibyan.cli.invocation import Invocation
    from mibyan.plugins.locking import Now
    from mibyan.tools.lockdiff import Differences


@contextmanager
def _now(invocation: Invocation) -> Iterator[Now]:
    """The lock of what there is, whatever the lock says."""
    from mibyan.plugins.contents import Contents, kept_digests
    from mibyan.plugins.locking import lock_of

    with invocation.runtime(locked=False) as runtime:
        loaded(invocation, runtime)
        parts = runtime._parts
        contents = Contents(kept_digests(parts.home))
        now = lock_of(parts.store, runtime.plugins.all_records(), contents, parts.clean)
        contents.save()
        yield now


# mibyan plugins lock --------------------------------------------------------------------------------------------------


def lock(invocation: Invocation, *, check: bool, names: Sequence[str], ids: Sequence[str]) -> int:
    """Accept what there is, all or some of it; the exit code.

    Raises:
        UsageError: The options don't fit together.
        MibyanError: The lock can't be read or written, or what is to be accepted isn't known.
    """
    if check and (names or ids):
        raise exits.UsageError("--check accepts nothing: leave --accept and --only out")
    if invocation.options.safe_mode:
        raise exits.UsageError("in safe mode only built-in plugins are there: the lock would lose all others")
    path = invocation.home / LOCK_NAME
    with _now(invocation) as now:
        if check:
            return _checked(invocation, path, now)
        before, after = _write(path, now, names, ids)
        return _told(invocation, path, now, before, after)


def _checked(invocation: Invocation, path: Path, now: Now) -> int:
    from mibyan.plugins.locking import kept

    before = read_lock(path)
    if before is None:
        raise ConfigError(
            f"{path} doesn't exist: there is nothing to check", origin=str(path), hint="mibyan plugins lock"
        )
    found = differences(before, kept(before, now), ("lock", "now"))
    if invocation.options.as_json:
        invocation.out.document(
            {
                "path": str(path),
                "written": False,
                "differs": bool(found),
                **found.to_dict(),
                "problems": list(now.problems),
            }
        )
    else:
        _show(invocation, found)
        _say_problems(now)
        say(f"{path} differs: {_counted(found)}.\nmibyan plugins lock" if found else f"{path} is what there is.")
    return exits.FAILED if found else exits.OK


def _write(path: Path, now: Now, names: Sequence[str], ids: Sequence[str]) -> tuple[Lock | None, Lock]:
    """Write the lock; what it was (`None`: there was none) and what it is.

    Another process that accepts something else at the same time loses nothing: it reads what this one has written.
    """
    from mibyan.paths import file_lock
    from mibyan.plugins.locking import kept, merged

    with file_lock(path):
        before = read_lock(path)
        former = before or Lock()
        after = kept(former, now)
        if names or ids:
            _require_known(names, {*former.tools, *after.tools}, "tool")
            _require_known(ids, {*former.plugins, *after.plugins}, "plugin")
            after = merged(former, after, names, ids)
        write_lock(path, after)
    return before, after


def _require_known(words: Sequence[str], known: Collection[str], what: str) -> None:
    for word in words:
        if word not in known:
            raise MibyanError(f"there is no {what} {one_line(word, 60)!r} to accept{did_you_mean(suggest(word, known))}",
                              hint="mibyan tools diff")  # fmt: skip


def _told(invocation: Invocation, path: Path, now: Now, before: Lock | None, after: Lock) -> int:
    from mibyan.plugins.locking import kept

    changes = differences(before or Lock(), after, ("lock", "now"))
    open_ones = differences(after, kept(after, now), ("lock", "now"))
    if invocation.options.as_json:
        invocation.out.document({
            "path": str(path), "written": True, "created": before is None, "differs": bool(changes), **changes.to_dict(),
            "open": open_ones.to_dict(), "problems": list(now.problems),
        })  # fmt: skip
        return exits.OK
    if before is not None:
        _show(invocation, changes)
    _say_problems(now)
    size = f"{counted(len(after.tools), 'tool')} of {counted(len(after.plugins), 'plugin')}"
    what = "is new" if before is None else f"accepted: {_counted(changes)}" if changes else "is as it was"
    say(f"{path} {what}; it has {size}.")
    if open_ones:
        say(f"Not accepted: {_counted(open_ones)}. `mibyan tools diff` shows it.")
    return exits.OK


def _say_problems(now: Now) -> None:
    for problem in now.problems:
        say(f"mibyan: warning: {one_line(problem, 500)}")
    for plugin_id, why in now.untold.items():
        say(f"mibyan: warning: what plugin {one_line(plugin_id, 60)} offers can't be told: {one_line(why, 300)}")


# mibyan tools diff ----------------------------------------------------------------------------------------------------


def diff(invocation: Invocation, words: Sequence[str]) -> int:
    """Compare two locks, or one with what there is; the exit code.

    Raises:
        UsageError: There are more than two words.
        MibyanError: A lock doesn't exist or can't be read.
    """
    if len(words) > 2:
        raise exits.UsageError("two locks can be compared, not more: LOCK_A and LOCK_B")
    paths = [Path(word).expanduser() for word in words] or [invocation.home / LOCK_NAME]
    before = _required(paths[0], named=bool(words))
    if len(paths) == 2:
        return _compared(invocation, before, _required(paths[1], named=True), (str(paths[0]), str(paths[1])))
    from mibyan.plugins.locking import kept

    with _now(invocation) as now:
        if not invocation.options.as_json:
            _say_problems(now)
        return _compared(invocation, before, kept(before, now), (str(paths[0]), "now"))


def _required(path: Path, *, named: bool) -> Lock:
    found = read_lock(path)
    if found is None:
        hint = "Give the path of a lock." if named else "mibyan plugins lock"
        raise MibyanError(f"{path} doesn't exist: there is nothing to compare", origin=str(path), hint=hint)
    return found


def _compared(invocation: Invocation, before: Lock, after: Lock, names: tuple[str, str]) -> int:
    # In a diff's head a path is that of a tool: `lock/echo`.
    found = differences(before, after, ("lock", "now") if names[1] == "now" else ("a", "b"))
    if invocation.options.as_json:
        invocation.out.document({"from": names[0], "to": names[1], "differs": bool(found.tools), **found.to_dict()})
    else:
        _show(invocation, found)
        say(f"From {names[0]} to {names[1]}: {_counted(found)}.")
    return exits.FAILED if found.tools else exits.OK


# In words -------------------------------------------------------------------------------------------------------------


def _show(invocation: Invocation, found: Differences) -> None:
    """The differences: sentences about plugins, then the diffs of tools."""
    for plugin in found.plugins:
        invocation.out.line(escaped(plugin.sentence))
    for tool in found.tools:
        invocation.out.line(tool.diff)


def _counted(found: Differences) -> str:
    kinds = ("changed", "added", "removed")
    parts = [
        f"{counted(count, what)} {kind}"
        for what, ones in (("tool", found.tools), ("plugin", found.plugins))
        for kind in kinds
        if (count := sum(one.change == kind for one in ones))
    ]
    return ", ".join(parts) or "no difference"
