"""What is wrong with a value, in sentences that tell a model what was expected (dispatch.A3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.records import record
from mibyan.schema.jsontext import to_json
from mibyan.schema.place import place
from mibyan.text import bounded, one_line, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from jsonschema_rs import ValidationError

#: Names or values that a sentence lists.
_MAX_LISTED = 20

_KINDS = {"string": "text", "null": "null"}
_FORMATS = {
    "date": "a date such as 2024-12-31", "date-time": "a time such as 2024-12-31T23:59:00Z", "email": "an e-mail address",
    "ipv4": "an IPv4 address", "ipv6": "an IPv6 address", "regex": "a regular expression",
    "time": "a time of day such as 23:59:00Z", "uri": "a URI such as https://example.org/", "uuid": "a UUID",
    "duration": "a duration such as P1DT12H",
}  # fmt: skip


@record
class Violation:
    """One thing that is wrong with a value."""

    #: Where: `days`, `items[0].name`; empty for the value as a whole.
    path: str
    #: What was expected, in one sentence without a full stop.
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class BindError(Exception):
    """Arguments that are valid JSON for a function's schema, and yet not what its types take.

    Args:
        violations: What is wrong, each with its path.
    """

    def __init__(self, violations: list[Violation]) -> None:
        super().__init__("; ".join(map(str, violations)))
        #: What is wrong, each with its path.
        self.violations = violations


def tell(error: ValidationError, schema: Any) -> Iterator[Violation]:
    """The library's finding as violations.

    Args:
        error: What the library found.
        schema: The root schema, for the names that would have been right.
    """
    kind = error.kind.name
    where = list(error.instance_path)
    if kind == "required":
        name = error.kind.as_dict()["property"]
        yield Violation(place([*where, name]), "is required" + _expected_member(error, schema, name))
    elif kind in {"additionalProperties", "unevaluatedProperties"}:
        for name in error.kind.as_dict()["unexpected"]:
            yield Violation(place([*where, name]), _unknown(name, _known(error, schema)))
    elif kind in {"anyOf", "oneOf"}:
        yield from _union(error, schema, where)
    else:
        yield Violation(place(where), _sentence(kind, error))


def _sentence(kind: str, error: ValidationError) -> str:
    sentence = _SENTENCES.get(kind)
    try:
        return sentence(error.kind.as_dict(), error.instance) if sentence else one_line(error.message)
    except Exception:  # a version of the library with other words
        return one_line(error.message)


def _union(error: ValidationError, schema: Any, where: list[str | int]) -> Iterator[Violation]:
    """Of the branches that the value was meant for what is wrong there; of the others only that they exist."""
    branches = [list(branch) for branch in getattr(error.kind, "context", [])]
    if not any(branches):
        yield Violation(place(where), "fits more than one of the allowed forms")
        return
    meant = [branch for branch in branches if not any(_is_other_kind(each, where) for each in branch)]
    if len(meant) == 1:
        for each in meant[0]:
            yield from tell(each, schema)
    elif meant:
        forms = ["; ".join(str(v) for each in branch for v in tell(each, schema)) for branch in meant]
        listed = " | ".join(f"({i}) {form}" for i, form in enumerate(forms, 1))
        yield Violation(place(where), bounded(f"fits none of the allowed forms: {listed}", 600))
    else:
        yield Violation(place(where), _none_of(branches, where, error.instance))


def _is_other_kind(error: ValidationError, where: list[str | int]) -> bool:
    """Whether a branch fails because it is for another kind of value, or for another constant (a discriminator)."""
    path = list(error.instance_path)
    kind = error.kind.name
    return (kind in {"type", "enum", "const"} and path == where) or (kind == "const" and path[:-1] == where)


def _none_of(branches: list[list[ValidationError]], where: list[str | int], instance: Any) -> str:
    """What the branches would have taken, if each fails at the value itself."""
    expected: list[str] = []
    for branch in branches:
        for each in branch:
            if _is_other_kind(each, where):
                at = place(list(each.instance_path)[len(where) :])
                said = _sentence(each.kind.name, each).partition(", got ")[0].removeprefix("expected ")
                expected.append(f"{at} {said}" if at else said)
                break
    return f"expected {' or '.join(dict.fromkeys(expected))}, got {shown(instance)}"


def _expected_member(error: ValidationError, schema: Any, name: str) -> str:
    """What is known of a missing property: its type and the beginning of its description."""
    member = _at(schema, [*list(error.schema_path)[:-1], "properties", name])
    if not isinstance(member, dict):
        return ""
    kind, text = member.get("type"), member.get("description")
    parts = [_kinds([kind] if isinstance(kind, str) else list(kind))] if kind else []
    parts += [one_line(text, 80)] if isinstance(text, str) else []
    return f" ({'; '.join(parts)})" if parts else ""


def _known(error: ValidationError, schema: Any) -> list[str]:
    parent = _at(schema, list(error.schema_path)[:-1])
    properties = parent.get("properties") if isinstance(parent, dict) else None
    return [name for name in properties if isinstance(name, str)] if isinstance(properties, dict) else []


def _at(schema: Any, path: Sequence[str | int]) -> Any:
    """The part of a schema at the library's path; `None` if there is none."""
    for step in path:
        try:
            schema = schema[step]
        except (KeyError, IndexError, TypeError):
            return None
    return schema


