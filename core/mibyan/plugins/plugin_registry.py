"""`PluginRegistry`: the registry as a plugin sees it: everything it does is in its ledger."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from mibyan.errors import ToolOverrideError
from mibyan.records import replace
from mibyan.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from mibyan.plugins.ledger import Ledger, Recalled
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.store import RegistrySnapshot, RegistryStore


class PluginRegistry(ToolRegistry):
    """`ctx.registry`, and what `mibyan.registry` means while the plugin is loading.

    While a frozen plugin's code is imported, its registrations take the places of the entries that its manifest
    announced, and nothing else (registry.R12): what was deregistered stays away, what wasn't announced is drift.
    """

    def __init__(self, store: RegistryStore, ledger: Ledger) -> None:
        self._store = store
        self._owner = ledger.owner
        self._ledger = ledger

    def _register_entry(self, entry: ToolEntry, *, override: bool) -> ToolEntry | None:
        ledger = self._ledger
        ledger.require_open(f"register the tool {entry.name!r}")
        if self._is_foreign:
            return entry
        ledger.offered += 1
        if ledger.announced is not None:
            return self._supply(entry, ledger.announced.get(entry.name))
        ledger.note("tool", entry.name, (entry, override))
        recalled = ledger.recalled.pop(entry.name, None)
        if recalled is not None:
            if recalled.is_claimed_by(entry, override=override):
                _presume(entry, recalled)
                return entry if self._store.replace(entry) else None
            self._store.withdraw(entry.name, self._owner)
        try:
            return super()._register_entry(entry, override=override)
        except ToolOverrideError as error:
            ledger.refusal = ledger.refusal or error
            raise

    def _supply(self, entry: ToolEntry, lazy: ToolEntry | None) -> ToolEntry | None:
        if lazy is None:
            self._ledger.drift.append(f"the tool {entry.name!r}")
            return None
        self._ledger.supplied.add(entry.name)
        merged = supplied(lazy, entry)
        if lazy.toolset != merged.toolset or (
            lazy.schema_source is not merged.schema_source and lazy.schema != merged.schema
        ):
            self._ledger.drift.append(f"another definition of the tool {entry.name!r}")
        return merged if self._store.replace(merged) else None

    @property
    def _is_foreign(self) -> bool:
        """Whether another plugin's module asks, imported as a library: what it asks is done when that plugin loads."""
        recorder = self._ledger.recorder
        return recorder is not None and recorder.is_foreign

    def deregister(self, name: str) -> bool:
        """Take one of the plugin's tools away, see `ToolRegistry.deregister`."""
        self._ledger.require_open(f"remove the tool {name!r}")
        if self._is_foreign:
            return True
        removed = super().deregister(name)
        self._ledger.recalled.pop(name, None)
        self._ledger.take_back_note(name)
        return removed

    def register_toolset_alias(self, alias: str, toolset: str) -> bool:
        """Let `alias` mean `toolset`, see `ToolRegistry.register_toolset_alias`."""
        self._ledger.require_open(f"register the toolset alias {alias!r}")
        if self._is_foreign:
            return True
        self._ledger.offered += 1
        self._ledger.note("alias", alias, toolset)
        return super().register_toolset_alias(alias, toolset)

    @property
    def snapshot(self) -> RegistrySnapshot:
        """All entries and aliases at this moment."""
        self._note_look("the registry")
        return super().snapshot

    def _note_look(self, what: str) -> None:
        self._ledger.note_look(what)


def _looking(name: str) -> Any:
    """A reading method of `ToolRegistry` that keeps that it was called while the plugin registered."""
    method = getattr(ToolRegistry, name)

    @wraps(method)
    def look(self: PluginRegistry, *args: Any, **kwargs: Any) -> Any:
        self._note_look("the registry")
        return method(self, *args, **kwargs)

    return look


for _name in (
    "get_entry", "get_all_tool_names", "get_tool_to_toolset_map", "is_toolset_available", "check_toolset_requirements",
    "check_tool_availability", "get_definitions", "dispatch",
):  # fmt: skip
    setattr(PluginRegistry, _name, _looking(_name))


def _presume(entry: ToolEntry, recalled: Recalled) -> None:
    """Let a typed function have the schema that was learned of it, where it would be the same: making it costs more."""
    from mibyan.tools.function import function_of

    function = function_of(entry) if recalled.made_of is not None else None
    if function is not None and recalled.made_of is not None:
        function.presume(recalled.entry.schema, recalled.made_of)


def supplied(lazy: ToolEntry, entry: ToolEntry) -> ToolEntry:
    """What the code registered, with what only the manifest says.

    A typed function's schema would have to be made first, which costs more than the call it is for: there the manifest's
    definition stays, and `mibyan plugins manifest --check` tells whether the two agree.
    """
    typed = callable(entry.schema_source)
    return replace(
        entry,
        schema_source=lazy.schema_source if typed else entry.schema_source,
        toolset=lazy.toolset if typed else entry.toolset,
        description=lazy.description if typed else entry.description,
        requires=lazy.requires,
        aliases=lazy.aliases,
        check_fn=entry.check_fn or lazy.check_fn,
        requires_env=entry.requires_env or lazy.requires_env,
        emoji=entry.emoji or lazy.emoji,
        activate=None,
    )
