"""The options of `mibyan` itself: accepted before, after and between the words of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Callable


@record(frozen=False)
class Options:
    """What the options of `mibyan` said; filled while the words are read."""

    home: str | None = None
    project: str | None = None
    safe_mode: bool = False
    strict: bool = False
    locked: bool = False
    plugins: tuple[str, ...] = ()
    no_plugins: tuple[str, ...] = ()
    trace: str | None = None
    as_json: bool = False
    debug: bool = False


def _keep(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """What puts an option's value into the `Options` of this run; lists grow, of other values the last one counts."""

    def keep(context: click.Context, _parameter: click.Parameter, value: Any) -> None:
        if value is None or value is False or value == ():
            return
        options = options_of(context)
        before = getattr(options, name)
        setattr(options, name, before + value if isinstance(value, tuple) else value)

    return keep


def options_of(context: click.Context) -> Options:
    """The options of the run that a context belongs to."""
    from mibyan.cli.invocation import Invocation

    root = context.find_root()
    if not isinstance(root.obj, Invocation):
        root.obj = Invocation()
    return root.obj.options


def completed(kind: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """What a parameter's value is completed to.

    Args:
        kind: The name of a function of `mibyan.cli.choices`, which is imported when a shell asks.
    """

    def complete(context: click.Context, parameter: click.Parameter, typed: str) -> list[Any]:
        from mibyan.cli import choices

        found: list[Any] = getattr(choices, kind)(context, parameter, typed)
        return found

    return complete


#: Name in `Options`, the flag, its metavar (`None`: it has no value), and what it does.
_TABLE: Final = (
    ("home", "--home", "DIR", "The profile's folder, instead of $MIBYAN_HOME or ~/.mibyan."),
    ("project", "--project", "DIR", "The project's folder, instead of the nearest one above that has .mibyan/."),
    ("safe_mode", "--safe-mode", None, "Load built-in plugins only."),
    ("strict", "--strict", None, "End with 3 if a plugin isn't ready or a toolset's name is unknown."),
    ("locked", "--locked", None, "Refuse what differs from mibyan.lock."),
    ("plugins", "--plugin", "ID", "Load this plugin too (an id, a module, or no:ID). May be repeated."),
    ("no_plugins", "--no-plugin", "ID", "Don't load this plugin. May be repeated."),
    ("trace", "--trace", "FILE", "Append what happens in a call to FILE, a JSON line for each step."),
    ("as_json", "--json", None, "Print one JSON document."),
    ("debug", "--debug", None, "Show tracebacks and all log records."),
)  # fmt: skip
_REPEATED: Final = frozenset({"plugins", "no_plugins"})


#: What a shell completes their values to.
_CHOICES: Final = {"home": "directories", "project": "directories", "plugins": "plugins", "no_plugins": "plugins",
                   "trace": "files"}  # fmt: skip


def _make(*, hidden: bool) -> tuple[click.Option, ...]:
    return tuple(
        click.Option(
            # A name that no command's own option can have.
            [flag, f"mibyan_{name}"], metavar=metavar, help=text, hidden=hidden, expose_value=False,
            is_flag=True if metavar is None else None, multiple=name in _REPEATED, callback=_keep(name),
            shell_complete=completed(_CHOICES[name]) if name in _CHOICES else None,
        )
        for name, flag, metavar, text in _TABLE
    )  # fmt: skip


#: The options as `mibyan` itself has them.
SHOWN: Final = _make(hidden=False)
#: The same options for commands, whose help doesn't repeat them.
HIDDEN: Final = _make(hidden=True)
