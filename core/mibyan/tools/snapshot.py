"""What readers of a registry get: all of it at one moment."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.owner import Owner


@record(eq=False)
class RegistrySnapshot:
    """What a registry held at one moment."""

    #: Entries by their own names.
    entries: Mapping[str, ToolEntry]
    #: Tool names by alias.
    aliases: Mapping[str, str]
    #: Toolset names by alias.
    toolset_aliases: Mapping[str, str]
    #: Grows by one with each mutation.
    generation: int
    _toolsets: list[Mapping[str, tuple[str, ...]]] = field(default_factory=list, repr=False)

    @property
    def toolsets(self) -> Mapping[str, tuple[str, ...]]:
        """The sorted names of the tools of each toolset, toolsets in sorted order."""
        if not self._toolsets:
            # No lock: two threads that come at once make the same.
            self._toolsets.append(_by_toolset(self.entries))
        return self._toolsets[0]


def _by_toolset(entries: Mapping[str, ToolEntry]) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for name, entry in entries.items():
        found.setdefault(entry.toolset, []).append(name)
    return MappingProxyType({toolset: tuple(sorted(found[toolset])) for toolset in sorted(found)})


@record
class Toolset:
    """A bundle of tools as a plugin or the operator declares it."""

    name: str
    tools: tuple[str, ...] = ()
    #: Names of other toolsets that belong to it.
    includes: tuple[str, ...] = ()
    description: str = ""
    #: `builtin`, `composite`, `posture`, `preset`, `registry`, `alias`, `custom`, `plugin` or `mcp`.
    kind: str = "plugin"
    #: Where it was declared.
    origin: str | None = None
    owner: Owner | None = field(default=None, compare=False)
