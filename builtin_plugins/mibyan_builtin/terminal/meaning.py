"""What an exit code means, where it isn't a plain failure (terminal.T1)."""

from __future__ import annotations

import re
import shlex
import signal

_NO_MATCH = "nothing matched; that isn't a failure"
_DIFFERENT = "the files differ; that isn't a failure"
_FALSE = "the condition is false; that isn't a failure"
_NO_PROCESS = "no process matched; that isn't a failure"

#: By program and exit code.
MEANINGS: dict[tuple[str, int], str] = {
    **dict.fromkeys([(name, 1) for name in ("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack")], _NO_MATCH),
    **dict.fromkeys([(name, 1) for name in ("diff", "cmp", "colordiff", "sdiff", "diff3")], _DIFFERENT),
    **dict.fromkeys([(name, 1) for name in ("test", "[", "[[")], _FALSE),
    **dict.fromkeys([(name, 1) for name in ("pgrep", "pkill", "pidof", "killall")], _NO_PROCESS),
    ("git grep", 1): _NO_MATCH,
    ("git diff", 1): _DIFFERENT,
    ("expr", 1): "the result is zero or empty; that isn't a failure",
    ("false", 1): "that is all `false` does",
    ("which", 1): "the program isn't on PATH",
    ("timeout", 124): "the time that `timeout` was given ran out",
    ("systemctl", 3): "the unit isn't running; that isn't a failure",
}
#: Whatever the program.
_GENERAL = {126: "the program was found but can't be executed", 127: "the program wasn't found"}

#: Words before a program that don't change what its exit code means.
_WRAPPERS = frozenset({"sudo", "env", "time", "nice", "nohup", "command", "exec"})
#: Programs whose failure before `&&` is so rare that the exit code is the next one's.
_PREPARE = frozenset({"cd", "echo", "export", "true", "set", "pushd", "source", "."})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_SEPARATORS = frozenset({";", "&&", "||", "|", "|&", "&", "\n"})
#: Words and signs of compound commands, whose exit code may be any of their parts'.
_COMPOUND = frozenset({
    "(", ")", "{", "}", ";;", "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "function", "select", "coproc", "!",
})  # fmt: skip
#: Characters of a command that are looked at.
LONGEST = 10_000


def meaning(command: str, exit_code: int) -> str | None:
    """What `exit_code` means after `command`, in words; `None` when it says nothing more than the number does."""
    if exit_code == 0:
        return None
    program = _program(command)
    if program and (known := MEANINGS.get((program, exit_code))):
        return known
    if exit_code in _GENERAL:
        return _GENERAL[exit_code]
    return _signal(exit_code - 128)


def _signal(number: int) -> str | None:
    try:
        return f"ended by {signal.Signals(number).name}" if number > 0 else None
    except ValueError:
        return None


def _program(command: str) -> str | None:
    """The program whose exit code is the command's, as far as that is plain."""
    parts = _parts(command)
    if not parts:
        return None
    separators = [separator for separator, _ in parts]
    # After `a && b` the code may be a's, unless a is something like `cd`; after `;`, `|` and `||` it is the last one's.
    for (_, words), separator in zip(parts, separators[1:], strict=False):
        if separator == "&&" and _name(words) not in _PREPARE:
            return None
    return _name(parts[-1][1])


def _parts(command: str) -> list[tuple[str, list[str]]]:
    """The simple commands of a flat command line, each with the separator before it; none when it isn't flat."""
    if len(command) > LONGEST or "pipefail" in command or "<<" in command or "`" in command or "$(" in command:
        return []
    lexer = shlex.shlex(command.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.commenters = ""
    parts: list[tuple[str, list[str]]] = [("", [])]
    try:
        for token in lexer:
            if token in _SEPARATORS:
                parts.append((token, []))
            elif token in _COMPOUND and not parts[-1][1]:
                return []
            else:
                parts[-1][1].append(token)
    except ValueError:
        return []
    return [part for part in parts if part[1]]


def _name(words: list[str]) -> str | None:
    """The program of a simple command, with git's own command after it."""
    rest = list(words)
    while rest and (_ASSIGNMENT.match(rest[0]) or rest[0] in _WRAPPERS):
        rest.pop(0)
    if not rest:
        return None
    name = rest[0].rsplit("/", 1)[-1]
    return f"git {rest[1]}" if name == "git" and len(rest) > 1 else name
