"""`Outcomes`: what became of plugins when they were last loaded, for those who ask without loading any (plugins.L9).

`$MIBYAN_HOME/cache/plugins.json`: `{"version": 1, "outcomes": {<id>: {<content digest>: {...}}}}`. It is a cache: one
that can't be read is empty, one that can't be written isn't, and neither is ever an error.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from mibyan.filecache import CacheFile, StampedCache, stamp
from mibyan.plugins.contents import LOADED_BY
from mibyan.plugins.sources.files import read_bytes
from mibyan.plugins.state import ACTIVE, FAILED, FOUND, NEEDS, READY, unlearned
from mibyan.records import as_dict, record, replace
from mibyan.text import bounded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from mibyan.plugins.contents import Contents
    from mibyan.plugins.state import PluginRecord, State
    from mibyan.tools.store import RegistryStore

_VERSION = 1
_SIZE_LIMIT = 32 * 1024 * 1024
#: Contents of one plugin whose outcomes are kept (for several interpreters, say), and outcomes in all.
_CONTENTS_LIMIT = 4
_LIMIT = 2_000
#: Characters of a reason and a hint that are kept.
_TEXT_LIMIT = 2_000
#: Seconds after which an outcome that is as it was gets a new time.
_STALE = 3_600.0
#: Seconds to wait for another process that writes: what isn't kept now is kept at the next start.
_PATIENCE = 1.0

#: The parts of an outcome that are lists of names.
_LISTS = ("tools", "hooks", "overrides", "rejected")
#: The states that a load ends in; the others can be told at any time.
_STATES = frozenset({READY, ACTIVE, FAILED, NEEDS})


@record
class Outcome:
    """What one load of a plugin came to."""

    state: State
    reason: str
    hint: str | None
    tools: tuple[str, ...]
    hooks: tuple[str, ...]
    overrides: tuple[str, ...]
    rejected: tuple[str, ...]
    import_ms: float | None
    #: What the definition of each tool costs in a request, in the order of the tools; `None`: it couldn't be told.
    tool_tokens: tuple[int, ...] | None
    #: When it ended, in seconds since the epoch.
    time: float
    #: Where the plugin was found, and the interpreter and the Mibyan that loaded it.
    origin: str
    by: str

    def applied(self, record: PluginRecord) -> PluginRecord:
        """The record of a plugin that wasn't loaded, with this outcome."""
        return replace(
            record, state=self.state, reason=self.reason, hint=self.hint, tools=self.tools, hooks=self.hooks,
            overrides=self.overrides, rejected=self.rejected, import_ms=self.import_ms, tool_tokens=self.tool_tokens, loaded_at=self.time,
        )  # fmt: skip

    def tells(self, record: PluginRecord) -> bool:
        """Whether a load that ended as `record` says adds nothing to this.

        How long an import took isn't compared, nor is its time; that a manifest was read tells less than an import.
        """
        offered = (record.tools, record.hooks, record.overrides, record.rejected)
        if offered != (self.tools, self.hooks, self.overrides, self.rejected):
            return False
        if self.state == ACTIVE and record.state in {ACTIVE, READY}:
            if unlearned(self.reason) != unlearned(bounded(record.reason, _TEXT_LIMIT)):
                return False
            return record.state == READY or abs(time.time() - self.time) < _STALE
        same = (self.state, self.reason, self.hint) == (record.state, bounded(record.reason, _TEXT_LIMIT), record.hint)
        return same and abs(time.time() - self.time) < _STALE


#: Outcomes by plugin id and content digest.
Kept = dict[str, dict[str, Outcome]]


