"""What the references of a schema mean, and the names under which their targets go to `$defs` (2020-12, section 8)."""

from __future__ import annotations

import re
from typing import Any

from mibyan.schema.frozen import MAX_DEPTH
from mibyan.schema.keywords import MAX_CONTAINERS
from mibyan.schema.library import ANNOTATIONS
from mibyan.schema.portable import Inexpressible
from mibyan.schema.portable_parts import DEFINITIONS, Path, children

#: Characters of text in a schema that is resolved where it is used, instead of being moved to `$defs`.
_SMALL = 300
#: Keywords that refer to another schema.
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_SCALARS = (str, int, float, type(None))


class Document:
    """A schema and the targets of its references.

    Relative references are read as the standard has it (against the nearest `$id`), and where that leads nowhere, from
    each enclosing schema: whoever puts schemas together forgets that `#` is the outermost one (google-gemini/
    gemini-cli#13326).

    Args:
        root: A schema.

    Raises:
        Inexpressible: It is too deep or too large.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        #: Every schema, and what its references are relative to: a place and an address.
        self._nodes: dict[Path, tuple[Any, Path, str]] = {}
        #: `None` for one that stands in several places.
        self._anchors: dict[tuple[Path, str], Path | None] = {}
        self._resources: dict[str, Path] = {}
        address = _address(root)
        #: What stands under keywords that nobody knows is a schema once it is referred to; its anchors don't count.
        self._is_complete = False
        self._add((), root, (), address.partition("#")[0] if isinstance(address, str) else "")
        self._is_complete = True
        #: The name of each target that goes to `$defs`; without an own name, it is resolved where it is used.
        self.names: dict[Path, str] = {}
        self._name(self._targets())

    def target(self, path: Path, keyword: str = "$ref") -> Path | None:
        """Where the reference of the schema at `path` leads; `None`: nowhere."""
        node, resource, address = self._nodes[path]
        ref = node.get(keyword)
        if not isinstance(ref, str) or (keyword != "$ref" and self._has_many_resources):
            return None
        uri, _, fragment = ref.partition("#")
        start = self._resource(uri, address) if uri else resource
        if start is None:
            return None
        if fragment and not fragment.startswith("/"):
            return self._anchors.get((start, fragment))
        steps = _steps(fragment)
        found = self._along(start, steps)
        outer = path
        while found is None and steps and outer and not uri:
            outer = outer[:-1]
            found = self._along(outer, steps)
        return found

    def value(self, path: Path) -> Any:
        """What stands at a place that is known to be there."""
        known = self._nodes.get(path)
        return known[0] if known is not None else self._get(path)

    def says(self, keyword: str) -> bool:
        """Whether some schema has a keyword."""
        return any(isinstance(node, dict) and keyword in node for node, _, _ in self._nodes.values())

    @property
    def _has_many_resources(self) -> bool:
        return len(self._resources) > 1

    # What there is --------------------------------------------------------------------------------------------------

    def _add(self, path: Path, schema: Any, resource: Path, address: str) -> None:
        """Note a schema and all within it."""
        pending = [(path, schema, resource, address)]
        if not path:
            self._resources[address] = ()
        while pending:
            path, node, resource, address = pending.pop()
            if len(path) > MAX_DEPTH:
                raise Inexpressible(f"its schema is nested more than {MAX_DEPTH} levels deep")
            if len(self._nodes) > MAX_CONTAINERS:
                raise Inexpressible(f"its schema has more than {MAX_CONTAINERS} parts")
            if isinstance(node, dict):
                resource, address = self._identified(path, node, resource, address)
                pending += [((*path, *step), part, resource, address) for step, part in children(node)]
            self._nodes[path] = (node, resource, address)

    def _identified(self, path: Path, node: dict[str, Any], resource: Path, address: str) -> tuple[Path, str]:
        """What references in a schema are relative to; its anchors are noted."""
        own = _address(node)
        anchors = [node.get("$anchor"), node.get("$dynamicAnchor")]
        if isinstance(own, str) and own.startswith("#"):  # an anchor, up to draft 7
            anchors.append(own[1:])
        elif isinstance(own, str) and path:
            resource, address = path, _joined(address, own)
            if not self._is_complete:
                self._resources.setdefault(address, path)
        for anchor in {each for each in anchors if isinstance(each, str)} if not self._is_complete else ():
            known = self._anchors.setdefault((resource, anchor), path)
            if known != path:
                self._anchors[resource, anchor] = None
        return resource, address

    # Where references lead ------------------------------------------------------------------------------------------

    def _resource(self, uri: str, address: str) -> Path | None:
        found = self._resources.get(uri)
        return found if found is not None else self._resources.get(_joined(address, uri))

    def _along(self, start: Path, steps: list[str]) -> Path | None:
        """The place to which steps lead, if there is a schema or what could be one."""
        value: Any = self.value(start)
        path = list(start)
        for step in steps:
            if isinstance(value, dict) and step in value:
                value = value[step]
                path.append(step)
            elif isinstance(value, list | tuple) and step.isdecimal() and int(step[:9]) < len(value):
                value = value[int(step[:9])]
                path.append(int(step[:9]))
            else:
                return None
        return tuple(path) if isinstance(value, dict | bool) else None

    def _get(self, path: Path) -> Any:
        value: Any = self._root
        for step in path:
            value = value[step]
        return value

    # What the targets are called ------------------------------------------------------------------------------------

    def _targets(self) -> dict[Path, bool]:
        """The places that what is used refers to, in order; whether each may be resolved where it is used."""
        found: dict[Path, bool] = {}
        seen: set[Path] = set()
        pending: list[Path] = [()]
        while pending:
            path = pending.pop()
            if path in seen:
                continue
            seen.add(path)
            if path not in self._nodes:  # under a keyword that nobody knows, such as `components`
                self._add(path, self._get(path), (), next(iter(self._resources)))
            node = self._nodes[path][0]
            if not isinstance(node, dict):
                continue
            for keyword in REFERENCES:
                target = self.target(path, keyword) if keyword in node else None
                if target is not None:
                    found[target] = found.get(target, True) and node.keys() <= _BESIDE_SMALL
                    pending.append(target)
            parts = [((*path, *step), step) for step, _ in children(node)]
            pending += [place for place, step in reversed(parts) if step[0] not in DEFINITIONS]
        return found

    def _name(self, targets: dict[Path, bool]) -> None:
        listed = [(key, name) for key in ("$defs", "definitions") for name in _names(self._root.get(key))]
        rank: dict[Path, int] = {path: index for index, path in enumerate(listed)}
        taken: set[str] = set()
        for path in sorted(targets, key=lambda path: rank.get(path, len(rank))):
            if targets[path] and path not in rank and path and _is_small(self.value(path)):
                continue
            wished = name = _clean(path[1:] if path in rank else path)
            number = 1
            while name in taken:
                number += 1
                name = f"{wished[:56]}_{number}"
            taken.add(name)
            self.names[path] = name


def _address(schema: dict[str, Any]) -> Any:
    """What a schema says it can be called by; `id` up to draft 4."""
    return schema.get("$id", schema.get("id"))


_BESIDE_SMALL = frozenset(("$ref", "$comment", *ANNOTATIONS))


def _is_small(schema: Any) -> bool:
    """Whether a schema is a type and a few words, which are better read where they matter."""
    if isinstance(schema, bool):
        return True
    text = 0
    for key, value in schema.items():
        if isinstance(value, list | tuple) and key in {"enum", "type"}:
            text += sum(len(str(each)) if isinstance(each, _SCALARS) else _SMALL for each in value)
        elif not isinstance(value, str | int | float) or key in REFERENCES:
            return False
        text += len(key) + (len(value) if isinstance(value, str) else 8)
    return text <= _SMALL


def _clean(path: Path) -> str:
    """A name that can stand in a pointer as it is: `#/properties/a` is `a`, `#/$defs/List[int]` is `List_int_`."""
    words = [str(step) for step in path if step not in _UNNAMED] if len(path) > 1 else [str(step) for step in path]
    name = re.sub(r"[^a-zA-Z0-9_.-]", "_", "_".join(words[-2:] if words[-1:] == ["items"] else words[-1:]))
    return name[:60] or "root"


_UNNAMED = frozenset(("properties", "$defs", "definitions"))


def _names(definitions: Any) -> list[str]:
    return list(definitions) if isinstance(definitions, dict) else []


def _steps(fragment: str) -> list[str]:
    """The keys that a JSON pointer goes along (RFC 6901, sections 4 and 6)."""
    if "%" in fragment:
        from urllib.parse import unquote

        fragment = unquote(fragment)
    return [step.replace("~1", "/").replace("~0", "~") for step in fragment.split("/")[1:]]


def _joined(address: str, uri: str) -> str:
    """An address seen from another one, without its fragment."""
    from urllib.parse import urljoin

    try:
        return urljoin(address, uri).partition("#")[0]
    except ValueError:  # not an address
        return uri
