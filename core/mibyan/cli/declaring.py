"""Commands as data: what each takes and what it does, said in click's manner without click.

Importing click takes longer than most commands. So `mibyan.cli.reading` reads ordinary words by these declarations
alone; for help, mistakes and whatever else is out of the ordinary `mibyan.cli.framework` makes click's commands of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mibyan.cli.invocation import Invocation

    Body: TypeAlias = Callable[..., Any]
    Decorator: TypeAlias = Callable[[Body], Body]


@record(eq=False)
class Option:
    """An option of a command."""

    #: `--enable`.
    flag: str
    #: The name of the body's argument.
    name: str
    help: str = ""
    #: What its value is called; `None`: it has none, it is there or not.
    metavar: str | None = None
    multiple: bool = False
    default: str | None = None
    #: What a shell completes its value to: a function of `mibyan.cli.choices`.
    choices: str = ""
    #: Makes the body's value of what was given (`None`, or an empty tuple, if nothing was).
    convert: Callable[[Any], Any] | None = None

    @property
    def nothing(self) -> str | bool | None:
        """What it is when it isn't given (once)."""
        return False if self.metavar is None else self.default


@record(eq=False)
class Argument:
    """A word of a command."""

    name: str
    #: Whether it is all the words that are left.
    rest: bool = False
    metavar: str | None = None
    #: What a shell completes it to: a function of `mibyan.cli.choices`.
    choices: str = ""


@record(eq=False)
class Command:
    """A command: `body(invocation, **values)` gives its exit code (`None`: 0)."""

    name: str
    body: Body
    parameters: tuple[Option | Argument, ...] = ()
    #: Whether its answer holds until something changes of what there is, so that it may be kept (`mibyan.cli.answers`).
    lasting: bool = False
    #: Whether words that look like options, and are neither its own nor `mibyan`'s, are words of its argument.
    raw: bool = False

    def run(self, invocation: Invocation, values: Mapping[str, Any]) -> Any:
        """Do it; what other code prints meanwhile isn't data."""
        with invocation.out.apart():
            return self.body(invocation, **values)


class Group:
    """Commands below a name; its decorator `command` adds one.

    Args:
        name: Its name.
        text: What it is for.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.commands: dict[str, Command] = {}

    def command(self, name: str, *, lasting: bool = False, raw: bool = False) -> Callable[[Body], Command]:
        """Make a function the body of a command of this group."""

        def add(body: Body) -> Command:
            made = self.commands[name] = command(name, lasting=lasting, raw=raw)(body)
            return made

        return add


def group(name: str) -> Callable[[Body], Group]:
    """Make a group; the function's docstring says what it is for, it never runs."""
    return lambda body: Group(name, body.__doc__ or "")


def command(name: str, *, lasting: bool = False, raw: bool = False) -> Callable[[Body], Command]:
    """Make a function the body of a command; its docstring is the help."""

    def make(body: Body) -> Command:
        return Command(name, body, tuple(reversed(vars(body).pop("parameters", ()))), lasting, raw)

    return make


def option(
    flag: str, name: str = "", *, help: str, metavar: str | None = None, multiple: bool = False,  # noqa: A002 - click's name
    default: str | None = None, choices: str = "", convert: Callable[[Any], Any] | None = None,
) -> Decorator:  # fmt: skip
    """Give a command an option; see `Option`."""
    name = name or flag.lstrip("-").replace("-", "_")
    return _adding(Option(flag, name, help, metavar, multiple, default, choices, convert))


def argument(name: str, *, rest: bool = False, metavar: str | None = None, choices: str = "") -> Decorator:
    """Give a command a word; see `Argument`."""
    return _adding(Argument(name, rest, metavar, choices))


def _adding(parameter: Option | Argument) -> Decorator:
    def add(body: Body) -> Body:
        vars(body).setdefault("parameters", []).append(parameter)
        return body

    return add
