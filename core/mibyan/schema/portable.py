"""Parameters made portable: what a provider would refuse is said in other words, or the tool is left out (registry.D4).

One tool that a provider refuses costs the whole request, so each format has its `Wants`: what its provider is known to
refuse. What isn't a schema (a default, a constant, a property's name) is never touched, and neither is the original:
calls are validated against that. A portable schema may allow more than the original; it never allows less.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mibyan.schema.drafts import OLD, REFORMED, has_nulls, is_old
from mibyan.schema.frozen import UsualParameters
from mibyan.schema.keywords import MAX_CONTAINERS
from mibyan.schema.parts import LIST_KEYWORDS, MEMBER_KEYWORDS, SCHEMA_KEYWORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Inexpressible(ValueError):  # noqa: N818 - it is the reason, in words that follow "left out:"
    """A provider has no words for a schema."""


class Wants:
    """What a provider asks of a tool's parameters, beyond JSON Schema 2020-12.

    Args:
        top: Keywords that it refuses at the top level.
        names: What the names of the top level's properties must match; `None`: any text will do.
        subset: Whether it reads a part of JSON Schema only.
        validated: Whether it is no provider, but the library that validates.
    """

    __slots__ = ("names", "read", "subset", "top", "validated")

    def __init__(
        self, *, top: tuple[str, ...] = (), names: str | None = None, subset: bool = False, validated: bool = False
    ) -> None:
        #: A top level that is a reference isn't an object with properties, whoever reads it.
        self.top = frozenset((*top, "$ref", "$dynamicRef"))
        self.names = re.compile(names) if names else None
        self.subset = subset
        self.validated = validated
        #: Keywords that must be looked at; a schema with none of them stays as it is.
        self.read = _READ | {"const"} if subset else _READ


#: Dropped, moved or said otherwise, wherever they stand.
_REWRITTEN = frozenset((
    "$anchor", "$defs", "$dynamicAnchor", "$dynamicRef", "$id", "$ref", "$schema", "$vocabulary", "const", "definitions",
)) | OLD  # fmt: skip
_REFORMED = REFORMED - {"items", "type"}
#: Where everybody understands a boolean schema.
FLAGS = frozenset(("additionalProperties", "unevaluatedItems", "unevaluatedProperties"))
_READ = (_REWRITTEN - {"const"}) | _REFORMED | SCHEMA_KEYWORDS | LIST_KEYWORDS | MEMBER_KEYWORDS

#: Types that need nothing beside them; compared one by one, since a type may be a list.
_SIMPLE = ("string", "integer", "number", "boolean", "object", "null")

#: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at the top level"
#: (goruck/home-generative-agent#545), whichever of its two APIs is asked; "array schema missing items", also beside
#: `prefixItems` and in a list of types (PrefectHQ/fastmcp#2464, campfirein/byterover-cli#42); "object schema missing
#: properties"; "reference can only point to definitions defined at the top level" (dotnet/extensions#6918).
_OPENAI = Wants(top=("allOf", "anyOf", "const", "enum", "not", "oneOf"))
#: "input_schema does not support oneOf, allOf, or anyOf at the top level" (anthropics/claude-code#27337); "Property keys
#: should match pattern", of the top level only (aws-solutions-library-samples/
#: accelerated-intelligent-document-processing-on-aws#709, decocms/studio#6874); "It must match JSON Schema draft
#: 2020-12", so no boolean `exclusiveMinimum` (Dokploy/mcp#74, homeassistant-ai/ha-mcp#2361).
_ANTHROPIC = Wants(top=("allOf", "anyOf", "oneOf"), names=r"[a-zA-Z0-9_.-]{1,64}")
#: `parametersJsonSchema` takes JSON Schema and reads `$defs $ref type format title description enum items prefixItems
#: minItems maxItems minimum maximum anyOf oneOf properties additionalProperties required` of it
#: (ai.google.dev/api/generate-content, `_responseJsonSchema`); "cyclic references … may only be used within non-required
#: properties" (there, google-gemini/gemini-cli#14945); "if a schema node has $ref set, then only description and default
#: can be set alongside it" (anomalyco/opencode#12295); "required[0]: property is not defined" (probelabs/probe#569);
#: boolean schemas fail (github/copilot-cli#4623), and so does an array without `items` (NousResearch/hermes-agent#69924).
_GEMINI = Wants(top=("allOf", "anyOf", "oneOf"), subset=True)
#: `inputSchema` is JSON Schema of type `object` (MCP 2025-06-18, server/tools); clients refuse booleans for properties
#: (anomalyco/opencode#49464).
_MCP = Wants()
_WANTS = {"openai": _OPENAI, "openai-responses": _OPENAI, "anthropic": _ANTHROPIC, "gemini": _GEMINI, "mcp": _MCP}


def portable(parameters: Mapping[str, Any], format: str) -> Mapping[str, Any]:  # noqa: A002 - the public surface calls it so
    """A tool's parameters as the provider of a format accepts them; `parameters` itself where nothing had to change.

    The result is an object schema with `properties`. Local references point to `#/$defs/…` (those to a small schema
    elsewhere are resolved), and recursion stays a reference; what a reference to nowhere stood for is open. `nullable`
    is a type, arrays have `items`, boolean schemas are objects, keywords of earlier drafts are those of 2020-12. Where
    the provider wants no `anyOf` and the like at the top level, the alternatives' properties are put together.

    Args:
        parameters: A schema, as it was registered; it isn't changed, and its parts may be shared with the result.
        format: One of `mibyan.schema.formats.FORMATS`.

    Raises:
        Inexpressible: The provider has no words for it; the message is the reason, without a full stop.
        KeyError: The format isn't known.
    """
    wants = _WANTS[format]
    if not _is_portable(parameters, wants):
        from mibyan.schema.portable_rewrite import rewritten

        parameters = rewritten(parameters, wants)
    if wants.names is not None:
        for name in parameters["properties"]:
            if wants.names.fullmatch(name if isinstance(name, str) else "") is None:
                raise Inexpressible(_about_name(str(name), wants.names.pattern))
    return parameters


def _is_portable(schema: Any, wants: Wants) -> bool:
    """Whether it can be seen at a glance that nothing has to change; with 10,000 tools the glance must be short."""
    if type(schema) is UsualParameters:
        return True
    if not isinstance(schema, dict) or schema.get("type") != "object" or "properties" not in schema:
        return False
    if not wants.top.isdisjoint(schema):
        return False
    nodes, read = [schema], wants.read
    for node in nodes:
        if not isinstance(node, dict):
            return False
        kind = node.get("type")
        if kind is not None and kind not in _SIMPLE and not _says_types(kind, "items" in node):
            return False
        if None in node.values() and has_nulls(node):
            return False
        for key in node:
            if key not in read:
                continue
            part = node[key]
            if key == "properties" and isinstance(part, dict):
                # Most properties have a type, a description and little else.
                nodes += [
                    inner
                    for inner in part.values()
                    if not (isinstance(inner, dict) and read.isdisjoint(inner) and inner.get("type") in _SIMPLE)
                    or None in inner.values()
                ]
            elif key == "required":
                if not isinstance(part, list) or (wants.subset and not _has(node, part)):
                    return False
            elif not _is_fine(key, part, nodes) or (key == "allOf" and wants.subset):
                return False
        if len(nodes) > MAX_CONTAINERS:
            return False
    return True


def _says_types(kind: Any, has_items: bool) -> bool:  # noqa: FBT001 - called for every part that isn't simple
    """Whether a type can stay as it is: arrays have items."""
    if isinstance(kind, list):
        return "any" not in kind and (has_items or "array" not in kind)
    return has_items and kind == "array"


def _has(node: dict[str, Any], names: Iterable[Any]) -> bool:
    """Whether an object has these properties."""
    properties = node.get("properties")
    return isinstance(properties, dict) and all(map(properties.__contains__, names))


def _is_fine(key: str, part: Any, nodes: list[Any]) -> bool:
    """Whether a keyword can stay as it is, as far as can be seen without its parts, which are added to `nodes`."""
    if key in _REWRITTEN:
        return False
    if key in SCHEMA_KEYWORDS:
        if isinstance(part, dict):
            nodes.append(part)
            return True
        return isinstance(part, bool) and key in FLAGS
    if key in _REFORMED:
        return not is_old(key, part)
    if key in LIST_KEYWORDS and isinstance(part, list):
        nodes += part
        return True
    if isinstance(part, dict):
        nodes += part.values()
        return True
    return False


def _about_name(name: str, pattern: str) -> str:
    # The name is the handler's, so it can't be another one here.
    shown = name if len(name) <= 70 else name[:69] + "…"
    return f"its property {shown!r} has a name that the provider refuses (it wants {pattern})"
