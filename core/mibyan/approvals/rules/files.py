"""Deleting files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mibyan.approvals.paths import is_disk, is_secret, is_system_file, write_rule
from mibyan.approvals.rules.checks import lost, path_of
from mibyan.approvals.rules.writing import writes
from mibyan.approvals.searchers import find_starts
from mibyan.approvals.shell.options import Options
from mibyan.approvals.shell.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.approvals.rules.checks import Checker, Found
    from mibyan.approvals.shell.call import Call

#: Programs that delete what others have found.
_SEARCHERS: Final = frozenset(("find", "gfind", "xargs", "gxargs", "parallel", "fd", "fdfind"))


def _rm(call: Call) -> Iterator[Found]:
    # What isn't known at a word's beginning may be nothing: `rm $1-rf /`.
    options = Options([arg.after(UNKNOWN) if arg.text.startswith(f"{UNKNOWN}-") else arg for arg in call.args[1:]])
    recursive = options.has("r", "R", "recursive") or call.name in {"rimraf", "srm", "deltree"}
    if options.has("no-preserve-root"):
        recursive = True
    if recursive:
        yield "recursive_delete", call.span
    if _SEARCHERS & {*call.via}:
        yield "find_delete", call.span
    for arg in options.operands:
        if (recursive or "find" in call.via) and (rule := lost(call, arg, found="find" in call.via)):
            yield rule, arg.span
        elif write_rule(path_of(call, arg)) == "policy_file_write" and not recursive:
            yield "policy_file_write", arg.span
        elif is_system_file(path_of(call, arg)):
            yield "system_path_delete", arg.span
        elif (
            is_secret(path_of(call, arg))
            and not recursive
            and not path_of(call, arg).rpartition("/")[2].startswith(".env")
        ):
            yield "credential_delete", arg.span


def _find(call: Call) -> Iterator[Found]:
    words = call.words
    if "-delete" in words:
        yield "find_delete", call.span
        for arg in find_starts(call):
            if (rule := lost(call, arg, found=True)) and not _is_shallow(words):
                yield rule, arg.span
    for index, word in enumerate(words[:-1]):
        if word in {"-fprint", "-fprintf", "-fls", "-fprint0"}:
            yield from writes(call, [call.args[index + 2]])


def _is_shallow(words: list[str]) -> bool:
    """Whether a search is for some files only."""
    return any(
        word in {"-name", "-iname", "-path", "-regex", "-mtime", "-newer", "-size", "-empty", "-mmin", "-atime"}
        for word in words
    )


def _rsync(call: Call) -> Iterator[Found]:
    options = Options(call.args[1:], (*tuple("efTBM"), "rsh", "exclude", "include", "files-from"))
    target = options.operands[-1:] if len(options.operands) > 1 else []
    yield from writes(call, [arg for arg in target if ":" not in arg.text])
    if options.has(
        "delete", "delete-after", "delete-before", "delete-during", "delete-excluded", "remove-source-files"
    ) and not options.has("n", "dry-run"):
        yield "recursive_delete", call.span
        for arg in target:
            if rule := lost(call, arg):
                yield rule, arg.span


def _shred(call: Call) -> Iterator[Found]:
    options = Options(call.args[1:], ("n", "s", "iterations", "size", "random-source"))
    if _SEARCHERS & {*call.via}:
        yield "find_delete", call.span
    for arg in options.operands:
        path = path_of(call, arg)
        if is_disk(path):
            yield "block_device_write", arg.span
        elif is_system_file(path):
            yield "system_path_delete", arg.span
        elif is_secret(path) and "/" in path:
            yield "credential_delete", arg.span


CHECKS: Final[dict[str, Checker]] = {
    **dict.fromkeys(("rm", "unlink", "rmdir", "rimraf", "srm", "trash-empty", "grm"), _rm), **dict.fromkeys(("find", "gfind"), _find),
    "rsync": _rsync, **dict.fromkeys(("shred", "wipe"), _shred),
}  # fmt: skip
