"""Ordinary words of the command line, read by the commands' declarations alone: click isn't imported.

What is read here is read exactly as click reads it. Whatever isn't plain is left to click, which has the words for it:
help, mistakes, abbreviations, empty words, `--`, values that begin with a dash, commands that are click's own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mibyan.cli.commands import COMMANDS
from mibyan.cli.declaring import Argument, Command, Group, Option
from mibyan.cli.exits import UsageError
from mibyan.cli.options import OPTIONS
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mibyan.cli.options import Options

#: The options of `mibyan` by their flags.
_COMMON = {option.flag: option for option in OPTIONS}


@record(eq=False)
class Reading:
    """What words ask for."""

    command: Command
    #: The words that name the command, `mibyan` first.
    path: str
    #: The arguments of the command's body.
    values: dict[str, Any]


class _NotPlainError(Exception):
    """This is for click."""


def read(words: Sequence[str], options: Options) -> Reading | None:
    """What words ask for; `None` if click has to read them.

    Args:
        words: The words after the program's name.
        options: Filled with what the options of `mibyan` say; not to be used if `None` is returned.
    """
    try:
        return _read(iter(words), options)
    except (_NotPlainError, UsageError):
        return None


def _read(words: Iterator[str], options: Options) -> Reading:
    path, found = ["mibyan"], None
    while not isinstance(found, Command):
        word = _next_name(words, options)
        found = _top(word) if found is None else found.commands.get(word)
        if not isinstance(found, Group | Command):
            raise _NotPlainError
        path.append(word)
    own = {one.flag: one for one in found.parameters if isinstance(one, Option)}
    given: dict[str, Any] = {}
    plain: list[str] = []
    for word in words:
        if found.raw and _is_others(word, own):
            plain.append(word)
        elif word.startswith("-") and word != "-":
            _take(word, words, own, options, given)
        else:
            plain.append(_filled(word))
    return Reading(found, " ".join(path), {**_arguments(found, plain), **_converted(own, given)})


def _top(name: str) -> Any:
    """A command that stands directly below `mibyan`."""
    module, _, attribute = COMMANDS.get(name, "").partition(":")
    return getattr(import_module(module), attribute) if module else None


def _next_name(words: Iterator[str], options: Options) -> str:
    """The next word that isn't an option of `mibyan`."""
    for word in words:
        if not word.startswith("-"):
            return word
        _take(word, words, {}, options, {})
    raise _NotPlainError


def _take(
    word: str, words: Iterator[str], own: dict[str, Option], options: Options, given: dict[str, Any]
) -> None:  # fmt: skip
    """Read an option and its value: one of the command's own into `given`, one of `mibyan` into `options`."""
    flag, has_value, value = word.partition("=")
    option = own.get(flag) or _COMMON.get(flag)
    if option is None or (has_value and option.metavar is None):
        raise _NotPlainError
    read: Any = True
    if option.metavar is not None:
        read = _filled(value if has_value else next(words, "-"), is_value=True)
        read = (read,) if option.multiple else read
    if option is not own.get(flag):
        options.keep(option.name, read)
    elif option.multiple:
        given[option.name] = given.get(option.name, ()) + read
    else:
        given[option.name] = read


def _is_others(word: str, own: dict[str, Option]) -> bool:
    """Whether a word looks like an option, and isn't one of the command's own, nor of `mibyan`, nor of click."""
    flag = word.partition("=")[0]
    if not word.startswith("-") or word in {"-", "--"} or flag in own or flag in _COMMON:
        return False
    if flag == "--help" or (word[1] != "-" and "h" in word):
        raise _NotPlainError
    return True


def _filled(word: str, *, is_value: bool = False) -> str:
    """A word that means itself."""
    if not word or (is_value and word.startswith("-")):
        raise _NotPlainError
    return word


def _arguments(command: Command, plain: list[str]) -> dict[str, Any]:
    """The words by the arguments they are."""
    values: dict[str, Any] = {}
    for one in command.parameters:
        if not isinstance(one, Argument):
            continue
        if one.rest:
            values[one.name], plain = tuple(plain), []
        elif plain:
            values[one.name] = plain.pop(0)
        else:
            raise _NotPlainError
    if plain:
        raise _NotPlainError
    return values


def _converted(own: dict[str, Option], given: dict[str, Any]) -> dict[str, Any]:
    """The value of each option, given or not."""
    values: dict[str, Any] = {}
    for option in own.values():
        value = given.get(option.name, () if option.multiple else option.nothing)
        values[option.name] = value if option.convert is None else option.convert(value)
    return values
