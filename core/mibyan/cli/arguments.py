"""The arguments of `mibyan call`: JSON, `key=text` and `key:=JSON`, or `-` for what comes on standard input."""

from __future__ import annotations

import math
import os
import re
import sys
from typing import TYPE_CHECKING, Any, Final

from mibyan.cli.exits import UsageError
from mibyan.schema.jsontext import JSONProblem, parse_strict
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

#: `key=text` or `key:=JSON`.
_PAIR = re.compile(r"(?P<key>[^\W\d][\w.-]*)(?P<how>:?=)(?P<value>.*)", re.DOTALL)
#: Bytes of standard input; something that never ends must not fill the memory.
_LARGEST: Final = 64 * 1024 * 1024
_HOW = "Give JSON ('{\"key\": 1}'), or key=text and key:=JSON, or - to read JSON from standard input."


def read_arguments(words: Sequence[str]) -> Any:
    """The arguments for the pipeline.

    Args:
        words: What stands behind the tool's name.

    Returns:
        A dict made of pairs; the text of what is JSON or comes on standard input (the pipeline reads it, as it reads
        a model's); `None` where there is nothing.

    Raises:
        UsageError: They can't be told, or standard input can't be read.
    """
    pairs = [match for word in words if (match := _PAIR.fullmatch(word))]
    others = [word for word in words if not _PAIR.fullmatch(word)]
    if others and (pairs or len(others) > 1):
        raise UsageError(_confused(pairs, others))
    if pairs:
        return _dict_of(pairs)
    if not others:
        return None
    return read_standard_input() if others[0] == "-" else _json_text(others[0])


def _confused(pairs: Sequence[re.Match[str]], others: Sequence[str]) -> str:
    if pairs:
        what = "standard input" if others[0] == "-" else "JSON" if _looks_like_json(others[0]) else "neither"
        return f"{_shown(others[0])} is {what} and {_shown(pairs[0][0])} a pair; they don't go together. {_HOW}"
    return f"{_shown(others[1])} is one argument too many. {_HOW}"


def _dict_of(pairs: Sequence[re.Match[str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        if pair["key"] in found:
            raise UsageError(f"{_shown(pair['key'])} is given twice.")
        found[pair["key"]] = pair["value"] if pair["how"] == "=" else _json_value(pair["key"], pair["value"])
    return found


def _json_value(key: str, text: str) -> Any:
    try:
        return parse_strict(text)
    except JSONProblem as problem:
        raise UsageError(
            f"What stands behind {_shown(key + ':=')} isn't JSON: {one_line(str(problem)).rstrip('.')}. "
            f"For text write {_shown(f'{key}={text}')}."
        ) from None


def _json_text(text: str) -> str:
    if not _looks_like_json(text):
        raise UsageError(f"{_shown(text)} isn't JSON and not a pair. {_HOW}")
    return text


def _looks_like_json(text: str) -> bool:
    """Whether text was meant to be JSON: what the pipeline shall judge, because a model could send it."""
    if not text.strip() or text.lstrip()[0] in '{["':
        return True
    try:
        parse_strict(text)
    except JSONProblem:
        return False
    return True


def read_standard_input() -> str:
    """What comes on standard input, as text.

    Raises:
        UsageError: It is too much, isn't UTF-8, or can't be read.
    """
    if sys.stdin is None:
        raise UsageError("Standard input is closed, there is nothing to read.")
    try:
        content = sys.stdin.buffer.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise UsageError(
                f"Standard input has more than {_LARGEST:,} bytes, more than any call takes. Give a path to large data."
            )
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"Standard input isn't UTF-8 text (byte {error.start}).") from None
    except (OSError, ValueError) as error:
        number = getattr(error, "errno", None)
        why = os.strerror(number).lower() if isinstance(number, int) else str(error)
        raise UsageError(f"Standard input can't be read: {why}.") from None


def _shown(text: str) -> str:
    return repr(one_line(text, 80))


def read_seconds(value: str | None) -> float | None:
    """The time-out in a text: a number of seconds, more than nothing and not for ever."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise UsageError(f"{one_line(value, 60)!r} isn't a number of seconds above 0.")
    return seconds
