"""The top level: an object with properties, without the alternatives that a provider refuses there."""

from __future__ import annotations

from typing import Any, NamedTuple

from mibyan.schema.frozen import MAX_DEPTH
from mibyan.schema.library import ANNOTATIONS
from mibyan.schema.portable import Inexpressible
from mibyan.schema.portable_parts import named

#: Forms of one property that are told; where there are more, it is open.
_FORMS = 50
_UNIONS = ("anyOf", "oneOf")


class _Shape(NamedTuple):
    """What a schema says about an object."""

    properties: dict[str, Any]
    required: dict[str, None]
    #: Whether other properties are refused.
    closed: bool


_ANY = _Shape({}, {}, closed=False)


def flattened(root: dict[str, Any], definitions: dict[str, Any], refused: frozenset[str]) -> dict[str, Any]:
    """A top level without the keywords that are refused there, of type `object` and with `properties`.

    Alternatives become one object with the properties of all; what all of them require is required. So it allows each
    alternative's own properties, and mixtures; the original refuses those when the tool is called.

    Args:
        root: A portable schema.
        definitions: What it refers to, by name.
        refused: Keywords.

    Raises:
        Inexpressible: No object fits it, or those that do are listed one by one.
    """
    if not _is_object(root):
        raise Inexpressible(f"its arguments aren't an object, but {root['type']!r:.80}")
    for key in ("enum", "const"):
        if key in root and key in refused:
            raise Inexpressible(f"its arguments are listed as whole objects ({key!r} at the top level)")
    found = {key: part for key, part in root.items() if key not in refused}
    combined = {key: part for key, part in root.items() if key in refused and key != "not"}
    if combined:
        own = _Shape(root.get("properties") or {}, dict.fromkeys(root.get("required") or ()), closed=False)
        shape = _Shapes(definitions).all_of(own, combined)
        if shape is None:
            raise Inexpressible("no object fits its schema")
        found["properties"] = shape.properties
        if shape.required:
            found["required"] = list(shape.required)
        if shape.closed:
            found.setdefault("additionalProperties", False)
    found["type"] = "object"
    if not isinstance(found.get("properties"), dict):
        found["properties"] = {}
    return found


class _Shapes:
    """What schemas say about objects: of a definition it is asked once, however often it is referred to."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._known: dict[str, _Shape | None] = {}

    def all_of(self, own: _Shape, schema: dict[str, Any], depth: int = 0) -> _Shape | None:
        """What a schema's own properties, its reference and its combinations say together; `None`: no object fits."""
        found: _Shape | None = own
        name = named(schema)
        parts = [] if name is None else [self._defined(name, depth)]
        parts += [self._shape(part, depth) for part in schema.get("allOf", ())]
        parts += [self._any_of(schema[key], depth) for key in _UNIONS if key in schema]
        for part in parts:
            found = None if found is None or part is None else _both(found, part)
        return found

    def _shape(self, schema: Any, depth: int) -> _Shape | None:
        if not isinstance(schema, dict) or depth > MAX_DEPTH:
            return _ANY
        if not _is_object(schema) or schema.get("not") == {}:
            return None
        closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
        own = _Shape(schema.get("properties") or {}, dict.fromkeys(schema.get("required") or ()), closed)
        return self.all_of(own, schema, depth + 1)

    def _defined(self, name: str, depth: int) -> _Shape | None:
        if name not in self._known:
            self._known[name] = _ANY  # as long as it isn't known: it may be asked for on the way
            self._known[name] = self._shape(self._definitions.get(name), depth + 1)
        return self._known[name]

    def _any_of(self, branches: list[Any], depth: int) -> _Shape | None:
        shapes = [shape for branch in branches if (shape := self._shape(branch, depth)) is not None]
        if not shapes:
            return None
        forms: dict[str, list[Any]] = {}
        for shape in shapes:
            for name, schema in shape.properties.items():
                known = forms.setdefault(name, [])
                if len(known) <= _FORMS and schema not in known:
                    known.append(schema)
        required = dict.fromkeys(name for name in shapes[0].required if all(name in shape.required for shape in shapes))
        properties = {name: _either(each) for name, each in forms.items()}
        return _Shape(properties, required, closed=all(shape.closed for shape in shapes))


def _is_object(schema: dict[str, Any]) -> bool:
    kind = schema.get("type")
    return kind is None or "object" in ([kind] if isinstance(kind, str) else kind)


def _both(one: _Shape, other: _Shape) -> _Shape:
    """What two schemas for the same object say together; where they speak of one property, the first has the say."""
    properties = {**other.properties, **one.properties}
    order = {**dict.fromkeys(one.properties), **dict.fromkeys(other.properties)}
    for name in one.properties.keys() & other.properties.keys():
        properties[name] = _merged(one.properties[name], other.properties[name])
    return _Shape(
        {name: properties[name] for name in order}, {**one.required, **other.required}, one.closed or other.closed
    )


def _merged(one: Any, other: Any) -> Any:
    """A property as two schemas describe it, if each of their keywords stands for itself."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() | other.keys() <= _INDEPENDENT:
        return {**one, **{key: part for key, part in other.items() if key not in one}}
    return one or other


def _either(forms: list[Any]) -> Any:
    """A property that has these forms in different alternatives."""
    if len(forms) == 1:
        return forms[0]
    if len(forms) > _FORMS:
        return {}
    values = [_values(form) for form in forms]
    if any(each is None for each in values):
        return {"anyOf": forms}
    return {"type": "string", "enum": list(dict.fromkeys(value for each in values for value in each or ()))}


def _values(schema: Any) -> list[Any] | None:
    """The texts that a discriminator may be, if there is nothing else to it."""
    if not isinstance(schema, dict) or not schema.keys() <= _DISCRIMINATOR:
        return None
    values = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None
    return values if values is not None and all(isinstance(value, str) for value in values) else None


_DISCRIMINATOR = frozenset(("const", "default", "enum", "title", "type"))
_INDEPENDENT = frozenset((
    *ANNOTATIONS, "const", "enum", "format", "maxLength", "maximum", "minLength", "minimum", "multipleOf", "pattern",
    "type",
))  # fmt: skip
