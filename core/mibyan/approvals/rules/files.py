"""Deleting, overwriting and opening up files; disks and what is on them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals.paths import is_disk, is_secret, is_system_file, loses_machine, write_rule
from mibyan.approvals.shell.options import Options
from mibyan.approvals.shell.values import HOME, UNKNOWN, Arg
from mibyan.approvals.streams import fetched_into
from mibyan.approvals.wrappers import find_starts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mibyan.approvals.rules.checks import Checker, Found
    from mibyan.approvals.shell.call import Call

#: Programs that delete what others have found.
_SEARCHERS: Final = frozenset(("find", "gfind", "xargs", "gxargs", "parallel", "fd", "fdfind"))


def path_of(call: Call, arg: Arg) -> str:
    """An operand as a path."""
    return call.scope.path(arg.text)


def _lost(call: Call, arg: Arg, *, found: bool = False) -> str | None:
    if not loses_machine(arg, call.scope, found=found):
        return None
    path = call.scope.path(arg.text.rstrip("*") or ".")
    return "home_delete" if path.startswith((HOME, "/home/", "/root", "/Users/")) else "root_delete"


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
        if (recursive or "find" in call.via) and (lost := _lost(call, arg, found="find" in call.via)):
            yield lost, arg.span
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
            if (lost := _lost(call, arg, found=True)) and not _is_shallow(words):
                yield lost, arg.span
    for index, word in enumerate(words[:-1]):
        if word in {"-fprint", "-fprintf", "-fls", "-fprint0"}:
            yield from writes(call, [call.args[index + 2]])


def _is_shallow(words: list[str]) -> bool:
    """Whether a search is for some files only."""
    return any(
        word in {"-name", "-iname", "-path", "-regex", "-mtime", "-newer", "-size", "-empty", "-mmin", "-atime"}
        for word in words
    )


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
    if call.name in {"install", "ginstall"} and any(_opens(value.text) for value in options.values("m", "mode")):
        yield "permissions", call.span
    if call.name == "mv":
        for source in sources:
            if _lost(call, source):
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
    if any(_opens(value.text) for value in options.values("m", "mode")):
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
        files = options.operands if options.has("e", "expression", "f", "file") else options.operands[1:]
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


def _rsync(call: Call) -> Iterator[Found]:
    options = Options(call.args[1:], (*tuple("efTBM"), "rsh", "exclude", "include", "files-from"))
    target = options.operands[-1:] if len(options.operands) > 1 else []
    yield from writes(call, [arg for arg in target if ":" not in arg.text])
    if options.has(
        "delete", "delete-after", "delete-before", "delete-during", "delete-excluded", "remove-source-files"
    ) and not options.has("n", "dry-run"):
        yield "recursive_delete", call.span
        for arg in target:
            if lost := _lost(call, arg):
                yield lost, arg.span


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
    if _opens(mode) or (recursive and any(_lost(call, arg) for arg in files)):
        yield "permissions", call.span
    if _makes_executable(mode):
        call.scope.executables.update(path_of(call, arg) for arg in files)


def _opens(mode: str) -> bool:
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


def _crontab(call: Call) -> Iterator[Found]:
    options = Options(call.args[1:], ("u",))
    if options.has("r") or (not options.has("l", "e", "version", "V", "T") and (options.operands or call.stdin.given)):
        yield "system_config_write", call.span


def _firewall(call: Call) -> Iterator[Found]:
    words = [word for word in call.words if not word.startswith("-") or len(word) <= 3]
    if call.name == "firewall-cmd":
        words += (
            ["add"]
            if any(re.match(r"--(?:add|remove|set|change|panic-on|reload)", word) for word in call.words)
            else []
        )
    changes = {
        "-F",
        "-X",
        "-P",
        "-D",
        "-I",
        "-A",
        "-Z",
        "-N",
        "-R",
        "flush",
        "delete",
        "disable",
        "enable",
        "reset",
        "allow",
        "deny",
        "add",
        "--flush",
    }
    if changes & {*words, *call.words} and not ({"list", "-L", "status"} & {*words}):
        yield "system_config_write", call.span


def _sysctl(call: Call) -> Iterator[Found]:
    if any(
        word in {"-w", "-p", "--write", "--load", "--system"} or re.fullmatch(r"[\w./-]+=.*", word)
        for word in call.words
    ):
        yield "system_config_write", call.span


def _always(rule: str, *unless: str) -> Callable[[Call], Iterator[Found]]:
    def check(call: Call) -> Iterator[Found]:
        if not any(word in unless for word in call.words):
            yield rule, call.span

    return check


def _network_device(call: Call) -> Iterator[Found]:
    """`ip link set eth0 down`, `ifconfig eth0 down`, `nmcli con delete x`."""
    if {"down", "del", "delete", "flush", "off", "replace"} & {*call.words}:
        yield "system_config_write", call.span


_SHOWING: Final = frozenset((
    "status", "show", "list", "list-timezones", "timesync-status", "show-timesync", "hostname", "query", "list-locales", "dns", "domain", "statistics",
))  # fmt: skip


def _unless_shown(rule: str) -> Callable[[Call], Iterator[Found]]:
    """A rule about a program that changes something unless it is only asked."""

    def check(call: Call) -> Iterator[Found]:
        operands = [word for word in call.words if not word.startswith("-")]
        if operands and operands[0] not in _SHOWING:
            yield rule, call.span

    return check


def _ssh_keygen(call: Call) -> Iterator[Found]:
    for arg in Options(call.args[1:], tuple("bCfFNPtmOsVnzIiDgGKMRSTWYZ")).values("f"):
        if not Options(call.args[1:], tuple("bCfFNPtmO")).has("l", "y", "F", "e", "i"):
            yield from writes(call, [arg])


def redirections(call: Call) -> Iterator[Found]:
    """The files that a call's output goes to."""
    yield from writes(call, call.outputs)


