"""`LockGuard`: under `--locked`, what may be registered is what `mibyan.lock` has (plugins.S3).

It stands where the registry takes an entry in, which is the only way to definitions and calls: whatever door a tool comes by (a
manifest, what was learned, an import, a late or repeated registration), it is held as it was accepted, or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.records import replace
from mibyan.report import Decision
from mibyan.text import describe_exception, one_line
from mibyan.tools.locked import locked_tool
from mibyan.tools.namespace import Verdict
from mibyan.tools.origin import place_of
from mibyan.tools.store import RegistryStore
from mibyan.tools.verdicts import whose

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mibyan.report import DecisionLog
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.locked import Lock, LockedTool
    from mibyan.tools.owner import Owner

RULE = "plugins.S3"
#: Characters from which on a variable's value counts as a secret (dispatch.C9).
_SECRET = 8


class LockGuard:
    """Compares what wants in with a lock.

    The host's tools are the program's own. A project's are accepted byte by byte by trust (plugins.S1), which is more than a lock;
    they may not have a name that is locked for another.

    Args:
        lock: What was accepted.
        path: Its file, for the report.
        log: Where refusals are told.
        by_trust: Whether an owner is a project's plugin.
        clean: Takes secrets out of a text: a lock has none.
    """

    def __init__(
        self, lock: Lock, path: Path, log: DecisionLog, *, by_trust: Callable[[Owner], bool], clean: Callable[[str], str]
    ) -> None:  # fmt: skip
        self.lock = lock
        self.path = path
        self._log = log
        self._by_trust = by_trust
        self._clean = clean
        self._text: str | None = None
        self._refused: dict[str, Decision] = {}
        #: The plugins whose files aren't those that were accepted, by id, with how they differ.
        self.changed: dict[str, str] = {}

    def refusal(self, name: object) -> Decision | None:
        """Why nobody has this name or alias, if the lock is why."""
        return self._refused.get(name) if isinstance(name, str) else None

    @property
    def refused(self) -> dict[str, Decision]:
        """Why what was refused was refused, by name and alias."""
        return dict(self._refused)

    # Plugins -----------------------------------------------------------------------------------------------------

    def objection(self, plugin_id: str, source: str) -> str | None:
        """Why a plugin may not be loaded at all; `None`: it may."""
        locked = self.lock.plugins.get(plugin_id)
        if locked is None:
            return f"{self.path} hasn't this plugin, and only what it has is loaded (--locked)"
        if locked.source != source:
            return f"{self.path} has the plugin of this id from {locked.source}, not from {source} (--locked)"
        return None

    def meet(self, plugin_id: str, version: str, digest: str | None) -> None:
        """Take in what a plugin's files are; one that isn't as it was accepted has no say in texts at run time."""
        locked = self.lock.plugins.get(plugin_id)
        if locked is None:
            return
        if digest and locked.digest == digest:
            self.changed.pop(plugin_id, None)
        elif locked.version != version:
            self.changed[plugin_id] = (
                f"version {locked.version or '(none)'} was accepted, this is {version or '(none)'}"
            )
        else:
            self.changed[plugin_id] = "its files have changed" if digest else "what its files are can't be told"

    def tell_changed(self) -> None:
        """Put the plugins that aren't as they were accepted into the report."""
        for plugin_id, how in self.changed.items():
            reason = (f"plugin {plugin_id!r} isn't the one that {self.path.name} has: {how}; its tools are offered where their "
                      "texts are the locked ones, and what its code would change of texts at run time is left out")  # fmt: skip
            self._tell_plugin(plugin_id, reason, problem=True)

    def tell_missing(self, plugin_id: str, *, problem: bool) -> None:
        """Put a plugin into the report that was accepted and isn't there."""
        reason = f"{self.path.name} has the plugin {plugin_id!r}, which isn't loaded"
        self._tell_plugin(plugin_id, reason, problem=problem)

    def tell_lost(self, name: str, plugin_id: str) -> None:
        """Put a tool into the report that was accepted and that its plugin hasn't any more."""
        reason = f"{self.path.name} has the tool {name!r} of plugin {plugin_id!r}, which doesn't register it now"
        self._log.add(Decision("warning", f"tool:{name}", reason, plugin_id, None, f"mibyan plugins lock --accept {name}",
                               problem=True, rule=RULE, decided_by=self.place("tools", name)))  # fmt: skip

    def _tell_plugin(self, plugin_id: str, reason: str, *, problem: bool) -> None:
        fix = f"mibyan plugins lock --only {plugin_id}"
        self._log.add(Decision("warning", f"lock:{plugin_id}", reason, plugin_id, str(self.path), fix, problem, RULE,
                               self.place("plugins", plugin_id)))  # fmt: skip

    # Tools -------------------------------------------------------------------------------------------------------

    def admit(self, entry: ToolEntry) -> ToolEntry | None:
        """The entry to hold, whose schema can't become another any more; `None`: it isn't what was accepted."""
        owner, locked = entry.owner, self.lock.tools.get(entry.name)
        if not (owner.is_host or self.lock.tools.keys().isdisjoint(entry.aliases)):
            # What is locked answers by its own name, or nobody does.
            entry = replace(entry, aliases=tuple(name for name in entry.aliases if name not in self.lock.tools))
        if owner.is_host or (locked is None and self._by_trust(owner)):
            return entry
        if locked is None:
            return self._refuse(entry, f"{self.path.name} hasn't this tool")
        if owner.plugin_id != locked.owner:
            return self._refuse(entry, f"{self.path.name} has it as a tool of plugin {locked.owner!r}", locked)
        try:
            return self._compared(entry, locked)
        except Exception as error:  # A schema that a plugin's function makes may raise anything.
            said = one_line(self._clean(describe_exception(error)), 300)
            return self._refuse(entry, f"its schema can't be compared with what {self.path.name} has", locked, said)

    def _compared(self, entry: ToolEntry, locked: LockedTool) -> ToolEntry | None:
        """The entry as it is held; `None` after a refusal.

        Raises:
            ToolSchemaError: Its schema can't be made.
            ValueError: It can't be written as JSON.
            RecursionError: Likewise.
        """
        if callable(entry.schema_source):
            from mibyan.schema.definition import normalise_schema

            entry = replace(entry, schema_source=normalise_schema(entry.name, entry.schema))
        now = locked_tool(entry)
        what = _texts(now, locked)
        if what:  # A secret in it, which the lock mustn't have, is no difference.
            now = locked_tool(entry, self._cleaner(entry))
            what = _texts(now, locked)
        if what:
            from mibyan.tools.lockdiff import tool_change

            change = tool_change(locked, now, (self.path.name, "now"))
            return self._refuse(entry, f"its {' and '.join(what)} isn't what {self.path.name} has", locked,
                                None if change is None else change.diff)  # fmt: skip
        self._readmit(entry)
        return self._without_say(entry) if entry.owner.id in self.changed else entry

    def _cleaner(self, entry: ToolEntry) -> Callable[[str], str]:
        """Takes secrets out of a tool's texts, its own variables' too: they are known to be secret once it is registered."""
        import os

        names = (*entry.requires_env, *entry.requires.env)
        own = [value for name in names if len(value := os.environ.get(name, "")) >= _SECRET]

        def clean(text: str) -> str:
            for value in own:
                text = text.replace(value, "[redacted]")
            return self._clean(text)

        return clean

    def _without_say(self, entry: ToolEntry) -> ToolEntry:
        """The tool of a plugin whose code isn't the accepted one: what that would say at run time doesn't count."""
        return entry if entry.dynamic_schema_overrides is None else replace(entry, dynamic_schema_overrides=None)

    def _refuse(
        self, entry: ToolEntry, why: str, locked: LockedTool | None = None, diff: str | None = None
    ) -> ToolEntry | None:
        """Tell that an entry isn't taken in; what is held instead: nothing."""
        import logging

        # The model reads this: nothing in it is the plugin's to word, its toolset's name neither.
        reason = f"the tool {entry.name!r} of {whose(entry.owner)} isn't accepted: {why} (--locked)"
        decision = Decision("rejected", f"tool:{entry.name}", reason, entry.plugin_id, place_of(entry),
                            f"mibyan tools diff, then: mibyan plugins lock --accept {entry.name}", problem=True, rule=RULE,
                            decided_by=None if locked is None else self.place("tools", entry.name), detail=diff)  # fmt: skip
        if self._log.add(decision):
            logging.getLogger("mibyan.registry").error("Tool REFUSED: %s", reason)
        for name in (entry.name, *entry.aliases):
            self._refused[name] = decision
        return None

    def _readmit(self, entry: ToolEntry) -> None:
        """A plugin that was loaded anew has its tool as it was accepted."""
        decision = self._refused.get(entry.name)
        if decision is not None and decision.plugin_id == entry.plugin_id:
            self._refused = {name: one for name, one in self._refused.items() if one is not decision}
            self._log.take_back(decision)

    def place(self, section: str, name: str) -> str | None:
        """`file:line: key` of one of the lock's `plugins` or `tools`; `None`: it has none of that name."""
        from mibyan.tools.lockfile import line_of, text_of

        if name not in (self.lock.plugins if section == "plugins" else self.lock.tools):
            return None
        if self._text is None:  # As it would be written: that somebody has laid it out anew is hardly worth reading it.
            self._text = text_of(self.lock)
        return f"{self.path}:{line_of(self._text, name, section)}: {section}.{name}"


