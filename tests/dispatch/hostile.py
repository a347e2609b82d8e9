"""What handlers can give and raise, as tables: what becomes of each is the same on every face."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import decimal
import enum
import json
import pathlib
import threading
import types
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mibyan import ToolResult
from mibyan.tools.results import ERROR_TYPES

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(16))


@dataclass
class Point:
    x: int
    y: float


class Colour(enum.Enum):
    RED = "red"


class EvilText(str):
    """Text whose own methods all raise."""

    __slots__ = ()

    def _raise(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("evil")

    __str__ = __repr__ = __format__ = __len__ = __eq__ = __iter__ = __getitem__ = __contains__ = __bool__ = _raise
    encode = replace = strip = lstrip = split = isascii = _raise
    __hash__ = str.__hash__


class EvilDict(dict):
    """A dict whose own methods all raise."""

    def _raise(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("evil")

    items = keys = values = get = __iter__ = __getitem__ = __len__ = __contains__ = __bool__ = _raise


class EvilList(list):
    def __iter__(self) -> Iterator[Any]:
        raise SystemExit(3)

    def __len__(self) -> int:
        raise SystemExit(3)


class EvilNumber(int):
    def __str__(self) -> str:
        raise RuntimeError("evil")

    __repr__ = __str__


class NoText:
    """An object that can't be shown."""

    def __repr__(self) -> str:
        raise SystemExit("no")

    __str__ = __repr__


class Liar:
    """An object that raises when asked what it is."""

    @property
    def __class__(self) -> type:
        raise RuntimeError("guess")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class Impostor:
    """An object that says it is a dict."""

    @property
    def __class__(self) -> type:
        return dict


