"""Any Python object as plain JSON types, without ever failing (dispatch.C6); `jsontext.to_data` tells the rules."""

from __future__ import annotations

import binascii
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from enum import Enum
from itertools import islice
from typing import Any

#: What Python's own conversion of integers to text allows by default.
MAX_DIGITS = 4_300
#: Items of a container that isn't a plain one: an endless iterator must not fill the memory.
MAX_ITEMS = 1_000_000

TOO_DEEP = "<nested too deeply>"
CYCLE = "<cycle>"

#: `repr`'s addresses: "at 0x10", or at least nine digits.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+|0x[0-9a-fA-F]{9,}")
#: Below this many bits an integer surely has no more than `MAX_DIGITS` digits.
_SAFE_BITS = int(MAX_DIGITS * math.log2(10))


class _Pairs(list[tuple[Any, Any]]):
    """What becomes an object."""


class _Unordered(list[Any]):
    """What becomes an array in an order of its own."""


def degrade(value: object, depth: int) -> Any:
    """The plain JSON value nearest to `value`.

    Args:
        value: Anything.
        depth: Containers inside one another; what is deeper is cut.
    """
    return _plain(value, depth, set())


def clean(text: str) -> str:
    """Plain text that can be encoded: pairs of surrogates joined, lone ones replaced by U+FFFD."""
    if str.isascii(text):
        return str.__add__("", text)
    return str.encode(text, "utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _plain(value: object, depth: int, path: set[int]) -> Any:
    """`value` as JSON types; `path` has the identities of the containers around it."""
    try:
        return _scalar(value) if isinstance(value, str | int | float | None) else _compound(value, depth, path)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return _describe(value)


def _scalar(value: str | float | None) -> str | float | None:
    """A scalar; an instance of a subclass (an `IntEnum`, say) as the plain scalar it holds."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int):
        return _integer(int.__pos__(value))
    number = float.__pos__(value)
    return number if math.isfinite(number) else None


def _integer(number: int) -> int | str:
    if number.bit_length() > _SAFE_BITS and abs(number) >= 10**MAX_DIGITS:
        return f"<integer of about {int(number.bit_length() * math.log10(2)) + 1} digits>"
    return number


def _compound(value: object, depth: int, path: set[int]) -> Any:
    """What isn't a scalar: an object or an array of its parts, else what it stands for, else a text."""
    parts = _parts(value)
    if parts is None:
        return _leaf(value, depth, path)
    if id(value) in path:
        return CYCLE
    if depth <= 0:
        return TOO_DEEP
    path.add(id(value))
    try:
        return _items(parts, depth - 1, path)
    finally:
        path.discard(id(value))


def _items(parts: list[Any], depth: int, path: set[int]) -> Any:
    if isinstance(parts, _Pairs):
        found: dict[str, Any] = {}
        for key, item in parts:
            found[_unused(_key(key, depth, path), found)] = _plain(item, depth, path)
        return found
    items = [_plain(item, depth, path) for item in parts]
    return sorted(items, key=_rank) if isinstance(parts, _Unordered) else items


def _key(key: object, depth: int, path: set[int]) -> str:
    """A key as text, spelled as JSON spells the value."""
    plain = _plain(key, depth, path)
    return plain if isinstance(plain, str) else _text(plain)


def _unused(key: str, taken: Mapping[str, object]) -> str:
    """`key`, with a number if it is taken: 1 and "1" are two keys in Python and one in JSON."""
    spelled, number = key, 1
    while spelled in taken:
        number += 1
        spelled = f"{key} ({number})"
    return spelled


def _rank(plain: object) -> tuple[bool, float | int, str]:
    """What a set's items are sorted by: numbers first, the rest by their texts."""
    is_number = isinstance(plain, int | float)
    return not is_number, plain if isinstance(plain, int | float) else 0, _text(plain)


def _text(plain: object) -> str:
    return json.dumps(plain, ensure_ascii=False)


def _parts(value: object) -> list[Any] | None:
    """What a container holds; `None` for what isn't one."""
    kind = type(value)
    if isinstance(value, Mapping):
        return _pairs(value)
    if isinstance(value, str | bytes | bytearray | memoryview | range):
        return None
    if isinstance(value, AbstractSet):
        return _Unordered(islice(value, MAX_ITEMS))
    if isinstance(value, Sequence | ValuesView):
        return list(islice(value, MAX_ITEMS))
    if hasattr(kind, "model_dump"):
        return _pairs(_dumped(value))
    names = getattr(kind, "__dataclass_fields__", None) or [a.name for a in getattr(kind, "__attrs_attrs__", ())]
    return _Pairs((name, _attribute(value, name)) for name in names) if names else None


def _pairs(value: Mapping[Any, Any]) -> _Pairs:
    try:
        return _Pairs((key, item) for key, item in islice(value.items(), MAX_ITEMS))
    except Exception:
        if not isinstance(value, dict):
            raise
        return _Pairs(dict.items(value))


def _dumped(model: Any) -> Mapping[Any, Any]:
    """A pydantic model's fields; its JSON mode hides secrets, and can't say everything that the other can."""
    try:
        fields = model.model_dump(mode="json")
    except Exception:
        fields = model.model_dump()
    return fields if isinstance(fields, Mapping) else {"root": fields}


def _attribute(value: object, name: str) -> Any:
    try:
        return getattr(value, name)
    except Exception:
        return None


def _leaf(value: object, depth: int, path: set[int]) -> Any:
    """What stands for a value without parts."""
    if isinstance(value, bytes | bytearray | memoryview):
        return "data:application/octet-stream;base64," + binascii.b2a_base64(value, newline=False).decode("ascii")
    if isinstance(value, Enum):
        return _plain(value.value, depth, path)
    if _is_a(value, "datetime", "date", "time"):
        return value.isoformat()  # type: ignore[attr-defined]
    if _is_a(value, "datetime", "timedelta"):
        return value.total_seconds()  # type: ignore[attr-defined]
    if _is_a(value, "decimal", "Decimal") and not value.is_finite():  # type: ignore[attr-defined]
        return None
    if hasattr(type(value), "tolist"):  # numpy's arrays and numbers, `array.array`
        return _plain(value.tolist(), depth, path)  # type: ignore[attr-defined]
    return _describe(value)


def _is_a(value: object, module: str, *names: str) -> bool:
    """Whether `value` is of a class in a module that may not be loaded (then it isn't)."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, tuple(getattr(loaded, name) for name in names))


def _describe(value: object) -> str:
    """A text for anything, without a memory address: two processes say the same."""
    try:
        text = clean(f"{type(value).__name__}: {value}" if isinstance(value, BaseException) else str(value))
        return _ADDRESS.sub("", text).replace(str(id(value)), "")
    except KeyboardInterrupt:
        raise
    except BaseException:
        return _nameless(value)


def _nameless(value: object) -> str:
    try:
        return clean(f"<{type(value).__name__} object>")
    except KeyboardInterrupt:
        raise
    except BaseException:
        return "<object>"
