"""`Loading`: how one plugin gets into a runtime and out of it again: announced, imported, dismantled (plugins.L2, L7)."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from mibyan.errors import PluginError
from mibyan.plugins import frozen
from mibyan.plugins.contents import content_of
from mibyan.plugins.context import PluginContext
from mibyan.plugins.gates import is_project_code, may_override, operator_entry, own_settings
from mibyan.plugins.journal import journal_of
from mibyan.plugins.ledger import Ledger, OptIn
from mibyan.plugins.making import close_of
from mibyan.plugins.offers import OfferTable
from mibyan.plugins.plugin_registry import PluginRegistry
from mibyan.plugins.rows import day, moment
from mibyan.plugins.state import ACTIVE, FOUND, READY, with_unlearned
from mibyan.report import Decision
from mibyan.text import describe_exception, one_line
from mibyan.tools.current import Current, acting
from mibyan.tools.origin import place_of
from mibyan.tools.owner import Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from contextlib import AbstractContextManager

    from mibyan.plugins.lessons import Lessons
    from mibyan.plugins.policies import PolicyGuards
    from mibyan.plugins.services import LoaderServices
    from mibyan.plugins.slots import PluginSlot
    from mibyan.plugins.transaction import Transaction

#: Differences that a warning names.
_MOST_TOLD = 5

_DRIFT = "the plugin's author can mend it: mibyan plugins manifest PATH --write"


class Loading:
    """Loads plugins into one runtime.

    Args:
        services: The runtime's parts.
        activate: Imports the plugin with an id.
        resolve: Imports the plugin with an id and gives what `module:attribute` names.
        policies: What stands in for policies that can't be used.
        lessons: What is known of plugins without frozen definitions.
    """

    def __init__(
        self,
        services: LoaderServices,
        activate: Callable[[str], None],
        resolve: Callable[[str, str], Any],
        policies: PolicyGuards,
        lessons: Lessons,
    ) -> None:
        self._services = services
        self._policies = policies
        self._lessons = lessons
        self._activate = activate
        self._resolve = resolve
        self._number: int | None = None
        #: What plugins offer beside tools and hooks.
        self.offers = OfferTable()

    def recall(self, slot: PluginSlot) -> bool:
        """Whether it is known what a plugin without frozen definitions registers, as it is now."""
        slot.learned = self._lessons.recall(slot.candidate)
        return slot.learned is not None

    def forget_learned(self, slot: PluginSlot) -> None:
        """What was learned of a plugin is of no use."""
        if slot.learned is not None:
            slot.learned = None
            self._lessons.forget(slot.candidate)

    def announce(self, slot: PluginSlot) -> None:
        """Register what a plugin's manifest defines, or what was learned of it; nothing is imported.

        Raises:
            MibyanError: It can't be registered; nothing of it is left.
            DamagedError: What was kept of it can't be used; nothing of it is left.
        """
        ctx, ledger = self._begin(slot)
        try:
            known = self._announce(slot, ctx, ledger)
        except BaseException:
            self._policies.hold(slot)
            self._lose(slot, ledger)
            self._take_back(slot, ledger)
            raise
        ledger.phase = "kept"
        slot.become(READY, f"{known}; its code is imported when it is first used")

    def _announce(self, slot: PluginSlot, ctx: PluginContext, ledger: Ledger) -> str:
        """Register what is known; how it is known."""
        plugin_id, learned = slot.id, slot.learned

        def activate() -> None:
            self._activate(plugin_id)

        if learned is None:
            slot.announced = frozen.announce(
                slot.candidate, ctx, ledger, self._services, activate,
                lambda target: self._resolve(plugin_id, target), rank=slot.rank,
            )  # fmt: skip
            return "its manifest says what it offers"
        from mibyan.plugins.recalling import Recall

        recall = Recall(learned, slot.candidate, ledger.owner, activate, self._services)
        slot.recalled = recall.tools()
        recall.announce(ctx, ledger, rank=slot.rank)
        return f"what it offers was learned on {day(moment(learned.time))}"

    def run(self, slot: PluginSlot, targets: Collection[str]) -> None:
        """Import a plugin's code and let it register, as a transaction.

        Args:
            slot: The plugin; a frozen one that was announced gets its handlers.
            targets: The main modules of all installed plugins that were found.

        Raises:
            PluginError: Another plugin is being loaded and doesn't come to an end.
            BaseException: Whatever the plugin raised; nothing of it is left.
        """
        from mibyan.plugins.importing import code_of, new_number
        from mibyan.plugins.transaction import transaction, turn

        if self._number is None:
            self._number = new_number()
        code = slot.code = code_of(slot.candidate, self._number, slot.sources)
        slot.named = set()
        slot.was_there = code.name in sys.modules
        ctx, ledger = self._begin(slot) if slot.context is None or slot.ledger is None else (slot.context, slot.ledger)

        def undo() -> None:
            self._policies.hold(slot)
            self._lose(slot, ledger)
            self._take_back(slot, ledger)
            code.forget()

        running: Transaction | None = None
        try:
            # Who only waits for its turn isn't noted: it isn't what another's import dies of.
            with turn(slot.id), self._noted(slot), transaction(slot.id, code.belongs, undo) as running:
                self._timed(slot, lambda: self._register(slot, ctx, ledger, targets))
                ledger.phase = "kept"
        except BaseException:
            if running is not None and running.threads:
                self._warn(
                    slot, f"threads that it started still run: {', '.join(running.threads)}", "restart the program"
                )
            raise
        self._settle(slot, ledger, running)

    @staticmethod
    def _timed(slot: PluginSlot, do: Callable[[], None]) -> None:
        started = time.perf_counter()
        slot.busy = True
        try:
            do()
        finally:
            slot.busy = False
            slot.import_ms = round((time.perf_counter() - started) * 1000, 1)

    def _register(self, slot: PluginSlot, ctx: PluginContext, ledger: Ledger, targets: Collection[str]) -> None:
        from mibyan.plugins.importing import InstalledCode
        from mibyan.plugins.recording import Recorder
        from mibyan.plugins.registering import current, register_plugin

        code = slot.code
        if code is None:
            raise PluginError(f"plugin {slot.id!r} has no code", plugin_id=slot.id)
        ledger.announced = slot.announced if slot.is_frozen else None
        if slot.learned is not None:
            ledger.recalled = dict(slot.recalled)
        elif not slot.is_frozen:
            frozen.offer_manifest(slot.candidate, ctx, ledger)
        ledger.acts, ledger.looked_at = None if slot.is_frozen else [], ""
        recorder = Recorder(code.name, targets, keep=isinstance(code, InstalledCode))
        register_plugin(code, ctx, ledger, recorder, self._services)
        if slot.is_frozen:
            with acting(current(ctx, ledger, self._services)):
                frozen.supply(ctx.manifest, ledger, self._services, lambda target: self.named(slot, target))
        if slot.learned is not None:
            from mibyan.plugins.recalling import withdraw

            withdraw(slot.learned, ledger, self.offers, self._services)
        ledger.announced = ledger.recorder = None

    def give_up(self, slot: PluginSlot) -> None:
        """In a child process: another thread was loading the plugin when it was made, and isn't there to go on."""
        slot.busy = False
        if slot.ledger is not None and slot.ledger.phase == "open":
            self._take_back(slot, slot.ledger)
        if slot.code is not None and not slot.is_active:
            slot.code.forget()

    def after_fork(self) -> None:
        """In a child process: nobody else offers, records or imports anything."""
        from mibyan.plugins.recording import RECORDINGS

        self.offers.after_fork()
        RECORDINGS.after_fork()
        journal_of(self._services.home).after_fork()

    def named(self, slot: PluginSlot, target: str) -> Any:
        """What `module:attribute` names in an imported plugin.

        Raises:
            PluginError: There is no such thing.
        """
        from mibyan.plugins.importing import attribute

        if slot.code is None:
            raise PluginError(f"plugin {slot.id!r} isn't imported", plugin_id=slot.id)
        module, _, name = target.partition(":")
        if module not in slot.named:
            with self._noted(slot, f"import {module}"):
                slot.code.import_named(module)
            slot.named.add(module)
        return attribute(slot.code.import_named(module), name)

    def _noted(self, slot: PluginSlot, step: str = "import") -> AbstractContextManager[None]:
        """What writes down that a plugin is being imported, while that lasts (plugins.L4)."""
        one = slot.candidate
        # What is imported when it is first used may have been changed since the plugins were looked at.
        contents = self._lessons.contents if slot.state == FOUND else self._lessons.present()
        return journal_of(self._services.home).importing(
            one.id, one.origin, content_of(one, contents), step, makes_home=one.source != "builtin"
        )

    def dismantle(self, slot: PluginSlot, *, returns: bool = False) -> None:
        """Take back all that a plugin did: its tools and hooks first, so that nothing fires, then its callbacks, its modules.

        Args:
            slot: The plugin.
            returns: Whether it is about to be loaded anew, and its names are kept for it.
        """
        ledger = slot.ledger
        if ledger is None or ledger.phase == "closed":
            return
        from mibyan.plugins.process_state import remove_additions

        last_words = [i.function for i in self._services.hooks.of_owner(ledger.owner, "mibyan_unload")]
        self._take_back(slot, ledger, last_words, returns=returns)
        remove_additions(ledger.additions)
        if slot.code is not None:
            slot.code.forget()

    def end(self, slot: PluginSlot) -> None:
        """Let a plugin go with its runtime; of one whose code was never imported nothing is left to be told to it."""
        if slot.code is None and slot.ledger is not None and not slot.ledger.callbacks:
            slot.ledger.phase = "closed"
        else:
            self.dismantle(slot)

    def _begin(self, slot: PluginSlot) -> tuple[PluginContext, Ledger]:
        """A fresh owner, with a ledger and a context."""
        candidate = slot.candidate
        if self._services.guard is not None and not is_project_code(candidate):
            digest = self._lessons.contents.portable_digest(candidate)
            self._services.guard.meet(candidate.id, candidate.version, digest)
        _, entry = operator_entry(self._services.config, candidate)
        opt_in = OptIn(may_override(candidate, entry))
        ledger = Ledger(Owner(candidate.id, "plugin", candidate.source, opt_in), opt_in)
        registry = PluginRegistry(self._services.store, ledger)
        settings = own_settings(self._services.config, candidate)
        context = PluginContext(candidate, ledger, registry, self.offers, self._services, settings, rank=slot.rank)
        slot.ledger, slot.context, slot.announced = ledger, context, {}
        return context, ledger

    def _lose(self, slot: PluginSlot, ledger: Ledger) -> None:
        """Remember which tools a load that failed had registered: somebody may ask where they are."""
        slot.lost = tuple((entry.name, place_of(entry)) for entry in self._services.store.entries_of(ledger.owner))

    def _take_back(
        self, slot: PluginSlot, ledger: Ledger, last_words: Collection[Callable[[], Any]] = (), *, returns: bool = False
    ) -> None:
        """Remove what the plugin registered in the runtime, then call what it wanted called, the last one first."""
        ledger.phase = "closed"
        ledger.announced = ledger.recorder = ledger.acts = None
        self._services.hooks.remove_owner(ledger.owner)
        self._services.store.remove_owner(ledger.owner, returns=returns)
        services = self.offers.remove_owner(ledger.owner)
        closing = [close for service in services if callable(close := close_of(service))]
        for callback in (*last_words, *closing, *reversed(ledger.callbacks)):
            if ledger.pid == os.getpid():
                self._call(slot, ledger, callback)
        ledger.callbacks.clear()
        if slot.ledger is ledger:
            slot.context, slot.announced, slot.recalled = None, {}, {}

    def _call(self, slot: PluginSlot, ledger: Ledger, callback: Callable[[], Any]) -> None:
        """A callback of a plugin that goes: whatever it raises, the others are called."""
        try:
            with acting(Current(self._services.store, ledger.owner)):
                self._services.awaited(callback())
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raised = one_line(self._services.clean(describe_exception(error)), 300)
            self._warn(slot, f"its unload callback raised {raised}")

    def _settle(self, slot: PluginSlot, ledger: Ledger, running: Transaction) -> None:
        ledger.additions = running.additions
        slot.become(ACTIVE, f"imported in {slot.import_ms:g} ms")
        announced = slot.candidate.manifest.hooks if slot.candidate.manifest is not None else ()
        absent = [name for name in announced if not self._services.hooks.of_owner(ledger.owner, name)]
        drift = [f"has {what}, which its manifest doesn't say" for what in dict.fromkeys(ledger.drift)]
        drift += [f"has no hook {name!r}, which its manifest announces" for name in absent]
        if drift:
            self._warn(slot, f"its code {', '.join(drift)}", _DRIFT)
        if not slot.is_frozen:
            self._learn(slot, ledger, running)

    def _learn(self, slot: PluginSlot, ledger: Ledger, running: Transaction) -> None:
        """Keep what the code has registered for the next start, and tell if that isn't what was recalled."""
        recalled, slot.learned, slot.recalled = slot.learned, None, {}
        lesson = self._lessons.learn(slot, ledger, running, recalled)
        ledger.acts = None
        if lesson.differences:
            told = "; ".join(lesson.differences[:_MOST_TOLD])
            rest = len(lesson.differences) - _MOST_TOLD
            told += f"; and {rest} more" if rest > 0 else ""
            self._warn(slot, f"its code registers something else than it did when it was learned: it {told}", None)
        if lesson.why_not:
            slot.become(ACTIVE, with_unlearned(slot.reason, lesson.why_not))

    def _warn(self, slot: PluginSlot, reason: str, fix: str | None = None) -> None:
        import logging

        logging.getLogger("mibyan.plugins").warning("Plugin %r: %s", slot.id, reason)
        self._services.log.add(
            Decision("warning", f"plugin:{slot.id}", reason, slot.id, slot.candidate.origin, fix, problem=True)
        )
