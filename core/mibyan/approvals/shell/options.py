"""`Options`: the options and operands among a command's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mibyan.approvals.shell.values import Arg

#: Letters of a long option that it may be abbreviated to.
_SHORTEST = 2


class Options:
    """A command's words, read as getopt reads them.

    Args:
        args: The words after the command's name.
        valued: The options that have a value: letters, and long ones such as `--signal`.
        mixed: Whether options may come after operands.
        single: Whether a word with one dash is one option, such as `-delete`.
    """

    def __init__(
        self, args: Sequence[Arg], valued: Iterable[str] = (), *, mixed: bool = True, single: bool = False
    ) -> None:
        letters = {name for name in valued if len(name) == 1}
        longs = {name.lstrip("-") for name in valued if len(name) > 1}
        self.given: list[tuple[str, Arg | None]] = []
        self.operands: list[Arg] = []
        #: What stands after `--`, and where the operands begin among the words.
        self.start = len(args)
        index = 0
        while index < len(args):
            arg = args[index]
            text = arg.text
            index += 1
            if text == "--":
                self._operands(args[index:], index)
                return
            if not text.startswith("-") or text == "-":
                self._operands([arg], index - 1)
                if not mixed:
                    self._operands(args[index:], index)
                    return
            elif text.startswith("--") or single:
                name, equals, _ = text.lstrip("-").partition("=")
                value = arg.after(text[: text.index("=") + 1]) if equals else None
                if not equals and index < len(args) and _is_one_of(name, longs):
                    value, index = args[index], index + 1
                # `--s` is no `-s`.
                self.given.append((name if len(name) > 1 or single else f"--{name}", value))
            else:
                index = self._cluster(arg, letters, args, index)

    def _operands(self, args: Iterable[Arg], index: int) -> None:
        self.start = min(self.start, index)
        self.operands += args

    def _cluster(self, arg: Arg, letters: set[str], args: Sequence[Arg], index: int) -> int:
        for position in range(1, len(arg.text)):
            letter = arg.text[position]
            if letter not in letters:
                self.given.append((letter, None))
                continue
            rest = arg.after(arg.text[: position + 1])
            if rest.text:
                self.given.append((letter, rest))
            elif index < len(args):
                self.given.append((letter, args[index]))
                index += 1
            else:
                self.given.append((letter, None))
            break
        return index

    def has(self, *names: str) -> bool:
        """Whether one of some options is given; long ones may be abbreviated."""
        return any(means(given, name) for given, _ in self.given for name in names)

    def values(self, *names: str) -> list[Arg]:
        """The values of options."""
        return [value for given, value in self.given if value is not None and any(means(given, name) for name in names)]

    def value(self, *names: str) -> str | None:
        """The text of the last value of an option."""
        found = self.values(*names)
        return found[-1].text if found else None


def _is_one_of(given: str, names: set[str]) -> bool:
    return bool(given) and any(name.startswith(given) for name in names)


def means(given: str, name: str) -> bool:
    """Whether a given option is one of that name, perhaps abbreviated."""
    if given.startswith("--"):
        return len(name) > 1 and name.startswith(given[2:])
    return given == name or (len(given) >= _SHORTEST and len(name) > 1 and name.startswith(given))


def asks_for_help(args: Sequence[Arg], *, anywhere: bool) -> bool:
    """Whether a command only tells about itself: `--help` or `--version` before `--`, and before any operand.

    Args:
        args: The words after the command's name.
        anywhere: Whether it counts after operands too, as for commands that have commands.
    """
    for arg in args:
        if arg.text in {"--help", "--version"}:
            return True
        if arg.text == "--" or not (anywhere or arg.text.startswith("-")):
            return False
    return False
