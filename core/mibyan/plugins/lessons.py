"""`Lessons`: what is kept of the plugins of a profile that were learned, and what of it holds now (plugins.M4).

`$MIBYAN_HOME/cache/learned.bin`: `{<id> NUL <place>: (<Learned.to_data()>, ...)}`, the newest first. It is a cache, see
`mibyan.filecache`: never an error, and never an authority: trust, overrides and who is on are decided by the operator's
configuration alone, and no call is run by anything but the plugin's own code.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from mibyan.filecache import CacheFile
from mibyan.plugins.contents import Contents, kept_digests
from mibyan.plugins.gates import operator_entry
from mibyan.plugins.learned import SHAPE, Learned, ModuleStates
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mibyan.plugins.candidate import Candidate
    from mibyan.plugins.ledger import Ledger
    from mibyan.plugins.services import LoaderServices
    from mibyan.plugins.slots import PluginSlot
    from mibyan.plugins.transaction import Transaction

#: What is kept of one plugin (for several environments, say), and plugins in all.
_EACH = 4
_LIMIT = 2_000


_UNSTEADY = "it registers something else each time, although nothing that it depends on has changed"


@record
class Lesson:
    """What came of learning a plugin."""

    #: How it has drifted, in a few words each; empty: it hasn't, or nothing was recalled.
    differences: tuple[str, ...] = ()
    #: Why what it registers can't be recalled; `None`: it can.
    why_not: str | None = None


class Lessons:
    """What was learned of the plugins of one runtime.

    Args:
        services: The runtime's parts.
    """

    def __init__(self, services: LoaderServices) -> None:
        self._services = services
        self._digests = kept_digests(services.home)
        #: The digests of plugins during the present look at them.
        self.contents = Contents(self._digests)
        self._file = CacheFile(services.home / "cache" / "learned.bin", SHAPE)
        self._kept: dict[str, tuple[Any, ...]] | None = None
        self._new: dict[str, tuple[Any, ...]] = {}
        self._environ: dict[str, str] | None = None
        self._modules = ModuleStates()
        self._before: frozenset[str] | None = None

    def begin(self) -> None:
        """The plugins are about to be loaded: what is imported from now on is imported under the same conditions."""
        self.look_anew()
        self._before = frozenset(sys.modules)

    def end(self) -> None:
        """The plugins are loaded: keep what was learned."""
        self._before = None
        self.save()

    def look_anew(self) -> None:
        """What comes next is about the files as they are then."""
        self.contents = Contents(self._digests)

    def present(self) -> Contents:
        """The digests of plugins as they are at this moment, whatever was looked at before."""
        return Contents(self._digests)

    def recall(self, candidate: Candidate) -> Learned | None:
        """What a plugin registers, if it was learned and nothing that it depends on has changed; no code is imported."""
        # Also of one that isn't known: its digest has to be from before its import.
        digest = None if candidate.editable else self.contents.digest(candidate)
        kept = self._of(candidate)
        if digest is None or not kept:
            return None
        if self._environ is None:
            self._environ = dict(os.environ)
        config = self._config(candidate)
        for data in kept:
            learned = Learned.from_data(data)
            if learned is not None and learned.conditions.hold(digest, config, self._environ, self._modules):
                return learned if learned.is_steady else None
        return None

    def learn(self, slot: PluginSlot, ledger: Ledger, running: Transaction, recalled: Learned | None) -> Lesson:
        """Keep what a plugin's code has registered just now.

        Args:
            slot: The plugin, imported.
            ledger: Its ledger.
            running: The transaction that the import was.
            recalled: What had been recalled of it.
        """
        # What the import has changed of the environment and of `sys.path` counts for those that come after it.
        self._environ, self._modules = None, ModuleStates()
        from mibyan.plugins.learning import UnlearnableError, differences
        from mibyan.text import describe_exception, one_line

        if slot.was_there and not self._came_just_now(slot):
            return Lesson(why_not=None if recalled is not None else "its module had been imported before")
        try:
            found = self._learned(slot, ledger, running, recalled)
        except Exception as error:  # learning is never a reason for a plugin not to work
            self.forget(slot.candidate)
            # What it has done may have changed what the next plugin finds, or what it has imported of that one has.
            self._before = None
            known = isinstance(error, UnlearnableError)
            return Lesson(why_not=str(error) if known else one_line(describe_exception(error), 300))
        told = () if recalled is None or found.says_the_same(recalled) else tuple(differences(recalled, found))
        return Lesson(told, None if found.is_steady else _UNSTEADY)

    def _came_just_now(self, slot: PluginSlot) -> bool:
        """Whether another plugin of this load has imported a plugin's module, and nothing else has changed since it began."""
        return self._before is not None and slot.code is not None and slot.code.name not in self._before

    def _learned(self, slot: PluginSlot, ledger: Ledger, running: Transaction, recalled: Learned | None) -> Learned:
        from mibyan.plugins import learning

        candidate, now = slot.candidate, Contents(self._digests)
        before = self.contents.digest(candidate) if recalled is None else recalled.conditions.content
        learning.require_learnable(candidate)
        digest, files = now.digest(candidate), now.files(candidate)
        if digest is None or files is None:
            raise learning.UnlearnableError("it can't be told whether its files are as they were")
        config, environ = self._config(candidate), running.before.environ
        if recalled is not None and recalled.conditions.hold(digest, config, environ, self._modules):
            conditions = recalled.conditions  # nothing has to be read anew
        else:
            added = [entry for entry in running.additions.get("sys.path", ()) if isinstance(entry, str)]
            conditions = learning.conditions(digest, config, files, environ, added)
        found = learning.learned(conditions, candidate, ledger, self._services, running)
        if digest == before:
            return self._put(candidate, found, config, environ)
        if recalled is None:
            raise learning.UnlearnableError("its files have changed while it was being imported")
        return found

    def _put(
        self, candidate: Candidate, found: Learned, config: Mapping[str, Any], environ: Mapping[str, str]
    ) -> Learned:
        """Keep what was learned, beside what holds under other conditions; with what it drifted before."""
        others = [one for data in self._of(candidate) if (one := Learned.from_data(data)) is not None]
        same = [one for one in others if one.conditions.are_as(found.conditions, config, environ)]
        if same and same[0].tells_all_of(found):
            return same[0]
        found = found.after(same[0]) if same else found
        newest = sorted((one for one in others if one not in same), key=lambda one: -one.time)
        self._new[_key(candidate)] = tuple(one.to_data() for one in (found, *newest[: _EACH - 1]))
        return found

    def forget(self, candidate: Candidate) -> None:
        """Keep nothing more of a plugin: the next start imports it."""
        if self._of(candidate):
            self._new[_key(candidate)] = ()

    def save(self) -> None:
        """Write the files, if something is new: beside what other processes have written meanwhile."""
        self._digests.save()
        new, self._new = self._new, {}
        if not new:
            return
        found = self._file.read()
        kept = {**(found if isinstance(found, dict) else {}), **new}
        kept = {key: several for key, several in kept.items() if several and isinstance(key, str) and _is_there(key)}
        self._kept = dict(sorted(kept.items())[:_LIMIT])
        self._file.write(self._kept)

    def _of(self, candidate: Candidate) -> tuple[Any, ...]:
        if self._kept is None:
            found = self._file.read()
            self._kept = found if isinstance(found, dict) else {}
        key = _key(candidate)
        several = self._new.get(key, self._kept.get(key, ()))
        return several if isinstance(several, tuple) else ()

    def _config(self, candidate: Candidate) -> Mapping[str, Any]:
        return operator_entry(self._services.config, candidate)[1].config


def _key(candidate: Candidate) -> str:
    return f"{candidate.id}\0{candidate.origin}"


def _is_there(key: str) -> bool:
    place = key.partition("\0")[2]
    # What isn't a path is a module's name.
    return os.sep not in place or os.path.lexists(place)


def problem(home: Path) -> str | None:
    """Why nothing can be kept of plugins in the cache of a profile, in a sentence; `None`: it can be."""
    folder = home / "cache"
    if not folder.exists() or (folder.is_dir() and os.access(folder, os.W_OK)):
        return None  # of the home itself it is said elsewhere
    what = "can't be written to" if folder.is_dir() else "isn't a folder"
    return f"it {what}, so plugins without frozen definitions are imported at each start"
