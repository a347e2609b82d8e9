"""A schema compiled for coercion: nodes that know what they allow and how text could be read as that (dispatch.A2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.schema.readings import NOTHING, read_boolean, read_container, read_null, read_number, same

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.schema.repairs import Walk

#: The type of a Python value in JSON Schema's terms; an `int` where numbers are allowed is one of them.
KINDS: dict[type, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", dict: "object",
    list: "array", tuple: "array",
}  # fmt: skip


def kind_of(value: Any) -> str:
    """The JSON type of a value, or `other`; a whole float is a number, not an integer."""
    kind = KINDS.get(type(value))
    if kind is None:
        kind = next((name for base, name in KINDS.items() if isinstance(value, base)), "other")
    return kind


class Node:
    """One schema.

    Its own keywords are here; `$ref` and `allOf` are `parts`, `anyOf` and `oneOf` are `unions`.
    """

    __slots__ = (
        "_fits", "_keeps_text", "_takes_null", "additional", "fit", "items", "members", "parts", "patterns", "plain", "prefix",
        "required", "texts", "types", "unions", "values",
    )  # fmt: skip

    def __init__(self, fit: Callable[[], Callable[[Any], bool]]) -> None:
        #: Makes the function that tells whether a value fits the whole schema.
        self.fit = fit
        self._fits: Callable[[Any], bool] | None = None
        self._keeps_text: bool | None = None
        self._takes_null: bool | None = None
        #: Python types of which every value is all right as it stands.
        self.plain: frozenset[type] = frozenset()
        #: JSON types; `None`: any.
        self.types: frozenset[str] | None = None
        #: `enum` and `const`: the only values; `None`: any.
        self.values: list[Any] | None = None
        #: Those of the allowed values that are text.
        self.texts: frozenset[str] = frozenset()
        self.members: dict[str, Node] = {}
        self.required: frozenset[str] = frozenset()
        self.patterns: list[tuple[Callable[[str], bool], Node]] = []
        self.additional: Node | None = None
        self.prefix: list[Node | None] = []
        self.items: Node | None = None
        self.parts: list[Node] = []
        self.unions: list[Union] = []

    def fits(self, value: Any) -> bool:
        """Whether a value is valid against the whole schema, in the library's judgement."""
        if self._fits is None:
            self._fits = self.fit()
        return self._fits(value)

    def admits(self, value: Any) -> bool:
        """Whether a value has an allowed type and is one of the allowed values; whole floats aren't integers."""
        if self.types is not None and kind_of(value) not in self.types:
            return False
        if self.values is None or (type(value) is str and value in self.texts):
            return True
        return any(same(value, allowed) for allowed in self.values)

    def keeps_text(self) -> bool:
        """Whether text in general is allowed, so that no text is ever read as something else."""
        if self._keeps_text is None:
            self._keeps_text = True  # a schema that refers to itself says nothing by that
            own = self.values is None and self._wants("string")
            self._keeps_text = own and self._all(Node.keeps_text)
        return self._keeps_text

    def takes_null(self) -> bool:
        """Whether null is allowed."""
        if self._takes_null is None:
            self._takes_null = True
            self._takes_null = self.admits(None) and self._all(Node.takes_null)
        return self._takes_null

    def _all(self, says: Callable[[Node], bool]) -> bool:
        """Whether every part, and of every union a branch, says so."""
        return all(map(says, self.parts)) and all(any(map(says, union.branches)) for union in self.unions)

    def _wants(self, *kinds: str) -> bool:
        return self.types is None or any(kind in self.types for kind in kinds)

    def repair(self, value: Any, walk: Walk, *, wrap: bool) -> Any:
        """A value that fits better and means the same, or the value itself; repairs are noted in the walk.

        Args:
            value: Any JSON value; it isn't changed.
            walk: The walk that this is a step of.
            wrap: Whether a bare value may become a list of one.
        """
        if type(value) in self.plain or walk.depth <= 0:
            return value
        if self.parts or self.unions:
            return walk.once(self, value, wrap, self._repair_all)
        walk.depth -= 1
        found = self._repair_own(value, walk, wrap=wrap)
        walk.depth += 1
        return found

    def _repair_own(self, value: Any, walk: Walk, *, wrap: bool) -> Any:
        return self._descend(value, walk, wrap=wrap) if self.admits(value) else self._read(value, walk, wrap=wrap)

    def _repair_all(self, value: Any, walk: Walk, *, wrap: bool) -> Any:
        """By the own keywords, then by the parts, then by the unions."""
        walk.depth -= 1
        mark = walk.mark()
        found = own = self._repair_own(value, walk, wrap=wrap)
        for part in self.parts:
            found = part.repair(found, walk, wrap=wrap)
        for union in self.unions:
            found = union.repair(found, walk, wrap=wrap)
        walk.depth += 1
        if found is not own and self.admits(own) and not self.admits(found):
            walk.take(mark)
            return value
        return found

    def _read(self, value: Any, walk: Walk, *, wrap: bool) -> Any:
        """The first reading that fits, else the first that has the right type at least, else the value."""
        mark = walk.mark()
        bare = wrap and self._wants("array") and value is not None and kind_of(value) != "array"
        fallback, notes = value, []
        for read in (self._scalar, self._container):
            reading = read(value)
            if reading is NOTHING or not self.admits(reading):
                continue
            walk.note(value, reading, _how(value, reading))
            found = self._descend(reading, walk, wrap=wrap)
            # Without an alternative there is nothing to choose: the violation is told where it is.
            if not bare or self.fits(found):
                return found
            fallback, notes = found, walk.take(mark)
        if bare:
            found = self._wrapped(value, walk)
            if self.fits(found):
                return found
            walk.take(mark)
        walk.give(notes)
        return fallback

    def _scalar(self, value: Any) -> Any:
        """The null, number or boolean that a value stands for."""
        if isinstance(value, float):
            return int(value) if self._wants("integer") and value.is_integer() else NOTHING
        if not isinstance(value, str):
            return NOTHING
        reading = read_null(value) if self._wants("null") else NOTHING
        if reading is NOTHING and self._wants("integer"):
            reading = read_number(value, whole=not self._wants("number"))
        if reading is NOTHING and self._wants("boolean"):
            reading = read_boolean(value)
        return reading

    def _container(self, value: Any) -> Any:
        return read_container(value) if isinstance(value, str) and self._wants("array", "object") else NOTHING

    def _wrapped(self, value: Any, walk: Walk) -> list[Any]:
        """A list of one."""
        walk.note(value, [value], f"{kind_of(value)} to list")
        mark = walk.mark()
        item = self.prefix[0] if self.prefix else self.items
        found = value if item is None else item.repair(value, walk, wrap=True)
        walk.within(0, mark)
        return [found]

    def _descend(self, value: Any, walk: Walk, *, wrap: bool) -> Any:
        """A container with its parts repaired; any other value as it is."""
        if isinstance(value, dict):
            return self._object(value, walk, wrap=wrap)
        if isinstance(value, list | tuple):
            return self._array(value, walk, wrap=wrap)
        return value

    def _object(self, value: dict[str, Any], walk: Walk, *, wrap: bool) -> dict[str, Any]:
        changed: dict[str, Any] | None = None
        for key, item in value.items():
            mark, found = walk.mark(), item
            nodes = self._member_nodes(key)
            if item is None and self._means_default(key, nodes):
                walk.note(None, None, "null to the default")
                found = NOTHING
            else:
                for node in nodes:
                    found = node.repair(found, walk, wrap=wrap)
            if found is not item:
                walk.within(key, mark)
                changed = dict(value) if changed is None else changed
                changed[key] = found
        if changed is None:
            return value
        return {key: item for key, item in changed.items() if item is not NOTHING}

    def _member_nodes(self, key: str) -> list[Node]:
        """The schemas of an object's member."""
        nodes = [self.members[key]] if key in self.members else []
        nodes += [node for matches, node in self.patterns if matches(key)]
        return nodes or ([self.additional] if self.additional else [])

    def _means_default(self, key: str, nodes: list[Node]) -> bool:
        """Whether null for a member means that the member is left out: it is optional and can't be null."""
        return key in self.members and key not in self.required and not all(node.takes_null() for node in nodes)

    def _array(self, value: Any, walk: Walk, *, wrap: bool) -> Any:
        changed: list[Any] | None = None
        for index, item in enumerate(value):
            node = self.prefix[index] if index < len(self.prefix) else self.items
            if node is None or type(item) in node.plain:
                continue
            mark = walk.mark()
            found = node.repair(item, walk, wrap=wrap)
            if found is not item:
                walk.within(index, mark)
                changed = list(value) if changed is None else changed
                changed[index] = found
        return value if changed is None else changed


