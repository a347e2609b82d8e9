"""Programs that run another command given as their words: `sudo`, `env`, `timeout`, `xargs`, `find -exec`, `ssh` and others.

`inner_commands` sees through one of them; what it finds is looked at in turn.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals.code import Code, words_as_code
from mibyan.approvals.searchers import SEARCHERS
from mibyan.approvals.shell.options import Options
from mibyan.approvals.shell.values import UNKNOWN, Arg, as_code
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mibyan.approvals.shell.call import Call
    from mibyan.approvals.shell.scope import Scope


@record(eq=False)
class _Prefix:
    """How a program's own words end and the command's begin."""

    #: Its options that have a value.
    valued: tuple[str, ...] = ()
    #: Its operands before the command.
    operands: int = 0
    #: Whether `NAME=value` may stand before the command.
    assigns: bool = False
    #: An option whose value is code.
    code: tuple[str, ...] = ()
    #: Whether its sub-command's word comes first, such as `run`.
    sub: tuple[str, ...] = ()
    #: Whether the command runs in a container.
    contained: bool = False


#: Options of `sudo` that have a value.
SUDO_VALUES: Final = (
    *tuple("ughpCrtTURD"), "user", "group", "host", "prompt", "chdir", "chroot", "close-from", "role", "type", "other-user",
)  # fmt: skip

_PREFIXES: Final[dict[str, _Prefix]] = {
    "sudo": _Prefix(SUDO_VALUES, assigns=True), "sudoedit": _Prefix(SUDO_VALUES), "doas": _Prefix(tuple("uC")), "pkexec": _Prefix(("user",)),
    "env": _Prefix(("u", "C", "S", "a", "unset", "chdir", "split-string", "argv0"), assigns=True), "nice": _Prefix(("n", "adjustment")),
    "ionice": _Prefix((*tuple("cnpPu"), "class", "classdata")), "chrt": _Prefix(tuple("TPD"), 1), "taskset": _Prefix((), 1),
    "timeout": _Prefix(("k", "s", "kill-after", "signal"), 1), "gtimeout": _Prefix(("k", "s", "kill-after", "signal"), 1),
    "nohup": _Prefix(), "setsid": _Prefix(), "stdbuf": _Prefix((*tuple("ioe"), "input", "output", "error")),
    "time": _Prefix((*tuple("fo"), "format", "output")), "gtime": _Prefix(tuple("fo")), "command": _Prefix(), "builtin": _Prefix(),
    "exec": _Prefix(("a",)), "busybox": _Prefix(), "toybox": _Prefix(), "noglob": _Prefix(), "nocorrect": _Prefix(), "coproc": _Prefix(),
    "unshare": _Prefix((*tuple("SGRw"), "setuid", "setgid", "root", "wd", "map-user", "map-group", "propagation")),
    "nsenter": _Prefix((*tuple("tSG"), "target", "setuid", "setgid")),
    "systemd-run": _Prefix((*tuple("pEHMu"), "unit", "property", "setenv", "slice", "description", "host", "machine", "uid", "gid", "nice", "working-directory", "on-active", "on-boot", "on-calendar", "timer-property", "service-type")),
    "systemd-inhibit": _Prefix(("what", "who", "why", "mode")), "chroot": _Prefix(("userspec", "groups"), 1),
    "strace": _Prefix(tuple("eopsuEaPSXOb")), "ltrace": _Prefix(tuple("eopsua")), "perf": _Prefix(tuple("eop"), sub=("stat", "record", "trace")),
    "flock": _Prefix((*tuple("wE"), "timeout", "wait"), 1, code=("c", "command")), "setpriv": _Prefix(("reuid", "regid", "groups")),
    "prlimit": _Prefix(), "numactl": _Prefix((*tuple("iNCmpl"), "interleave", "membind")), "cgexec": _Prefix(("g",)),
    "fakeroot": _Prefix(tuple("lisb")), "torsocks": _Prefix(), "torify": _Prefix(), "tsocks": _Prefix(), "proxychains": _Prefix(("f",)),
    "proxychains4": _Prefix(("f",)), "caffeinate": _Prefix(tuple("tw")), "xvfb-run": _Prefix(tuple("enfswpl")), "dbus-run-session": _Prefix(),
    "dbus-launch": _Prefix(), "valgrind": _Prefix(), "gdb": _Prefix(), "gosu": _Prefix((), 1), "su-exec": _Prefix((), 1),
    "setuidgid": _Prefix((), 1), "softlimit": _Prefix(tuple("acdfmlnoprst")), "chpst": _Prefix(tuple("uUbeodmcfnpt")), "faketime": _Prefix((), 1),
    "rlwrap": _Prefix(), "unbuffer": _Prefix(), "catchsegv": _Prefix(), "sshpass": _Prefix(tuple("pfdPe")), "newgrp": _Prefix((), 1), "firejail": _Prefix(), "proot": _Prefix(tuple("rbwq")),
    "bwrap": _Prefix(("bind", "ro-bind", "dev-bind", "proc", "dev", "tmpfs", "chdir", "setenv", "unsetenv", "uid", "gid", "hostname")),
    "watchexec": _Prefix(tuple("wei")), "entr": _Prefix(), "nodemon": _Prefix(tuple("wex"), code=("x", "exec")), "reflex": _Prefix(tuple("rgR")),
    "uv": _Prefix(("with", "python", "p", "extra", "group", "project", "directory"), sub=("run",)), "poetry": _Prefix(("C",), sub=("run",)),
    "pipenv": _Prefix(sub=("run",)), "hatch": _Prefix(sub=("run",)), "pdm": _Prefix(sub=("run",)), "rye": _Prefix(sub=("run",)),
    "pixi": _Prefix(sub=("run",)), "conda": _Prefix(tuple("np"), sub=("run",)), "mamba": _Prefix(tuple("np"), sub=("run",)),
    "bundle": _Prefix(sub=("exec",)), "npm": _Prefix(sub=("exec", "x")), "pnpm": _Prefix(sub=("exec",)), "yarn": _Prefix(sub=("exec",)),
    "npx": _Prefix(("p", "package"), code=("c", "call")), "bunx": _Prefix(), "direnv": _Prefix((), 1, sub=("exec",)), "mise": _Prefix(sub=("exec", "x")),
    "asdf": _Prefix((), 1, sub=("exec",)), "rustup": _Prefix((), 1, sub=("run",)), "op": _Prefix(("env-file",), sub=("run",)),
    "doppler": _Prefix(tuple("pc"), sub=("run",), code=("command",)), "dotenv": _Prefix(tuple("fe")), "aws-vault": _Prefix((), 1, sub=("exec",)),
    "nix": _Prefix(("c", "command"), sub=("develop", "shell", "run"), code=("c", "command")), "nix-shell": _Prefix(tuple("pI"), 99, code=("run", "command")),
    "start-stop-daemon": _Prefix(("exec", "startas", "pidfile", "user", "chuid", "chdir", "name"), code=("exec", "startas")),
    "adb": _Prefix(("s",), sub=("shell",)), "wsl": _Prefix((*tuple("du"), "distribution", "user")), "lxc": _Prefix((), 1, sub=("exec",), contained=True),
    "docker": _Prefix((), 1, sub=("exec", "run"), contained=True), "podman": _Prefix((), 1, sub=("exec", "run"), contained=True),
    "nerdctl": _Prefix((), 1, sub=("exec", "run"), contained=True), "kubectl": _Prefix((), 1, sub=("exec", "run"), contained=True),
    "oc": _Prefix((), 1, sub=("exec", "rsh"), contained=True), "machinectl": _Prefix((), 1, sub=("shell",), contained=True),
    "distrobox": _Prefix((), 1, sub=("enter",)), "toolbox": _Prefix(sub=("run",)),
}  # fmt: skip

#: Options with values of `docker exec` and `docker run`, and of `kubectl exec`.
_CONTAINER = (
    *tuple("eupwvlhmcna"),
    "env", "user", "workdir", "volume", "name", "network", "publish", "label", "entrypoint", "mount", "memory", "cpus", "hostname", "platform", "env-file",
    "namespace", "container", "image", "context", "file", "project-name", "project-directory", "profile", "ulimit", "device", "add-host", "restart", "gpus",
)  # fmt: skip
#: Programs that open a shell where no command is given.
_SHELL_OPENERS = frozenset(
    (
        "chroot",
        "unshare",
        "nsenter",
        "nix-shell",
        "fakeroot",
        "proot",
        "newgrp",
        "sg",
        "setpriv",
        "script",
        "distrobox",
        "machinectl",
    )
)
_ASSIGNMENT = re.compile(r"[^-=][^=]*=", re.DOTALL)
_SSH = tuple("bcDEeFIiJLlmOopQRSWw")


def inner_commands(call: Call) -> list[Call | Code]:
    """The commands that a call runs by its words; none if it runs none."""
    special = _SPECIAL.get(call.name)
    if special is not None:
        return special(call)
    prefix = _PREFIXES.get(call.name)
    return [] if prefix is None else _prefixed(call, prefix)


def is_wrapper(name: str) -> bool:
    """Whether a program runs commands that are its words."""
    return name in _SPECIAL or (name in _PREFIXES and not _PREFIXES[name].sub)


def _prefixed(call: Call, prefix: _Prefix) -> list[Call | Code]:
    args = list(call.args[1:])
    if call.name in {"command", "builtin"} and args and args[0].text in {"-v", "-V"}:
        return []
    if prefix.sub:
        args = _after_sub(args, prefix)
    valued = _CONTAINER if prefix.contained else (*prefix.valued, *prefix.code)
    options = Options(args, valued, mixed=False)
    found: list[Call | Code] = [
        Code(as_code(value.text), call.inner(call.args), value.span) for value in options.values(*prefix.code)
    ] if prefix.code else []  # fmt: skip
    rest = options.operands
    if call.name == "env" and rest and rest[0].text == "-":
        rest = rest[1:]
    environment = dict(call.environment)
    while prefix.assigns and rest and (match := _ASSIGNMENT.match(rest[0].text)):
        environment[match[0][:-1]] = rest[0].after(match[0])
        rest = rest[1:]
    if call.name == "env":
        found += _split_strings(call, options, rest)
    rest = rest[prefix.operands :]
    if rest and rest[0].text == "--":
        rest = rest[1:]
    if len(rest) > 1 and call.name == "flock" and rest[0].text in {"-c", "--command"}:
        found.append(Code(as_code(rest[1].text), call.inner(call.args), rest[1].span))
    elif rest:
        scope = _elsewhere(call, options)
        contained = call.contained or prefix.contained
        found.append(call.inner(rest, environment=environment, contained=contained, scope=scope))
    elif call.stdin.given and (
        call.name in _SHELL_OPENERS or (call.name in {"sudo", "doas"} and options.has("s", "shell", "i", "login"))
    ):
        found += _stdin_as_code(call)
    return found


def _elsewhere(call: Call, options: Options) -> Scope:
    """The scope of a command that is run in another directory: `env -C`, `sudo -D`."""
    names = {"env": ("C", "chdir"), "sudo": ("D", "chdir"), "unshare": ("w", "wd")}.get(call.name)
    folder = options.value(*names) if names else None
    if folder is None:
        return call.scope
    scope = call.scope.copy()
    scope.change_directory(folder)
    return scope


def _stdin_as_code(call: Call) -> list[Call | Code]:
    """The standard input of a shell that is opened."""
    return [call.inner([Arg("sh", span=call.span)])]


def _split_strings(call: Call, options: Options, rest: Sequence[Arg]) -> list[Call | Code]:
    """What `env -S 'command words'` runs."""
    found: list[Call | Code] = []
    for index, arg in enumerate(call.args[1:], 2):
        match = re.fullmatch(r"-[iv]*S(.+)", arg.text, re.DOTALL)
        if match:  # What follows is the command's, also what looks like an option.
            words = [as_code(match[1]).replace("\\_", " "), *(_quoted(one.text) for one in call.args[index:])]
            return [Code(" ".join(["env", *words]), call.inner(call.args), arg.span)]
        if not arg.text.startswith("-"):
            break
    for value in options.values("S", "split-string"):
        text = as_code(value.text).replace("\\_", " ")
        code = " ".join(["env", text, *(_quoted(arg.text) for arg in rest)])
        found.append(Code(code, call.inner(call.args), value.span))
    return found


def _after_sub(args: list[Arg], prefix: _Prefix) -> list[Arg]:
    """The words after the word of the sub-command; none if it isn't one that runs a command."""
    valued = {*prefix.valued, *(_CONTAINER if prefix.contained else ())}
    options = Options(args, valued, mixed=False)
    if not options.operands:
        return []
    words = list(options.operands)
    if words[0].text == "compose" and prefix.contained:
        words = Options(words[1:], _CONTAINER, mixed=False).operands
    return list(words[1:]) if words and words[0].text in prefix.sub else []


