"""Who is running: the runtime and the owner that plugin code in this context belongs to.

The runtime sets it while it loads a plugin and while it runs a plugin's handler, hook or check; the facade
(`mibyan.registry`, `mibyan.get_runtime`) reads it. A thread that a plugin starts has a context of its own, in which
nobody is running: what it does through the facade can't be attributed (registry.R6).
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.tools.owner import Owner
    from mibyan.tools.registry import ToolRegistry
    from mibyan.tools.store import RegistryStore


@dataclass(frozen=True, slots=True, eq=False)
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
