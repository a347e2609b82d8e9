"""Writing to files: the system's configuration, credentials, what a login runs, disks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals.paths import is_system_file, write_rule
from mibyan.approvals.rules.checks import lost, path_of
from mibyan.approvals.rules.permissions import opens
from mibyan.approvals.shell.options import Options
from mibyan.approvals.shell.values import HOME, Arg
from mibyan.approvals.streams import fetched_into

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mibyan.approvals.rules.checks import Checker, Found
    from mibyan.approvals.shell.call import Call


def writes(call: Call, targets: Iterable[Arg], *, but: frozenset[str] = frozenset()) -> Iterator[Found]:
    """The rules about writing to some paths.

    Args:
        call: The call that writes.
        targets: The paths.
        but: Rules that don't count.
    """
    for arg in targets:
        path = path_of(call, arg)
        if path.startswith(("/dev/tcp/", "/dev/udp/")):
            yield "reverse_shell", arg.span
        elif (rule := write_rule(path)) and rule not in but:
            yield rule, arg.span


def _targets(operands: list[Arg], options: Options) -> tuple[list[Arg], list[Arg]]:
    """Sources and destinations of `cp`, `mv`, `ln`, `install`."""
    into = options.values("t", "target-directory")
    return (operands, into) if into else (operands[:-1], operands[-1:]) if len(operands) > 1 else (operands, [])


def _copy(call: Call) -> Iterator[Found]:
    valued = ("t", "S", "target-directory", "suffix", "m", "o", "g", "mode", "owner", "group")
    options = Options(call.args[1:], valued if call.name in {"install", "ginstall"} else valued[:4])
    sources, targets = _targets(options.operands, options)
    for target in targets:
        found = list(writes(call, [target]))
        yield from found
        if not found:
            inside = [_inside(target, source) for source in sources]
            yield from writes(call, inside, but=frozenset(("project_config_write",)))
    if call.name in {"install", "ginstall"} and any(opens(value.text) for value in options.values("m", "mode")):
        yield "permissions", call.span
    if call.name == "mv":
        for source in sources:
            if lost(call, source):
                yield "system_path_delete", source.span
            elif write_rule(path_of(call, source)) in {"system_config_write", "credential_write", "policy_file_write"}:
                yield (
                    "system_config_write" if is_system_file(path_of(call, source)) else "credential_write",
                    source.span,
                )
            elif is_system_file(path_of(call, source)):
                yield "system_config_write", source.span


def _inside(folder: Arg, source: Arg) -> Arg:
    """Where a source is in a folder that is a target."""
    name = source.text.rstrip("/").rpartition("/")[2]
    ends = folder.text.endswith("/") or folder.text in {".", "..", HOME}
    return Arg(f"{folder.text.rstrip('/')}/{name}" if ends else folder.text, span=folder.span)


def _operands(*valued: str, but: tuple[str, ...] = ()) -> Checker:
    def check(call: Call) -> Iterator[Found]:
        yield from writes(call, Options(call.args[1:], valued).operands, but=frozenset(but))

    return check


def _mkdir(call: Call) -> Iterator[Found]:
    options = Options(call.args[1:], ("m", "mode"))
    yield from writes(
        call, options.operands, but=frozenset(("project_config_write", "credential_write", "policy_file_write"))
    )
    if any(opens(value.text) for value in options.values("m", "mode")):
        yield "permissions", call.span


def _last_operand(*valued: str) -> Checker:
    """A program that writes to its last operand, such as `scp`."""

    def check(call: Call) -> Iterator[Found]:
        operands = Options(call.args[1:], valued).operands
        yield from writes(call, operands[-1:] if len(operands) > 1 and ":" not in operands[-1].text else [])

    return check


def _yq(call: Call) -> Iterator[Found]:
    options = Options(call.args[1:], ("o", "p", "output-format"))
    if options.has("i", "inplace"):
        yield from writes(call, options.operands[1:])


def _awk(call: Call) -> Iterator[Found]:
    options = Options(call.args[1:], tuple("Fvfi"), mixed=False)
    if options.value("i", "include") == "inplace":
        yield from writes(call, options.operands[1:])
    for program in options.operands[:1]:
        yield from _awk_files(call, program)


def _sudoedit(call: Call) -> Iterator[Found]:
    options = Options(call.args[1:], tuple("ughpCrtTURD"), mixed=False)
    if call.name == "sudoedit" or options.has("e", "edit"):
        yield from writes(call, options.operands)


def _dd(call: Call) -> Iterator[Found]:
    for arg in call.args[1:]:
        if arg.text.startswith("of="):
            yield from writes(call, [arg.after("of=")])
    if any(arg.text.startswith(("of=", "if=")) for arg in call.args[1:]):
        yield "disk_copy", call.span


#: Options that name a file to write.
_INTO: Final[dict[str, tuple[str, ...]]] = {
    "sort": ("o", "output"), "gcc": ("o",), "cc": ("o",), "clang": ("o",), "go": ("o",), "pandoc": ("o", "output"), "pg_dump": ("f", "file"), "mysqldump": ("r", "result-file"),
    "strace": ("o", "output"), "tcpdump": ("w",), "openssl": ("out", "keyout"), "gpg": ("o", "output"),
}  # fmt: skip


def _into(call: Call) -> Iterator[Found]:
    names = _INTO[call.name]
    options = Options(
        call.args[1:], (*names, *(tuple("kStT") if call.name == "sort" else ())), single=call.name == "openssl"
    )
    yield from writes(call, options.values(*names))


def _split(call: Call) -> Iterator[Found]:
    yield from writes(call, Options(call.args[1:], tuple("abClnt")).operands[1:])


def _packs(call: Call) -> Iterator[Found]:
    """`tar cf FILE`."""
    words = call.words
    if words and re.match(r"-?[a-zA-Z]*[cru]", words[0]):
        options = Options(
            [
                arg if arg.text.startswith("-") or index else Arg(f"-{arg.text}")
                for index, arg in enumerate(call.args[1:])
            ],
            tuple("fCTXb"),
        )
        yield from writes(call, options.values("f", "file"))


def _sed_files(call: Call, scripts: list[Arg]) -> Iterator[Found]:
    """`sed 'w FILE'`."""
    for script in scripts:
        for match in re.finditer(r"(?:^|[;{}\n]|/[gpIi0-9]*)\s*w\s+([^\n;}]+)", script.text):
            yield from writes(call, [Arg(match[1].strip(), span=script.span)])


def _awk_files(call: Call, program: Arg) -> Iterator[Found]:
    """`awk '{print > "FILE"}'`."""
    for match in re.finditer(r">>?\s*\"([^\"\n]+)\"", program.text):
        yield from writes(call, [Arg(match[1], span=program.span)])


def _sed(call: Call) -> Iterator[Found]:
    options = Options(call.args[1:], (*tuple("efl"), "expression", "file", "line-length"))
    yield from _sed_files(call, options.values("e", "expression") or options.operands[:1])
    if options.has("i", "in-place") or any(re.match(r"-[a-zA-Z]*i", word) for word in call.words):
        files = (
            options.operands
            if options.has("e", "expression", "f", "file") or len(options.operands) == 1
            else options.operands[1:]
        )
        yield from writes(call, files)


def _perl(call: Call) -> Iterator[Found]:
    if any(re.match(r"-[a-zA-Z0-9]*i", word) for word in call.words):
        yield from writes(call, [arg for arg in call.args[2:] if not arg.text.startswith("-")])


def _fetch(call: Call) -> Iterator[Found]:
    yield from writes(call, fetched_into(call))
    for arg in Options(call.args[1:], ("P", "directory-prefix", "output-dir")).values(
        "P", "directory-prefix", "output-dir"
    ):
        yield from _folder(call, arg)


def _folder(call: Call, arg: Arg) -> Iterator[Found]:
    """Something is put into a folder."""
    if path_of(call, arg) == "/":
        yield "system_config_write", arg.span
    yield from writes(call, [Arg(arg.text.rstrip("/") + "/x", span=arg.span)])


def _unpack(call: Call) -> Iterator[Found]:
    words = call.words
    if call.name in {"tar", "gtar", "bsdtar"}:
        yield from _packs(call)
    clusters = [word for index, word in enumerate(words) if word.startswith("-") or not index]
    extracts = any(re.fullmatch(r"-?[a-zA-Z]*x[a-zA-Z]*|--extract|--get", word) for word in clusters)
    options = Options(call.args[1:], ("C", "directory", "f", "file", "d"))
    if call.name in {"unzip", "7z", "cpio"}:
        extracts = True
    if extracts:
        for arg in options.values("C", "directory", "d"):
            yield from _folder(call, arg)
    if options.has("remove-files"):
        yield "recursive_delete", call.span


def _ssh_keygen(call: Call) -> Iterator[Found]:
    for arg in Options(call.args[1:], tuple("bCfFNPtmOsVnzIiDgGKMRSTWYZ")).values("f"):
        if not Options(call.args[1:], tuple("bCfFNPtmO")).has("l", "y", "F", "e", "i"):
            yield from writes(call, [arg])


def redirections(call: Call) -> Iterator[Found]:
    """The files that a call's output goes to."""
    yield from writes(call, call.outputs)