def _quoted(text: str) -> str:
    """A text as one word of shell code."""
    return (
        "'" + text.replace("'", "'\\''") + "'" if UNKNOWN not in text else '"' + as_code(text).replace('"', '\\"') + '"'
    )


# Programs with manners of their own ----------------------------------------------------------------------------------


def _su(call: Call) -> list[Call | Code]:
    """`su -c CODE`, `runuser -u USER -- COMMAND`."""
    args = list(call.args[1:])
    valued = (
        "c",
        "s",
        "u",
        "g",
        "G",
        "w",
        "command",
        "session-command",
        "shell",
        "user",
        "group",
        "whitelist-environment",
    )
    options = Options(args, valued)
    if call.name == "runuser" and options.has("u", "user"):
        options = Options(args, valued, mixed=False)
        return [call.inner(options.operands)] if options.operands else []
    # The last one counts; whichever it is, none may do harm.
    found: list[Call | Code] = [
        Code(as_code(value.text), call.inner(call.args), value.span)
        for value in options.values("c", "command", "session-command")
    ]
    return found or (_stdin_as_code(call) if call.stdin.given else [])


def _watch(call: Call) -> list[Call | Code]:
    options = Options(call.args[1:], ("n", "interval", "q", "equexit"), mixed=False)
    return words_as_code(call, options.operands)


