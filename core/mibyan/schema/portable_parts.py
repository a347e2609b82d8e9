"""The schemas directly within a schema, and the references among definitions: what every rewriting step walks along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mibyan.schema.parts import LIST_KEYWORDS, MEMBER_KEYWORDS, SCHEMA_KEYWORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

#: Where a schema is within a document: keys and indexes, from the outermost inwards.
Path: TypeAlias = tuple[str | int, ...]

#: Definitions are no part of what a schema says about a value.
DEFINITIONS = frozenset(("$defs", "definitions"))
#: Parts that are about the same value as the schema around them, not about something within it.
IN_PLACE = frozenset(("allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then"))
#: What every reference begins with once it was made portable.
PREFIX = "#/$defs/"


def children(schema: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """The schemas directly within a schema, definitions among them, with their way from there."""
    for key, part in schema.items():
        if key in SCHEMA_KEYWORDS:
            if isinstance(part, list | tuple):  # `items` before 2020-12
                yield from (((key, index), each) for index, each in enumerate(part))
            else:
                yield (key,), part
        elif key in LIST_KEYWORDS and isinstance(part, list | tuple):
            yield from (((key, index), each) for index, each in enumerate(part))
        elif key in MEMBER_KEYWORDS and isinstance(part, dict):
            yield from (((key, name), each) for name, each in part.items())


def mapped(schema: dict[str, Any], change: Callable[[Any, Path], Any]) -> dict[str, Any]:
    """A copy of a schema in which every schema directly within it, except definitions, is what `change` gave for it.

    Args:
        schema: Its own keywords stay in their order.
        change: Gets a part and its way from `schema`.
    """
    copy = dict(schema)
    for key, part in schema.items():
        if part is None:
            continue
        if key in SCHEMA_KEYWORDS and not isinstance(part, list | tuple):
            copy[key] = change(part, (key,))
        elif key in SCHEMA_KEYWORDS or (key in LIST_KEYWORDS and isinstance(part, list | tuple)):
            copy[key] = [change(each, (key, index)) for index, each in enumerate(part)]
        elif key in MEMBER_KEYWORDS and key not in DEFINITIONS and isinstance(part, dict):
            copy[key] = {
                name: change(each, (key, name)) if key != "dependencies" or isinstance(each, dict | bool) else each
                for name, each in part.items()
            }
    return copy


def named(schema: Mapping[str, Any]) -> str | None:
    """The definition that a portable schema refers to."""
    ref = schema.get("$ref")
    return ref[len(PREFIX) :] if isinstance(ref, str) else None


def references(schema: Any, *, in_place: bool = False) -> Iterator[str]:
    """The definitions that a portable schema refers to, anywhere in it or only for the value that it is about."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if not isinstance(node, dict):
            continue
        name = named(node)
        if name is not None:
            yield name
        pending += [part for step, part in children(node) if not in_place or step[0] in IN_PLACE]


def reachable(schema: Any, definitions: Mapping[str, Any]) -> set[str]:
    """The definitions that a portable schema needs, also by way of others."""
    found: set[str] = set()
    pending = list(references(schema))
    while pending:
        name = pending.pop()
        if name not in found and name in definitions:
            found.add(name)
            pending += references(definitions[name])
    return found
