"""`complete`: what a shell asks while somebody types: answers fast, runs no plugin, and never says a word beside it."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from mibyan.cli import choices
from mibyan.cli.choices import Asked, Choice
from mibyan.cli.commands import COMMANDS
from mibyan.cli.declaring import Argument, Command, Group, Option
from mibyan.cli.invocation import Invocation
from mibyan.cli.options import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Set by the scripts of `mibyan completion`: the shell that asks; the words typed so far are the arguments.
VARIABLE: Final = "_MIBYAN_COMPLETE"

#: A line of its own: the shell shall complete names of files, or of folders.
_FILES: Final = {"file": ":files", "dir": ":dirs"}
#: Characters of a description.
_LIMIT: Final = 80


def complete(words: Sequence[str]) -> int:
    """Print what the last of `words` may become: a line each, `value<TAB>description`; nothing if that can't be told.

    Args:
        words: The words after the program's name, as the shell has them; the last one is being typed.
    """
    stream, descriptor = sys.stdout, os.open(os.devnull, os.O_RDWR)
    try:
        sys.stderr = sys.stdout = open(descriptor, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - the process ends here
        typed = [_unquoted(word) for word in _rejoined(words)]
        lines = list(_lines(typed, whole=os.environ.get(VARIABLE) != "bash"))
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
        stream.buffer.write(data)
        stream.flush()
    except KeyboardInterrupt:
        return 130
    except BaseException:
        return 0  # somebody is typing: nothing to complete is the only answer that doesn't disturb
    return 0


def _lines(words: Sequence[str], *, whole: bool) -> Iterator[str]:
    """A line for each completion; with `whole` of the word as it stands, else of what is behind its `=`."""
    last = words[-1] if words else ""
    option, sign, _ = last.partition("=")
    prefix = f"{option}{sign}" if whole and sign and option.startswith("--") else ""
    for item in items(words[:-1], last, told=whole):
        if item.kind in _FILES:
            yield _FILES[item.kind]
        else:
            yield f"{prefix}{item.value}\t{_told(item.help)}".rstrip("\t")


def items(before: Sequence[str], typed: str, *, told: bool = True) -> list[Choice]:
    """What the word `typed` may become.

    Args:
        before: The words in front of it, without the program's name.
        typed: The word that is being typed.
        told: Whether commands are wanted with their help, for which they have to be imported.
    """
    line = Line()
    for word in before:
        line.take(word)
    return _by_click(before, typed) if line.is_clicks else line.choices(typed, told=told)


def _by_click(before: Sequence[str], typed: str) -> list[Choice]:
    """The same for commands that are click's own."""
    from click.shell_completion import ShellComplete

    from mibyan.cli.root import root

    found = ShellComplete(root, {}, "mibyan", VARIABLE).get_completions(list(before), typed)
    return [Choice(item.value, item.help or "", item.type) for item in found]


