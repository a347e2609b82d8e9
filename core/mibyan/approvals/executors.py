"""Programs that run code: shells, `eval`, interpreters, and options of other programs whose value is a command.

`executed` gives the shell code that a call runs, and the rules that the way it comes by its code falls under.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals.foreign_code import foreign_code
from mibyan.approvals.shell.options import Options, means
from mibyan.approvals.shell.values import DECODED, INITIALISER, NETWORK, Arg, Data, as_code
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
#: Names of standard input, and of the other descriptors that a here-document may be at.
_STDIN = re.compile(r"-|/dev/stdin|/dev/fd/\d+|/proc/self/fd/\d+")

#: Interpreters: the options that have code, and the sub-commands.
_INTERPRETERS: Final[tuple[tuple[re.Pattern[str], tuple[str, ...], tuple[str, ...]], ...]] = tuple(
    (re.compile(names), codes, valued)
    for names, codes, valued in (
        (r"py|python[\d.]*w?|pypy[\d.]*|ipython[\d.]*|jython|micropython|sage", ("c",), ("m", "W", "X", "Q")),
        (r"node(?:js)?|bun|iojs", ("e", "eval", "p", "print", "pe"), ("r", "require", "import", "loader", "C", "conditions")),
        (r"ruby[\d.]*|jruby|truffleruby|irb|crystal", ("e",), ("I", "C")),
        (r"php[\d.]*", ("r", "B", "R", "E", "run"), ("d", "c", "f")),
        (r"lua[\d.]*|luajit|texlua", ("e",), ("l",)),
        (r"Rscript|R|littler", ("e",), ("f", "default-packages")),
        (r"osascript", ("e",), ("l", "s")),
        (r"julia|octave(?:-cli)?|guile|racket|gosh|elixir|iex|groovy|scala|kotlin|swift|raku|perl6|janet|clj|clojure|bb|sbcl|ghc|runghc|ocaml|maxima|gp|matlab",
         ("e", "E", "eval", "execute", "expr", "script", "r"), ("p", "l", "I", "L")),
        (r"erl", ("eval",), ("s", "sname", "name", "pa")),
        (r"tclsh[\d.]*|wish|expect|jshell|ts-node|tsx|coffee", ("c", "e", "eval", "ex", "o"), ("p", "batch")),
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
    "scp": (("S",), tuple("cFiJloPD")), "sftp": (("S",), tuple("BbcDFiJloPRs")), "zip": (("unzip-command",), tuple("bintx")),
    "fzf": (("preview",), tuple("qdnf")), "tcpdump": (("z",), tuple("iwrcCGsnFB")), "wget": (("use-askpass",), tuple("OoPUaiteTwQ")),
    "cpio": (("rsh-command",), tuple("FHIOE")), "mutt": (("e",), tuple("acFHims")), "npm": (("script-shell",), ("prefix", "w")),
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
        if not data.given or INITIALISER in data.origins:
            return
        noted = self._add_origins(data.origins, span)
        if not as_shell:
            self.rules.append(("inline_script", span))
            self.add_foreign(call, data.text or "", span, language)
        elif data.text is not None:
            scope = call.scope.copy()
            scope.bare = False
            self.codes.append(Code(as_code(data.text), call.inner(call.args, scope=scope), span))
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
        options = Options(call.args[1:], (*names, *valued))
        for given, value in options.given:
            if value is None or not any(means(given, one) for one in names) or given == "checkpoint":
                continue
            if not means(given, "checkpoint-action"):
                found.add_command(call, value)
            elif value.text.startswith("exec="):
                found.add_command(call, value.after("exec="))
    if call.args and "/" in call.args[0].text:
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
    elif _is_fetched(call, path):
        found.rules.append(("remote_exec", call.args[0].span))
    if path in call.scope.executables or (
        call.scope.cwd is None and call.name in {one.rpartition("/")[2] for one in call.scope.executables}
    ):
        found.rules.append(("made_executable_and_run", call.args[0].span))


def _is_fetched(call: Call, path: str) -> bool:
    """Whether a file is in a folder that was cloned from the network."""
    inside = call.scope.in_fetched and not path.startswith("/")
    return inside or any(path.startswith(folder.rstrip("/") + "/") for folder in call.scope.fetched_folders)


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
    if not operands or options.has("s") or _STDIN.fullmatch(operands[0].text):
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
    elif _STDIN.fullmatch(arg.text):
        found.add_data(call, call.stdin, arg.span, as_shell=as_shell, language=language)
    elif _is_fetched(call, call.scope.path(arg.text)):
        found.rules.append(("remote_exec", arg.span))
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
    if operand is None or _STDIN.fullmatch(operand.text):
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
    if not rest or _STDIN.fullmatch(rest[0].text):
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
    if not found._add_origins(data.origins, span) and data.text is None:
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

_BUILTINS: Final[dict[str, Callable[[Call, Executed], None]]] = {
    "eval": _eval, "source": _source, ".": _source, "trap": _trap, "alias": _alias, "complete": _complete,
    "compgen": _complete, "bind": _bind, "test": _subscripts, "[": _subscripts, "printf": _subscripts, "read": _subscripts, "unset": _subscripts, "wait": _subscripts,
    "mapfile": _callback, "readarray": _callback, "hash": _hash, "enable": _enable,
}  # fmt: skip
_PROGRAMS: Final[dict[str, Callable[[Call, Executed], None]]] = {
    "perl": _perl, "deno": _deno, "awk": _awk, "gawk": _awk, "mawk": _awk, "nawk": _awk, "sed": _sed, "gsed": _sed, "vim": _editor, "vi": _editor,
    "nvim": _editor, "view": _editor, "ex": _editor, "less": _editor, "more": _editor, "ssh": _ssh_options, "scp": _ssh_options, "sftp": _ssh_options,
    "emacs": _emacs, "emacsclient": _emacs, "gdb": _debugger, "lldb": _debugger, "zip": _zip, "fzf": _fzf, "cmd": _cmd,
    "make": _make, "gmake": _make, "at": _at, "batch": _at,
}  # fmt: skip
