"""Programs that are no shells and run code all the same: editors, `make`, debuggers, and options whose value is a command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals.shell.options import Options, means
from mibyan.approvals.shell.values import Arg

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.approvals.executed import Executed
    from mibyan.approvals.shell.call import Call
    from mibyan.approvals.shell.values import Data

#: Options whose value is a command: `{program: (names, other options with values)}`.
_EXEC_FLAGS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "rg": (("pre", "hostname-bin"), (*tuple("efgtTABCmjMr"), "regexp", "glob", "type", "file", "max-count", "context")),
    "ag": (("pager",), tuple("ABCGmp")), "ack": (("pager",), ()), "man": (("P", "pager", "H", "browser"), tuple("CLMSsemrR")),
    "bat": (("pager",), tuple("lrHn")), "sort": (("compress-program",), tuple("kotSTb")), "split": (("filter",), tuple("abClns")),
    "tar": (("to-command", "checkpoint-action", "I", "use-compress-program", "rsh-command", "rmt-command", "F", "info-script", "new-volume-script"), tuple("CfTXbgHLNKV")),
    "bsdtar": (("use-compress-program",), tuple("CfTXb")), "gtar": (("to-command", "checkpoint-action", "I"), tuple("CfTXb")),
    "rsync": (("e", "rsh", "rsync-path"), (*tuple("fTBM"), "exclude", "include", "files-from", "log-file", "bwlimit")),
    "scp": (("S",), tuple("cFiJloPD")), "sftp": (("S",), tuple("BbcDFiJloPRs")), "zip": (("unzip-command",), tuple("bintx")),
    "fzf": (("preview",), tuple("qdnf")), "tcpdump": (("z",), tuple("iwrcCGsnFB")), "wget": (("use-askpass",), tuple("OoPUaiteTwQ")),
    "cpio": (("rsh-command",), tuple("FHIOE")), "mutt": (("e",), tuple("acFHims")), "npm": (("script-shell",), ("prefix", "w")),
}  # fmt: skip
_BANG = re.compile(r"^:*!(.+)|^:*(?:silent|exe(?:cute)?|te(?:rm)?)\s*!?\s*(.+)", re.DOTALL)


def _complete(call: Call, found: Executed) -> None:
    for value in Options(call.args[1:], tuple("CFGAWPSXco")).values("C"):
        found.add_code(call, value)


def _awk(call: Call, found: Executed) -> None:
    valued = (*tuple("Fvfie"), "file", "assign", "field-separator", "include", "source")
    options = Options(call.args[1:], valued, mixed=False)
    programs = [] if options.has("f", "file") else options.operands[:1]
    for program in [*programs, *options.values("e", "source")]:
        found.add_foreign(call, program.text, program.span, "awk")


def _sed(call: Call, found: Executed) -> None:
    options = Options(call.args[1:], (*tuple("efl"), "expression", "file", "line-length"))
    scripts = options.values("e", "expression") or options.operands[:1]
    for script in scripts:
        found.add_foreign(call, script.text, script.span, "sed")


def _editor(call: Call, found: Executed) -> None:
    """`vim -c ':!cmd'`, `less '+!cmd'`."""
    options = Options(call.args[1:], (*tuple("cSuUTwWir"), "cmd"))
    commands = options.values("c", "cmd", "e")
    commands += [arg.after("+") for arg in call.args[1:] if arg.text.startswith("+")]
    for command in commands:
        match = _BANG.match(command.text)
        if match:
            code = match[1] or match[2]
            found.rules.append(("exec_flag", command.span))
            found.add_code(call, Arg(code, span=command.span))
        elif _EDITOR_SCRIPT.match(command.text):
            found.rules.append(("exec_flag", command.span))
            found.add_foreign(call, command.text, command.span, "vim")


def _emacs(call: Call, found: Executed) -> None:
    for value in Options(call.args[1:], ("eval", "execute", "l", "load", "funcall", "f"), single=True).values(
        "eval", "execute"
    ):
        found.rules.append(("inline_script", value.span))
        found.add_foreign(call, value.text, value.span, "emacs")


def _debugger(call: Call, found: Executed) -> None:
    """`gdb -ex 'shell COMMAND'`."""
    for value in Options(call.args[1:], ("ex", "eval-command", "iex", "o", "x", "p", "pid"), single=True).values(
        "ex", "iex", "eval-command", "o"
    ):
        match = re.match(
            r"\s*(?:!|(?:shell|pipe|make|python|py|guile|platform shell|script)\b)\s*(.*)", value.text, re.DOTALL
        )
        if match:
            found.rules.append(("exec_flag", value.span))
            found.add_code(call, Arg(match[1], span=value.span))


def _bind(call: Call, found: Executed) -> None:
    for value in Options(call.args[1:], tuple("mfqurx")).values("x"):
        found.add_code(call, Arg(value.text.partition(":")[2].strip().strip("\"'"), span=value.span))


def _callback(call: Call, found: Executed) -> None:
    for value in Options(call.args[1:], tuple("dnOstuCc")).values("C"):
        found.add_code(call, value)


def _subscripts(call: Call, found: Executed) -> None:
    """Names with subscripts, which are expanded once more: `[ -v 'a[$(…)]' ]`."""
    for arg in call.args[1:]:
        if "[" in arg.text and ("$(" in arg.text or "`" in arg.text):
            quoted = arg.text.replace("\\", "\\\\").replace('"', '\\"')
            found.add_code(call, Arg(f': "{quoted}"', span=arg.span))


def _hash(call: Call, found: Executed) -> None:
    """`hash -p PATH NAME`: a name for another program."""
    if Options(call.args[1:], ("p",)).has("p"):
        found.rules.append(("opaque_exec", call.span))


def _enable(call: Call, found: Executed) -> None:
    if Options(call.args[1:], ("f",)).has("f"):
        found.rules.append(("exec_flag", call.span))


def _zip(call: Call, found: Executed) -> None:
    words = call.args[1:]
    for index, arg in enumerate(words[:-1]):
        if arg.text == "-TT":
            found.add_command(call, words[index + 1])


def _fzf(call: Call, found: Executed) -> None:
    for value in Options(call.args[1:], ("bind", "preview", "q", "d", "n", "f")).values("bind"):
        for match in re.finditer(
            r"(?:execute(?:-silent|-multi)?|become|reload|transform|preview)(?:\((.*)\)|:(.*))", value.text
        ):
            found.rules.append(("exec_flag", value.span))
            found.add_code(call, Arg(match[1] or match[2] or "", span=value.span))


def _ssh_options(call: Call, found: Executed) -> None:
    for value in Options(call.args[1:], tuple("bcDEeFIiJLlmOopPQRSWw"), mixed=False).values("o"):
        name, _, command = value.text.replace(" ", "=", 1).partition("=")
        if name.lower() in {"proxycommand", "localcommand", "knownhostscommand"} and command.strip().lower() != "none":
            found.rules.append(("exec_flag", value.span))
            found.add_code(call, value.after(value.text[: len(value.text) - len(command)]))


def _cmd(call: Call, found: Executed) -> None:
    for index, arg in enumerate(call.args[1:-1], 1):
        if arg.text.lower() in {"/c", "/k", "//c", "//k"}:
            rest = call.args[index + 1 :]
            found.add_code(call, Arg(" ".join(one.text for one in rest), span=(rest[0].span[0], rest[-1].span[1])))
            return


def _make(call: Call, found: Executed) -> None:
    for arg in call.args[1:]:
        value = arg.after(arg.text[: arg.text.find("=") + 1])
        if arg.text.startswith("--eval=") or (arg.text.startswith("SHELL=") and not _PLAIN_SHELL.fullmatch(value.text)):
            found.add_command(call, value)
    given = Options(call.args[1:], tuple("fCIojlW")).values("f", "file", "makefile")
    names = [*given, *(Arg(name, span=call.span) for name in ("GNUmakefile", "makefile", "Makefile") if not given)]
    for name in names:
        data = name.data or call.scope.files.get(call.scope.path(name.text))
        if data is not None:
            _makefile(call, data, name.span, found)


def _makefile(call: Call, data: Data, span: tuple[int, int], found: Executed) -> None:
    """A makefile that the script has written: its recipes are code."""
    if not found.add_origins(data.origins, span) and data.text is None:
        found.rules.append(("opaque_exec", span))
    lines = (data.text or "").replace("\\\n", " ").split("\n")
    recipes = [line[1:].lstrip("@-+") for line in lines if line.startswith("\t")]
    recipes += [line.partition(";")[2].lstrip(" @-+") for line in lines if re.match(r"[^\t#=]+:[^=]*;", line)]
    for recipe in recipes[:_MOST_RECIPES]:
        found.add_code(call, Arg(re.sub(r"\$[({]\w+[)}]", '"$__unknown__"', recipe).replace("$$", "$"), span=span))


def _at(call: Call, found: Executed) -> None:
    if call.stdin.given and not any(arg.text in {"-l", "-r", "-d", "-c", "-f"} for arg in call.args[1:]):
        found.add_data(call, call.stdin, call.span, as_shell=True)


#: Recipes of a makefile that are looked at.
_MOST_RECIPES: Final = 32
_PLAIN_SHELL = re.compile(r"(?:/usr|/usr/local)?(?:/bin/)?(?:ba|da|z|k)?sh")
_EDITOR_SCRIPT = re.compile(
    r"^:*\s*(?:lua|luado|py(?:thon|x)?3?|perl|ruby|tcl|call\s+system|echo\s+system|sh(?:ell)?\b|terminal?\b)"
)

PROGRAMS: Final[dict[str, Callable[[Call, Executed], None]]] = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk), **dict.fromkeys(("sed", "gsed"), _sed),
    **dict.fromkeys(("vim", "vi", "nvim", "view", "ex", "less", "more"), _editor), **dict.fromkeys(("emacs", "emacsclient"), _emacs),
    **dict.fromkeys(("ssh", "scp", "sftp"), _ssh_options), **dict.fromkeys(("gdb", "lldb"), _debugger), "zip": _zip, "fzf": _fzf, "cmd": _cmd,
    **dict.fromkeys(("make", "gmake"), _make), "at": _at, "batch": _at, "complete": _complete, "compgen": _complete, "bind": _bind,
    "mapfile": _callback, "readarray": _callback, "hash": _hash, "enable": _enable,
    **dict.fromkeys(("test", "[", "printf", "read", "unset", "wait"), _subscripts),
}  # fmt: skip


def option_commands(call: Call, found: Executed) -> None:
    """The commands that are values of a program's options."""
    if call.name not in _EXEC_FLAGS:
        return
    names, valued = _EXEC_FLAGS[call.name]
    for given, value in Options(call.args[1:], (*names, *valued)).given:
        if value is None or not any(means(given, one) for one in names) or given == "checkpoint":
            continue
        if not means(given, "checkpoint-action"):
            found.add_command(call, value)
        elif value.text.startswith("exec="):
            found.add_command(call, value.after("exec="))
