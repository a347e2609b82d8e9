"""`Mutation`: one change of a registry, whatever number of steps it has (registry.R9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

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