def _texts(now: LockedTool, locked: LockedTool) -> tuple[str, ...]:
    """What the model would see of a tool, and in which sessions, and isn't what was accepted."""
    return tuple(part for part in locked.differs_in(now) if part in {"toolset", "description", "schema"})


class LockedStore(RegistryStore):
    """A registry that takes in what its guard admits.

    Args:
        guard: The guard.
        last_wins: See `RegistryStore`.
        log: See `RegistryStore`.
    """

    guard: LockGuard

    def __init__(self, guard: LockGuard, *, last_wins: bool, log: DecisionLog) -> None:
        super().__init__(last_wins=last_wins, log=log)
        self.guard = guard

    def register(self, entry: ToolEntry, *, override: bool) -> tuple[Verdict, ToolEntry | None]:
        """Let an admitted entry claim its name, see `RegistryStore.register`."""
        admitted = self.guard.admit(entry)
        if admitted is None:
            return Verdict.LOCKED_OUT, self._held.get(entry.name)
        return super().register(admitted, override=override)

    def replace(self, entry: ToolEntry) -> bool:
        """Put an admitted entry in the place of its owner's lazy one; if it isn't, there is none any more."""
        admitted = self.guard.admit(entry)
        if admitted is not None:
            return super().replace(admitted)
        if self._own(entry) is not None:
            self.withdraw(entry.name, entry.owner)
        return False
