"""What text stands for besides itself: null, a number, a boolean, a container (dispatch.A2: without any loss)."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from mibyan.schema.reading import JSONProblem, parse_strict

#: There is no such reading (`None` is one).
NOTHING: Final = object()

#: Characters of a number's text: as many digits as Python converts (4,300), a sign, a point, an exponent.
_MAX_LENGTH = 4_400

#: Digits of any script, with the signs and decimal points that go with them. No thousands separators: "1,000" is
#: one, to half of the world.
_NUMBER = re.compile(
    r"([-+\u2212\uff0d\uff0b]?)(\d*)(?:[.\u066b\uff0e](\d+))?(?:[eE]([-+\u2212\uff0d\uff0b]?)(\d{1,4}))?"
)
_MINUS = ("-", "\u2212", "\uff0d")
_BOOLEANS = {"true": True, "false": False}


def read_null(text: str) -> Any:
    """`None` for JSON's literal, else `NOTHING`."""
    return None if text.strip() == "null" else NOTHING


def read_boolean(text: str) -> Any:
    """The boolean that the text names, whatever its letters' case; else `NOTHING`."""
    return _BOOLEANS.get(text.strip().lower(), NOTHING)


def read_container(text: str) -> Any:
    """The object or array that the text is, strictly read; else `NOTHING`."""
    if text.lstrip()[:1] not in {"{", "["}:
        return NOTHING
    try:
        return parse_strict(text)
    except JSONProblem:
        return NOTHING


def read_number(text: str, *, whole: bool) -> Any:
    """The number that the text is, exactly; else `NOTHING`.

    Args:
        text: Digits of any script, a sign, a decimal point, an exponent; blanks around them don't matter.
        whole: Whether only an integer will do; it may be written `1.0` or `1e3`.

    Returns:
        An `int` of any size; with a fraction or an exponent a `float`, if the float is what is written
        (`0.1` is, for floats are written that way; twenty digits of pi aren't).
    """
    match = _NUMBER.fullmatch(text.strip()) if len(text) <= _MAX_LENGTH else None
    if match is None or not (match[2] or match[3]):
        return NOTHING
    sign, units, fraction, minus, exponent = match.groups(default="")
    try:
        digits = int(units + fraction)
    except ValueError:
        return NOTHING
    negative = sign in _MINUS
    if not fraction and not exponent:
        return -digits if negative else digits
    power = int(exponent or 0) * (-1 if minus in _MINUS else 1) - len(fraction)
    return _scaled(digits, power, negative=negative, whole=whole)


def _scaled(digits: int, power: int, *, negative: bool, whole: bool) -> Any:
    """The number `digits` times ten to the `power`."""
    if not whole:
        number = float(f"{digits}e{power}")
        if math.isfinite(number) and _is_written(number, digits, power):
            return -number if negative else number
    units, rest = divmod(digits * 10 ** max(power, 0), 10 ** max(-power, 0))
    if rest or units.bit_length() > 3 * _MAX_LENGTH:
        return NOTHING
    return -units if negative else units


def _is_written(number: float, digits: int, power: int) -> bool:
    """Whether the float is written (with as few digits as tell it from all others) as this very number."""
    match = _NUMBER.fullmatch(repr(number))
    if match is None:
        return False
    _, units, fraction, minus, exponent = match.groups(default="")
    its_power = int(exponent or 0) * (-1 if minus == "-" else 1) - len(fraction)
    least = min(power, its_power)
    return bool(digits * 10 ** (power - least) == int(units + fraction) * 10 ** (its_power - least))


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal as JSON Schema means it: 1 is 1.0, and neither is true (Core, section 4.2.2)."""
    if isinstance(one, bool) or isinstance(other, bool):
        return isinstance(one, bool) and one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
