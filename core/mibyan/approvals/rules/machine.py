"""Stopping the machine, its services and processes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals.shell.call import program_name
from mibyan.approvals.shell.options import Options
from mibyan.approvals.shell.values import PROCESS_IDS, SHELL_OUTPUT
from mibyan.approvals.wrappers import SUDO_VALUES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mibyan.approvals.rules.checks import Checker, Found
    from mibyan.approvals.shell.call import Call

_UNIT_VALUES = (
    "t",
    "p",
    "n",
    "o",
    "s",
    "H",
    "M",
    "type",
    "property",
    "lines",
    "output",
    "signal",
    "host",
    "machine",
    "kill-who",
    "job-mode",
    "root",
    "state",
)
_POWER = frozenset(("reboot", "poweroff", "halt", "kexec", "soft-reboot"))
_STOPPING = frozenset((
    "stop", "restart", "try-restart", "reload-or-restart", "condrestart", "force-reload", "kill", "disable", "mask", "isolate", "set-default", "suspend",
    "hibernate", "hybrid-sleep", "daemon-reexec", "reset-failed-all", "revert", "terminate", "shutdown", "remove", "down", "unload", "bootout", "delete", "clean", "rescue", "emergency",
))  # fmt: skip
_KILL = re.compile(r"-{0,2}(?:9|KILL|SIGKILL)", re.IGNORECASE)
_OURSELVES = re.compile(r"\bmibyan\b", re.IGNORECASE)


def _shutdown(call: Call) -> Iterator[Found]:
    words = call.words
    cancels = any(word in {"-c", "/a"} for word in words)
    only_notes = call.name != "shutdown" and any(word in {"-w", "--wtmp-only"} for word in words)
    if not cancels and not only_notes:
        yield "shutdown", call.span


def _init(call: Call) -> Iterator[Found]:
    if call.words and call.words[0] in {"0", "6", "S", "s", "1"}:
        yield "shutdown" if call.words[0] in {"0", "6"} else "service", call.span


def _systemctl(call: Call) -> Iterator[Found]:
    operands = [arg.text for arg in Options(call.args[1:], _UNIT_VALUES).operands]
    verb = operands[0] if operands else ""
    units = operands[1:]
    stops = re.compile(r"(?:poweroff|reboot|halt|kexec|shutdown|runlevel[06])(?:\.target)?")
    if verb in _POWER or (verb in {"isolate", "start"} and any(stops.fullmatch(unit) for unit in units)):
        yield "shutdown", call.span
    elif verb in _STOPPING:
        yield "service", call.span
        if any(_OURSELVES.search(unit) for unit in units):
            yield "self_termination", call.span
    elif verb in {"set-property", "edit", "link"}:
        yield "system_config_write", call.span


def _loginctl(call: Call) -> Iterator[Found]:
    operands = [arg.text for arg in Options(call.args[1:], _UNIT_VALUES).operands]
    if operands and operands[0] in _POWER:
        yield "shutdown", call.span
    elif operands and operands[0].startswith(("terminate", "kill", "suspend", "hibernate")):
        yield "service", call.span


def _service(call: Call) -> Iterator[Found]:
    """`service NAME stop`, `rc-service`, `initctl`, `launchctl`, `supervisorctl`, `pm2`, `brew services` and their like."""
    words = [word for word in call.words if not word.startswith("-")]
    if call.name == "brew":
        words = words[1:] if words[:1] == ["services"] else []
    if any(word in _STOPPING or (call.name == "pm2" and word in {"kill", "flush"}) for word in words[:3]):
        yield "service", call.span


def _launchctl(call: Call) -> Iterator[Found]:
    if call.words and call.words[0] in {
        "unload",
        "bootout",
        "remove",
        "kill",
        "stop",
        "disable",
        "kickstart",
        "reboot",
    }:
        yield "shutdown" if call.words[0] == "reboot" else "service", call.span


def init_script(call: Call) -> Iterator[Found]:
    """`/etc/init.d/NAME stop`."""
    if (
        call.args
        and re.match(r"/etc/(?:rc\.d/)?init\.d/|/etc/rc\.d/", call.args[0].text)
        and any(word in _STOPPING for word in call.words)
    ):
        yield "service", call.span


def _kill(call: Call) -> Iterator[Found]:
    words = call.words
    if any(word in {"-l", "-L", "--list", "--table"} for word in words):
        return
    args = list(call.args[1:])
    signalled = False
    while args and args[0].text.startswith("-"):
        word = args.pop(0).text
        if word == "--":
            break
        if word in {"-s", "-n", "--signal", "-q"} and args:
            args.pop(0)
        elif signalled and re.fullmatch(r"-\d+", word):
            args.insert(0, call.args[1 + len(call.args[1:]) - len(args) - 1])
            break
        signalled = True
    # `kill -1` alone is a signal without a process, or every process: shells differ.
    if any(re.fullmatch(r"-0*1", arg.text) for arg in args) or words == ["-1"]:
        yield "kill_all", call.span
    if any(arg.text.strip() == "1" for arg in args):
        yield "service", call.span
    hard = any(_KILL.fullmatch(word) for word in words)
    if any(PROCESS_IDS in arg.origins or (hard and not arg.known) for arg in call.args[1:]):
        yield "process_kill", call.span


def _pkill(call: Call) -> Iterator[Found]:
    words = call.words
    if any(word in {"-l", "--list", "-V", "--version", "-0"} for word in words):
        return
    hard = any(_KILL.fullmatch(word) and word.startswith("-") for word in words)
    options = Options(
        call.args[1:],
        ("s", "signal", "u", "U", "g", "G", "P", "t", "euid", "uid", "pgroup", "parent", "terminal", "ns", "o", "y"),
    )
    signals = [value.text for value in options.values("s", "signal")]
    if call.name == "pkill" and any(not _KILL.fullmatch(signal) for signal in signals) and not hard:
        signals = [signal for signal in signals if _KILL.fullmatch(signal)]
    by_pattern = call.name == "killall" and options.has("r", "regexp")
    if hard or by_pattern or any(_KILL.fullmatch(signal) for signal in signals):
        yield "process_kill", call.span
    if any(_OURSELVES.search(arg.text) for arg in options.operands):
        yield "self_termination", call.span
    patterns = [arg.text for arg in options.operands]
    if call.name == "pkill" and any(pattern in {"", ".", ".*", "*"} for pattern in patterns):
        yield "kill_all", call.span


def _fuser(call: Call) -> Iterator[Found]:
    if any(re.fullmatch(r"-[a-zA-Z]*k[a-zA-Z]*|--kill", word) for word in call.words):
        yield "process_kill", call.span


def _mibyan(call: Call) -> Iterator[Found]:
    """Mibyan's own command line: what changes what it allows, and what stops it."""
    operands = [
        arg.text
        for arg in Options(call.args[1:], ("p", "profile", "home", "project", "plugin", "no-plugin", "trace")).operands
    ]
    pair = tuple(operands[:2])
    if pair in _POLICY_COMMANDS:
        yield "policy_file_write", call.span
    if operands[:1] in (["gateway"], ["serve"]) and operands[1:2] in (
        ["stop"],
        ["restart"],
        ["run"],
        ["start"],
        ["install"],
        ["uninstall"],
    ):
        yield "self_termination", call.span


