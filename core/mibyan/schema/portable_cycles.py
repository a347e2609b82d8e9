"""Recursion among definitions: what never ends is opened, and for Gemini a property that recurs isn't required."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.schema.portable_nodes import require
from mibyan.schema.portable_parts import IN_PLACE, mapped, named, references

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mibyan.schema.portable_parts import Path


def end_endless(definitions: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Definitions that end: one that is itself, without anything between, says nothing about a value.

    Returns:
        The definitions, in which such references are open; whether there were any.
    """
    loops = _loops({name: set(references(schema, in_place=True)) for name, schema in definitions.items()})
    if not loops:
        return definitions, False
    return {name: _opened(schema, loops.get(name, _NONE)) for name, schema in definitions.items()}, True


def within_reason(root: dict[str, Any], definitions: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """A schema that requires nothing without end, and nothing that it doesn't have: Gemini refuses both.

    "Cyclic references … may only be used within non-required properties" (ai.google.dev/api/generate-content), so such
    properties aren't required, and where there is no property, a reference is open.

    Returns:
        The schema, its definitions, and whether one of them allows more than it did.
    """
    found = {name: _had(schema) for name, schema in definitions.items()}
    loops = _loops({name: set(references(schema)) for name, schema in found.items()})
    bare: dict[str, set[str]] = {name: set() for name in found}
    for name, loop in loops.items():
        found[name], bare[name] = _relaxed(found[name], loop)
    for name, loop in _loops(bare).items():
        found[name] = _opened(found[name], loop, within=_OUTSIDE_PROPERTIES)
    outer = _had(root)
    return outer, found, outer != root or found != definitions


def _had(schema: Any) -> Any:
    """A schema in which every object requires only properties that it has."""
    if not isinstance(schema, dict):
        return schema
    found = mapped(schema, lambda part, _step: _had(part))
    if "required" in found:
        properties = found.get("properties") or {}
        require(found, [name for name in found["required"] if name in properties])
    return found


_NONE: frozenset[str] = frozenset()
#: Where a reference isn't within a property.
_OUTSIDE_PROPERTIES = IN_PLACE | {"contains", "items", "prefixItems", "propertyNames", "unevaluatedItems"}
_OPTIONAL = frozenset(("additionalProperties", "patternProperties", "unevaluatedProperties"))


def _opened(schema: Any, names: frozenset[str], within: frozenset[str] = IN_PLACE) -> Any:
    """A schema without its references to some definitions, as far as they are within certain keywords."""
    if not isinstance(schema, dict) or not names:
        return schema
    if named(schema) in names:
        schema = {key: value for key, value in schema.items() if key != "$ref"}
    return mapped(schema, lambda part, step: _opened(part, names, within) if step[0] in within else part)


def _relaxed(schema: Any, loop: frozenset[str]) -> tuple[Any, set[str]]:
    """A schema in which properties that recur aren't required, and to what it recurs without a property around it."""
    if not isinstance(schema, dict):
        return schema, set()
    bare = {name for name in (named(schema),) if name is not None and name in loop}
    recurring: set[str | int] = set()

    def relax(part: Any, step: Path) -> Any:
        found, recurs = _relaxed(part, loop)
        if recurs and step[0] == "properties":
            recurring.add(step[1])
        elif step[0] not in _OPTIONAL:
            bare.update(recurs)
        return found

    found = mapped(schema, relax)
    if recurring and "required" in found:
        require(found, [name for name in found["required"] if name not in recurring])
    return found, bare


def _loops(graph: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
    """The definitions that lead back to themselves, each with all that are on a way there and back.

    Two walks, along the references and against them (Kosaraju's algorithm): there may be thousands in one loop.
    """
    against: dict[str, set[str]] = {name: set() for name in graph}
    for name, targets in graph.items():
        for target in targets & graph.keys():
            against[target].add(name)
    found: dict[str, frozenset[str]] = {}
    seen: set[str] = set()
    for name in reversed(_finished(graph)):
        loop = _reached(name, against, seen)
        if len(loop) > 1 or name in graph[name]:
            found.update(dict.fromkeys(loop, loop))
    return found


def _finished(graph: Mapping[str, set[str]]) -> list[str]:
    """All names, each after those that it leads to, except on its way back to itself."""
    finished: list[str] = []
    seen: set[str] = set()
    pending = [(name, False) for name in graph]
    while pending:
        name, done = pending.pop()
        if done:
            finished.append(name)
        elif name not in seen:
            seen.add(name)
            pending.append((name, True))
            pending += [(target, False) for target in graph[name] & graph.keys() if target not in seen]
    return finished


def _reached(start: str, graph: Mapping[str, set[str]], seen: set[str]) -> frozenset[str]:
    """What can be reached that wasn't seen before; it is now."""
    found: set[str] = set()
    pending = [start]
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            found.add(name)
            pending += graph[name]
    return frozenset(found)
