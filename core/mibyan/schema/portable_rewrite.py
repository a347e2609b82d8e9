"""A schema rewritten for a provider, step by step: references, words, recursion, top level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.schema.library import ANNOTATIONS
from mibyan.schema.portable import FLAGS, Inexpressible
from mibyan.schema.portable_cycles import end_endless, make_recursion_optional
from mibyan.schema.portable_nodes import Words, require
from mibyan.schema.portable_parts import DEFINITIONS, PREFIX, Path, mapped, reachable
from mibyan.schema.portable_refs import Document
from mibyan.schema.portable_top import flattened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mibyan.schema.portable import Wants


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


def _rewritten(parameters: Any, wants: Wants) -> dict[str, Any]:
    if not isinstance(parameters, dict):
        raise Inexpressible(f"its parameters are a {type(parameters).__name__}, not an object schema")
    document = Document(parameters)
    rewriting = _Rewriting(document, wants, loose=False)
    found = rewriting.run(parameters)
    return _Rewriting(document, wants, loose=True).run(parameters) if rewriting.loosened else found


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
        self._words = Words(subset=wants.subset, counted=document.says("unevaluatedItems"), loose=loose)

    @property
    def loosened(self) -> bool:
        """Whether some part allows more than it did."""
        return self._words.loosened

    def run(self, root: dict[str, Any]) -> dict[str, Any]:
        """The whole schema, rewritten."""
        definitions = {name: self._definition(path) for path, name in self._document.names.items()}
        definitions, opened = end_endless(definitions)
        found = flattened(self._built(root, ()), definitions, self._wants.top)
        if self._wants.subset:
            wanted = dict.fromkeys((*root.get("required", ()), *found.get("required", ())))
            require(found, [name for name in wanted if name in found["properties"]])
            definitions, relaxed = make_recursion_optional(definitions)
            opened = opened or relaxed
        self._words.loosened = self._words.loosened or opened
        used = reachable(found, definitions)
        if used:
            found["$defs"] = {name: schema for name, schema in definitions.items() if name in used}
        return found

    def _definition(self, path: Path) -> Any:
        schema = self._document.value(path)
        return self._built(schema, path) if isinstance(schema, dict) else _object(schema)

    def _built(self, schema: dict[str, Any], path: Path) -> dict[str, Any]:
        """A schema with its parts, without its definitions."""
        copy = mapped(schema, lambda part, step: self._part(part, step, (*path, *step)))
        for key in DEFINITIONS:
            copy.pop(key, None)
        self._refer(copy, path)
        return self._words.reworded(copy)

    def _part(self, schema: Any, step: Path, path: Path) -> Any:
        name = self._document.names.get(path)
        if name is not None:
            return {"$ref": PREFIX + name}
        if isinstance(schema, dict):
            return self._built(schema, path)
        return schema if len(step) == 1 and step[0] in FLAGS else _object(schema)

    def _refer(self, schema: dict[str, Any], path: Path) -> None:
        """Let a schema refer to what goes to `$defs`, or say what it referred to, or leave it open."""
        names = self._document.names
        for keyword in ("$dynamicRef", "$ref"):
            if keyword not in schema:
                continue
            target = self._document.target(path, keyword)
            del schema[keyword]
            if target is None or "$ref" in schema:
                self._words.loosened = True
            elif target in names:
                schema["$ref"] = PREFIX + names[target]
            else:
                about = {key: value for key, value in schema.items() if key in ANNOTATIONS}
                schema |= {**self._definition(target), **about}


def _object(schema: Any) -> Any:
    """A boolean schema as an object, which everybody understands (2020-12, section 4.3.2)."""
    return {} if schema is True else {"not": {}} if schema is False else schema
