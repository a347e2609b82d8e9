"""Programs that change the system's configuration: jobs, firewalls, users, kernel settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals.shell.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mibyan.approvals.rules.checks import Checker, Found
    from mibyan.approvals.shell.call import Call


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


_CONFIGURATION: Final = "system_config_write"
CHECKS: Final[dict[str, Checker]] = {
    "crontab": _crontab, **dict.fromkeys(("iptables", "ip6tables", "nft", "ufw", "pfctl", "firewall-cmd", "ebtables"), _firewall), "sysctl": _sysctl,
    **dict.fromkeys(("ip", "ifconfig", "nmcli", "route"), _network_device), "visudo": _always(_CONFIGURATION, "-c", "--check"),
    "passwd": _always(_CONFIGURATION, "-S", "--status"), "update-alternatives": _always(_CONFIGURATION, "--list", "--display", "--query", "--get-selections"),
    "spctl": _always(_CONFIGURATION, "--status", "-a", "--assess"),
    **dict.fromkeys(("vipw", "vigr", "useradd", "userdel", "usermod", "groupadd", "groupdel", "groupmod", "adduser", "deluser", "chpasswd", "chsh", "insmod",
                     "rmmod", "modprobe", "setenforce", "swapoff"), _always(_CONFIGURATION)),
    **dict.fromkeys(("hostnamectl", "timedatectl", "localectl", "resolvectl", "csrutil"), _unless_shown(_CONFIGURATION)),
    "ssh-copy-id": _always("credential_write"),
}  # fmt: skip