class Outcomes:
    """The outcomes that are kept in one profile.

    Args:
        home: `$MIBYAN_HOME`; nothing is written as long as it isn't there.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._path = home / "cache" / "plugins.json"
        self._lock = threading.Lock()
        self._kept: Kept | None = None
        self._writable = True
        #: What the plugins were when nothing was new.
        self._seen = StampedCache(CacheFile(home / "cache" / "outcomes.bin", "outcomes 1"))

    def after_fork(self) -> None:
        """In a child process: nobody else is keeping anything."""
        self._lock = threading.Lock()

    def recalled(self, records: Sequence[PluginRecord], contents: Contents) -> tuple[PluginRecord, ...]:
        """Records of plugins that weren't loaded, each that nothing speaks against with its last load's outcome.

        Args:
            records: The plugins.
            contents: The digests of this look at them.
        """
        kept = _read(self._path)

        def recall(record: PluginRecord) -> PluginRecord:
            known = kept.get(record.id) if record.state == FOUND else None
            outcome = known.get(contents.digest(record.candidate) or "") if known else None
            return record if outcome is None else outcome.applied(record)

        return tuple(map(recall, records))

    def keep(
        self, records: Iterable[PluginRecord], store: RegistryStore, contents: Contents, *, whole: bool = False,
        afresh: bool = False,
    ) -> None:  # fmt: skip
        """Keep what became of plugins; the file is written only if something is new.

        Args:
            records: Plugins; those that weren't loaded are passed over.
            store: The tools, to tell what their definitions cost.
            contents: The digests of the look at the plugins that the load began with.
            whole: Whether these are all that there are: what was kept of others that are gone is dropped.
            afresh: Whether also what is as it was gets a new time.
        """
        if store.guard is not None:  # What a lock has kept out is no outcome of the plugin's own.
            return
        if not self._lock.acquire(timeout=_PATIENCE):
            return
        try:
            self._keep(list(records), store, contents, whole=whole, afresh=afresh)
        except Exception:
            # A cache is never an error; what it would have told is told by the next load.
            self._writable = False
        finally:
            self._lock.release()

    def _keep(
        self, records: list[PluginRecord], store: RegistryStore, contents: Contents, *, whole: bool, afresh: bool
    ) -> None:
        if not self._writable or not self._home.is_dir():
            return
        known = self._as_known(records, whole=whole and not afresh)
        if known is not None and self._seen.get("ready", known):
            return
        if self._kept is None:
            self._kept = _read(self._path)
        new = [
            (record.id, digest, record) for record in records if record.loaded_at is not None and record.state in _STATES
            and (digest := contents.digest(record.candidate)) is not None
            and (afresh or self._is_new(record, digest))
        ]  # fmt: skip
        seen = {record.origin for record in records} if whole else None
        if new or (seen is not None and _gone(self._kept, seen)):
            self._write([(plugin_id, digest, _outcome(record, store)) for plugin_id, digest, record in new], seen)
        elif known is not None:
            self._seen.keep("ready", known, value=True)
            self._seen.save()

    def _as_known(self, records: list[PluginRecord], *, whole: bool) -> Any:
        """What must be the same for nothing to be new; `None` if something was imported, or that can't be told.

        The usual start imports no plugin: then neither the file nor the plugins' contents need be looked into.
        """
        loaded = [record for record in records if record.loaded_at is not None]
        if not whole or any(record.state != READY for record in loaded):
            return None
        try:
            file = os.stat(self._path)  # noqa: PTH116 - as for the plugins; it is always replaced as a whole
        except OSError:
            return None
        said = tuple(
            (one.id, one.origin, one.version, one.tools, one.hooks, one.overrides, one.rejected, stamp(f"{one.origin}/RECORD"))
            for one in loaded
        )  # fmt: skip
        return LOADED_BY, file.st_ino, file.st_mtime_ns, file.st_size, int(time.time() // _STALE), said

    def _is_new(self, record: PluginRecord, digest: str) -> bool:
        known = (self._kept or {}).get(record.id, {}).get(digest)
        return known is None or not known.tells(record)

    def _write(self, new: list[tuple[str, str, Outcome]], seen: set[str] | None) -> None:
        """Put what is new to what other processes have written meanwhile."""
        from mibyan.paths import file_lock, write_atomic

        with file_lock(self._path, timeout=_PATIENCE):
            kept = _read(self._path)
            for plugin_id, origin in _gone(kept, seen) if seen is not None else ():
                kept[plugin_id] = {d: one for d, one in kept[plugin_id].items() if one.origin != origin}
            for plugin_id, digest, outcome in new:
                kept[plugin_id] = {**_others(kept.get(plugin_id, {}), outcome), digest: outcome}
            self._kept = _bounded(kept)
            data = {plugin_id: {d: as_dict(one) for d, one in known.items()} for plugin_id, known in self._kept.items()}
            # For the user only: a reason is an exception's text, which may say anything.
            write_atomic(self._path, json.dumps({"version": _VERSION, "outcomes": data}), mode=0o600)


def _outcome(record: PluginRecord, store: RegistryStore) -> Outcome:
    from mibyan.plugins.rows import tool_tokens

    try:
        by_name = tool_tokens(record, store.snapshot)
        tokens = tuple(by_name.get(name, 0) for name in record.tools)  # one that another displaces costs nothing
    except Exception:  # a typed function whose schema can't be made: its plugin's code raises what it likes
        tokens = None
    hint = None if record.hint is None else bounded(record.hint, _TEXT_LIMIT)
    return Outcome(
        record.state, bounded(record.reason, _TEXT_LIMIT), hint, record.tools, record.hooks, record.overrides,
        record.rejected, record.import_ms, tokens, record.loaded_at or time.time(), record.origin, LOADED_BY,
    )  # fmt: skip


def _gone(kept: Kept, seen: set[str]) -> list[tuple[str, str]]:
    """Id and place of each plugin that was kept and isn't there any more."""
    places = {(plugin_id, one.origin) for plugin_id, known in kept.items() for one in known.values()}
    return sorted(pair for pair in places if pair[1] not in seen and not os.path.lexists(pair[1]))


