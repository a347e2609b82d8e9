"""Programs that run code: shells, `eval`, interpreters.

`executed` gives the shell code that a call runs, and the rules that the way it comes by its code falls under.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals import programs
from mibyan.approvals.executed import Executed
from mibyan.approvals.shell.options import Options
from mibyan.approvals.shell.values import Arg

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


def executed(call: Call) -> Executed:
    """What a call executes beside the commands that are its words."""
    found = Executed()
    name = call.name
    _variables(call, found)
    if name in SHELLS:
        _shell(call, found)
    elif name in _BUILTINS:
        _BUILTINS[name](call, found)
    elif name in programs.PROGRAMS:
        programs.PROGRAMS[name](call, found)
    elif (interpreter := _interpreter(name)) is not None:
        _interpreted(call, found, *interpreter)
    programs.option_commands(call, found)
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
    if not operands or options.has("s") or _is_stdin(operands[0]):
        found.add_data(call, call.stdin, call.span, as_shell=True)
        return
    _file(call, operands[0], found, as_shell=True)


def _is_stdin(arg: Arg) -> bool:
    return arg.data is None and _STDIN.fullmatch(arg.text) is not None


def _with_dashes(args: tuple[Arg, ...]) -> list[Arg]:
    """`+x` is an option as `-x` is."""
    return [Arg("-" + arg.text[1:], span=arg.span) if re.fullmatch(r"\+[A-Za-z]+", arg.text) else arg for arg in args]


def _file(call: Call, arg: Arg, found: Executed, *, as_shell: bool, language: str = "") -> None:
    """A file with a program: a process substitution, or one that the script has written."""
    data = arg.data or call.scope.files.get(call.scope.path(arg.text))
    if data is not None:
        found.add_data(call, data, arg.span, as_shell=as_shell, language=language)
    elif _is_stdin(arg):
        found.add_data(call, call.stdin, arg.span, as_shell=as_shell, language=language)
    elif _is_fetched(call, call.scope.path(arg.text)):
        found.rules.append(("remote_exec", arg.span))
    found.add_origins(arg.origins, arg.span)


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


def _interpreter(name: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    return next(((codes, valued) for names, codes, valued in _INTERPRETERS if names.fullmatch(name)), None)


def _interpreted(call: Call, found: Executed, codes: tuple[str, ...], valued: tuple[str, ...]) -> None:
    long_singles = call.name in {"erl", "gdb", "octave"}
    options = Options(call.args[1:], (*codes, *valued), mixed=False, single=long_singles)
    given = options.values(*codes)
    for value in given:
        found.rules.append(("inline_script", value.span))
        found.add_origins(value.origins, value.span)
        found.add_foreign(call, value.text, value.span, call.name)
    if given or options.has("m", "V", "version", "v", "h", "help", "check"):
        return
    operand = options.operands[0] if options.operands else None
    if operand is None or _is_stdin(operand):
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
    if not rest or _is_stdin(rest[0]):
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


_BUILTINS: Final[dict[str, Callable[[Call, Executed], None]]] = {
    "eval": _eval, "source": _source, ".": _source, "trap": _trap, "alias": _alias, "perl": _perl, "deno": _deno,
}  # fmt: skip
