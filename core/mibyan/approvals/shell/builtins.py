"""Commands that change what is known: a shell's directory, variables and arguments, and the files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals.paths import read_origins
from mibyan.approvals.shell.options import Options
from mibyan.approvals.shell.values import HOME, UNKNOWN, Data

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.approvals.shell.call import Call


def take_effect(call: Call) -> None:
    """Let a call change its scope, if it is such a builtin."""
    copy = _COPIES.get(call.name)
    if copy is not None:
        copy(call)
        return
    change = _EFFECTS.get(call.name)
    if change is not None and all(program in {"command", "builtin"} for program in call.via):
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
    call.scope.elsewhere = frozenset()


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
    options = Options(call.args[1:], tuple("adinNptu" if call.name == "read" else "dnOsuCc"))
    for arg in [*options.operands, *options.values("a")]:
        call.scope.set(arg.text, UNKNOWN)
    for name in ("REPLY", "MAPFILE"):
        call.scope.set(name, UNKNOWN)


def _copy(call: Call) -> None:
    """What is known of a file is known of its copy."""
    options = Options(call.args[1:], ("t", "S", "m", "o", "g", "target-directory", "suffix", "mode", "owner", "group"))
    into = options.value("t", "target-directory")
    sources = options.operands if into is not None else options.operands[:-1]
    target = into if into is not None else options.operands[-1].text if options.operands else ""
    for source in sources:
        path, name = call.scope.path(source.text), source.text.rstrip("/").rpartition("/")[2]
        data = call.scope.files.get(path)
        origins = read_origins(path)
        if data is None and not origins:
            continue
        data = data or Data(None, origins)
        call.scope.put(call.scope.path(target), data)
        call.scope.put(call.scope.path(f"{target.rstrip('/')}/{name}"), data)
        if path in call.scope.executables:
            call.scope.executables |= {call.scope.path(target), call.scope.path(f"{target.rstrip('/')}/{name}")}


def _dd(call: Call) -> None:
    named = dict(arg.text.split("=", 1) for arg in call.args[1:] if "=" in arg.text)
    source, target = named.get("if"), named.get("of")
    if target is None:
        return
    data = call.stdin if source is None else call.scope.files.get(call.scope.path(source))
    if data is not None and data.given:
        call.scope.put(call.scope.path(target), data)


def _edit(call: Call) -> None:
    """What an editor in place makes of a file isn't known."""
    for arg in call.args[1:]:
        path = call.scope.path(arg.text)
        if path in call.scope.files:
            call.scope.put(path, Data(None, call.scope.files[path].origins))


def _clone(call: Call) -> None:
    """`git clone`: a folder with files from the network."""
    words = [arg.text for arg in Options(call.args[1:], ("b", "branch", "depth", "o", "c", "C", "j")).operands]
    if words[:1] == ["clone"] and len(words) > 1 and re.match(r"\w+://|[\w.-]+@[\w.-]+:|ext::", words[1]):
        folder = (
            words[2]
            if len(words) > 2
            else words[1].rstrip("/").rpartition("/")[2].rpartition(":")[2].removesuffix(".git")
        )
        call.scope.fetched_folders.add(call.scope.path(folder))


def _unset(call: Call) -> None:
    for arg in call.args[1:]:
        call.scope.set(arg.text, "")
        call.scope.functions.pop(arg.text, None)


_COPIES: Final[dict[str, Callable[[Call], None]]] = {
    **dict.fromkeys(("cp", "mv", "ln", "install", "gcp", "gmv", "gln", "ginstall"), _copy), "dd": _dd, "git": _clone, "sed": _edit, "patch": _edit,
}  # fmt: skip
_EFFECTS: Final[dict[str, Callable[[Call], None]]] = {
    "cd": _cd, "chdir": _cd, "pushd": _pushd, "popd": _popd, "set": _set, "shift": _shift, "read": _read, "mapfile": _read,
    "readarray": _read, "unset": _unset, "getopts": _read,
}  # fmt: skip
