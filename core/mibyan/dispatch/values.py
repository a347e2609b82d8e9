"""A handler's value as a result: text, JSON or content parts; never an exception (dispatch.C6)."""

from __future__ import annotations

import base64
import json
from typing import Any, NoReturn

from mibyan.records import record
from mibyan.schema.jsontext import to_data, to_json
from mibyan.text import plain_text, replace_surrogates
from mibyan.tools.results import ToolResult

_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
)


@record(frozen=False)
class Rendered:
    """A value on its way to the model."""

    text: str
    #: Whether `text` is JSON that Mibyan wrote.
    is_json: bool = False
    content: tuple[dict[str, Any], ...] | None = None
    #: The `error` and `error_type` it carries, once looked for.
    error: tuple[str, str | None] | None = None


def render(value: Any) -> Rendered:
    """The form of any value: text as it is, bytes and images as content parts, the rest as JSON; it never fails.

    Raises:
        KeyboardInterrupt: The only thing that leaves, if it comes meanwhile.
    """
    if type(value) is str:
        return Rendered(replace_surrogates(value))
    try:
        rendered = _special(value)
    except KeyboardInterrupt:
        raise
    except BaseException:  # A value that lies about what it is has a text all the same.
        rendered = None
    return Rendered(to_json(value), is_json=True) if rendered is None else rendered


def _special(value: Any) -> Rendered | None:
    """The form of a value that isn't simply JSON."""
    if isinstance(value, str):
        return Rendered(replace_surrogates(plain_text(value)))
    if isinstance(value, ToolResult):
        content = None if value.content is None else tuple(_part(item) for item in value.content)
        return Rendered(replace_surrogates(plain_text(value.text)), content=content)
    if isinstance(value, bytes | bytearray | memoryview):
        return rendered_parts([binary_part(bytes(value))])
    if isinstance(value, dict) and value.get("_multimodal") is True and isinstance(value.get("content"), list | tuple):
        return rendered_parts([_part(item) for item in value["content"]])
    image = _image_bytes(value)
    return None if image is None else rendered_parts([binary_part(image)])


def binary_part(data: bytes) -> dict[str, Any]:
    """Bytes as a content part of MCP's form: an image where they are one, else an embedded resource."""
    text = base64.b64encode(data).decode("ascii")
    kind = next((kind for magic, kind in _IMAGES if data.startswith(magic)), None)
    if kind is None and data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "image/webp"
    if kind is not None:
        return {"type": "image", "data": text, "mimeType": kind}
    return {"type": "resource", "resource": {"uri": "data:", "mimeType": "application/octet-stream", "blob": text}}


def _part(item: Any) -> dict[str, Any]:
    if isinstance(item, bytes | bytearray | memoryview):
        return binary_part(bytes(item))
    if isinstance(item, str):
        return {"type": "text", "text": replace_surrogates(item)}
    data = to_data(item)
    return data if isinstance(data, dict) else {"type": "text", "text": to_json(data)}


def rendered_parts(parts: list[dict[str, Any]]) -> Rendered:
    """Content parts, with the JSON text that stands for them."""
    return Rendered(to_json({"content": parts}), is_json=True, content=tuple(parts))


def _image_bytes(value: Any) -> bytes | None:
    """A Pillow image as PNG, without importing Pillow."""
    if not type(value).__module__.startswith("PIL."):
        return None
    import io

    buffer = io.BytesIO()
    try:
        value.save(buffer, format="PNG")
    except Exception:
        return None
    return buffer.getvalue()


def data_of(text: str) -> Any:
    """The value of a text that is JSON of an object or array; `None` where it isn't."""
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        return None


def is_json(text: str) -> bool:
    """Whether a text is JSON of an object or array; of a very long one its two ends are looked at."""
    if len(text) > _LONG:
        return text.lstrip()[:1] + text[-100:].rstrip()[-1:] in {"{}", "[]"}
    return data_of(text) is not None


def _refuse(name: str) -> NoReturn:
    """Python's decoder knows NaN and the infinities, JSON doesn't.

    Raises:
        ValueError: Always.
    """
    raise ValueError(name)


_decode = json.JSONDecoder(parse_constant=_refuse).decode
#: Characters from which on a text isn't parsed to find out what it is.
_LONG = 5_000_000


def error_of(text: str) -> tuple[str, str | None] | None:
    """The `error` (and `error_type`) that a handler's answer carries: a JSON object whose `error` is there and true."""
    # The answer of a tool that worked costs one search of its beginning.
    if text.lstrip()[:1] != "{" or '"error"' not in text:
        return None
    data = data_of(text)
    if not isinstance(data, dict) or not data.get("error"):
        return None
    error = data["error"]
    kind = data.get("error_type")
    return error if isinstance(error, str) else to_json(error), kind if isinstance(kind, str) else None