def _script(call: Call) -> list[Call | Code]:
    options = Options(call.args[1:], ("c", "command", "E", "I", "O", "B", "T", "m", "o"))
    return [Code(as_code(value.text), call.inner(call.args), value.span) for value in options.values("c", "command")]


def _ssh(call: Call) -> list[Call | Code]:
    options = Options(call.args[1:], _SSH, mixed=False)
    words = options.operands[1:]
    if words and words[0].text == "--":
        words = words[1:]
    if not words and call.stdin.given and options.operands and not options.has("N", "W"):
        return _stdin_as_code(call)
    # What comes from here goes to the command there.
    return words_as_code(call, words)


def _hyperfine(call: Call) -> list[Call | Code]:
    options = Options(call.args[1:], (*tuple("wmMrpcsnPDL"), "warmup", "runs", "prepare", "setup", "cleanup", "shell"))
    codes = [*options.operands, *options.values("prepare", "setup", "cleanup", "p", "s", "c")]
    return [Code(as_code(arg.text), call.inner(call.args), arg.span) for arg in codes]


def _tmux(call: Call) -> list[Call | Code]:
    """The commands of new windows, and the keys that are sent to a shell."""
    found: list[Call | Code] = []
    options = Options(call.args[1:], tuple("LSfcFnstxyeE"))
    words = options.operands[1:]
    if call.name == "screen":
        options = Options(call.args[1:], tuple("cehpSstT"), mixed=False)
        if options.has("X") and options.operands:
            verb, *words = options.operands
            return words_as_code(call, words) if verb.text in {"stuff", "exec", "screen"} else []
        return [call.inner(options.operands)] if options.operands else []
    if words:
        found = words_as_code(call, [word for word in words if word.text not in {"Enter", "C-m", "ENTER"}])
    return found


