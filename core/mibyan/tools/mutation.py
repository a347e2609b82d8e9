"""`Mutation`: one change of a registry, whatever number of steps it has (registry.R9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.store import RegistryStore


class Mutation:
    """`with` it the registry changes as a whole: no snapshot shows a part of it, and the generation grows by one at most."""

    __slots__ = ("_depth", "_store", "changed", "grows")

    def __init__(self, store: RegistryStore) -> None:
        self._store = store
        self._depth = 0
        #: Whether something is another than before.
        self.changed = False
        #: Whether the generation grows.
        self.grows = False

    def __enter__(self) -> None:
        self._store._lock.acquire()
        self._depth += 1
        if self._depth == 1:
            self._store._version += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        if not self._depth:
            self._store.generation += self.grows
            # Where nothing changed, the snapshot that readers have is still the right one.
            self._store._version += 1 if self.changed or self.grows else -1
            self.changed = self.grows = False
        self._store._lock.release()

    def after_fork(self) -> None:
        """In a child process: a change that another thread took longer over than a fork waits ends here."""
        store = self._store
        if store._lock._is_owned() or not (self._depth or store._version % 2):  # type: ignore[attr-defined]
            return
        self._depth, store._version = 0, store._version + store._version % 2
        with self:
            self.changed = self.grows = True
            for name in list(store._acts):
                store._settle(name)

    def take(self, name: str, entry: ToolEntry) -> None:
        """Within the registry's lock, the change that most are: `name`, which was free, is `entry`'s."""
        store, version = self._store, self._store._version
        if version % 2:  # part of a larger change
            self.changed = self.grows = True
            store._held[name] = entry
            return
        try:
            store._version = version + 1
            store._held[name] = entry
            store.generation += 1
        finally:
            store._version = version + 2
