"""Coercion of a model's arguments: without loss, and only of what doesn't fit (dispatch.A2)."""

from __future__ import annotations

from functools import partial
from typing import Any

from mibyan.schema.drafts import modern
from mibyan.schema.library import ANNOTATIONS, Library
from mibyan.schema.repairs import Repair, Walk
from mibyan.schema.shape import Node, Union

__all__ = ["Coercer", "Repair", "coerce", "prepare"]

#: Rounds until a value is stable; each repair goes one way, so a second round is the last one almost always.
_MAX_ROUNDS = 8

_PYTHON: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),),
    "object": (dict,), "array": (list,),
}  # fmt: skip


def coerce(value: Any, schema: Any) -> tuple[Any, list[Repair]]:
    """`prepare(schema).apply(value)`; for more than one value prepare the schema once."""
    return prepare(schema).apply(value)


def prepare(schema: Any) -> Coercer:
    """A schema compiled for coercion; one that can't be understood coerces nothing."""
    try:
        return Coercer(_Builder(modern(schema)).root())
    except Exception:  # too deep, or not a schema at all
        return Coercer(None)


class Coercer:
    """Coerces values for one schema.

    Args:
        root: The compiled schema; `None` leaves every value as it is.
    """

    __slots__ = ("_flat", "_root")

    def __init__(self, root: Node | None) -> None:
        self._root = root
        #: The members of a root that says nothing else: most arguments can be seen at a glance to need nothing.
        self._flat = root.members if root is not None and _says_members_only(root) else None

    def apply(self, value: Any) -> tuple[Any, list[Repair]]:
        """A value that means the same and fits better, if there is one, and what was done to get it.

        Args:
            value: JSON types; it isn't changed.

        Returns:
            The value itself and an empty list if nothing had to be done, else a copy where needed. Coercing the
            result again changes nothing.
        """
        if self._root is None or (self._flat is not None and _is_plain(self._flat, value)):
            return value, []
        try:
            return _stable(self._root, value)
        except Exception:  # beyond the stack, or a value's own methods
            return value, []


def _says_members_only(root: Node) -> bool:
    """Whether a schema admits any object and speaks of its named members only."""
    admits = root.types is None or "object" in root.types
    return admits and root.values is None and not (root.parts or root.unions or root.patterns or root.additional)


def _is_plain(members: dict[str, Node], value: Any) -> bool:
    """Whether no member of an object can need anything."""
    if type(value) is not dict:
        return False
    for key, item in value.items():
        node = members.get(key)
        if node is not None and type(item) not in node.plain:
            return False
    return True


def _stable(root: Node, value: Any) -> tuple[Any, list[Repair]]:
    """The value after as many rounds as change something."""
    found = value
    repairs: list[Repair] = []
    for _ in range(_MAX_ROUNDS):
        walk = Walk()
        found = root.repair(found, walk, wrap=True)
        if not walk.mark():
            return found, repairs
        repairs += walk.repairs()
    return value, []


