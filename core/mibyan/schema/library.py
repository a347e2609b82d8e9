"""The validator library (jsonschema-rs, JSON Schema 2020-12), kept from what it can't bear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from mibyan.schema.degrade import clean
from mibyan.schema.frozen import thaw
from mibyan.schema.parts import pointer, rewrite

if TYPE_CHECKING:
    from collections.abc import Callable

    from jsonschema_rs import Draft202012Validator, Registry

#: Containers inside one another in a value: beyond some thousands the library's recursion ends the process.
MAX_NESTING = 200
#: Bits of an integer of 4,300 digits: a larger one passes the library's every comparison.
MAX_INTEGER = 1 << 14_284

#: Values within a value: one that contains itself twice at each level has no end.
_MAX_VALUES = 2_000_000

#: The name under which the library knows a tool's schema.
_BASE = "urn:mibyan:parameters"

#: Keywords that say nothing about validity; some are often written in ways that the meta-schema refuses.
ANNOTATIONS = (
    "$comment",
    "default",
    "deprecated",
    "description",
    "example",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
)


def compile_schema(schema: Any) -> Draft202012Validator:
    """The library's validator of a whole schema, formats included.

    Raises:
        Exception: The library can't compile it; which exception is the library's choice.
    """
    from jsonschema_rs import Draft202012Validator

    return Draft202012Validator(_whole(schema), validate_formats=True, retriever=_refuse)


class Library:
    """The validators of one schema and its parts, compiled when they are first asked for.

    Args:
        schema: The root schema, in the words of 2020-12; `$ref`s are resolved in it, and nowhere else.
    """

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._registry: Registry | None = None

    def compile(self, *paths: tuple[str | int, ...], among: str = "anyOf") -> Draft202012Validator:
        """The validator of the part at a path, or of several of which any (`anyOf`) or one (`oneOf`) must fit.

        Raises:
            Exception: The library can't compile it; which exception is the library's choice.
        """
        from jsonschema_rs import Draft202012, Draft202012Validator, Registry

        if self._registry is None:
            plain = _whole(self._schema)
            self._registry = Registry([(_BASE, plain)], draft=Draft202012, retriever=_refuse)
        refs = [{"$ref": _BASE + pointer(path)} for path in paths]
        schema = refs[0] if len(refs) == 1 else {among: refs}
        return Draft202012Validator(schema, validate_formats=True, registry=self._registry, retriever=_refuse)

    def check(self, *paths: tuple[str | int, ...], among: str = "anyOf") -> Callable[[Any], bool]:
        """A function that tells whether a value is valid, and never raises; with a broken schema nothing is."""
        try:
            is_valid = self.compile(*paths, among=among).is_valid
        except Exception:
            return _never

        def check(value: Any) -> bool:
            try:
                return is_sane(value) and is_valid(value)
            except Exception:  # a lone surrogate, say
                return _is_valid_encodable(value, is_valid)

        return check


def _whole(schema: Any) -> Any:
    """A whole schema in the library's terms. Text it would take for JSON text, and half a surrogate pair ends the process.

    Raises:
        TypeError: It is neither an object nor a boolean.
    """
    plain = validation_schema(schema)
    if not isinstance(plain, dict | bool):
        msg = f"a schema is an object or a boolean, not {type(plain).__name__}"
        raise TypeError(msg)
    return plain


def validation_schema(schema: Any) -> Any:
    """A plain copy of a schema with all that matters for validity, in the library's terms.

    Annotations are gone, and so is an outermost `$id` (references are local).

    Args:
        schema: In the words of 2020-12 (`mibyan.schema.drafts`).
    """
    plain = rewrite(thaw(schema), _essential)
    if isinstance(plain, dict):
        plain.pop("$id", None)
        plain.pop("$schema", None)
    return plain


def _essential(schema: dict[str, Any]) -> dict[str, Any]:
    for key in ANNOTATIONS:
        schema.pop(key, None)
    if schema.get("additionalProperties") is False:
        # Without properties the library finds the first unknown key only, and doesn't say which.
        schema.setdefault("properties", {})
    return schema


def is_sane(value: Any) -> bool:
    """Whether the library can be asked about a value: it ends, isn't too deep, and has no integer of over 4,300 digits."""
    if type(value) is dict:
        # Most arguments are flat.
        for item in value.values():
            if type(item) is int:
                if not -MAX_INTEGER < item < MAX_INTEGER:
                    return False
            elif type(item) not in _FLAT:
                return _is_sane([value])
        return True
    return _is_sane([value])


_FLAT = frozenset((str, float, bool, type(None)))


def _is_sane(level: list[Any]) -> bool:
    """`is_sane` for values that stand at one level."""
    seen = 0
    for _ in range(MAX_NESTING + 1):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, int):
                if not -MAX_INTEGER < item < MAX_INTEGER:
                    return False
            elif isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list | tuple):
                inner += item
        seen += len(inner)
        if not inner or seen > _MAX_VALUES:
            return not inner
        level = inner
    return False


def encodable(value: Any) -> Any:
    """A JSON value with U+FFFD for lone surrogates, which the library can't take."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {encodable(key): encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encodable(item) for item in value]
    return value


def _is_valid_encodable(value: Any, is_valid: Callable[[Any], bool]) -> bool:
    try:
        return is_valid(encodable(value))
    except Exception:
        return False


def _never(_value: Any) -> bool:
    return False


def _refuse(uri: str) -> NoReturn:
    """What the library asks for schemas that are elsewhere: nothing is fetched.

    Raises:
        ValueError: Always.
    """
    msg = f"{uri} is not in this schema"
    raise ValueError(msg)
