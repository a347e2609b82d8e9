"""Programs that run a command for each thing that is found or read: `find`, `fd`, `xargs`, `parallel`."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals.code import Code, words_as_code
from mibyan.approvals.paths import loses_machine
from mibyan.approvals.shell.options import Options
from mibyan.approvals.shell.values import NOTHING, UNKNOWN, Arg, as_code

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mibyan.approvals.shell.call import Call

#: Lines of input of which each is looked at.
_MOST_LINES: Final = 16


def _xargs(call: Call) -> list[Call | Code]:
    """The command with the words of its input, as far as they are known."""
    valued = (
        *tuple("aEeIiLlnPsd"),
        "arg-file",
        "delimiter",
        "max-args",
        "max-procs",
        "replace",
        "max-lines",
        "max-chars",
    )
    options = Options(call.args[1:], valued, mixed=False)
    words = options.operands or [Arg("echo", span=call.span)]
    text = call.stdin.text if not options.has("a", "arg-file") else None
    given = [Arg(UNKNOWN, span=call.span, origins=call.stdin.origins)]
    if text is not None and UNKNOWN not in text and len(text) < 10_000:
        words_of = [text.rstrip("\n")] if options.has("0", "null") else re.split(r"[\s\0]+", text)
        given = [Arg(word, span=call.span, origins=call.stdin.origins) for word in words_of if word]
    replaced = options.value("I", "replace") or ("{}" if options.has("i", "I", "replace") else None)
    if not replaced:
        return [call.inner([*words, *given], stdin=NOTHING)]
    lines = [line.strip() for line in (text or "").split("\n") if line.strip()]
    known = text is not None and UNKNOWN not in text
    values = lines if known and 0 < len(lines) <= _MOST_LINES else [UNKNOWN]
    return [call.inner([_put(word, replaced, value, given) for word in words], stdin=NOTHING) for value in values]


def _put(word: Arg, mark: str, value: str, given: Sequence[Arg]) -> Arg:
    if mark not in word.text:
        return word
    origins = word.origins.union(*(arg.origins for arg in given))
    return Arg(word.text.replace(mark, value), frozenset(), word.span, origins)


def _parallel(call: Call) -> list[Call | Code]:
    args = list(call.args[1:])
    cut = next((index for index, arg in enumerate(args) if arg.text.startswith(":::")), None)
    values = [] if cut is None else [arg for arg in args[cut + 1 :] if not arg.text.startswith(":::")]
    valued = (
        "j",
        "n",
        "N",
        "a",
        "d",
        "S",
        "I",
        "P",
        "jobs",
        "delay",
        "timeout",
        "joblog",
        "results",
        "colsep",
        "max-args",
        "arg-file",
    )
    command = Options(args if cut is None else args[:cut], valued, mixed=False).operands
    if not command:
        found: list[Call | Code] = [Code(as_code(arg.text), call.inner(call.args), arg.span) for arg in values]
        if cut is None and call.stdin.given:
            found.append(Code(as_code(call.stdin.text or UNKNOWN), call.inner(call.args), call.span))
        return found
    if cut is None and call.stdin.text and UNKNOWN not in call.stdin.text and len(call.stdin.text) < 10_000:
        values = [Arg(line, span=call.span, origins=call.stdin.origins) for line in call.stdin.text.split("\n") if line]
    text = values[0].text if len(values) == 1 else UNKNOWN
    words = [_put(word, "{}", text, values) for word in command]
    if words == command:
        words = [*command, *(values or [Arg(UNKNOWN, span=call.span, origins=call.stdin.origins)])]
    return (
        words_as_code(call, words)
        if len(command) == 1 and " " in command[0].text
        else [call.inner(words, stdin=NOTHING)]
    )


def _find(call: Call) -> list[Call | Code]:
    """The commands of `-exec` and its like; `{}` is what is found, from where it begins on."""
    found: list[Call | Code] = []
    args = list(call.args[1:])
    starts = find_starts(call)
    index = 0
    while index < len(args):
        if args[index].text not in {"-exec", "-execdir", "-ok", "-okdir"}:
            index += 1
            continue
        end = next(
            (i for i in range(index + 1, len(args)) if args[i].text == ";" or (args[i].text == "+" and args[i - 1].text == "{}")),
            len(args),
        )  # fmt: skip
        everything = (
            len(starts) == 1 and not is_narrowed(args[:index]) and loses_machine(starts[0], call.scope, found=True)
        )
        value = starts[0].text if everything else UNKNOWN
        words = [_put(arg, "{}", value, ()) for arg in args[index + 1 : end]]
        if words:
            found.append(call.inner(words))
        index = end + 1
    return found


def find_starts(call: Call) -> list[Arg]:
    """Where `find` begins."""
    args = [arg for arg in call.args[1:] if arg.text not in {"-H", "-L", "-P"}]
    ends = (index for index, arg in enumerate(args) if arg.text.startswith(("-", "(", "!")) or arg.text == ",")
    return args[: next(ends, len(args))] or [Arg(".", span=call.span)]


def is_narrowed(args: Sequence[Arg]) -> bool:
    """Whether a search looks for some things only."""
    return any(
        arg.text.startswith(("-name", "-iname", "-path", "-regex", "-newer", "-mtime", "-size", "-maxdepth"))
        and not (following is not None and following.text in {"*", ".*", "**", "0"})
        for arg, following in itertools.pairwise((*args, None))
        if arg is not None
    )


def _fd(call: Call) -> list[Call | Code]:
    args = list(call.args[1:])
    marks = {"-x", "-X", "--exec", "--exec-batch"}
    index = next((index for index, arg in enumerate(args) if arg.text in marks), None)
    if index is None or index + 1 >= len(args):
        return []
    words = [_put(arg, "{}", UNKNOWN, ()) for arg in args[index + 1 :] if arg.text != ";"]
    return [call.inner([*words, Arg(UNKNOWN, span=call.span)] if words == args[index + 1 :] else words)]


SEARCHERS: Final[dict[str, Callable[[Call], list[Call | Code]]]] = {
    "xargs": _xargs, "gxargs": _xargs, "parallel": _parallel, "find": _find, "gfind": _find, "fd": _fd, "fdfind": _fd,
}  # fmt: skip