class Union:
    """An `anyOf` or `oneOf`: a value that fits no branch is repaired if that is possible in one way only."""

    __slots__ = ("branches", "exclusive", "fit", "plain")

    def __init__(self, branches: list[Node], fit: Callable[[], Callable[[Any], bool]], *, exclusive: bool) -> None:
        self.branches = branches
        #: Makes the function that tells whether a value fits the union as a whole.
        self.fit = fit
        #: Whether it is a `oneOf`.
        self.exclusive = exclusive
        #: Python types of which every value is all right as it stands.
        self.plain: frozenset[type] = frozenset()

    def repair(self, value: Any, walk: Walk, *, wrap: bool) -> Any:
        """As `Node.repair`."""
        kind = type(value)
        if kind in self.plain or (kind is str and any(branch.keeps_text() for branch in self.branches)):
            return value
        return walk.once(self, value, wrap, self._choose)

    def _choose(self, value: Any, walk: Walk, *, wrap: bool) -> Any:
        """The one value that some branch takes; wrapping comes only when no other reading fits in any branch."""
        for may_wrap in (False, True) if wrap else (False,):
            found = self._fitting(value, walk, wrap=may_wrap)
            if found:
                first, notes = found[0]
                only = all(same(first, other) for other, _ in found[1:])
                if first is value or not only or (self.exclusive and not self.fit()(first)):
                    return value
                walk.give(notes)
                return first
        return value

    def _fitting(self, value: Any, walk: Walk, *, wrap: bool) -> list[tuple[Any, list[Any]]]:
        """What the branches make of a value, where they then accept it; only the value itself, if one does."""
        found = []
        for branch in self.branches:
            mark = walk.mark()
            reading = branch.repair(value, walk, wrap=wrap)
            notes = walk.take(mark)
            if branch.fits(reading):
                if reading is value:
                    return [(value, [])]
                found.append((reading, notes))
        return found


def _how(before: Any, after: Any) -> str:
    """What was done, in a few words."""
    return f"{'text' if isinstance(before, str) else kind_of(before)} to {kind_of(after)}"