class _Builder:
    """Compiles one schema; each part once, wherever it is referred to from."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._library = Library(schema)
        self._nodes: dict[tuple[str | int, ...], Node] = {}

    def root(self) -> Node | None:
        """The node of the whole schema."""
        return self.node(self._schema, ())

    def node(self, schema: Any, path: tuple[str | int, ...]) -> Node | None:
        """The node of the schema at a path; `None` for `true`, `false` and what isn't a schema."""
        return self._node(schema, path) if isinstance(schema, dict) else None

    def _node(self, schema: Any, path: tuple[str | int, ...]) -> Node:
        if path in self._nodes:
            return self._nodes[path]
        node = self._nodes[path] = Node(partial(self._library.check, path))
        if isinstance(schema, dict):
            self._fill(node, schema, path)
        return node

    def _fill(self, node: Node, schema: dict[str, Any], path: tuple[str | int, ...]) -> None:
        node.types = _types(schema)
        node.values = _values(schema)
        node.texts = frozenset(value for value in node.values or () if type(value) is str)
        self._fill_object(node, schema, path)
        node.prefix = [
            self.node(part, (*path, "prefixItems", i)) for i, part in enumerate(_list(schema, "prefixItems"))
        ]
        node.items = self.node(schema.get("items"), (*path, "items"))
        if (target := self._target(schema.get("$ref"))) is not None:
            node.parts.append(self._node(*target))
        node.parts += [self._node(part, (*path, "allOf", i)) for i, part in enumerate(_list(schema, "allOf"))]
        node.unions = [self._union(schema, path, key) for key in ("anyOf", "oneOf") if _list(schema, key)]
        node.plain = _plain(node)

    def _fill_object(self, node: Node, schema: dict[str, Any], path: tuple[str | int, ...]) -> None:
        for name, part in _dict(schema, "properties").items():
            node.members[name] = self._node(part, (*path, "properties", name))
        node.required = frozenset(name for name in _list(schema, "required") if isinstance(name, str))
        for pattern, part in _dict(schema, "patternProperties").items():
            child = self._node(part, (*path, "patternProperties", pattern))
            node.patterns.append((self._matcher(pattern), child))
        node.additional = self.node(schema.get("additionalProperties"), (*path, "additionalProperties"))

    def _matcher(self, pattern: str) -> Any:
        """Whether a key matches, in the library's words: its patterns are ECMA's, and can't run for ever."""
        return Library({"pattern": pattern}).check(())

    def _union(self, schema: dict[str, Any], path: tuple[str | int, ...], key: str) -> Union:
        paths = [(*path, key, index) for index in range(len(schema[key]))]
        branches = [self._node(part, where) for part, where in zip(schema[key], paths, strict=True)]
        union = Union(branches, partial(self._library.check, *paths, among=key), exclusive=key == "oneOf")
        # A branch with further keywords may refuse what has the right type, and then another may have a reading for it.
        open_ended = [branch for branch, part in zip(branches, schema[key], strict=True) if _says_type_only(part)]
        union.plain = frozenset().union(*(branch.plain for branch in open_ended))
        return union

    def _target(self, ref: Any) -> tuple[Any, tuple[str | int, ...]] | None:
        """What a local `$ref` points to, and where that is."""
        if not isinstance(ref, str) or not ref.startswith("#") or (len(ref) > 1 and ref[1] != "/"):
            return None
        target = self._schema
        path: list[str | int] = []
        for step in _steps(ref):
            if isinstance(target, dict) and step in target:
                target = target[step]
                path.append(step)
            elif isinstance(target, list | tuple) and step.isdecimal() and int(step) < len(target):
                target = target[int(step)]
                path.append(int(step))
            else:
                return None
        return target, tuple(path)


def _steps(ref: str) -> list[str]:
    """The keys that a JSON pointer in a URI's fragment goes along (RFC 6901)."""
    if "%" in ref:
        from urllib.parse import unquote

        ref = unquote(ref)
    return [step.replace("~1", "/").replace("~0", "~") for step in ref.split("/")[1:]]


def _says_type_only(schema: Any) -> bool:
    return isinstance(schema, dict) and not schema.keys() - {"type", *ANNOTATIONS}


def _types(schema: dict[str, Any]) -> frozenset[str] | None:
    """The allowed types; an integer is a number."""
    kind = schema.get("type")
    if not isinstance(kind, str | list | tuple):
        return None
    kinds = {kind} if isinstance(kind, str) else {each for each in kind if isinstance(each, str)}
    if "number" in kinds:
        kinds.add("integer")
    return frozenset(kinds)


def _values(schema: dict[str, Any]) -> list[Any] | None:
    """The allowed values, where `const` or `enum` names them."""
    if "const" in schema:
        return [schema["const"]]
    return list(schema["enum"]) if isinstance(schema.get("enum"), list | tuple) else None


def _plain(node: Node) -> frozenset[type]:
    """The Python types whose values a node never changes."""
    if node.values is not None or node.parts:
        return frozenset()
    plain = {kind for name in _PYTHON if node.types is None or name in node.types for kind in _PYTHON[name]}
    if node.types is not None and "number" not in node.types:
        plain.discard(float)
    if node.members or node.patterns or node.additional:
        plain.discard(dict)
    if node.prefix or node.items:
        plain.discard(list)
    return frozenset(plain).intersection(*(union.plain for union in node.unions))


def _list(schema: dict[str, Any], key: str) -> list[Any]:
    part = schema.get(key)
    return list(part) if isinstance(part, list | tuple) else []


def _dict(schema: dict[str, Any], key: str) -> dict[Any, Any]:
    part = schema.get(key)
    return part if isinstance(part, dict) else {}