def _terminal(call: Call) -> list[Call | Code]:
    """`xterm -e COMMAND`, `gnome-terminal -- COMMAND`."""
    args = list(call.args[1:])
    cut = next((index for index, arg in enumerate(args) if arg.text in {"-e", "-x", "--", "--command"}), None)
    words = [] if cut is None else args[cut + 1 :]
    return words_as_code(call, words) if len(words) == 1 else [call.inner(words)] if words else []


def _sg(call: Call) -> list[Call | Code]:
    """`sg GROUP -c CODE`, `sg GROUP CODE`."""
    words = [arg for arg in call.args[2:] if arg.text != "-c"]
    return words_as_code(call, words[:1]) or (_stdin_as_code(call) if call.stdin.given else [])


def _capsh(call: Call) -> list[Call | Code]:
    """What stands after `--` are words for bash."""
    cut = next((index for index, arg in enumerate(call.args) if arg.text in {"--", "=="}), None)
    return [] if cut is None else [call.inner([Arg("bash", span=call.args[0].span), *call.args[cut + 1 :]])]


def _ansible(call: Call) -> list[Call | Code]:
    """`ansible HOSTS -a CODE`, unless the module takes something else."""
    options = Options(call.args[1:], tuple("aBefilmMPTu"), mixed=True)
    if (options.value("m") or "command") not in {
        "command",
        "shell",
        "raw",
        "script",
        "ansible.builtin.shell",
        "ansible.builtin.command",
    }:
        return []
    return [Code(as_code(value.text), call.inner(call.args), value.span) for value in options.values("a", "args")]


_SPECIAL: Final[dict[str, Callable[[Call], list[Call | Code]]]] = {
    "su": _su, "runuser": _su, "watch": _watch, "script": _script, "ssh": _ssh, "autossh": _ssh, "mosh": _ssh, **SEARCHERS,
    "hyperfine": _hyperfine, "tmux": _tmux, "screen": _tmux,
    **dict.fromkeys(("xterm", "rxvt", "urxvt", "konsole", "gnome-terminal", "xfce4-terminal", "alacritty", "kitty", "foot"), _terminal),
    "sg": _sg, "capsh": _capsh, "ansible": _ansible,
}  # fmt: skip
