"""Loading one plugin by itself, past what its manifest says of its tools, to see what its code registers (plugins.M4).

There is no other plugin, so that nobody holds a name it wants, and nothing that it lacks keeps it off: what is looked
for is what its code does, not whether it may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.errors import PluginError
from mibyan.plugins.failures import describe_failure
from mibyan.plugins.lessons import Lesson, Lessons
from mibyan.plugins.loading import Loading
from mibyan.plugins.policies import PolicyGuards
from mibyan.plugins.slots import PluginSlot

if TYPE_CHECKING:
    from mibyan.plugins.candidate import Candidate
    from mibyan.plugins.importing import PluginCode
    from mibyan.plugins.learned import Learned
    from mibyan.plugins.ledger import Ledger, Registered
    from mibyan.plugins.services import LoaderServices
    from mibyan.plugins.transaction import Transaction

#: The hooks that the loader itself calls.
_OWN_HOOKS = frozenset({"mibyan_register", "mibyan_unload"})


class _Witness(Lessons):
    """Sees what was registered, and keeps nothing of it."""

    seen: tuple[Registered, ...] = ()

    def learn(self, slot: PluginSlot, ledger: Ledger, running: Transaction, recalled: Learned | None) -> Lesson:
        """Note what the plugin has registered."""
        del slot, running, recalled
        self.seen = tuple(ledger.acts or ())
        return Lesson()


class Alone:
    """A plugin that was loaded by itself.

    Args:
        candidate: The plugin; its manifest has no tools.
        services: The parts of a runtime without plugins.
        expected: How much it offers even if its code registers nothing: tools that its manifest names the functions of.

    Raises:
        PluginError: It can't be loaded, and why.
    """

    def __init__(self, candidate: Candidate, services: LoaderServices, *, expected: int = 0) -> None:
        self._witness = _Witness(services)
        self._loading = Loading(
            services, _nobody, lambda _, target: self.named(target), PolicyGuards(services, lambda _: False), self._witness
        )  # fmt: skip
        self._slot = PluginSlot(candidate)
        self._services = services
        self._load(expected)

    def _load(self, expected: int) -> None:
        candidate, services = self._slot.candidate, self._services
        target = candidate.target
        if target is None:
            raise PluginError(candidate.problem or "there is nothing to import", hint=candidate.hint)
        _, ledger = self._loading._begin(self._slot)
        ledger.offered += expected
        try:
            self._loading.run(self._slot, [target.value.partition(":")[0]])
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            reason, hint = describe_failure(error, self._slot.code, services.clean)
            raise PluginError(reason, hint=hint, plugin_id=candidate.id) from error

    @property
    def code(self) -> PluginCode:
        """Its code."""
        if self._slot.code is None:
            raise PluginError(f"plugin {self._slot.id!r} isn't imported", plugin_id=self._slot.id)
        return self._slot.code

    @property
    def candidate(self) -> Candidate:
        """The plugin."""
        return self._slot.candidate

    @property
    def acts(self) -> tuple[Registered, ...]:
        """What it registered, in order."""
        return self._witness.seen

    @property
    def hooks(self) -> list[str]:
        """The names of the hooks that it implements, sorted."""
        owner = None if self._slot.ledger is None else self._slot.ledger.owner
        return [name for name in self._services.hooks.names_of(owner) if name not in _OWN_HOOKS] if owner else []

    @property
    def told(self) -> list[str]:
        """What the report says of it: hooks that don't exist, say."""
        return [one.reason for one in self._services.log if one.kind in {"unknown", "warning"}]

    def named(self, target: str) -> Any:
        """What `module:attribute` names in it; `None` if there is no such thing."""
        try:
            return self._loading.named(self._slot, target)
        except Exception:  # a module of its own may raise anything
            return None


def _nobody(plugin_id: str) -> None:
    raise PluginError(f"there is no plugin {plugin_id!r} here")