CHECKS: Final[dict[str, Checker]] = {
    **dict.fromkeys(("cp", "mv", "ln", "install", "gcp", "gmv", "gln", "ginstall"), _copy), "mkdir": _mkdir, "yq": _yq,
    **dict.fromkeys(("tee", "sponge", "gtee", "ed", "ex", "patch"), _operands()), "touch": _operands("d", "r", "t", but=("project_config_write",)),
    "truncate": _operands("s", "r", "o", "size"), "fallocate": _operands("l", "o", "length"), "qemu-img": _last_operand(*"fOoB"),
    **dict.fromkeys(("scp", "sftp"), _last_operand(*"cFiJloPDS")), **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk), **dict.fromkeys(_INTO, _into),
    "split": _split, **dict.fromkeys(("sudo", "sudoedit"), _sudoedit), **dict.fromkeys(("dd", "gdd", "dcfldd", "dc3dd"), _dd),
    **dict.fromkeys(("sed", "gsed"), _sed), **dict.fromkeys(("perl", "ruby"), _perl),
    **dict.fromkeys(("curl", "wget", "wget2", "aria2c", "axel", "http", "https", "xh"), _fetch),
    **dict.fromkeys(("tar", "gtar", "bsdtar", "unzip", "7z", "cpio"), _unpack), "ssh-keygen": _ssh_keygen,
}  # fmt: skip
