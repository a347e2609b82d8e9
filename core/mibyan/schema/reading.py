"""Strict reading of JSON text (RFC 8259): what is ambiguous or incomplete is refused, never guessed."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

#: Containers inside one another that JSON text may have.
MAX_NESTING = 200


class JSONProblem(ValueError):  # noqa: N818 - what it is of is in its name
    """Text that isn't JSON, or not JSON with one meaning.

    Args:
        message: What is wrong and where, in one sentence.
        truncated: Whether the text is the beginning of JSON that ended too early.
    """

    def __init__(self, message: str, *, truncated: bool = False) -> None:
        super().__init__(message)
        #: Whether the text is the beginning of JSON that ended too early.
        self.truncated = truncated


def parse_strict(text: str) -> Any:
    """The value that JSON text stands for.

    Args:
        text: JSON text; blanks around it don't matter.

    Returns:
        JSON types; integers are exact, also large ones.

    Raises:
        JSONProblem: It isn't JSON; or it has NaN, an infinity, a number beyond the floats, an integer of more than
            4,300 digits, a key twice with different values, or more than `MAX_NESTING` containers in one another.
    """
    if not isinstance(text, str):
        msg = f"expected JSON text, got {type(text).__name__}"
        raise JSONProblem(msg)
    try:
        value = _decode(text)
        # Each pair has a colon, so as many keys as colons means that no key stood twice.
        if (type(value) is dict and len(value) != text.count(":")) or (type(value) is list and ":" in text):
            value = _decode_pairs(text)
    except JSONProblem:
        raise
    except json.JSONDecodeError as problem:
        raise _explained(problem, text) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        msg = "an integer has more than 4,300 digits"
        raise JSONProblem(msg) from None
    if text.count("[") + text.count("{") > MAX_NESTING and _nesting(value) > MAX_NESTING:
        raise _too_deep()
    return value


def _too_deep() -> JSONProblem:
    return JSONProblem(f"nested more than {MAX_NESTING} levels deep")


def _refuse_constant(name: str) -> NoReturn:
    """Python's decoder knows `NaN` and the infinities; JSON doesn't.

    Raises:
        JSONProblem: Always.
    """
    msg = f"{name} isn't JSON"
    raise JSONProblem(msg)


def _finite(text: str) -> float:
    """The number, unless it is beyond the floats (`1e999` would become an infinity).

    Raises:
        JSONProblem: It is.
    """
    number = float(text)
    if math.isinf(number):
        msg = f"the number {text[:40]} is too large"
        raise JSONProblem(msg)
    return number


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs.

    Raises:
        JSONProblem: A key stands twice with different values.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        first: dict[str, Any] = {}
        for key, value in pairs:
            if _spelled(first.setdefault(key, value)) != _spelled(value):
                msg = f"the key {key[:100]!r} stands twice with different values"
                raise JSONProblem(msg)
    return found


def _spelled(value: Any) -> str:
    # `==` takes 1, 1.0 and true for the same.
    return json.dumps(value, sort_keys=True)


_decode = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite).decode
_decode_pairs = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_distinct
).decode


def _nesting(value: Any) -> int:
    """How many containers stand inside one another."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
    return depth


def _explained(problem: json.JSONDecodeError, text: str) -> JSONProblem:
    if _is_truncated(text):
        return JSONProblem(f"the text ends after {len(text)} characters, before its JSON does", truncated=True)
    return JSONProblem(f"{problem.msg.removesuffix(' at')} at line {problem.lineno} column {problem.colno}")


#: A string, or the beginning of one that the text's end cuts off.
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
#: What can complete a text that was cut inside a string (first its escape, then the string, then perhaps its pair) ...
_STRING_ENDS = tuple(end + pair for end in ('"', '\\"', '0000"', '000"', '00"', '0"') for pair in ("", ":0"))
#: ... and elsewhere: after a value, in a number or before a value, before a colon, before a key, inside a literal.
_OTHER_ENDS = ("", "0", ":0", '"":0', "rue", "ue", "e", "alse", "lse", "se", "ull", "ll", "l")


def _is_truncated(text: str) -> bool:
    """Whether something can be put after the text that makes it JSON; blank text isn't even a beginning."""
    if not text.strip():
        return False
    strings = list(_STRING.finditer(text))
    inside = bool(strings) and strings[-1].end() == len(text) and not _is_json(strings[-1].group())
    closing = _closing(_STRING.sub("", text))
    return any(_is_json(text + end + closing) for end in (_STRING_ENDS if inside else _OTHER_ENDS))


def _closing(text: str) -> str:
    """The brackets that would close those which stand open in a text without strings."""
    closing: list[str] = []
    for mark in re.findall(r"[][{}]", text):
        if mark in "[{":
            closing.append("]" if mark == "[" else "}")
        elif closing:
            closing.pop()
    return "".join(reversed(closing))


def _is_json(text: str) -> bool:
    try:
        _decode(text)
    except (ValueError, RecursionError):
        return False
    return True