CHECKS: Final[dict[str, Checker]] = {
    **dict.fromkeys(("rm", "unlink", "rmdir", "rimraf", "srm", "trash-empty", "grm"), _rm), "find": _find, "gfind": _find,
    **dict.fromkeys(("cp", "mv", "ln", "install", "gcp", "gmv", "gln", "ginstall"), _copy),
    **dict.fromkeys(("tee", "sponge", "gtee", "ed", "ex", "patch"), _operands()), "touch": _operands("d", "r", "t", but=("project_config_write",)),
    "mkdir": _mkdir, **dict.fromkeys(("scp", "sftp"), _last_operand(*"cFiJloPDS")), "qemu-img": _last_operand(*"fOoB"), "yq": _yq,
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk), **dict.fromkeys(_INTO, _into), "split": _split, **dict.fromkeys(("sudo", "sudoedit"), _sudoedit), **dict.fromkeys(("ip", "ifconfig", "nmcli", "route"), _network_device), "truncate": _operands("s", "r", "o", "size"), "fallocate": _operands("l", "o", "length"),
    "dd": _dd, "gdd": _dd, "dcfldd": _dd, "dc3dd": _dd, "sed": _sed, "gsed": _sed, "perl": _perl, "ruby": _perl,
    **dict.fromkeys(("curl", "wget", "wget2", "aria2c", "axel", "http", "https", "xh"), _fetch),
    **dict.fromkeys(("tar", "gtar", "bsdtar", "unzip", "7z", "cpio"), _unpack), "rsync": _rsync, "chmod": _chmod, "gchmod": _chmod,
    "chown": _chown, "chgrp": _chown, "setfacl": _setfacl, "chattr": _chattr, "shred": _shred, "wipe": _shred, "crontab": _crontab,
    **dict.fromkeys(("iptables", "ip6tables", "nft", "ufw", "pfctl", "firewall-cmd", "ebtables"), _firewall), "sysctl": _sysctl,
    "visudo": _always("system_config_write", "-c", "--check"), "passwd": _always("system_config_write", "-S", "--status"),
    "update-alternatives": _always("system_config_write", "--list", "--display", "--query", "--get-selections"), "csrutil": _unless_shown("system_config_write"),
    "spctl": _always("system_config_write", "--status", "-a", "--assess"),
    **dict.fromkeys(("vipw", "vigr", "useradd", "userdel", "usermod", "groupadd", "groupdel", "groupmod", "adduser", "deluser", "chpasswd",
                     "chsh", "insmod", "rmmod", "modprobe", "setenforce", "swapoff"),
                    _always("system_config_write")), **dict.fromkeys(("hostnamectl", "timedatectl", "localectl", "resolvectl"), _unless_shown("system_config_write")),
    "ssh-copy-id": _always("credential_write"), "ssh-keygen": _ssh_keygen,
}  # fmt: skip
