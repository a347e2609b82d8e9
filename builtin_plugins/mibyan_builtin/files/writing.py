"""Writing a whole file: what is there keeps its mode, its encoding and its line endings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan import ToolError
from mibyan_builtin.files.encoding import SNIFFED, Encoding, detect, line_ending
from mibyan_builtin.files.opening import opened
from mibyan_builtin.files.problems import problem
from mibyan_builtin.files.transaction import Change, commit, replaceable

if TYPE_CHECKING:
    from mibyan_builtin.files.workspace import Location

#: Bytes of the old file that are looked at to see how its lines end.
LOOKED_AT = 1024 * 1024


def write(location: Location, content: str) -> dict[str, Any]:
    """Write `content` to `location`; the answer of `write_file`.

    Raises:
        ToolError: It can't be written; what was there is as it was.
    """
    before = replaceable(location)
    encoding, ending = Encoding(), "\n"
    if before is not None:
        encoding, ending = _style(location)
    text = content.replace("\n", "\r\n") if ending == "\r\n" and "\r" not in content else content
    data = encoding.encode(text, location.given)
    commit([Change(location, data, before)])
    answer: dict[str, Any] = {"path": str(location.path), "created": before is None, "bytes": len(data)}
    answer["lines"] = text.count("\n") + (not text.endswith("\n") and text != "")
    if encoding != Encoding():
        answer["encoding"] = str(encoding)
    if text != content:
        answer["line_endings"] = "crlf"
    return answer


def _style(location: Location) -> tuple[Encoding, str]:
    """How the file that is there is written; a binary or unreadable one has no style to keep."""
    try:
        with opened(location) as (stream, _):
            head = stream.read(LOOKED_AT)
        encoding = detect(head[:SNIFFED], location.given)
    except OSError as error:
        raise problem(error, location.given) from None
    except ToolError:
        return Encoding(), "\n"
    return encoding, line_ending(head.decode(encoding.name, "replace"))
