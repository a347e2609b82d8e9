"""What of a runtime's plugins is written into `mibyan.lock`, and the guard that holds a runtime to it (plugins.S3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.errors import ConfigError, MibyanError
from mibyan.plugins.sources.ids import PROJECT_TOOLS
from mibyan.plugins.state import ACTIVE, DISABLED, NEEDS, READY, SHADOWED, standing
from mibyan.records import field, record
from mibyan.tools.lockfile import LOCK_NAME, read_lock
from mibyan.tools.lockguard import LockedStore, LockGuard

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from mibyan.plugins.contents import Contents
    from mibyan.plugins.state import PluginRecord
    from mibyan.report import DecisionLog
    from mibyan.tools.locked import Lock, LockedTool
    from mibyan.tools.owner import Owner
    from mibyan.tools.store import RegistryStore

#: The states of plugins whose tools are registered, available or not.
_THERE = frozenset({READY, ACTIVE, NEEDS})


def locked_store(home: Path, *, last_wins: bool, log: DecisionLog, clean: Callable[[str], str]) -> LockedStore:
    """A registry that is held to the lock in a profile.

    Raises:
        ConfigError: There is no lock, or it can't be used.
    """
    path, lock = home / LOCK_NAME, require_lock(home)
    return LockedStore(LockGuard(lock, path, log, by_trust=is_projects, clean=clean), last_wins=last_wins, log=log)


def require_lock(home: Path) -> Lock:
    """The lock in a profile.

    Raises:
        ConfigError: There is no lock, or it can't be used.
    """
    path = home / LOCK_NAME
    lock = read_lock(path)
    if lock is None:
        raise ConfigError(f"{path} doesn't exist, and nothing runs without it under --locked (MIBYAN_LOCKED)",
                          origin=str(path), hint="mibyan plugins lock")  # fmt: skip
    return lock


def is_projects(owner: Owner) -> bool:
    """Whether an owner is a project's plugin: those are accepted by trust."""
    return owner.source == "project" or (owner.source == "tools" and owner.id.startswith(PROJECT_TOOLS))


def tell_differences(store: RegistryStore, records: Sequence[PluginRecord], *, partly: bool = False) -> None:
    """Once the plugins are loaded: put into the report what is another than it was accepted, and what isn't there.

    Args:
        store: The registry.
        records: The plugins.
        partly: Whether not all plugins were looked for (safe mode): then nothing is missed.
    """
    guard = store.guard
    if guard is None:
        return
    guard.tell_changed()
    there = {record.id for record in records if record.state in _THERE}
    off = {record.id for record in records if record.state == DISABLED}
    for plugin_id in guard.lock.plugins:
        if plugin_id not in there and not partly:
            guard.tell_missing(plugin_id, problem=plugin_id not in off)
    entries = store.snapshot.entries
    for name, tool in guard.lock.tools.items():
        if tool.owner in there and name not in entries and guard.refusal(name) is None:
            guard.tell_lost(name, tool.owner)


@record
class Now:
    """What a lock of this moment would be."""

    lock: Lock
    #: What can't be locked, and why: a sentence for each tool or plugin.
    problems: tuple[str, ...] = ()
    #: The plugins of which nothing can be said now: they are there, and can't be used.
    untold: Mapping[str, str] = field(default_factory=dict)


def lock_of(
    store: RegistryStore, records: Sequence[PluginRecord], contents: Contents, clean: Callable[[str], str]
) -> Now:
    """The lock of what is registered; a project's plugins and the host's tools aren't in it.

    Args:
        store: The registry, with everything loaded.
        records: The plugins.
        contents: The digests of their files.
        clean: Takes secrets out of a text.
    """
    from mibyan.tools.locked import Lock, LockedPlugin, locked_tool

    own = [one for one in records if one.state in _THERE and not _is_project(one)]
    plugins = {
        one.id: LockedPlugin(one.id, one.source, one.version, contents.portable_digest(one.candidate) or "")
        for one in own
    }
    tools: dict[str, LockedTool] = {}
    problems: list[str] = []
    for name, entry in store.snapshot.entries.items():
        if entry.owner.id not in plugins or entry.owner.kind != "plugin" or is_projects(entry.owner):
            continue
        try:
            tools[name] = locked_tool(entry, clean)
        except (MibyanError, ValueError, TypeError, RecursionError) as error:
            problems.append(f"the tool {name!r} of plugin {entry.owner.id!r} can't be locked: {error}")
    untold = {one.id: f"it {standing(one.state, one.reason)}" for one in records
              if one.id not in plugins and one.state not in {DISABLED, SHADOWED} and not _is_project(one)}  # fmt: skip
    return Now(Lock(dict(sorted(plugins.items())), dict(sorted(tools.items()))), tuple(problems), untold)


def _is_project(one: PluginRecord) -> bool:
    return one.source == "project" or (one.source == "tools" and one.id.startswith(PROJECT_TOOLS))


def kept(before: Lock, now: Now) -> Lock:
    """What can be said now, and what was accepted of plugins of which nothing can be said."""
    from mibyan.tools.locked import Lock

    stay = before.plugins.keys() & now.untold.keys()
    plugins = {**{name: before.plugins[name] for name in stay}, **now.lock.plugins}
    tools = {name: tool for name, tool in before.tools.items() if tool.owner in stay}
    return Lock(dict(sorted(plugins.items())), dict(sorted({**tools, **now.lock.tools}.items())))


def merged(before: Lock, after: Lock, names: Sequence[str], ids: Sequence[str]) -> Lock:
    """`before` with some of what `after` has accepted.

    A plugin's own row (version, digest) is accepted with the last of what is another in it, or where there was none.

    Args:
        before: What was accepted.
        after: What is there.
        names: Tools that are accepted as they are there, or as gone.
        ids: Plugins that are accepted with all their tools.
    """
    from mibyan.tools.locked import Lock

    every = {*names, *(name for lock in (before, after) for one in ids for name in lock.tools_of(one))}
    tools = {name: tool for name, tool in before.tools.items() if name not in every}
    tools |= {name: after.tools[name] for name in every if name in after.tools}
    owners = {tool.owner for tool in tools.values()}
    plugins = dict(before.plugins)
    for one in {*ids, *owners, *before.plugins}:
        if one in ids or _is_settled(one, before, after, tools, every):
            plugins.pop(one, None)
            if one in after.plugins:
                plugins[one] = after.plugins[one]
    plugins |= {one: after.plugins[one] for one in owners if one not in plugins and one in after.plugins}
    tools = {name: tool for name, tool in tools.items() if tool.owner in plugins}
    return Lock(dict(sorted(plugins.items())), dict(sorted(tools.items())))


def _is_settled(plugin_id: str, before: Lock, after: Lock, tools: Mapping[str, LockedTool], every: set[str]) -> bool:
    """Whether something of a plugin was accepted, and nothing of it is left that wasn't."""
    names = {*before.tools_of(plugin_id), *after.tools_of(plugin_id)}
    if not names & every:
        return False
    left = (name for name in names if name not in every)
    return all(name in tools and name in after.tools and not tools[name].differs_in(after.tools[name]) for name in left)
