"""Plugins that require one another in a circle; circles of `after:` are told by whoever puts the plugins in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.cli.doctor.finding import Finding
from mibyan.plugins.sources.ids import key, split_requirement
from mibyan.report import turn_off

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mibyan.plugins.state import PluginRecord


def required(records: Iterable[PluginRecord]) -> Iterator[Finding]:
    """A finding for each circle of `requires_plugins`, beginning with its smallest id."""
    by_key = {key(one.id): one for one in records}
    edges = {name: _required(one, by_key) for name, one in by_key.items()}
    told: set[frozenset[str]] = set()
    for start in sorted(edges):
        circle = _circle(start, edges)
        if circle and frozenset(circle) not in told:
            told.add(frozenset(circle))
            names = " requires ".join(by_key[name].id for name in (*circle, start))
            what = f"`requires_plugins` goes in a circle: {names}; none is there before the other, and all go with one"
            first = by_key[start]
            yield Finding("warning", what, first.origin, f"take one of these away, or {turn_off(first.id)}")


def _required(one: PluginRecord, known: Mapping[str, PluginRecord]) -> list[str]:
    texts = one.candidate.manifest.requires_plugins if one.candidate.manifest is not None else ()
    names = (key(split_requirement(text)[0]) for text in texts)
    return sorted({name for name in names if name in known})


def _circle(start: str, edges: Mapping[str, Sequence[str]]) -> list[str]:
    """The shortest way from a plugin back to itself; empty: there is none."""
    ways = [[start]]
    seen: set[str] = set()
    for way in ways:
        for name in edges[way[-1]]:
            if name == start:
                return way
            if name not in seen:
                seen.add(name)
                ways.append([*way, name])
    return []
