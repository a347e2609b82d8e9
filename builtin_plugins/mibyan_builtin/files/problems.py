"""What the operating system says about a file, in words for the model."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from mibyan import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Characters of a path that are shown in a message.
SHOWN_PATH = 300

_SENTENCES: dict[int, tuple[str, str | None]] = {
    errno.ENOENT: ("File not found: {path}", None),
    errno.ENOTDIR: ("A part of the path is a file, not a directory: {path}", None),
    errno.EISDIR: ("It is a directory: {path}", "Give the path of a file."),
    errno.EACCES: ("Permission denied: {path}", "The operating system doesn't allow this to Mibyan's user."),
    errno.EPERM: ("Permission denied: {path}", "The operating system doesn't allow this to Mibyan's user."),
    errno.EROFS: ("The file system is read-only: {path}", None),
    errno.ENOSPC: ("No space is left on the device for {path}", None),
    errno.EDQUOT: ("The disk quota is used up: {path}", None),
    errno.ENAMETOOLONG: ("The file name is too long: {path}", None),
    errno.ELOOP: ("Too many symbolic links: {path}", None),
    errno.EFBIG: ("The file would be too large: {path}", None),
    errno.ETXTBSY: ("The file is a program that is running: {path}", None),
}


def shown(path: str) -> str:
    """`path`, cut in the middle when it is very long."""
    if len(path) <= SHOWN_PATH:
        return path
    return f"{path[: SHOWN_PATH // 2]}…{path[-SHOWN_PATH // 2 :]}"


def problem(error: OSError, path: str, names: Iterable[str] = ()) -> ToolError:
    """The `ToolError` for what the operating system answered about `path`.

    Args:
        error: What it answered.
        path: The path as the model wrote it.
        names: What there is instead, for the hint.
    """
    sentence, hint = _SENTENCES.get(error.errno or 0, ("{path}: {reason}", None))
    reason = error.strerror or type(error).__name__
    did_you_mean = ", ".join(names)
    return ToolError(
        sentence.format(path=shown(path), reason=reason),
        hint=f"Did you mean {did_you_mean}?" if did_you_mean else hint,
    )