def _others(known: dict[str, Outcome], outcome: Outcome) -> dict[str, Outcome]:
    """What is kept beside a new outcome: not what the same plugin came to when its content was another."""
    return {d: one for d, one in known.items() if (one.origin, one.by) != (outcome.origin, outcome.by)}


def _bounded(kept: Kept) -> Kept:
    """The newest outcomes, in the order of ids."""
    newest = sorted(
        ((one.time, plugin_id, d, one) for plugin_id, known in kept.items() for d, one in known.items()),
        key=lambda four: four[:3], reverse=True,
    )  # fmt: skip
    found: Kept = {}
    for _, plugin_id, digest, outcome in newest[:_LIMIT]:
        known = found.setdefault(plugin_id, {})
        if len(known) < _CONTENTS_LIMIT:
            known[digest] = outcome
    return {plugin_id: found[plugin_id] for plugin_id in sorted(found)}


def _read(path: Path) -> Kept:
    """What the file says; what in it isn't ours is passed over."""
    try:
        content = json.loads(read_bytes(path, _SIZE_LIMIT))
        if content["version"] != _VERSION:
            return {}
        return {
            str(plugin_id): {str(digest): one for digest, data in known.items() if (one := _parsed(data)) is not None}
            for plugin_id, known in content["outcomes"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _parsed(data: Any) -> Outcome | None:
    """An outcome, `None` if `data` isn't one."""
    try:
        given = [data[key] for key in _LISTS]
        lists = dict(zip(_LISTS, map(tuple, given), strict=True))
        tokens = None if data["tool_tokens"] is None else tuple(data["tool_tokens"])
        outcome = Outcome(**{**data, **lists, "tool_tokens": tokens})
        texts = (outcome.reason, outcome.origin, outcome.by, outcome.hint or "", *sum(lists.values(), ()))
        numbers = (outcome.time, outcome.import_ms or 0, *(outcome.tool_tokens or ()))
        sound = outcome.state in _STATES and all(isinstance(one, list) for one in given)
        sound = sound and all(isinstance(text, str) for text in texts)
        sound = sound and (tokens is None or len(tokens) == len(outcome.tools))
        sound = sound and all(type(number) in {int, float} and math.isfinite(number) for number in numbers)
        time.gmtime(outcome.time)
    except (TypeError, KeyError, ValueError, OverflowError, OSError):
        return None
    return outcome if sound else None
