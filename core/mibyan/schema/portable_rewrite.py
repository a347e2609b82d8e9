"""A schema rewritten for a provider, step by step: references, words, recursion, top level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.schema.library import ANNOTATIONS
from mibyan.schema.portable import FLAGS, Inexpressible, Wants
from mibyan.schema.portable_cycles import end_endless, within_reason
from mibyan.schema.portable_nodes import Words
from mibyan.schema.portable_parts import DEFINITIONS, PREFIX, Path, mapped, reachable
from mibyan.schema.portable_refs import REFERENCES, Document
from mibyan.schema.portable_top import flattened

if TYPE_CHECKING:
    from collections.abc import Mapping


def rewritten(parameters: Mapping[str, Any], wants: Wants) -> Mapping[str, Any]:
    """`parameters` as a provider accepts them; the very same where nothing had to change.

    Raises:
        Inexpressible: It has no words for them, or they can't be read.
    """
    try:
        found = _rewritten(parameters, wants)
    except Inexpressible:
        raise
    except Exception as error:  # broken in a way that registering a tool would have refused
        from mibyan.text import describe_exception, one_line

        raise Inexpressible(f"its schema can't be read ({one_line(describe_exception(error))})") from error
    return parameters if found == parameters else found


def modernised(schema: Any) -> Any:
    """A schema in the words of JSON Schema 2020-12, for validation: it means what every provider is shown.

    Raises:
        Inexpressible: It is too deep or too large.
    """
    return _rewritten(schema, _VALIDATION)


_VALIDATION = Wants(validated=True)


def _rewritten(parameters: Any, wants: Wants) -> dict[str, Any]:
    if not isinstance(parameters, dict):
        raise Inexpressible(f"its parameters are a {type(parameters).__name__}, not an object schema")
    document = Document(parameters)
    found = _Rewriting(document, wants, loose=False).run(parameters)
    if found is None:
        found = _Rewriting(document, wants, loose=True).run(parameters)
    return found or {}


class _Rewriting:
    """One pass over a document.

    Args:
        document: The schema and its references.
        wants: What the provider asks for.
        loose: Whether a pass before this one had to allow more somewhere.
    """

    def __init__(self, document: Document, wants: Wants, *, loose: bool) -> None:
        self._document = document
        self._wants = wants
        self._loose = loose
        self._words = Words(wants, counted=document.says("unevaluatedItems"), loose=loose)

    def run(self, root: dict[str, Any]) -> dict[str, Any] | None:
        """The whole schema, rewritten; `None`: something had to be opened, so that it takes a loose pass.

        Raises:
            Inexpressible: The provider has no words for it.
        """
        built = self._built(root, ())
        definitions = {name: self._definition(path) for path, name in self._document.names.items()}
        definitions, opened = end_endless(definitions)
        if (opened or self._words.loosened) and not self._loose:
            return None
        found = built if self._wants.validated else flattened(built, definitions, self._wants.top)
        if self._wants.subset:
            found, definitions, opened = within_reason(found, definitions)
            if opened and not self._loose:
                return None
        used = reachable(found, definitions)
        if used:
            found["$defs"] = {name: schema for name, schema in definitions.items() if name in used}
        return found

    def _definition(self, path: Path) -> Any:
        schema = self._document.value(path)
        return self._built(schema, path) if isinstance(schema, dict) else self._object(schema)

    def _built(self, schema: dict[str, Any], path: Path) -> dict[str, Any]:
        """A schema with its parts, without its definitions."""
        copy = mapped(schema, lambda part, step: self._part(part, step, (*path, *step)))
        for key in DEFINITIONS:
            copy.pop(key, None)
        self._refer(copy, path)
        return self._words.reworded(copy, schema)

    def _part(self, schema: Any, step: Path, path: Path) -> Any:
        name = self._document.names.get(path)
        if name is not None:
            return {"$ref": PREFIX + name}
        if isinstance(schema, dict):
            return self._built(schema, path)
        return schema if len(step) == 1 and step[0] in FLAGS else self._object(schema)

    def _object(self, schema: Any) -> Any:
        """What isn't an object as one: everybody understands that (2020-12, section 4.3.2)."""
        if isinstance(schema, bool) and self._wants.validated:
            return schema
        self._words.loosened = self._words.loosened or not isinstance(schema, bool)
        return {"not": {}} if schema is False else {}

    def _refer(self, schema: dict[str, Any], path: Path) -> None:
        """Let a schema refer to what goes to `$defs`, or say what it referred to, or leave it open."""
        names = self._document.names
        for keyword in [each for each in REFERENCES if schema.get(each) is not None]:
            target = self._document.target(path, keyword)
            del schema[keyword]
            if target is None or schema.get("$ref") is not None:
                self._words.loosened = True
            elif target in names:
                schema["$ref"] = PREFIX + names[target]
            else:
                about = {key: value for key, value in schema.items() if key in ANNOTATIONS}
                schema |= {**self._definition(target), **about}
