"""`Admission`: what one plugin goes through: asked, let in or refused, taken out again; each step ends in a state (plugins.L1)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mibyan.errors import PluginError
from mibyan.plugins import gates
from mibyan.plugins.slots import find_slot
from mibyan.plugins.state import ACTIVE, FAILED, FOUND, NEEDS, READY
from mibyan.plugins.telling import tell_lost, tell_state

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mibyan.plugins.candidate import Candidate
    from mibyan.plugins.gates import Gates, Refusal
    from mibyan.plugins.loading import Loading
    from mibyan.plugins.policies import PolicyGuards
    from mibyan.plugins.services import LoaderServices
    from mibyan.plugins.slots import PluginSlot

#: Decisions that are no longer so once the plugin they are about is taken back.
_UNDONE = frozenset({"overridden", "replaced"})


class Admission:
    """Lets the plugins of one runtime in and out.

    Args:
        services: The runtime's parts.
        loading: Gets one plugin in and out.
        policies: What stands in for policies that can't be used.
        slots: All plugins, in order; the loader's own list.
    """

    def __init__(
        self, services: LoaderServices, loading: Loading, policies: PolicyGuards, slots: Sequence[PluginSlot]
    ) -> None:
        self._services = services
        self._loading = loading
        self._policies = policies
        self._slots = slots

    # In ----------------------------------------------------------------------------------------------------------

    def ask(self, slot: PluginSlot, doors: Gates) -> None:
        """Whether the plugin itself is in order; of project code the bytes that were hashed are kept."""
        refusal = doors.first(slot.candidate)
        if refusal is not None:
            self._refuse(slot, refusal)
        slot.sources = doors.sources(slot.candidate) if slot.state == FOUND else None

    def admit(self, slot: PluginSlot, *, eagerly: bool = False) -> None:
        """Announce or import a plugin that nothing speaks against.

        Args:
            slot: The plugin.
            eagerly: Whether one without frozen definitions is imported although it was learned.
        """
        refusal = gates.needs(slot.candidate, self._standing)
        if refusal is not None:
            self._refuse(slot, refusal)
            return
        lacking = gates.missing(slot.candidate)
        if slot.is_frozen:
            self.announce(slot)
        elif lacking is None and not eagerly and self._loading.recall(slot):
            self._attempt(slot, lambda: self._recall_or_run(slot))
        elif lacking is None:
            self.run(slot)
        if lacking is not None and slot.state != FAILED:
            self._refuse(slot, lacking)

    def announce(self, slot: PluginSlot) -> None:
        """Register what a manifest defines, or what was learned; a failure is the plugin's state."""
        self._attempt(slot, lambda: self._loading.announce(slot))

    def run(self, slot: PluginSlot) -> None:
        """Import a plugin's code and let it register; a failure is the plugin's state."""
        self._attempt(slot, lambda: self._loading.run(slot, self._targets()))

    def _recall_or_run(self, slot: PluginSlot) -> None:
        """Register what was learned; where what was kept of it is damaged, it is as if nothing was."""
        from mibyan.plugins.recalling import DamagedError

        try:
            self._loading.announce(slot)
        except DamagedError:
            self._loading.forget_learned(slot)
            self._loading.run(slot, self._targets())

    def _targets(self) -> list[str]:
        """The main modules of all installed plugins that were found."""
        return [
            one.candidate.target.value.partition(":")[0] for one in self._slots
            if one.candidate.target is not None and one.candidate.target.kind in {"module", "entry_point"}
        ]  # fmt: skip

    def _attempt(self, slot: PluginSlot, do: Callable[[], None]) -> None:
        """Do something with a plugin; its failure is a state of that plugin and nothing else."""
        self._services.log.forget(f"plugin:{slot.id}", slot.candidate.origin)
        self._services.log.retract(slot.id, {FAILED})
        slot.lost = ()
        try:
            do()
        except KeyboardInterrupt:
            slot.become(FOUND, "its loading was interrupted")
            raise
        except BaseException as error:
            from mibyan.plugins.failures import describe_failure

            self._loading.forget_learned(slot)
            reason, hint = describe_failure(error, slot.code, self._services.clean)
            slot.become(FAILED, reason, hint or f"mibyan plugins disable {slot.id}")
            self._services.log.retract(slot.id, _UNDONE)
            self._settle(slot, error)
            tell_lost(slot, self._services.log)
        else:
            self._settle(slot)
        slot.loaded_at = time.time()

    def _settle(self, slot: PluginSlot, error: BaseException | None = None) -> None:
        """Tell what has become of a plugin; a policy that can't be used blocks calls from now on."""
        tell_state(slot, self._services.log, error, self._services.clean)
        self._policies.settle(slot)

    def _refuse(self, slot: PluginSlot, refusal: Refusal) -> None:
        self._services.log.forget(f"plugin:{slot.id}", slot.candidate.origin)
        slot.become(*refusal)
        slot.loaded_at = None
        self._settle(slot)

    def _standing(self, name: str) -> tuple[Candidate, Refusal | None] | None:
        """For `gates.needs`: the plugin with an id, and why it isn't there."""
        slot = find_slot(self._slots, name)
        if slot is None:
            return None
        usable = slot.state in {FOUND, READY, ACTIVE}
        return slot.candidate, None if usable else gates.Refusal(slot.state, slot.reason, slot.hint)

    # Out ---------------------------------------------------------------------------------------------------------

    def drop_bereft(self) -> None:
        """Take away those whose required plugin, which came later, has failed."""
        changed = True
        while changed:
            changed = False
            for slot in self._slots:
                refusal = gates.needs(slot.candidate, self._standing) if slot.state in {READY, ACTIVE} else None
                if refusal is not None:
                    self._policies.hold(slot)
                    self._dismantle(slot)
                    self._refuse(slot, refusal)
                    slot.loaded_at = time.time()
                    changed = True

    def take_out(self, slot: PluginSlot, *, for_good: bool = True) -> None:
        """Take back all that a plugin did.

        Args:
            slot: The plugin.
            for_good: Whether it stays out; else a policy lets no call through until it is back.

        Raises:
            PluginError: It is being imported.
        """
        if slot.busy:
            raise PluginError(f"plugin {slot.id!r} can't be unloaded: it is being imported", plugin_id=slot.id)
        if not for_good:
            self._policies.hold(slot)
        self._loading.dismantle(slot, returns=not for_good)
        self._services.log.retract(slot.id, _UNDONE)
        if slot.state in {READY, ACTIVE, NEEDS}:
            slot.become(FOUND, "it was unloaded")
            slot.loaded_at = None
            tell_state(slot, self._services.log)
        if for_good:
            self._policies.release(slot)

    def forget(self, slot: PluginSlot) -> None:
        """The plugin isn't there any more."""
        self._policies.release(slot)

    def _dismantle(self, slot: PluginSlot) -> None:
        self._loading.dismantle(slot)
        self._services.log.retract(slot.id, _UNDONE)
