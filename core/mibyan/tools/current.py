"""Who is running: the runtime and the owner that plugin code in this context belongs to.

The runtime sets it while it loads a plugin and while it runs a plugin's handler, hook or check; the facade
(`mibyan.registry`, `mibyan.get_runtime`) reads it. A thread that a plugin starts has a context of its own, in which
nobody is running: what it does through the facade can't be attributed (registry.R6).
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from mibyan.tools.owner import Owner
    from mibyan.tools.registry import ToolRegistry
    from mibyan.tools.store import RegistryStore


@record(eq=False)
class Current:
    """The code that runs in this context."""

    store: RegistryStore
    owner: Owner
    #: While a plugin's module is being imported: takes each tool function that `@mibyan.tool` makes.
    collect: Callable[[Any], None] | None = None
    #: While a plugin's module is being imported: keeps what it asked of the facade, to replay it in further runtimes.
    record: Callable[[str, tuple[Any, ...], dict[str, Any]], None] | None = None
    #: While a plugin is loading: its own registry, which the facade's is then.
    registry: ToolRegistry | None = None


#: `None`: no plugin runs here.
CURRENT: ContextVar[Current | None] = ContextVar("mibyan_current", default=None)


class acting:  # noqa: N801 - used as a word: `with acting(current)`
    """Let `mibyan.registry` and `mibyan.get_runtime` mean the plugin's runtime and the plugin meanwhile.

    Args:
        current: The plugin; `None`: what runs meanwhile can't be attributed.
    """

    __slots__ = ("_before", "_current")

    def __init__(self, current: Current | None) -> None:
        self._current = current
        self._before: Current | None = None

    def __enter__(self) -> None:
        self._before = CURRENT.get()
        try:
            CURRENT.set(self._current)
        except BaseException:  # An interrupt, once it was set: nobody leaves what wasn't entered.
            CURRENT.set(self._before)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        CURRENT.set(self._before)


def acting_as(store: RegistryStore, owner: Owner | None) -> acting:
    """Let code of `owner` run in its name; the host's, and what can't be attributed, in nobody's."""
    return acting(None if owner is None or owner.kind != "plugin" else Current(store, owner))
