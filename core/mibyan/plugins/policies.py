"""Policies fail closed: a plugin with `role: policy` that is on and can't be used lets no call through (plugins.M2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.hooks.decisions import Block
from mibyan.plugins.state import FAILED, INCOMPATIBLE, NEEDS
from mibyan.report import Decision
from mibyan.text import one_line
from mibyan.tools.owner import Owner

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.plugins.candidate import Candidate
    from mibyan.plugins.services import LoaderServices
    from mibyan.plugins.slots import PluginSlot

#: The states of a policy in which nobody knows what it would have said. What is disabled, untrusted or unloaded is so
#: by somebody's word.
_UNUSABLE = frozenset({FAILED, NEEDS, INCOMPATIBLE})


class PolicyGuards:
    """Stands in for the policies of one runtime that can't be used: each blocks every call, naming its plugin.

    Args:
        services: The runtime's parts.
        may_speak: Whether a candidate is one that the operator trusts.
    """

    def __init__(self, services: LoaderServices, may_speak: Callable[[Candidate], bool]) -> None:
        self._services = services
        self._may_speak = may_speak
        self._held: dict[PluginSlot, Owner] = {}

    def hold(self, slot: PluginSlot) -> None:
        """Let no call through, if the plugin is a policy, until it is settled what becomes of it.

        Called before a policy's hooks are taken back, so that there is no moment without either.
        """
        if slot in self._held or not self._concerns(slot):
            return
        owner = self._held[slot] = Owner(slot.id, "plugin", slot.candidate.source)
        self._services.hooks.register(owner, {"pre_tool_call": lambda: Block(_refusal(slot))}, rank=slot.rank)

    def settle(self, slot: PluginSlot) -> None:
        """Let no call through if the plugin is a policy that can't be used; else let them."""
        if slot.state not in _UNUSABLE or not self._concerns(slot):
            self.release(slot)
            return
        self.hold(slot)
        self._tell(slot)

    def release(self, slot: PluginSlot) -> None:
        """Let calls through, as far as it is for this plugin."""
        owner = self._held.pop(slot, None)
        if owner is not None:
            self._services.hooks.remove_owner(owner)
            self._services.log.retract(slot.id, {"blocked"})

    def _concerns(self, slot: PluginSlot) -> bool:
        return is_policy(slot.candidate) and self._may_speak(slot.candidate)

    def _tell(self, slot: PluginSlot) -> None:
        import logging

        told = f"every call is blocked: plugin {slot.id!r} is a policy (role: policy) that can't be used"
        logging.getLogger("mibyan.plugins").error("%s", told)
        origin = slot.candidate.origin
        self._services.log.add(
            Decision(
                "blocked", "hook:pre_tool_call", told, slot.id, origin, _command(slot), problem=True, rule="plugins.M2"
            )
        )


def is_policy(candidate: Candidate) -> bool:
    """Whether a plugin's manifest says `role: policy`, also one that has a fault elsewhere."""
    if candidate.manifest is not None:
        return candidate.manifest.role == "policy"
    if candidate.problem is None:
        return False
    from mibyan.plugins.sources.manifests import role_in_faulty

    return role_in_faulty(candidate) == "policy"


def _refusal(slot: PluginSlot) -> str:
    """What the model and people read; of the state that the plugin is in when the call comes."""
    why = f"{slot.state}: {one_line(slot.reason, 500)}" if slot.state in _UNUSABLE else "it is being loaded just now"
    return (
        f"Blocked: plugin {slot.id!r}, which decides what calls may run (role: policy), can't be used ({why}). "
        f"Mend it, or turn it off: {_command(slot)}"
    )


def _command(slot: PluginSlot) -> str:
    return f"mibyan plugins disable {slot.id}"
