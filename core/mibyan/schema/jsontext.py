"""JSON text, strictly read and totally written: reading refuses what is ambiguous, writing never fails (dispatch.C6)."""

from __future__ import annotations

import json
import json.encoder
from typing import TYPE_CHECKING, Any

from mibyan.schema.reading import JSONProblem, parse_strict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["MAX_DEPTH", "JSONProblem", "parse_strict", "to_data", "to_json"]

#: Containers inside one another that are written; what is deeper is cut.
MAX_DEPTH = 100


def to_json(value: object, *, limit_depth: int = MAX_DEPTH) -> str:
    """JSON text of any Python object, always: strictly valid, UTF-8 encodable, readable (not escaped to ASCII).

    What JSON can't say degrades: see `to_data`. Equal values give equal texts; the order of keys is kept.

    Args:
        value: Anything.
        limit_depth: Containers inside one another; what is deeper is cut.

    Raises:
        KeyboardInterrupt: The only thing that leaves, if it comes meanwhile.
    """
    try:
        if type(value) is dict and len(value) == 1:
            # Half of all tools answer with one text under one key.
            ((key, item),) = value.items()
            if type(key) is type(item) is str:
                text = f"{{{_quoted(key)}: {_quoted(item)}}}"
                if text.isascii() and limit_depth > 0:
                    return text
        text = _join(_chunks(value, 0))
        if type(value) is dict and limit_depth > 0 and text.isascii():
            # Most results are flat.
            for key, item in value.items():
                if type(key) is not str or type(item) not in _SCALARS:
                    break
            else:
                return text
        if _is_regular(value, text, limit_depth):
            return text
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: S110 - whatever a value's methods raise, it has a text
        pass
    try:
        return _join(_chunks(to_data(value, limit_depth=limit_depth), 0))
    except KeyboardInterrupt:
        raise
    except BaseException:
        return '"<not serialisable>"'


def to_data(value: object, *, limit_depth: int = MAX_DEPTH) -> Any:
    """The plain JSON value (`dict`, `list`, `str`, `int`, `float`, `bool`, `None`) nearest to any Python object.

    Dataclasses, pydantic and attrs models become objects; tuples and sets arrays (sets are sorted); dates ISO 8601
    text; UUIDs, paths and decimals text; an `Enum` its value; bytes a base64 `data:` URL; non-finite numbers null;
    integers of more than 4,300 digits, unknown types and generators a text without a memory address; lone surrogates
    U+FFFD; cycles and what is too deep a marker. Keys become text; keys that then would be equal get a number.

    Args:
        value: Anything.
        limit_depth: Containers inside one another; what is deeper is cut.

    Raises:
        KeyboardInterrupt: The only thing that leaves, if it comes meanwhile.
    """
    # The rare road has a module of its own, which most processes never read.
    from mibyan.schema.degrade import degrade

    return degrade(value, limit_depth)


def _encoder() -> Callable[[object, int], Iterable[str]]:
    """The quickest way from a plain JSON value to pieces of its text that this interpreter has.

    `json.dumps` with options builds an encoder on each call; the C function behind it can be kept. Without markers
    it finds cycles by the recursion limit, which serves as well here.
    """
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # pragma: no cover - an interpreter without the C accelerator
        return lambda value, _: json.JSONEncoder(ensure_ascii=False, allow_nan=False).iterencode(value)
    return make(None, _refuse, json.encoder.encode_basestring, None, ": ", ", ", False, False, False)  # type: ignore[no-any-return]  # noqa: FBT003


def _refuse(value: object) -> object:
    """What the encoder asks for types it doesn't know.

    Raises:
        TypeError: Always.
    """
    raise TypeError(type(value))


_chunks = _encoder()
_join = "".join
#: A text with its quotes.
_quoted: Callable[[str], str] = json.encoder.encode_basestring


def _is_regular(value: object, text: str, limit_depth: int) -> bool:
    """Whether `text`, which the encoder made of `value`, is what we want to send.

    The encoder lets pass what isn't good: lone surrogates, keys that differ only in type, any depth.
    Raises instead of answering no where that is quicker.
    """
    if not text.isascii():
        text.encode()
    if not isinstance(value, _CONTAINERS):
        return True
    if text.find("{", 1) < 0 and text.find("[", 1) < 0:
        # Joining tells at once whether all keys are text.
        return limit_depth > 0 and (not isinstance(value, dict) or "".join(value) is not None)
    return _are_regular(value, limit_depth)


_CONTAINERS = (dict, list, tuple)
_SCALARS = frozenset((str, int, float, bool, type(None)))


def _are_regular(value: Any, depth: int) -> bool:
    """Whether all keys within a container are text and no more than `depth` containers stand in one another."""
    if depth <= 0:
        return False
    if isinstance(value, dict):
        "".join(value)
        value = value.values()
    for item in value:
        if type(item) not in _SCALARS and isinstance(item, _CONTAINERS) and not _are_regular(item, depth - 1):
            return False
    return True
