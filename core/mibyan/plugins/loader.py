"""`PluginLoader`: the plugins of one runtime: found, loaded, imported when used, reloaded, unloaded (plugins.L1-L7)."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from mibyan.errors import PluginError
from mibyan.forks import renewed
from mibyan.plugins import gates
from mibyan.plugins.admission import Admission
from mibyan.plugins.gates import Gates
from mibyan.plugins.lessons import Lessons
from mibyan.plugins.loading import Loading
from mibyan.plugins.offers import OfferedThings, Provided
from mibyan.plugins.outcomes import Outcomes
from mibyan.plugins.policies import PolicyGuards, is_policy
from mibyan.plugins.services import LoaderServices
from mibyan.plugins.slots import PluginSlot, find_slot, tools_by_owner
from mibyan.plugins.sources import ids
from mibyan.plugins.sources.scan import discover
from mibyan.plugins.state import FOUND, NEEDS, READY, SHADOWED, USABLE, PluginRecord, standing
from mibyan.plugins.telling import tell_notes
from mibyan.tools.current import Current, acting

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from mibyan.plugins.candidate import Candidate, Discovery, Note

__all__ = ["LoaderServices", "PluginLoader"]

#: The loaders that are loading in this context: a plugin that asks for its runtime's tools meanwhile gets what is there.
_LOADING: ContextVar[tuple[PluginLoader, ...]] = ContextVar("mibyan_loading", default=())

#: Seconds for which another thread waits until the plugins are loaded; then it works with those that are.
_PATIENCE = 120.0


class PluginLoader:
    """The plugins of one runtime.

    Frozen plugins are registered from their manifests and imported when something of theirs is first used; the others
    are imported by `load`. Nothing that a plugin does or raises leaves this class, but `KeyboardInterrupt`.

    Args:
        services: The runtime's parts.
    """

    def __init__(self, services: LoaderServices) -> None:
        self._services = services
        self._slots: list[PluginSlot] = []
        self._gates = Gates(services)
        self._policies = PolicyGuards(services, self._is_trusted)
        self._lessons = Lessons(services)
        self._loading = Loading(services, self.activate, self.resolve, self._policies, self._lessons)
        self._admission = Admission(services, self._loading, self._policies, self._slots)
        self._outcomes = Outcomes(services.home)
        self._lock = threading.RLock()
        self._notes: tuple[Note, ...] = ()
        self._loaded = False
        self._closed = False

    # Loading -----------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Find all plugins and load those that may be, once; in the order of plugins.F1."""
        if self._loaded or self._closed or self in _LOADING.get():
            return
        if not self._lock.acquire(timeout=_PATIENCE):
            return
        token = _LOADING.set((*_LOADING.get(), self))
        try:
            if not self._loaded:
                self._load_all()
                self._loaded = True
                self.keep_outcomes()
        finally:
            _LOADING.reset(token)
            self._lock.release()

    def _load_all(self) -> None:
        if not self._slots:
            found = self._discover()
            self._notes = found.notes
            tell_notes(found.notes, self._services.log)
            self._slots += [PluginSlot(candidate, rank) for rank, candidate in enumerate(found.candidates)]
        self._lessons.begin()
        undecided = [slot for slot in self._slots if slot.state == FOUND]
        for slot in undecided:
            self._admission.ask(slot, self._gates)
        for slot in undecided:
            if slot.state == FOUND:
                self._admission.admit(slot)
        self._admission.drop_bereft()
        self._lessons.end()
        self._gates.sweep()

    def _is_trusted(self, candidate: Candidate) -> bool:
        return self._gates.is_trusted(candidate)

    def _discover(self) -> Discovery:
        services = self._services
        self._gates = Gates(services)
        return discover(
            services.config.settings.plugins, services.home, services.project, safe_mode=services.safe_mode,
            also=services.also, no=services.no, further=services.further, unable=self._gates.is_unable,
            path=services.search_path, by_host=services.search_path is not None,
        )  # fmt: skip

    # Using -------------------------------------------------------------------------------------------------------

    def activate(self, plugin_id: str) -> None:
        """Import a plugin whose manifest was announced; nothing if that has happened.

        Args:
            plugin_id: Its id, in any spelling.

        Raises:
            PluginError: It can't be used, and why; if its import has failed just now, everything of it is gone.
        """
        slot = self._require(plugin_id)
        if slot.is_active:
            return
        from mibyan.plugins.transaction import turn

        before = slot.loaded_at
        with turn(slot.id):
            if slot.is_active:
                return
            if self._closed or slot.busy:
                why = "the runtime is closed" if self._closed else "it is being imported right now"
                raise PluginError(f"plugin {slot.id!r} can't be used: {why}", plugin_id=slot.id)
            self._activate(slot)
        if slot.loaded_at != before:
            self._keep([slot])
        if not slot.is_active:
            raise _unusable(slot)

    def _activate(self, slot: PluginSlot) -> None:
        if slot.state == FOUND:
            self._admission.admit(slot)
        if slot.state == READY or (slot.state == NEEDS and self._may_have_come(slot)):
            try:
                self._admission.run(slot)
            except KeyboardInterrupt:
                # Only this use of it was interrupted: the next one may try again.
                self._admission.announce(slot)
                raise

    @staticmethod
    def _may_have_come(slot: PluginSlot) -> bool:
        """Whether what an announced plugin lacked may be there by now; of a policy it must be."""
        lacks = is_policy(slot.candidate) and gates.missing(slot.candidate) is not None
        return slot.context is not None and not lacks

    def resolve(self, plugin_id: str, target: str) -> Any:
        """What `module:attribute` names in a plugin, which is imported if need be.

        Raises:
            PluginError: The plugin can't be used, or there is no such thing.
        """
        self.activate(plugin_id)
        return self._loading.named(self._require(plugin_id), target)

    @property
    def offers(self) -> OfferedThings:
        """What plugins offer beside tools and hooks: commands, skills, terminal backends."""
        return OfferedThings(self._loading.offers, self.activate, self.load)

    def run_command(self, name: str, text: str = "") -> Any:
        """Run a plugin's command in the plugin's name (`mibyan command NAME …`); what it gives, awaited.

        Args:
            name: The command.
            text: Its arguments, as one raw text.

        Raises:
            PluginError: There is no such command, or its plugin can't be used.
            BaseException: Whatever the command raises.
        """
        offer = self.offers.command(name)
        with acting(Current(self._services.store, offer.owner)):
            return self._services.awaited(offer.value(text))

    @property
    def provided(self) -> Provided:
        """The factories of services by name (`ctx.provide`); a look-up imports the plugin whose id is the name."""
        return Provided(self._loading.offers, self.activate, self._import_provider, self._services.store)

    def _import_provider(self, name: str) -> None:
        slot = find_slot(self._slots, name)
        if slot is not None and slot.state == READY:
            self.activate(slot.id)

    # Looking -----------------------------------------------------------------------------------------------------

    def records(self) -> Mapping[str, PluginRecord]:
        """The plugins by id, in the order of plugins.F1; of several with one id the one that counts."""
        found: dict[str, PluginRecord] = {}
        for record in self.all_records():
            known = found.get(record.id)
            if known is None or known.state == SHADOWED or (not known.is_usable and record.is_usable):
                found[record.id] = record
        return found

    def all_records(self) -> tuple[PluginRecord, ...]:
        """All that was found, those that are shadowed too, in order."""
        return self._records(self._slots.copy())

    def get(self, plugin_id: str) -> PluginRecord:
        """One plugin, by its id in any spelling.

        Raises:
            PluginError: There is none; the message has a suggestion.
        """
        return self._records([self._require(plugin_id)])[0]

    def survey(self) -> tuple[PluginRecord, ...]:
        """All plugins as far as finding them and reading their manifests can tell; nothing is imported (plugins.L8)."""
        if self._slots:
            return self.all_records()
        from mibyan.plugins.survey import survey

        found = self._discover()
        self._notes = found.notes
        self._lessons.look_anew()
        try:
            return survey(found.candidates, self._gates, self._outcomes, self._lessons.contents)
        finally:
            self._lessons.contents.save()

    def config_of(self, plugin_id: str) -> Mapping[str, Any]:
        """A plugin's settings, as its `ctx.config` has them; empty for an unknown id."""
        slot = find_slot(self._slots, plugin_id)
        return {} if slot is None else gates.own_settings(self._services.config, slot.candidate)

    def keep_outcomes(self, *, afresh: bool = False) -> None:
        """Keep what became of the plugins for those who ask without loading any (plugins.L9).

        Args:
            afresh: Whether also what is as it was gets the time of this load.
        """
        self._outcomes.keep(self.all_records(), self._services.store, self._lessons.contents, whole=True, afresh=afresh)

    def _keep(self, slots: Sequence[PluginSlot]) -> None:
        self._lessons.save()
        self._lessons.look_anew()
        self._outcomes.keep(self._records(slots), self._services.store, self._lessons.contents)

    def _records(self, slots: Sequence[PluginSlot]) -> tuple[PluginRecord, ...]:
        store, names = self._services.store, tools_by_owner(self._services.store)
        return tuple(slot.record(store, self._services.hooks, names) for slot in slots)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was passed over while looking for plugins."""
        return self._notes

    def _require(self, name: str) -> PluginSlot:
        self.load()
        slot = find_slot(self._slots, name)
        if slot is None:
            raise PluginError(ids.unknown(name, [slot.id for slot in self._slots]), hint="mibyan plugins list")
        return slot

    # Unloading ---------------------------------------------------------------------------------------------------

    def unload(self, plugin_id: str) -> None:
        """Take a plugin out of the runtime; what it had displaced comes back, and its callbacks are called (plugins.L7).

        Raises:
            PluginError: There is no such plugin, or it is being imported.
        """
        from mibyan.plugins.transaction import turn

        slot = self._require(plugin_id)
        with turn(slot.id):
            self._admission.take_out(slot)

    def reload(self, plugin_id: str) -> PluginRecord:
        """Unload a folder plugin, find it again and load it anew.

        Returns:
            What became of it.

        Raises:
            PluginError: It is installed or built in: Python imports such a module once, so a restart is needed; or it is gone.
        """
        from mibyan.plugins.transaction import turn

        slot = self._require(plugin_id)
        if slot.candidate.source in {"builtin", "pip"}:
            raise PluginError(f"plugin {slot.id!r} is installed: a restart is needed to load it anew", plugin_id=slot.id,
                              origin=slot.candidate.origin, hint="Restart the program.")  # fmt: skip
        with turn(slot.id):
            owner = None if slot.ledger is None else slot.ledger.owner
            self._admission.take_out(slot, for_good=False)
            try:
                self._load_anew(slot)
            finally:
                if owner is not None:
                    self._services.store.forget_places(owner)
        self._keep([slot])
        return self._records([slot])[0]

    def _load_anew(self, slot: PluginSlot) -> None:
        candidate = next((one for one in self._discover() if one.origin == slot.candidate.origin), None)
        if candidate is None:
            self._slots.remove(slot)
            self._admission.forget(slot)
            raise PluginError(f"plugin {slot.id!r} is gone: there is nothing at {slot.candidate.origin}")
        slot.renew(candidate)
        self._lessons.look_anew()
        self._admission.ask(slot, self._gates)
        if slot.state == FOUND:
            self._admission.admit(slot, eagerly=True)

    def load_tools_directory(self, path: str | os.PathLike[str], *, by_host: bool = True) -> list[str]:
        """Load the files of a directory that register tools at their top level (seed 000, *Discovery*; plugins.F6).

        Args:
            path: The directory.
            by_host: Whether the host names it. If not, what the operator allowed to a file of the profile's own tools
                directory isn't allowed to one of that name here.

        Returns:
            The ids (`tools.<stem>`) of those that are loaded, sorted; one that fails is logged and left out.

        Raises:
            PluginError: It isn't a directory, or the runtime is closed.
        """
        if self._closed:
            msg = f"The tools in {path} can't be loaded: the runtime is closed."
            raise PluginError(msg, hint="Make a new Runtime.")
        from mibyan.plugins.tools_folder import tool_candidates

        self.load()
        slots = [
            self._slot_for(candidate)
            for candidate in tool_candidates(path, self._services, self._slots, by_host=by_host)
        ]
        self._lessons.look_anew()
        for slot in slots:
            if slot.state == FOUND:
                self._admission.ask(slot, self._gates)
            if slot.state == FOUND:
                self._admission.admit(slot, eagerly=True)
        self._keep(slots)
        if self._closed:  # Meanwhile, by another thread.
            for slot in slots:
                self._loading.end(slot)
        return [slot.id for slot in slots if slot.state in USABLE]

    def _slot_for(self, candidate: Candidate) -> PluginSlot:
        with self._lock:
            known = next((slot for slot in self._slots if slot.candidate.origin == candidate.origin), None)
            if known is None:
                known = PluginSlot(candidate, len(self._slots))
                self._slots.append(known)
        return known

    def after_fork(self) -> None:
        """In a child process: what another thread was loading is loaded anew when it is needed."""
        from mibyan.plugins.transaction import _TURN

        self._lock = renewed(self._lock)
        self._outcomes.after_fork()
        self._loading.after_fork()
        for slot in () if _TURN.is_mine else self._slots:
            if slot.busy or slot.state == FOUND:
                self._loading.give_up(slot)

    @property
    def is_loaded(self) -> bool:
        """Whether `load` has come to its end."""
        return self._loaded

    def close(self) -> None:
        """Unload all plugins, the last one first; closing twice is fine."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        for slot in reversed(self._slots):
            self._loading.end(slot)
            self._policies.release(slot)


def _unusable(slot: PluginSlot) -> PluginError:
    return PluginError(
        f"plugin {slot.id!r} {standing(slot.state, slot.reason)}",
        plugin_id=slot.id,
        origin=slot.candidate.origin,
        hint=slot.hint,
    )
