"""One schema said in words that every provider knows: what its parts are is seen to elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.schema.drafts import modernise
from mibyan.schema.library import ANNOTATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mibyan.schema.portable import Wants

#: Keywords that mean nothing once references are resolved.
_DROPPED = ("$anchor", "$dynamicAnchor", "$id", "$schema", "$vocabulary")
#: Keywords under which a schema that allows more makes the one around it allow less.
_NEGATIVE = ("else", "if", "maxContains", "not", "then", "unevaluatedItems", "unevaluatedProperties")
#: Schemas that no part could make larger.
_EVERYTHING: tuple[Any, ...] = (True, {})
#: Keywords that may refuse null whatever the types are.
_REFUSING = ("$ref", "allOf", "anyOf", "const", "enum", "if", "not", "oneOf")
_NULL = {"type": "null"}
#: What Gemini wants of a schema with a reference.
_BESIDE_REF = frozenset(("$ref", "default", "description"))
_ABOUT = frozenset((*ANNOTATIONS, "$comment", "deprecated", "readOnly", "writeOnly"))


class Words:
    """Says schemas in other words, one at a time.

    Args:
        wants: What the provider asks for.
        counted: Whether some `unevaluatedItems` asks which items were looked at.
        loose: Whether some part allows more than it did. Then whatever turns "more" into "less" has to go.
    """

    def __init__(self, wants: Wants, *, counted: bool, loose: bool) -> None:
        self._subset = wants.subset
        self._gives_items = not wants.validated
        self._counted = counted
        self._loose = loose
        #: Whether a schema allows more than it did.
        self.loosened = False

    def reworded(self, schema: dict[str, Any], original: Mapping[str, Any]) -> dict[str, Any]:
        """A schema in other words.

        Args:
            schema: Its references and its parts are portable; it is changed.
            original: As it was before.
        """
        for key in _DROPPED:
            schema.pop(key, None)
        nullable = schema.pop("nullable", None) is True
        modernise(schema, original)
        if self._gives_items:
            self._give_items(schema)
        if self._loose:
            _loosen(schema)
            if original.get("not") in _EVERYTHING:
                schema["not"] = {}
        if self._subset:
            schema = self._within_subset(schema)
        return with_null(schema, apart=self._subset) if nullable else schema

    def _give_items(self, schema: dict[str, Any]) -> None:
        """Arrays say what their items are: without, or with `prefixItems` alone, OpenAI refuses them."""
        kind = schema.get("type")
        if isinstance(kind, str | list | tuple) and "array" in kind and "items" not in schema:
            schema["items"] = {}
            self.loosened = self.loosened or self._counted

    def _within_subset(self, schema: dict[str, Any]) -> dict[str, Any]:
        """What Gemini reads: `enum` for a constant, the one part of an `allOf`, nothing beside a reference."""
        const = schema.get("const")
        if isinstance(const, str | int | float) and not isinstance(const, bool) and "enum" not in schema:
            schema["enum"] = [schema.pop("const")]
            kind = "string" if isinstance(const, str) else "integer" if isinstance(const, int) else "number"
            schema.setdefault("type", kind)
        parts = schema.get("allOf")
        if isinstance(parts, list) and len(parts) == 1 and schema.keys() - {"allOf"} <= _ABOUT:
            schema = {**parts[0], **{key: value for key, value in schema.items() if key != "allOf"}}
        if "$ref" in schema and not schema.keys() <= _BESIDE_REF:
            self.loosened = self.loosened or not schema.keys() <= _ABOUT | _BESIDE_REF
            schema = {key: value for key, value in schema.items() if key in _BESIDE_REF}
        return schema


def require(schema: dict[str, Any], names: list[str]) -> None:
    """Make a schema require these properties."""
    if names:
        schema["required"] = names
    else:
        schema.pop("required", None)


def with_null(schema: dict[str, Any], *, apart: bool) -> dict[str, Any]:
    """OpenAPI 3.0's `nullable` as a type, or as one more alternative where other keywords would refuse null.

    Args:
        schema: A schema that was nullable.
        apart: Whether null may not be one of an `enum`: Gemini's is for texts and numbers.
    """
    kind, values = schema.get("type"), schema.get("enum")
    refusing = [key for key in _REFUSING if key in schema]
    if refusing == ["anyOf"] and kind is None:
        return schema if _NULL in schema["anyOf"] else {**schema, "anyOf": [*schema["anyOf"], dict(_NULL)]}
    if not refusing or (refusing == ["enum"] and (None in schema["enum"] or not apart)):
        if kind is not None:
            kinds = [kind] if isinstance(kind, str) else list(kind)
            schema["type"] = kind if "null" in kinds else [*kinds, "null"]
        if values is not None and None not in values:
            schema["enum"] = [*values, None]
        return schema
    about = {key: value for key, value in schema.items() if key in _ABOUT}
    rest = {key: value for key, value in schema.items() if key not in _ABOUT}
    return {**about, "anyOf": [rest, dict(_NULL)]}


def _loosen(schema: dict[str, Any]) -> None:
    for key in _NEGATIVE:
        schema.pop(key, None)
    if "oneOf" in schema:
        branches = schema.pop("oneOf")
        if "anyOf" in schema:
            schema["allOf"] = [*schema.get("allOf", []), {"anyOf": branches}]
        else:
            schema["anyOf"] = branches