class EvilMapping(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        raise ZeroDivisionError

    def __iter__(self) -> Iterator[str]:
        yield "a"

    def __len__(self) -> int:
        return 1


class Awaitable:
    """An awaitable that isn't a coroutine."""

    def __await__(self) -> Iterator[Any]:
        yield from asyncio.sleep(0).__await__()
        return {"awaited": True}


def cyclic() -> list[Any]:
    value: list[Any] = [1]
    value.append(value)
    return value


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> Any:
    yield 1


async def coroutine() -> dict[str, int]:
    await asyncio.sleep(0)
    return {"later": 1}


def model() -> Any:
    from pydantic import BaseModel

    class City(BaseModel):
        name: str
        size: int = 3

    return City(name="Bern")


def blob(data: bytes) -> str:
    part = {"type": "resource", "resource": {"uri": "data:", "mimeType": "application/octet-stream",
                                             "blob": base64.b64encode(data).decode()}}  # fmt: skip
    return json.dumps({"content": [part]})


def image(data: bytes) -> str:
    return json.dumps(
        {"content": [{"type": "image", "data": base64.b64encode(data).decode(), "mimeType": "image/png"}]}
    )


#: By name: what makes the value, and the text the model gets (`None`: any that is well formed).
VALUES: dict[str, tuple[Callable[[], Any], str | None]] = {
    "text": (lambda: "as it is", "as it is"),
    "empty text": (lambda: "", ""),
    "text that is JSON": (lambda: '{"a":1}', '{"a":1}'),
    "text that looks like JSON": (lambda: '{"a":', '{"a":'),
    "readable text": (lambda: "šķūņi 日本 سلام", "šķūņi 日本 سلام"),
    "lone surrogate": (lambda: "a\ud800b", "a\ufffdb"),
    "dict": (lambda: {"a": 1, "b": [True, None]}, '{"a": 1, "b": [true, null]}'),
    "readable dict": (lambda: {"città": "日本"}, '{"città": "日本"}'),
    "list": (lambda: [1, "x"], '[1, "x"]'),
    "tuple": (lambda: (1, 2), "[1, 2]"),
    "set": (lambda: {3, 1, 2}, "[1, 2, 3]"),
    "dataclass": (lambda: Point(1, 2.5), '{"x": 1, "y": 2.5}'),
    "pydantic model": (model, '{"name": "Bern", "size": 3}'),
    "None": (lambda: None, "null"),
    "true": (lambda: True, "true"),
    "number": (lambda: 1.5, "1.5"),
    "NaN": (lambda: float("nan"), "null"),
    "infinity": (lambda: {"x": float("-inf")}, '{"x": null}'),
    "integer of 5,000 digits": (lambda: 10**5000, None),
    "nested 99 levels": (lambda: deep(99), json.dumps(deep(99))),
    "nested 5,000 levels": (lambda: deep(5000), None),
    "cycle": (cyclic, '[1, "<cycle>"]'),
    "lone surrogate in a dict": (lambda: {"\ud800": "\udfff"}, '{"\ufffd": "\ufffd"}'),
    "keys of any type": (lambda: {1: "a", None: "b", (1, 2): "c"}, None),
    "bytes": (lambda: b"\x00\xff", blob(b"\x00\xff")),
    "bytearray": (lambda: bytearray(b"ab"), blob(b"ab")),
    "memoryview": (lambda: memoryview(b"abcd")[::2], blob(b"ac")),
    "image": (lambda: PNG, image(PNG)),
    "bytes within": (lambda: {"raw": b"ab"}, None),
    "multimodal": (
        lambda: {"_multimodal": True, "content": ["look", PNG, {"type": "text", "text": "x"}, 5]},
        json.dumps({"content": [{"type": "text", "text": "look"},
                                {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"},
                                {"type": "text", "text": "x"}, {"type": "text", "text": "5"}]}),
    ),
    "generator": (generator, None),
    "async generator": (async_generator, None),
    "function": (lambda: generator, None),
    "class": (lambda: Point, None),
    "module": (lambda: json, None),
    "lock": (threading.Lock, None),
    "coroutine": (coroutine, '{"later": 1}'),
    "awaitable": (Awaitable, '{"awaited": true}'),
    "an exception": (lambda: ValueError("not raised"), '"ValueError: not raised"'),
    "date": (lambda: dt.date(2026, 1, 2), '"2026-01-02"'),
    "path": (lambda: pathlib.PurePosixPath("/a/b"), '"/a/b"'),
    "uuid": (lambda: uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
    "decimal": (lambda: decimal.Decimal("1.10"), '"1.10"'),
    "enum": (lambda: Colour.RED, '"red"'),
    "tool result": (lambda: ToolResult(None, "other", "ok", "its text"), "its text"),
    "mapping proxy": (lambda: types.MappingProxyType({"a": 1}), '{"a": 1}'),
    "evil text": (lambda: EvilText("evil"), "evil"),
    "evil text within": (lambda: [EvilText("evil")], '["evil"]'),
    "evil dict": (lambda: EvilDict(a=1), '{"a": 1}'),
    "evil list": (lambda: EvilList([1]), None),
    "evil number": (lambda: {"n": EvilNumber(3)}, '{"n": 3}'),
    "evil mapping": (EvilMapping, None),
    "no text": (NoText, None),
    "no text within": (lambda: {"x": [NoText()]}, None),
    "a liar": (Liar, None),
    "a liar within": (lambda: [Liar()], None),
    "an impostor": (Impostor, None),
    "object": (object, None),
}  # fmt: skip


class Mute(Exception):
    """An exception whose text can't be had."""

    def __str__(self) -> str:
        raise SystemExit(4)

    __repr__ = __str__


class Odd(Exception):
    """An exception whose text is of an evil kind."""

    def __str__(self) -> str:
        return EvilText("odd")


class LyingError(Exception):
    """An exception that says it is a KeyboardInterrupt."""

    @property
    def __class__(self) -> type:
        return KeyboardInterrupt


class Disguised(Exception):
    @property
    def __class__(self) -> type:
        raise RuntimeError("guess")


def _stop() -> BaseException:
    return StopIteration("s")


#: By name: what makes the exception, and what the error's text has in it.
EXCEPTIONS: dict[str, tuple[Callable[[], BaseException], str]] = {
    "ValueError": (lambda: ValueError("x"), "Tool execution failed: ValueError: x"),
    "KeyError": (lambda: KeyError("k"), "Tool execution failed: KeyError: 'k'"),
    "without text": (ValueError, "Tool execution failed: ValueError"),
    "SystemExit": (lambda: SystemExit(3), "Tool execution failed: SystemExit: 3"),
    "GeneratorExit": (lambda: GeneratorExit("g"), "GeneratorExit: g"),
    "StopIteration": (_stop, "Stop"),
    "StopAsyncIteration": (lambda: StopAsyncIteration("s"), "Stop"),
    "CancelledError": (lambda: asyncio.CancelledError("mine"), "CancelledError: mine"),
    "RecursionError": (lambda: RecursionError("deep"), "RecursionError: deep"),
    "MemoryError": (lambda: MemoryError("much"), "MemoryError: much"),
    "TimeoutError": (lambda: TimeoutError("its own"), "TimeoutError: its own"),
    "BaseException": (lambda: BaseException("base"), "BaseException: base"),
    "a group": (lambda: ExceptionGroup("several", [ValueError("x")]), "ExceptionGroup: several"),
    "a group of the worst": (lambda: BaseExceptionGroup("several", [SystemExit(1)]), "several"),
    "mute": (Mute, "Mute: (its message can't be read)"),
    "odd": (Odd, "Odd: odd"),
    "says it is another": (lambda: LyingError("x"), ""),
    "raises when asked what it is": (lambda: Disguised("x"), ""),
    "lone surrogate": (lambda: ValueError("\ud800"), "ValueError: \ufffd"),
    "address": (lambda: ValueError(object()), "ValueError: <object object>"),
}


def check_well_formed(result: ToolResult) -> None:
    """Whatever happened, there is one answer that can be sent: JSON types, known words, no address, no surrogate."""
    assert result.status in {"ok", "error", "blocked", "denied", "timeout", "cancelled"}
    assert (result.error is None) == (result.status == "ok") == (result.error_type is None)
    assert result.error_type is None or result.error_type in ERROR_TYPES
    assert type(result.text) is str
    result.text.encode()
    assert " at 0x" not in result.text
    json.dumps(result.to_dict(), allow_nan=False, ensure_ascii=False).encode()
    if result.error is not None:
        told = json.loads(result.text)
        assert told["error"] == result.error
        assert len(result.error) <= 2048