def _module(call: Call) -> Iterator[Found]:
    """`python -m mibyan`."""
    if call.words[:2] == ["-m", "mibyan"]:
        yield from _mibyan(call.inner(call.args[2:], via=call.via))


_POLICY_COMMANDS = {
    ("config", "set"), ("config", "unset"), ("config", "edit"), ("plugins", "trust"), ("plugins", "untrust"), ("plugins", "enable"), ("plugins", "disable"),
    ("plugins", "install"), ("plugins", "uninstall"), ("plugins", "lock"), ("mcp", "add"), ("mcp", "remove"), ("mcp", "login"), ("approvals", "revoke"),
}  # fmt: skip


def _bus(call: Call) -> Iterator[Found]:
    if any(re.search(r"\b(?:Reboot|PowerOff|Halt|KExec)\b", word) for word in call.words):
        yield "shutdown", call.span


def _flag(rule: str, *flags: str) -> Callable[[Call], Iterator[Found]]:
    def check(call: Call) -> Iterator[Found]:
        if not flags or any(word in flags for word in call.words):
            yield rule, call.span

    return check


def _nginx(call: Call) -> Iterator[Found]:
    if "-s" in call.words and any(word in {"stop", "quit"} for word in call.words):
        yield "service", call.span


_SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "fish", "su"))


def _sudo(call: Call) -> Iterator[Found]:
    options = Options(
        call.args[1:],
        SUDO_VALUES,
        mixed=False,
    )
    opens = len(options.operands) == 1 and program_name(options.operands[0].text) in _SHELLS and not call.stdin.given
    if opens or options.has("S", "stdin", "A", "askpass", "s", "shell", "i", "login"):
        yield "sudo_stdin", call.span


def _su(call: Call) -> Iterator[Found]:
    options = Options(call.args[1:], ("c", "s", "g", "G", "w", "command", "shell", "group", "u"))
    if not options.has("c", "command", "u", "version", "help"):
        yield "sudo_stdin", call.span


def _nc(call: Call) -> Iterator[Found]:
    words = call.words
    if SHELL_OUTPUT in call.stdin.origins:
        yield "reverse_shell", call.span
    takes_program = call.name in {"nc", "ncat", "netcat"}
    if (
        takes_program and any(re.fullmatch(r"-[a-zA-Z]*[ec]|--(?:exec|sh-exec|lua-exec)", word) for word in words)
    ) or any(re.match(r"(?i)(?:exec|system):", word) for word in words):
        yield "reverse_shell", call.span


CHECKS: Final[dict[str, Checker]] = {
    **dict.fromkeys(("shutdown", "reboot", "halt", "poweroff", "Stop-Computer", "Restart-Computer"), _shutdown), "init": _init, "telinit": _init,
    "kexec": _flag("shutdown", "-e", "--exec", "-f", "--force"), "systemctl": _systemctl, "loginctl": _loginctl,
    **dict.fromkeys(("service", "rc-service", "initctl", "supervisorctl", "pm2", "brew", "sv", "svc", "s6-svc", "monit", "invoke-rc.d", "apachectl", "apache2ctl", "forever", "god", "foreman", "stop", "restart"), _service),
    "python": _module, "python3": _module, "launchctl": _launchctl, "kill": _kill, "pkill": _pkill, "killall": _pkill, "killall5": _flag("kill_all"), "fuser": _fuser, "skill": _flag("process_kill", "-9", "-KILL"), "mibyan": _mibyan,
    "busctl": _bus, "dbus-send": _bus, "gdbus": _bus, "qdbus": _bus, "nginx": _nginx, "sudo": _sudo, "doas": _flag("sudo_stdin", "-s"), "su": _su,
    **dict.fromkeys(("nc", "ncat", "netcat", "socat", "telnet", "openssl"), _nc), "pm-suspend": _flag("service"), "pm-hibernate": _flag("service"), "ipmitool": _flag("service", "off", "cycle", "reset", "soft"),
    "pg_ctl": _flag("service", "stop", "restart", "promote"), "pg_ctlcluster": _flag("service", "stop", "restart"), "pkexec": _sudo, "update-rc.d": _flag("service", "remove", "disable"), "chkconfig": _flag("service", "off", "--del"),
}  # fmt: skip
