"""Checks a manifest against its model and words what is wrong: file, line, key, what was expected, a suggestion."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from mibyan.config.keys import join_key
from mibyan.config.problems import Problem
from mibyan.errors import ManifestError
from mibyan.plugins.manifest import MANIFEST_VERSION, manifest_json_schema
from mibyan.text import one_line, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

    from mibyan.config.keys import KeyPath

    #: A place, what is wrong there, and what was probably meant.
    Fault: TypeAlias = tuple[KeyPath, str, str | None]
    #: The data as the model reads it, what is wrong, and the places of keys that were ignored.
    Checked: TypeAlias = tuple[dict[str, Any], list[Fault], list[KeyPath]]

#: Problems that a message lists; a file with more has the same cause many times.
_MOST_PROBLEMS = 20

_PLAIN_WORDS = {"missing": "is missing", "json_invalid": "nested too deeply, or text that isn't Unicode"}
_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "float_type": "a number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "string_type": "text",
}


class InvalidManifestError(ManifestError):
    """A manifest that can't be used; `problems` has everything that is wrong with it."""

    def __init__(self, origin: str, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        told = [f"  {problem}" for problem in self.problems[:_MOST_PROBLEMS]]
        if len(self.problems) > _MOST_PROBLEMS:
            told.append(f"  and {len(self.problems) - _MOST_PROBLEMS} more")
        super().__init__("\n".join((f"{origin} can't be used:", *told)), origin=origin)


def check(data: object, origin: str, lines: Mapping[KeyPath, int]) -> tuple[dict[str, Any], list[str]]:
    """The trusted data of a manifest, and warnings; see `manifest.check_manifest`.

    Raises:
        InvalidManifestError: It isn't a manifest; the message lists every problem.
    """
    text = _json_text(data, origin)
    plain = json.loads(text)
    version = plain.get("manifest_version")
    newer = version if type(version) is int and version > MANIFEST_VERSION else None
    trusted, faults, unknown = _quickly_valid(plain) or _validate(text, ignore_unknown=newer is not None)
    faults += _further_faults(trusted)
    if faults:
        raise InvalidManifestError(origin, [_problem(fault, origin, lines) for fault in faults])
    return trusted, _warnings(newer, unknown, origin, lines) if newer else []


def _quickly_valid(data: dict[str, Any]) -> Checked | None:
    """The result for `data` that the published JSON Schema takes; `None` leaves it to pydantic, which has the words.

    Most manifests are right, and pydantic imports `importlib.metadata`, which finding plugins must not (plugins.F4).
    """
    try:
        valid = _quick_check()(data)
    except (ValueError, RecursionError):  # nested too deeply for it, or lone surrogates
        return None
    return (_without_nulls(data), [], []) if valid else None


@cache
def _quick_check() -> Callable[[Any], bool]:
    """Whether data is valid by the JSON Schema, as a function that is compiled once."""
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(manifest_json_schema()).is_valid


def _without_nulls(data: dict[str, Any]) -> dict[str, Any]:
    """`data` without the keys whose value says that they aren't there."""
    return {key: value for key, value in data.items() if value is not None}


def _json_text(data: object, origin: str) -> str:
    """`data` as JSON text: what Python and YAML know beyond JSON (dates, cycles) has no place in a manifest."""
    try:
        if isinstance(data, dict):
            return json.dumps(data, allow_nan=False, default=_refuse)
        message = f"a manifest is a mapping of keys, this is {'nothing' if data is None else type(data).__name__}"
    except (TypeError, ValueError, RecursionError) as error:
        message = f"not plain data: {one_line(str(error))}"
    raise InvalidManifestError(origin, [Problem(_label(origin), None, "", message)])


def _refuse(value: object) -> object:
    raise TypeError(f"{one_line(str(value), 60)!r} is a {type(value).__name__}; put it in quotes to make it text")


def _validate(text: str, *, ignore_unknown: bool) -> Checked:
    """What pydantic says; with `ignore_unknown` the data is read without the keys that aren't known."""
    from pydantic import ValidationError

    from mibyan.plugins.manifest_model import ManifestModel

    try:
        model = ManifestModel.model_validate_json(text, strict=True)
    except ValidationError as error:
        details = error.errors(include_url=False)
    else:
        return _without_nulls(model.model_dump(mode="json", by_alias=True, exclude_unset=True)), [], []
    unknown = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
    if ignore_unknown and unknown:
        trusted, faults, _ = _validate(json.dumps(_without(json.loads(text), unknown)), ignore_unknown=False)
        return trusted, faults, unknown
    return {}, [_fault(detail) for detail in details], []


def _without(data: Any, places: Iterable[KeyPath]) -> Any:
    """`data` with the keys at `places` taken out."""
    for place in places:
        holder = data
        for step in place[:-1]:
            holder = holder[step]
        del holder[place[-1]]
    return data


def _fault(detail: ErrorDetails) -> Fault:
    """What pydantic found, for a person."""
    kind, place, given = detail["type"], detail["loc"], detail["input"]
    if kind == "extra_forbidden":
        return place, *_unknown_key(place)
    if kind in _PLAIN_WORDS:
        return place, _PLAIN_WORDS[kind], None
    if kind == "string_type" and isinstance(given, int | float):
        return place, f"expected text, got {json.dumps(given)}; put it in quotes", None
    shown = one_line(json.dumps(given, ensure_ascii=False), 80)
    return place, f"expected {_expected(detail)}, got {shown}", _meant_value(detail)


def _expected(detail: ErrorDetails) -> str:
    """What would have been right."""
    from mibyan.plugins.manifest_model import PATTERNS

    if detail["type"] == "string_pattern_mismatch":
        return PATTERNS[detail["ctx"]["pattern"]]
    return _EXPECTED.get(detail["type"]) or detail["msg"].removeprefix("Input should be ")


def _meant_value(detail: ErrorDetails) -> str | None:
    """The one of a few allowed words that the given one looks like."""
    if detail["type"] != "literal_error" or not isinstance(detail["input"], str):
        return None
    return suggest(detail["input"], detail["ctx"]["expected"].replace(" or ", ", ").replace("'", "").split(", "))


def _unknown_key(place: KeyPath) -> tuple[str, str | None]:
    """The words for an unknown key, and the known one that it looks like."""
    from mibyan.plugins.manifest_model import NESTED, ManifestModel, keys_of

    model: type[BaseModel] = ManifestModel
    for step in place[:-1]:
        model = NESTED.get(step, model) if isinstance(step, str) else model
    known = keys_of(model)
    meant = suggest(str(place[-1]), known)
    return "unknown key" if meant else f"unknown key; known are {', '.join(known)}", meant


def _further_faults(data: dict[str, Any]) -> Iterator[Fault]:
    """What the model can't say: ranges, schemas, names that occur twice."""
    from mibyan.plugins.sources.ids import split_requirement

    yield from _range_faults(("requires_mibyan",), data.get("requires_mibyan", ""))
    for index, text in enumerate(data.get("requires_plugins", ())):
        yield from _range_faults(("requires_plugins", index), split_requirement(text)[1])
    seen: set[str] = set()
    for index, tool in enumerate(data.get("tools", ())):
        if tool["name"] in seen:
            yield ("tools", index, "name"), f"{tool['name']!r} occurs twice", None
        seen.add(tool["name"])
        yield from _schema_faults(("tools", index, "schema"), tool)


def _range_faults(place: KeyPath, text: str) -> Iterator[Fault]:
    if not text:
        return
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        yield place, f"{one_line(text)!r} isn't a PEP 440 range such as '>=1.2,<2'", None


def _schema_faults(place: KeyPath, tool: dict[str, Any]) -> Iterator[Fault]:
    from mibyan.errors import ToolSchemaError
    from mibyan.schema.definition import normalise_schema

    try:
        normalise_schema(tool["name"], tool["schema"])
    except ToolSchemaError as error:
        yield place, one_line(error.message, 300), None


def _problem(fault: Fault, origin: str, lines: Mapping[KeyPath, int]) -> Problem:
    """The fault with its file and line: that of the key, or of the nearest one above it that is written."""
    place, message, meant = fault
    line = next((lines[place[:end]] for end in range(len(place), 0, -1) if place[:end] in lines), None)
    return Problem(_label(origin), line, one_line(join_key(place)), message, meant)


def _warnings(version: int, unknown: Iterable[KeyPath], origin: str, lines: Mapping[KeyPath, int]) -> list[str]:
    newer = f"manifest_version {version} is newer than {MANIFEST_VERSION}, the newest that this Mibyan knows"
    ignored = [_problem((place, "unknown key, ignored", None), origin, lines) for place in unknown]
    return [f"{_label(origin)}: {newer}; update Mibyan", *map(str, ignored)]


def _label(origin: str) -> str:
    """The file's name, as problems call it."""
    return origin.rpartition("/")[2] or origin
