"""Builtins that change the state of the shell: directory, variables, arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mibyan.approvals.shell.options import Options
from mibyan.approvals.shell.values import HOME, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.approvals.shell.call import Call


def take_effect(call: Call) -> None:
    """Let a call change its scope, if it is such a builtin."""
    change = _EFFECTS.get(call.name)
    if change is not None and len(call.via) <= 1:
        change(call)


def _cd(call: Call) -> None:
    operands = [arg for arg in call.args[1:] if arg.text == "-" or not arg.text.startswith("-")]
    target = operands[0] if operands else None
    if target is not None and target.globbed:
        call.scope.change_directory(UNKNOWN)
    else:
        call.scope.change_directory(HOME if target is None else target.text)


def _pushd(call: Call) -> None:
    call.scope.stack.append(call.scope.cwd)
    _cd(call) if len(call.args) > 1 else call.scope.change_directory(UNKNOWN)


def _popd(call: Call) -> None:
    call.scope.before, call.scope.cwd = call.scope.cwd, call.scope.stack.pop() if call.scope.stack else None


def _set(call: Call) -> None:
    words = call.words
    if "--" in words:
        call.scope.positional = words[words.index("--") + 1 :]
    elif words and not words[0].startswith(("-", "+")):
        call.scope.positional = words


def _shift(call: Call) -> None:
    count = call.words[0] if call.words else "1"
    if call.scope.positional is not None and count.isdigit():
        call.scope.positional = call.scope.positional[int(count) :]


def _read(call: Call) -> None:
    for arg in Options(call.args[1:], tuple("dinNptu")).operands or ():
        call.scope.set(arg.text, UNKNOWN)


def _unset(call: Call) -> None:
    for arg in call.args[1:]:
        call.scope.set(arg.text, "")
        call.scope.functions.pop(arg.text, None)


_EFFECTS: Final[dict[str, Callable[[Call], None]]] = {
    "cd": _cd, "chdir": _cd, "pushd": _pushd, "popd": _popd, "set": _set, "shift": _shift, "read": _read, "mapfile": _read,
    "readarray": _read, "unset": _unset, "getopts": _read,
}  # fmt: skip
