"""Commands of Windows and PowerShell, which are judged by their text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.approvals.rules.checks import Checker, Found
    from mibyan.approvals.shell.call import Call

_TEXTS: Final = re.compile(
    r"\b(?:Remove-Item|ri|rd|rmdir|del|erase|rm)\b(?=.*(?:-Rec|-r\b|/s\b))|\bRemove-(?:Item|Partition|VirtualDisk|ADUser|LocalUser|Service|EventLog|AppxPackage)\b|"
    r"\b(?:Format-Volume|Clear-Disk|Initialize-Disk|Clear-RecycleBin|Clear-EventLog|Reset-ComputerMachinePassword|Clear-Content|Set-ExecutionPolicy|Disable-NetAdapter|Uninstall-\w+)\b|"
    r"\bStop-(?:Process|Service)\b|\b(?:iex|Invoke-Expression)\b|-enc(?:odedcommand)?\b|\bDownload(?:String|File)\b|\bSet-MpPreference\b|\bAdd-MpPreference\b",
    re.IGNORECASE,
)
_POWER: Final = re.compile(r"\b(?:Stop-Computer|Restart-Computer)\b", re.IGNORECASE)
_SHOWS: Final = re.compile(
    r"(?i)\s*(?:Get|Select|Where|Sort|Measure|Test|Group|Compare|ConvertTo|ConvertFrom|Format|Out-String|Out-Host|Write)-?[^;&|`$(){}\n<>]*"
)


def _powershell(call: Call) -> Iterator[Found]:
    text = " ".join(call.words)
    if _POWER.search(text):
        yield "shutdown", call.span
    if (
        _TEXTS.search(text)
        or (call.name.lower() in {"powershell", "pwsh"} and re.search(r"(?i)(?:^|\s)-e(?:c|nc\w*)?\s", text))
        or re.search(r"(?i)(?:^|\s)-(?:ExecutionPolicy|ep|exec)\s+(?:Bypass|Unrestricted)|(?:^|\s)-w\w*\s+hidden", text)
    ):
        yield "windows", call.span
    elif (code := re.search(r"(?i)(?:^|\s)-(?:c|command)\s+(.*)", text, re.DOTALL)) and not _only_shows(code[1]):
        yield "inline_script", call.span


def _only_shows(code: str) -> bool:
    """Whether PowerShell code is a pipe of cmdlets that only show something."""
    return all(_SHOWS.fullmatch(part) for part in code.split("|"))


def _cmdlet(call: Call) -> Iterator[Found]:
    if _POWER.search(call.name):
        yield "shutdown", call.span
    elif _TEXTS.search(f"{call.name} {' '.join(call.words)}"):
        yield "windows", call.span


def _iex(call: Call) -> Iterator[Found]:
    from mibyan.approvals.shell.values import DECODED, NETWORK

    origins = call.stdin.origins.union(*(arg.origins for arg in call.args))
    if NETWORK in origins:
        yield "remote_exec", call.span
    if DECODED in origins:
        yield "decode_exec", call.span
    yield "windows", call.span


def _words(*patterns: str) -> Checker:
    pattern = re.compile("|".join(patterns), re.IGNORECASE)

    def check(call: Call) -> Iterator[Found]:
        if pattern.search(" ".join(call.words)):
            yield "windows", call.span

    return check


def _taskkill(call: Call) -> Iterator[Found]:
    text = " ".join(call.words)
    if re.search(r"(?i)(?:^|\s)/+F\b", text):
        yield "windows", call.span
    if re.search(r"(?i)mibyan", text):
        yield "self_termination", call.span


CHECKS: Final[dict[str, Checker]] = {
    **dict.fromkeys(("powershell", "pwsh", "powershell_ise"), _powershell), "iex": _iex, "invoke-expression": _iex, "taskkill": _taskkill, "tskill": _words(r"."),
    "reg": _words(r"^(?:delete|add|import|restore|unload)\b"), "vssadmin": _words(r"delete", r"resize"), "wbadmin": _words("delete"), "bcdedit": _words(r"/set", r"/delete", r"/import"), "diskpart": _words(r"."),
    "format": _words(r"^[A-Za-z]:"), "cipher": _words(r"/w"), "del": _words(r"/[sfq]\b"), "erase": _words(r"/[sfq]\b"), "rd": _words(r"/s\b"), "rmdir": _words(r"/s\b"), "sc": _words(r"^(?:\S+ )?(?:delete|stop|config)\b"), "net": _words(r"^(?:stop|user|localgroup|share)\b.*(?:/delete|/add|^stop)", r"^stop\b"),
    "schtasks": _words(r"/(?:delete|create|change)\b"), "wmic": _words(r"\bdelete\b", r"\bcall\b"), "fsutil": _words(r"\b(?:setzerodata|deletejournal|delete)\b"), "takeown": _words(r"/[fr]\b"), "icacls": _words(r"/(?:grant|deny|reset|setowner|inheritance|remove)\b"), "attrib": _words(r"[-+][rhs]\b"), "robocopy": _words(r"/(?:mir|purge|move)\b"),
    "netsh": _words(r"\b(?:delete|reset|set)\b"), "mountvol": _words(r"/d\b"), "chkdsk": _words(r"/[frx]\b"), "sfc": _words(r"/scannow"), "dism": _words(r"/remove"), "certutil": _words(r"-(?:urlcache|decode|delstore|addstore)"), "bitsadmin": _words(r"/transfer"), "mshta": _words("."), "rundll32": _words("."), "regsvr32": _words("."), "setx": _words("."), "subst": _words(r"/d\b"),
}  # fmt: skip


def cmdlet(call: Call) -> Iterator[Found]:
    """A cmdlet that is called without naming PowerShell."""
    if re.fullmatch(r"[A-Z][a-z]+-[A-Z]\w+", call.name):
        yield from _cmdlet(call)
