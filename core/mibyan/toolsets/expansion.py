"""From a toolset's name to its tools: a walk over what includes what, safe for circles and unknown names."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from mibyan.toolsets.bundles import Rule
    from mibyan.toolsets.catalogue import Catalogue

    #: A toolset, and the rules of the bundles on the way to it: what it contributes must pass them all.
    Stop: TypeAlias = tuple[str, frozenset[Rule]]


class Expansion:
    """What one toolset's name stands for.

    Each toolset is visited once for each set of rules on the way to it, so the walk ends whatever includes what, and
    its outcome doesn't depend on the order of includes.
    """

    def __init__(self, catalogue: Catalogue, name: str) -> None:
        self._catalogue = catalogue
        start: Stop = (name, frozenset())
        #: From where each stop was reached first, by a shortest way.
        self._before: dict[Stop, Stop | None] = {start: None}
        #: The tools, and the stop that contributes each.
        self._sources: dict[str, Stop] = {}
        #: Names that are included somewhere and unknown, with the toolset that includes them.
        self.missing: dict[str, str] = {}
        #: The tools that a bundle on every way to them leaves out, with that bundle and its rule.
        self.dropped: dict[str, tuple[str, Rule]] = {}
        self._rule_of: dict[Rule, str] = {}
        queue = deque([start])
        while queue:
            queue.extend(self._visit(queue.popleft()))
        self.dropped = {tool: why for tool, why in self.dropped.items() if tool not in self._sources}

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools' names, sorted; a bundle may name tools that aren't registered."""
        return tuple(sorted(self._sources))

    def via(self, tool: str) -> tuple[str, ...]:
        """The toolsets that lead to `tool`, from the expanded one to the one that has it."""
        return self._way(self._sources[tool])

    @property
    def toolsets(self) -> tuple[str, ...]:
        """The names of all toolsets on the way, the expanded one first."""
        return tuple(dict.fromkeys(name for name, _ in self._before))

    def way(self, toolset: str) -> tuple[str, ...]:
        """The toolsets that lead to one of `toolsets`, from the expanded one to that one."""
        return self._way(next(stop for stop in self._before if stop[0] == toolset))

    def _way(self, last: Stop) -> tuple[str, ...]:
        way = []
        stop: Stop | None = last
        while stop is not None:
            way.append(stop[0])
            stop = self._before[stop]
        return tuple(reversed(way))

    def _visit(self, stop: Stop) -> list[Stop]:
        """Take a stop's own tools; the stops to visit after it."""
        name, rules = stop
        toolset = self._catalogue.get(name)
        if toolset is None:
            before = self._before[stop]
            if before is not None:
                self.missing.setdefault(name, before[0])
            return []
        rule = self._catalogue.rule(name)
        if rule is not None:
            rules |= {rule}
            self._rule_of.setdefault(rule, name)
        self._take(toolset.tools, stop, rules)
        ahead = [(included, rules) for included in toolset.includes]
        fresh = [new for new in dict.fromkeys(ahead) if new not in self._before]
        self._before.update(dict.fromkeys(fresh, stop))
        return fresh

    def _take(self, tools: tuple[str, ...], stop: Stop, rules: frozenset[Rule]) -> None:
        entries, aliases = self._catalogue.snapshot.entries, self._catalogue.snapshot.aliases
        for tool in tools:
            own_name = aliases.get(tool, tool)
            broken = next((rule for rule in rules if not rule.keeps(entries.get(own_name))), None)
            if broken is not None:
                self.dropped.setdefault(own_name, (self._rule_of[broken], broken))
            elif own_name not in self._sources:
                self._sources[own_name] = stop