def _unknown(name: str, known: list[str]) -> str:
    meant = suggest(name, known)
    if meant is not None:
        return f"unknown key; did you mean {meant!r}?"
    return f"unknown key; the known ones are {_listed(known)}" if known else "unknown key; none is allowed here"


def _listed(values: Sequence[Any]) -> str:
    """Values in a sentence, not too many of them."""
    spelled = [bounded(to_json(value), 60) for value in values[:_MAX_LISTED]]
    if len(values) > _MAX_LISTED:
        spelled.append(f"… ({len(values)} in all)")
    return ", ".join(spelled)


def _kinds(types: Sequence[str]) -> str:
    return " or ".join(_KINDS.get(kind, kind) for kind in sorted(types, key=lambda kind: (kind == "null", kind)))


def shown(value: Any) -> str:
    """A value in a sentence: its kind, and itself if it is short."""
    if value is None or isinstance(value, bool):
        return to_json(value)
    if isinstance(value, str):
        return f"text {one_line(to_json(value), 60)}"
    if isinstance(value, int | float):
        return f"{'integer' if isinstance(value, int) else 'number'} {bounded(to_json(value), 60)}"
    return "an object" if isinstance(value, dict) else "a list" if isinstance(value, list | tuple) else "something else"


def _limit(word: str, unit: str = "") -> Callable[[dict[str, Any], Any], str]:
    """A sentence about a limit; sizes are told by their number, values by themselves."""

    def sentence(found: dict[str, Any], value: Any) -> str:
        limit = found["limit"]
        unit_ = unit[:-1] if unit.endswith("s") and limit == 1 else unit
        return f"expected {word} {limit}{unit_}, got {len(value) if unit else shown(value)}"

    return sentence


_SENTENCES: dict[str, Callable[[dict[str, Any], Any], str]] = {
    "type": lambda found, value: f"expected {_kinds(found['types'])}, got {shown(value)}",
    "enum": lambda found, value: f"expected {'one of ' * (len(found['options']) > 1)}{_listed(found['options'])}, got {shown(value)}",
    "const": lambda found, value: f"expected {_listed([found['expected_value']])}, got {shown(value)}",
    "minimum": _limit("at least"),
    "maximum": _limit("at most"),
    "exclusiveMinimum": _limit("more than"),
    "exclusiveMaximum": _limit("less than"),
    "multipleOf": lambda found, value: f"expected a multiple of {found['multiple_of']}, got {shown(value)}",
    "minLength": _limit("at least", " characters"),
    "maxLength": _limit("at most", " characters"),
    "minItems": _limit("at least", " items"),
    "maxItems": _limit("at most", " items"),
    "minProperties": _limit("at least", " keys"),
    "maxProperties": _limit("at most", " keys"),
    "pattern": lambda found, value: f"expected text that matches {bounded(found['pattern'], 200)}, got {shown(value)}",
    "format": lambda found, value: f"expected {_FORMATS.get(found['format'], 'the format ' + found['format'])}, got {shown(value)}",
    "uniqueItems": lambda _found, _value: "expected items that are all different",
    "falseSchema": lambda _found, _value: "nothing is allowed here",
    "not": lambda _found, value: f"{shown(value)} is excluded",
}  # fmt: skip