class Line:
    """The words that are typed already, read by the commands' declarations; whatever is wrong with them is no matter."""

    def __init__(self) -> None:
        self.invocation = Invocation()
        #: What the words name so far; `None`: nothing yet.
        self._found: Group | Command | None = None
        #: Whether a word names what there isn't: then nothing can be completed behind it.
        self._lost = False
        #: Whether a word names a command that is click's own.
        self.is_clicks = False
        #: The option whose value comes next.
        self._open: Option | None = None
        self._used: set[str] = set()
        self._values: dict[str, Any] = {}

    def take(self, word: str) -> None:
        """Go past a word."""
        if self._open is not None:
            self._keep(self._open, word)
            self._open = None
        elif word.startswith("-") and word != "-":
            flag, has_value, value = word.partition("=")
            option = self._option(flag)
            if option is None:
                return
            self._used.add(flag)
            if option.metavar is None or has_value:
                self._keep(option, value if has_value else True)
            else:
                self._open = option
        elif isinstance(self._found, Command):
            self._argue(word)
        else:
            self._found = self._below(word)
            self._lost |= self._found is None

    def choices(self, typed: str, *, told: bool) -> list[Choice]:
        """What the next word may be; with `told` commands have their help."""
        if self._lost:
            return []
        if self._open is not None:
            return self._chosen(self._open.choices, typed)
        flag, has_value, value = typed.partition("=")
        if typed.startswith("-") and has_value:
            option = self._option(flag)
            return [] if option is None else self._chosen(option.choices, value)
        if typed.startswith("-"):
            return [Choice(one.flag, one.help) for one in self._options() if one.flag.startswith(typed)]
        if isinstance(self._found, Command):
            argument = self._next_argument()
            return [] if argument is None else self._chosen(argument.choices, typed)
        names = COMMANDS if self._found is None else self._found.commands
        found = [Choice(name, _short(self._below(name)) if told else "") for name in names if name.startswith(typed)]
        return [*found, *self._chosen("added_commands", typed)] if self._found is None else found

    def _below(self, name: str) -> Group | Command | None:
        if isinstance(self._found, Group):
            return self._found.commands.get(name)
        module, _, attribute = COMMANDS.get(name, "").partition(":")
        found = getattr(import_module(module), attribute) if module else None
        self.is_clicks |= found is not None and not isinstance(found, Group | Command)
        return found if isinstance(found, Group | Command) else None

    def _own(self) -> list[Option]:
        parameters = self._found.parameters if isinstance(self._found, Command) else ()
        return [one for one in parameters if isinstance(one, Option)]

    def _options(self) -> list[Option]:
        """The options that may still come: the command's own, then those of `mibyan`, then its help."""
        every = [*self._own(), *OPTIONS, Option("--help", "help", "Show what there is, and exit.")]
        return [one for one in every if one.multiple or one.flag not in self._used]

    def _option(self, flag: str) -> Option | None:
        return next((one for one in (*self._own(), *OPTIONS) if one.flag == flag), None)

    def _keep(self, option: Option, value: Any) -> None:
        if option in OPTIONS:
            self.invocation.options.keep(option.name, (value,) if option.multiple else value)

    def _argue(self, word: str) -> None:
        argument = self._next_argument()
        if argument is not None and argument.rest:
            self._values[argument.name] = (*self._values.get(argument.name, ()), word)
        elif argument is not None:
            self._values[argument.name] = word

    def _next_argument(self) -> Argument | None:
        parameters = self._found.parameters if isinstance(self._found, Command) else ()
        arguments = (one for one in parameters if isinstance(one, Argument))
        return next((one for one in arguments if one.rest or one.name not in self._values), None)

    def _chosen(self, kind: str, typed: str) -> list[Choice]:
        found: list[Choice] = getattr(choices, kind)(Asked(self.invocation, self._values, typed)) if kind else []
        return found


def _short(what: Group | Command | None) -> str:
    """The first sentence of a command's help."""
    text = what.text if isinstance(what, Group) else (what.body.__doc__ or "") if what is not None else ""
    return " ".join(text.strip().partition("\n\n")[0].split())


def _told(text: str | None) -> str:
    """A description on one line, without what could play tricks on a terminal."""
    from mibyan.text import one_line

    return one_line(text, _LIMIT) if text else ""


def _rejoined(words: Sequence[str]) -> list[str]:
    """The words as they will be: bash takes `--home=x` apart at the sign."""
    joined: list[str] = []
    glue = False
    for word in words:
        if glue or (word == "=" and joined and joined[-1].startswith("--")):
            joined[-1] += word
            glue = word == "=" and not glue
        else:
            joined.append(word)
    return joined


def _unquoted(word: str) -> str:
    """A word without the quotes that the shell would take away; one that isn't closed yet counts as closed."""
    if not set(word) & set("'\"\\"):
        return word
    import shlex

    for end in ("", '"', "'"):
        try:
            return "".join(shlex.split(word.removesuffix("\\") + end, posix=True))
        except ValueError:
            continue
    return word
