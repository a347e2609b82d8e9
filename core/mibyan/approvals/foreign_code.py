"""`foreign_code`: what a program in another language would do to a machine, as far as its text shows it.

Such code is never safe by itself where it is given on the command line; this finds the worst of it: shell commands in
it, and deletions, devices and signals that lose the machine.
"""

from __future__ import annotations

import re
from typing import Final

_STRING = r"""(?:[bfru]{0,2}"((?:[^"\\]|\\.)*)"|[bfru]{0,2}'((?:[^'\\]|\\.)*)')"""
#: Functions whose first argument is a command for a shell.
_SHELLED: Final = re.compile(
    r"\b(?:system|popen|popen2|exec|execSync|spawn|spawnSync|execFile|execFileSync|shell_exec|passthru|proc_open|call|check_call|check_output|"
    r"run|getoutput|getstatusoutput|Popen|sh|shell|pty\.spawn|execute|do shell script|io\.popen|os\.execute|IO\.popen|Open3\.\w+|run_command)\s*\(?\s*"
    + _STRING,
    re.DOTALL,
)
_LISTED: Final = re.compile(
    r"\b(?:run|call|check_call|check_output|Popen|spawn|spawnSync|execFile|execFileSync|execvp?e?|execlp?e?|system|exec|posix_spawnp?)\s*\(?\s*"
    r"(?:" + _STRING + r"\s*,\s*)?[\[(]?((?:\s*" + r"(?:\"[^\"]*\"|'[^']*')" + r"\s*,?)+)",
    re.DOTALL,
)
_QX: Final = re.compile(r"(?:`([^`]+)`|\bqx\s*[{(/]([^})/]+)[})/]|%x\s*[{(\[]([^})\]]+)[})\]])")
_ITEM: Final = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_AWK: Final = re.compile(
    r"\bsystem\s*\(\s*\"((?:[^\"\\]|\\.)*)\"\s*\)|\|\s*&?\s*\"((?:[^\"\\]|\\.)*)\"|\"((?:[^\"\\]|\\.)*)\"\s*\|\s*&?\s*getline"
)
_AWK_SYSTEM: Final = re.compile(r"\bsystem\s*\(")
#: Programs that awk's pipes may go to.
_AWK_FILTERS: Final = [
    [name] for name in ("sort", "uniq", "cat", "head", "tail", "wc", "column", "tr", "cut", "less", "more", "date")
]
_AWK_OPAQUE: Final = re.compile(r"\bsystem\s*\(|\|\s*&?\s*getline|(?:print|printf)[^|}\n]*\|\s*&?\s*[A-Za-z$]")
_SED_EXECUTES: Final = re.compile(
    r"(?:^|[;{}\n]|\d|/)\s*e(?:\s+(.+)|\s*$)|s(.)(?:(?!\2).)*\2(?:(?!\2).)*\2[gpIiMm\d]*e[gpIiMm\d]*(?:$|[;}\s])",
    re.MULTILINE,
)

_SPAWN: Final = re.compile(r"\b(?:spawn|exec)\s+(?:-\w+\s+)*([^;\n\]]+)")

_ROOT = r"""["'](?:/|~/?|/\*|/(?:bin|boot|dev|etc|home|lib\d*|opt|proc|root|sbin|srv|sys|usr|var)/?\*?|C:[\\/]*)["']"""
_HARMS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("root_delete", re.compile(r"\b(?:rmtree|rm_rf|rm_r|remove_dir_all|rmSync|rmdirSync|rm|deltree|rimraf|removedirs|remove_entry_secure|RemoveAll|emptyDirSync)\s*\(?\s*(?:(?:pathlib\.)?Path\()?\s*" + _ROOT)),
    ("root_delete", re.compile(r"\b(?:rmtree|rm_rf|rm_r|rmSync|rimraf|RemoveAll)\s*\(?\s*(?:os\.path\.expanduser\(\s*[\"']~|Path\.home\(\)|os\.homedir\(\)|ENV\[[\"']HOME|Dir\.home|os\.environ\[[\"']HOME|process\.env\.HOME)")),
    ("block_device_write", re.compile(r"\b(?:open|fopen|File\.open|File\.write|writeFile(?:Sync)?|createWriteStream|io\.open|write_bytes|Path)\s*\(?\s*[\"'][>+]*\s*/dev/(?:[sv]d[a-z]|nvme\d|mmcblk\d|xvd[a-z]|disk\d)")),
    ("fork_bomb", re.compile(r"\bfork\s*(?:\(\s*\))?\s*while\s+(?:fork|1|true)|while\s*(?:\(?\s*(?:1|True|true)\s*\)?)\s*[:{]?\s*(?:os\.)?fork\b|loop\s*\{\s*fork|fork\s*\{\s*fork|:\(\)\s*\{")),
    ("kill_all", re.compile(r"\bkill\s*\(?\s*(?:-1\s*,|[\"']?(?:SIG)?(?:KILL|TERM)[\"']?\s*,\s*-1|9\s*,\s*-1|process\.kill\(\s*-1)")),
    ("shutdown", re.compile(r"\b(?:to shut down|to restart)\b|\bLINUX_REBOOT|reboot\(\s*0x|libc\.reboot|InitiateSystemShutdown|ExitWindowsEx")),
)  # fmt: skip


def foreign_code(text: str, language: str = "") -> tuple[list[str], list[str]]:
    """The shell code that is in some code, and the rules that what it does falls under.

    Args:
        text: The code.
        language: The interpreter's name, as far as it matters: `awk` and `sed` run nothing of themselves.
    """
    if language == "sed":
        found = [match[1] or "" for match in _SED_EXECUTES.finditer(text)]
        return [code for code in found if code], ["exec_flag"] if found else []
    if language == "awk":
        codes = [next(group for group in match.groups() if group is not None) for match in _AWK.finditer(text)]
        rules = ["opaque_exec"] if not codes and _AWK_OPAQUE.search(text) else []
        if "system" in text and _AWK_SYSTEM.search(text):
            rules.append("exec_flag")
        rules += ["exec_flag" for code in codes if code.split()[:1] not in _AWK_FILTERS]
        return [_unquoted(code) for code in codes], list(dict.fromkeys(rules))
    codes = [_unquoted(match[1] or match[2] or "") for match in _SHELLED.finditer(text)]
    if language == "expect":
        codes += [match[1] for match in _SPAWN.finditer(text)]
    codes += [_joined(match) for match in _LISTED.finditer(text) if "," in match[0] or "[" in match[0]]
    codes += [match[1] or match[2] or match[3] for match in _QX.finditer(text)] if "python" not in language else []
    rules = [rule for rule, pattern in _HARMS if pattern.search(text)]
    return [code for code in dict.fromkeys(codes) if code.strip()][:20], list(dict.fromkeys(rules))


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _joined(call: re.Match[str]) -> str:
    """A program and its words, given as a list or one by one, as shell code."""
    program = call[1] if call[1] is not None else call[2]
    words = [match[1] if match[1] is not None else match[2] for match in _ITEM.finditer(call[3])]
    words = words if program is None else [program, *words]
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
