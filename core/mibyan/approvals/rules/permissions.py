"""Permissions and owners of files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals.paths import is_system_file
from mibyan.approvals.rules.checks import lost, path_of
from mibyan.approvals.shell.options import Options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.approvals.rules.checks import Checker, Found
    from mibyan.approvals.shell.call import Call


def _chmod(call: Call) -> Iterator[Found]:
    args = [
        arg
        for arg in call.args[1:]
        if not re.fullmatch(
            r"-[RvcfHLP]+|--|--(?:recursive|verbose|changes|silent|quiet|preserve-root|no-preserve-root|reference=.*)",
            arg.text,
        )
    ]
    if any(arg.text.startswith("--reference") for arg in call.args[1:]) or not args:
        return
    mode, files = args[0].text, args[1:]
    recursive = Options(call.args[1:]).has("R", "recursive")
    if opens(mode) or (recursive and any(lost(call, arg) for arg in files)):
        yield "permissions", call.span
    if _makes_executable(mode):
        call.scope.executables.update(path_of(call, arg) for arg in files)


def opens(mode: str) -> bool:
    """Whether a mode lets everybody write, or lends the owner's rights."""
    if re.fullmatch(r"[0-7]{3,5}", mode):
        number = int(mode, 8)
        return bool(number & 0o002) or bool(number & 0o6000)
    for clause in mode.split(","):
        match = re.fullmatch(r"([ugoa]*)((?:[-+=][rwxXstugo]*)+)", clause)
        if match is None:
            continue
        for sign, rights in re.findall(r"([-+=])([rwxXstugo]*)", match[2]):
            everybody = not match[1] or "a" in match[1] or "o" in match[1]
            if sign in "+=" and (("w" in rights and everybody and match[1]) or "s" in rights):
                return True
    return False


def _makes_executable(mode: str) -> bool:
    return bool(int(mode, 8) & 0o111) if re.fullmatch(r"[0-7]{3,5}", mode) else bool(re.search(r"[+=][rwXst]*x", mode))


def _chown(call: Call) -> Iterator[Found]:
    options = Options(call.args[1:], ("from", "reference"))
    if options.has("R", "recursive"):
        yield "permissions", call.span
    yield from (("permissions", arg.span) for arg in options.operands[1:] if is_system_file(path_of(call, arg)))


def _setfacl(call: Call) -> Iterator[Found]:
    words = call.words
    if any(re.match(r"-[a-zA-Z]*R|--recursive", word) for word in words) or any(
        re.search(r"(?:^|,)o(?:ther)?:[^:]*:?[^,]*w", word) for word in words
    ):
        yield "permissions", call.span


def _chattr(call: Call) -> Iterator[Found]:
    if call.words:
        yield "permissions", call.span


CHECKS: Final[dict[str, Checker]] = {
    "chmod": _chmod, "gchmod": _chmod, "chown": _chown, "chgrp": _chown, "setfacl": _setfacl, "chattr": _chattr,
}  # fmt: skip
