"""Programs that run code: shells, `eval`, interpreters, and options of other programs whose value is a command.

`executed` gives the shell code that a call runs, and the rules that the way it comes by its code falls under.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals.foreign_code import foreign_code
from mibyan.approvals.shell.options import Options
from mibyan.approvals.shell.values import DECODED, NETWORK, Arg, Data, as_code
from mibyan.approvals.wrappers import Code
from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.approvals.shell.call import Call

SHELLS: Final = frozenset(
    (
        "sh",
        "bash",
        "dash",
        "zsh",
        "ksh",
        "ksh93",
        "mksh",
        "ash",
        "rbash",
        "fish",
        "csh",
        "tcsh",
        "yash",
        "osh",
        "rc",
        "elvish",
        "nu",
        "xonsh",
    )
)
_SHELL_VALUES = ("O", "o", "rcfile", "init-file")
_STDIN = frozenset(("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"))

#: Interpreters: the options that have code, and the sub-commands.
_INTERPRETERS: Final[tuple[tuple[re.Pattern[str], tuple[str, ...], tuple[str, ...]], ...]] = tuple(
    (re.compile(names), codes, valued)
    for names, codes, valued in (
        (r"python[\d.]*w?|pypy[\d.]*|ipython[\d.]*|jython|micropython|sage", ("c",), ("m", "W", "X", "Q")),
        (r"node(?:js)?|bun|iojs", ("e", "eval", "p", "print", "pe"), ("r", "require", "import", "loader", "C", "conditions")),
        (r"ruby[\d.]*|jruby|truffleruby|irb|crystal", ("e",), ("I", "C")),
        (r"php[\d.]*", ("r", "B", "R", "E", "run"), ("d", "c", "f")),
        (r"lua[\d.]*|luajit|texlua", ("e",), ("l",)),
        (r"Rscript|R|littler", ("e",), ("f", "default-packages")),
        (r"osascript", ("e",), ("l", "s")),
        (r"julia|octave(?:-cli)?|guile|racket|gosh|elixir|iex|groovy|scala|kotlin|swift|raku|perl6|janet|clj|clojure|bb|sbcl|ghc|runghc|ocaml|maxima|gp|matlab|gawk-csv",
         ("e", "E", "eval", "execute", "expr", "script", "r"), ("p", "l", "I", "L")),
        (r"erl", ("eval",), ("s", "sname", "name", "pa")),
        (r"tclsh[\d.]*|wish|expect|jshell|ts-node|tsx|coffee|gdb|lldb", ("c", "e", "eval", "ex", "o"), ("p", "batch")),
    )
)  # fmt: skip
_PERL = re.compile(r"-[A-Za-z0-9]*?[eE](.*)", re.DOTALL)

#: Options whose value is a command: `{program: (names, other options with values)}`.
_EXEC_FLAGS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "rg": (("pre", "hostname-bin"), (*tuple("efgtTABCmjMr"), "regexp", "glob", "type", "file", "max-count", "context")),
    "ag": (("pager",), tuple("ABCGmp")), "ack": (("pager",), ()), "man": (("P", "pager", "H", "browser"), tuple("CLMSsemrR")),
    "bat": (("pager",), tuple("lrHn")), "sort": (("compress-program",), tuple("kotSTb")), "split": (("filter",), tuple("abClns")),
    "tar": (("to-command", "checkpoint-action", "I", "use-compress-program", "rsh-command", "rmt-command", "F", "info-script", "new-volume-script"), tuple("CfTXbgHLNKV")),
    "bsdtar": (("use-compress-program",), tuple("CfTXb")), "gtar": (("to-command", "checkpoint-action", "I"), tuple("CfTXb")),
    "rsync": (("e", "rsh", "rsync-path"), (*tuple("fTBM"), "exclude", "include", "files-from", "log-file", "bwlimit")),
    "scp": (("S",), tuple("cFiJloPD")), "sftp": (("S",), tuple("BbcDFiJloPRs")), "zip": (("TT", "unzip-command"), tuple("bintx")),
    "fzf": (("preview",), tuple("qdnf")), "tcpdump": (("z",), tuple("iwrcCGsnFB")), "pdflatex": ((), ()), "wget": (("use-askpass",), tuple("OoPUaiteTwQ")),
    "cpio": (("rsh-command",), tuple("FHIOE")), "mutt": (("e",), tuple("acFHims")), "ed": ((), ()), "logsave": ((), ()), "capsh": (("c",), ()),
}  # fmt: skip
_HARMLESS: Final = frozenset((
    "cat", "less", "more", "most", "bat", "delta", "true", ":", "false", "head", "diff-so-fancy", "gzip", "gunzip", "pigz", "zstd", "unzstd", "xz",
    "bzip2", "lz4", "lzip", "lzop", "pbzip2", "brotli", "ssh", "vim", "vi", "nvim", "nano", "emacs", "code", "echo", "pg", "ls", "tree", "file", "rsh", "rsync",
))  # fmt: skip
_BANG = re.compile(r"^:*!(.+)|^:*(?:silent|exe(?:cute)?|te(?:rm)?)\s*!?\s*(.+)", re.DOTALL)
#: Variables whose values are commands that programs run.
_COMMAND_VARIABLES: Final = frozenset((
    "PROMPT_COMMAND", "PAGER", "GIT_PAGER", "MANPAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_ASKPASS",
    "SSH_ASKPASS", "SUDO_ASKPASS", "BROWSER", "LESSOPEN", "LESSCLOSE", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "RSYNC_RSH", "CVS_RSH", "FZF_DEFAULT_COMMAND",
    "PS0", "PS1", "PS4", "SHELLOPTS",
))  # fmt: skip
_LOADING_VARIABLES: Final = frozenset(
    (
        "LD_PRELOAD",
        "LD_AUDIT",
        "BASH_ENV",
        "ENV",
        "PYTHONSTARTUP",
        "PERL5OPT",
        "NODE_OPTIONS",
        "RUBYOPT",
        "DYLD_INSERT_LIBRARIES",
    )
)


@record(frozen=False, eq=False)
class Executed:
    """What a call executes."""

    codes: list[Code] = field(default_factory=list)
    #: Rules, and the word that they are about.
    rules: list[tuple[str, tuple[int, int]]] = field(default_factory=list)

    def add(self, other: Executed) -> None:
        """What else it executes."""
        self.codes += other.codes
        self.rules += other.rules

    def add_data(self, call: Call, data: Data, span: tuple[int, int], *, as_shell: bool, language: str = "") -> None:
        """Data that is run as a program."""
        if not data.given:
            return
        noted = self._add_origins(data.origins, span)
        if not as_shell:
            self.rules.append(("inline_script", span))
            self.add_foreign(call, data.text or "", span, language)
        elif data.text is not None:
            self.codes.append(Code(as_code(data.text), call.inner(call.args), span))
        elif not noted:
            self.rules.append(("opaque_exec", span))

    def add_code(self, call: Call, arg: Arg, **changes: object) -> None:
        """A word that is run as shell code."""
        self._add_origins(arg.origins, arg.span)
        self.codes.append(Code(as_code(arg.text), call.inner(call.args, **changes), arg.span))

    def add_foreign(self, call: Call, text: str, span: tuple[int, int], language: str = "") -> None:
        """Code in another language: what shell code is in it, and what else it does."""
        codes, rules = foreign_code(text, language)
        self.codes += [Code(as_code(code), call.inner(call.args), span) for code in codes]
        self.rules += [(rule, span) for rule in rules]

    def add_command(self, call: Call, value: Arg) -> None:
        """The value of an option that is a command."""
        first = value.text.split()
        program = first[0].rsplit("/", 1)[-1] if first else ""
        if first and (program not in _HARMLESS or "/" in first[0]):
            self.rules.append(("exec_flag", value.span))
        self.add_code(call, value)

    def _add_origins(self, origins: frozenset[str], span: tuple[int, int]) -> bool:
        rules = {NETWORK: "remote_exec", DECODED: "decode_exec"}
        found = [(rule, span) for origin, rule in rules.items() if origin in origins]
        self.rules += found
        return bool(found)


def executed(call: Call) -> Executed:
    """What a call executes beside the commands that are its words."""
    found = Executed()
    name = call.name
    _variables(call, found)
    if name in SHELLS:
        _shell(call, found)
    elif name in _BUILTINS:
        _BUILTINS[name](call, found)
    elif name in _PROGRAMS:
        _PROGRAMS[name](call, found)
    elif (interpreter := _interpreter(name)) is not None:
        _interpreted(call, found, *interpreter)
    if name in _EXEC_FLAGS:
        names, valued = _EXEC_FLAGS[name]
        for value in Options(call.args[1:], (*names, *valued)).values(*names):
            text = value.text.removeprefix("exec=") if name in {"tar", "gtar"} else value.text
            if name not in {"tar", "gtar"} or "=" not in value.text or value.text.startswith("exec="):
                found.add_command(call, value.after(value.text[: len(value.text) - len(text)]))
    if (call.args and call.args[0].text.startswith(("./", "../", "/"))) or "/" in (
        call.args[0].text if call.args else ""
    ):
        _program_file(call, found)
    return found


def _variables(call: Call, found: Executed) -> None:
    for name, value in call.environment.items():
        if name in _COMMAND_VARIABLES and value.text and not name.startswith("PS"):
            found.add_command(call, value)
        elif name in _LOADING_VARIABLES and value.text:
            found.rules.append(("exec_flag", value.span))
        elif name.startswith("PS") and name in _COMMAND_VARIABLES and ("$(" in value.text or "`" in value.text):
            found.add_code(call, Arg(f'"{value.text}"', span=value.span))


def _program_file(call: Call, found: Executed) -> None:
    """A program given by its path: one that the script has made."""
    path = call.scope.path(call.args[0].text)
    data = call.scope.files.get(path)
    if data is not None:
        found.add_data(call, data, call.args[0].span, as_shell=True)
    if path in call.scope.executables or (
        call.scope.cwd is None and call.name in {one.rpartition("/")[2] for one in call.scope.executables}
    ):
        found.rules.append(("made_executable_and_run", call.args[0].span))


def _shell(call: Call, found: Executed) -> None:
    options = Options(_with_dashes(call.args[1:]), _SHELL_VALUES, mixed=False)
    operands = options.operands
    if options.has("c", "command"):
        if operands:
            inner = call.scope.copy()
            inner.positional = [arg.text for arg in operands[2:]] if len(operands) > 1 else None
            inner.shell_name = operands[1].text if len(operands) > 1 else call.name
            found.add_code(call, operands[0], scope=inner, stdin=call.stdin)
        return
    if not operands or options.has("s") or operands[0].text in _STDIN:
        found.add_data(call, call.stdin, call.span, as_shell=True)
        return
    _file(call, operands[0], found, as_shell=True)


def _with_dashes(args: tuple[Arg, ...]) -> list[Arg]:
    """`+x` is an option as `-x` is."""
    return [Arg("-" + arg.text[1:], span=arg.span) if re.fullmatch(r"\+[A-Za-z]+", arg.text) else arg for arg in args]


def _file(call: Call, arg: Arg, found: Executed, *, as_shell: bool, language: str = "") -> None:
    """A file with a program: a process substitution, or one that the script has written."""
    data = arg.data or call.scope.files.get(call.scope.path(arg.text))
    if data is not None:
        found.add_data(call, data, arg.span, as_shell=as_shell, language=language)
    elif arg.text in _STDIN:
        found.add_data(call, call.stdin, arg.span, as_shell=as_shell, language=language)
    found._add_origins(arg.origins, arg.span)


def _eval(call: Call, found: Executed) -> None:
    args = list(call.args[1:])
    if args:
        origins = frozenset[str]().union(*(arg.origins for arg in args))
        span = args[0].span[0], args[-1].span[1]
        found.add_code(call, Arg(" ".join(arg.text for arg in args), span=span, origins=origins), scope=call.scope)


def _source(call: Call, found: Executed) -> None:
    if len(call.args) > 1:
        _file(call, call.args[1], found, as_shell=True)


def _trap(call: Call, found: Executed) -> None:
    operands = Options(call.args[1:], (), mixed=False).operands
    if len(operands) > 1 and operands[0].text not in {"", "-"}:
        found.add_code(call, operands[0])


def _alias(call: Call, found: Executed) -> None:
    for arg in call.args[1:]:
        name, equals, value = arg.text.partition("=")
        if equals and value:
            found.add_code(call, arg.after(f"{name}="))


def _complete(call: Call, found: Executed) -> None:
    for value in Options(call.args[1:], tuple("CFGAWPSXco")).values("C"):
        found.add_code(call, value)


def _interpreter(name: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    return next(((codes, valued) for names, codes, valued in _INTERPRETERS if names.fullmatch(name)), None)


def _interpreted(call: Call, found: Executed, codes: tuple[str, ...], valued: tuple[str, ...]) -> None:
    long_singles = call.name in {"erl", "gdb", "octave"}
    options = Options(call.args[1:], (*codes, *valued), mixed=False, single=long_singles)
    given = options.values(*codes)
    for value in given:
        found.rules.append(("inline_script", value.span))
        found._add_origins(value.origins, value.span)
        found.add_foreign(call, value.text, value.span, call.name)
    if given or options.has("m", "V", "version", "v", "h", "help", "check"):
        return
    operand = options.operands[0] if options.operands else None
    if operand is None or operand.text in _STDIN:
        found.add_data(call, call.stdin, call.span, as_shell=False, language=call.name)
    else:
        _file(call, operand, found, as_shell=False, language=call.name)


def _perl(call: Call, found: Executed) -> None:
    args = call.args[1:]
    index = 0
    while index < len(args) and args[index].text.startswith("-") and args[index].text not in {"-", "--"}:
        match = _PERL.fullmatch(args[index].text)
        if match and not args[index].text.startswith(("-M", "-I", "-m")):
            code = args[index].after(args[index].text[: match.start(1)]) if match[1] else None
            code = code or (args[index + 1] if index + 1 < len(args) else None)
            found.rules.append(("inline_script", args[index].span))
            if code is not None:
                found.add_foreign(call, code.text, code.span, "perl")
            return
        index += 1
    rest = [arg for arg in args[index:] if arg.text != "--"]
    if any(arg.text in {"-v", "-V", "--version", "-h"} for arg in args[:index]):
        return
    if not rest or rest[0].text in _STDIN:
        found.add_data(call, call.stdin, call.span, as_shell=False, language="perl")
    else:
        _file(call, rest[0], found, as_shell=False, language="perl")


def _deno(call: Call, found: Executed) -> None:
    operands = Options(call.args[1:], ("c", "config", "L", "log-level")).operands
    if operands and operands[0].text == "eval":
        found.rules.append(("inline_script", call.span))
        for arg in operands[1:]:
            found.add_foreign(call, arg.text, arg.span, "deno")
    elif (
        operands
        and operands[0].text == "run"
        and len(operands) > 1
        and operands[1].text.startswith(("http:", "https:"))
    ):
        found.rules.append(("remote_exec", operands[1].span))


def _awk(call: Call, found: Executed) -> None:
    options = Options(call.args[1:], (*tuple("Fvf"), "file", "assign", "field-separator"), mixed=False)
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


def _ssh_options(call: Call, found: Executed) -> None:
    for value in Options(call.args[1:], tuple("bcDEeFIiJLlmOopQRSWw"), mixed=False).values("o"):
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
        if arg.text.startswith(("SHELL=", "--eval=")):
            found.add_command(call, arg.after(arg.text[: arg.text.index("=") + 1]))


def _at(call: Call, found: Executed) -> None:
    if call.stdin.given and not any(arg.text in {"-l", "-r", "-d", "-c", "-f"} for arg in call.args[1:]):
        found.add_data(call, call.stdin, call.span, as_shell=True)


_BUILTINS: Final[dict[str, Callable[[Call, Executed], None]]] = {
    "eval": _eval, "source": _source, ".": _source, "trap": _trap, "alias": _alias, "complete": _complete,
}  # fmt: skip
_PROGRAMS: Final[dict[str, Callable[[Call, Executed], None]]] = {
    "perl": _perl, "deno": _deno, "awk": _awk, "gawk": _awk, "mawk": _awk, "nawk": _awk, "sed": _sed, "gsed": _sed, "vim": _editor, "vi": _editor,
    "nvim": _editor, "view": _editor, "ex": _editor, "less": _editor, "more": _editor, "emacs": _editor, "ssh": _ssh_options, "cmd": _cmd,
    "make": _make, "gmake": _make, "at": _at, "batch": _at,
}  # fmt: skip
