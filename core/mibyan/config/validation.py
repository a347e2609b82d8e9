"""Checking what is written against the settings: every problem with its line, and what would be right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.config.keys import join_key, value_at
from mibyan.config.scalars import describe
from mibyan.config.section import PRIVATE, all_keys, section_at
from mibyan.config.settings import Settings
from mibyan.text import suggest

if TYPE_CHECKING:
    from mibyan.config.keys import KeyPath
    from mibyan.config.problems import Problem
    from mibyan.config.yamlfile import Document


def check(document: Document) -> tuple[dict[str, Any], list[Problem]]:
    """What a document says, checked key by key.

    Returns:
        What was written, in the form that `settings_from_data` takes (empty when there are problems), and the
        problems in the document's order.
    """
    written: dict[str, Any] = {}
    errors: list[Any] = []
    for name, value in document.data.items():
        written[name], found = _check_key(name, value)
        errors += found
    if not errors:
        return written, []
    problems = [_problem(document, path, group) for path, group in _group(document, errors).items()]
    return {}, sorted(problems, key=lambda problem: problem.line or 0)


def _check_key(name: str, value: Any) -> tuple[Any, list[Any]]:
    """What one key of the settings says, and pydantic's errors about it."""
    from pydantic import ValidationError

    from mibyan.config.model import key_adapter

    if name not in Settings.KEYS:
        return None, [{"type": "extra_forbidden", "loc": (name,)}]
    try:
        return key_adapter(name).validate_python(value), []
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=True)
        return None, [{**detail, "loc": (name, *detail["loc"])} for detail in details]


def _group(document: Document, errors: list[Any]) -> dict[KeyPath, list[Any]]:
    """The errors by the key they are about; what a branch of a union says about the whole gives way to its parts."""
    found: dict[KeyPath, list[Any]] = {}
    for error in errors:
        found.setdefault(_path(document.data, error), []).append(error)
    above = {path[:depth] for path in found for depth in range(len(path))}
    return {path: group for path, group in found.items() if path not in above or _is_about_key(group[0])}


def _is_about_key(error: Any) -> bool:
    """Whether an error is about the key itself, not about its value."""
    return error["type"] in {"extra_forbidden", "missing"}


def _path(data: Any, error: Any) -> KeyPath:
    """The key that an error is about: its location without the names of a union's branches."""
    path: list[str | int] = []
    for part in error["loc"]:
        if part in data if isinstance(data, dict) else isinstance(data, list) and part in range(len(data)):
            data = data[part]
            path.append(part)
    return tuple(path)


def _problem(document: Document, path: KeyPath, errors: list[Any]) -> Problem:
    """One problem with what is at `path`."""
    if any(error["type"] == "extra_forbidden" for error in errors):
        return document.problem(path, "there is no such key", _similar_key(path))
    if any(error["loc"][-1] == "[key]" for error in errors):
        names = _choices(errors)
        return document.problem(path, f"expected one of {', '.join(names)}", suggest(str(path[-1]), names))
    value = value_at(document.data, path)
    expected = " or ".join(dict.fromkeys(_expected(error) for error in errors))
    shown = _kind_of(value) if _is_private(path) else describe(value)
    message = f"expected {expected}, got {shown}{_advice(expected, value)}"
    return document.problem(path, message, _similar_value(errors, value, private=_is_private(path)))


def _similar_key(path: KeyPath) -> str | None:
    """The key that was probably meant: one beside it, else the only one of that name elsewhere."""
    name = str(path[-1])
    beside = section_at(Settings, path[:-1])
    if beside is not None and (found := suggest(name, beside.KEYS)):
        return join_key((*path[:-1], found))
    elsewhere = [key for key in all_keys(Settings) if key[-1] == name]
    return join_key(elsewhere[0]) if len(elsewhere) == 1 else None


def _choices(errors: list[Any]) -> list[str]:
    """The words that an enumeration has."""
    return [word.strip("'") for error in errors for word in _words(error)]


def _words(error: Any) -> list[str]:
    """An enumeration's words in one error, quoted."""
    expected = str(error.get("ctx", {}).get("expected", "")) if error["type"] == "literal_error" else ""
    return expected.replace(" or ", ", ").split(", ") if expected else []


def _similar_value(errors: list[Any], value: Any, *, private: bool) -> str | None:
    """The value that was probably meant."""
    if not isinstance(value, str) or private:
        return None
    if all(error["type"] == "tuple_type" for error in errors) and "\n" not in value:
        return f"[{value}]"
    return suggest(value, _choices(errors))


def _is_private(path: KeyPath) -> bool:
    """Whether what is at `path` may be a secret."""
    return any(part in PRIVATE or str(part).endswith("_env") for part in path)


def _kind_of(value: Any) -> str:
    """What kind of value it is, without showing it."""
    if isinstance(value, str):
        return "other text" if value.strip() else "empty text"
    return "a number" if isinstance(value, int | float) and not isinstance(value, bool) else describe(value)


#: What each of pydantic's errors says that it expected.
_EXPECTED = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "string_unicode": "text without half characters",
    "tuple_type": "a list",
    "mapping_type": "a mapping",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "greater_than": "a number greater than {gt:,}",
    "greater_than_equal": "a number of at least {ge:,}",
    "less_than_equal": "a number of at most {le:,}",
    "finite_number": "a finite number",
    "no_match": "{what}",
}


def _expected(error: Any) -> str:
    """What one error says that it expected."""
    # pydantic makes a float of a number's bounds.
    context = {name: _whole(value) for name, value in error.get("ctx", {}).items()}
    if error["type"] == "literal_error":
        words = [word.strip("'") for word in _words(error)]
        return words[0] if len(words) == 1 else "one of " + ", ".join(words)
    template = _EXPECTED.get(error["type"])
    return template.format(**context) if template else str(error["msg"])


def _whole(value: Any) -> Any:
    """A whole float as an int, else `value`."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _advice(expected: str, value: Any) -> str:
    """What to do about a mistake that the format invites."""
    if "text" in expected and isinstance(value, bool | int | float):
        return "; put quotes around it"
    if "text" not in expected and isinstance(value, str) and _looks_like_scalar(value):
        return " as text; leave the quotes out"
    if value is None and "a list" in expected:
        return "; an empty list is []"
    return ""


def _looks_like_scalar(text: str) -> bool:
    """Whether `text` without its quotes would be a number or a boolean."""
    from mibyan.config.scalars import plain_text_of

    return bool(text) and plain_text_of(text) is None
