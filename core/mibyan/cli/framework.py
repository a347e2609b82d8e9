"""`Command` and `Group`: click's, with the options of `mibyan` everywhere, and a suggestion for what isn't there.

`of_click` makes them of what `mibyan.cli.declaring` declares.
"""

from __future__ import annotations

from importlib import import_module
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Final

import click

from mibyan.cli import declaring
from mibyan.cli.exits import UsageError
from mibyan.cli.invocation import Invocation
from mibyan.cli.options import OPTIONS
from mibyan.text import one_line, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_EPILOG = "The options of mibyan itself are accepted here too: mibyan --help."


#: Characters that a first sentence has at most.
_SENTENCE: Final = 400


class MissingCommand(click.UsageError):
    """A group was named without one of its commands."""


def _show_help(context: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's way
    """Print the help, however standard output is doing, and end."""
    if value and not context.resilient_parsing:
        context.find_root().ensure_object(Invocation).out.line(context.get_help())
        context.exit()


class _Helpful(click.Command):
    """A command whose help goes where its data goes."""

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """`-h` and `--help`, whatever context asks first: click keeps the option with the command."""
        del ctx
        return ["-h", "--help"]

    def get_short_help_str(self, limit: int = 45) -> str:
        """The first sentence, whole: a table of commands wraps it."""
        return super().get_short_help_str(max(limit, _SENTENCE))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """What may come next, the options of `mibyan` itself too, which its commands' help doesn't repeat."""
        found = super().shell_complete(ctx, incomplete)
        known = {item.value for item in found}
        if incomplete.startswith("-"):
            from click.shell_completion import CompletionItem

            names = {name: option.help for option in SHOWN for name in option.opts if name not in known}
            found += [CompletionItem(name, help=told) for name, told in names.items() if name.startswith(incomplete)]
        return found

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """`--help`."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _show_help
        return option


def _common_options(*, hidden: bool) -> tuple[click.Option, ...]:
    """The options of `mibyan` itself."""
    return tuple(
        click.Option(
            # A name that no command's own option can have.
            [one.flag, f"mibyan_{one.name}"], metavar=one.metavar, help=one.help, hidden=hidden, expose_value=False,
            is_eager=True,  # the help, which is eager too, tells the plugins of --home DIR
            is_flag=True if one.metavar is None else None, multiple=one.multiple, callback=_keep(one.name),
            shell_complete=completed(one.choices) if one.choices else None,
        )
        for one in OPTIONS
    )  # fmt: skip


def _keep(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """What puts an option's value into the `Options` of this run."""

    def keep(context: click.Context, _parameter: click.Parameter, value: Any) -> None:
        context.find_root().ensure_object(Invocation).options.keep(name, value)

    return keep


def completed(kind: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """What a parameter's value is completed to.

    Args:
        kind: The name of a function of `mibyan.cli.choices`, which is imported when a shell asks.
    """

    def complete(context: click.Context, parameter: click.Parameter, typed: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        from mibyan.cli import choices

        del parameter
        asked = choices.Asked(context.find_root().ensure_object(Invocation), context.params, typed)
        return [CompletionItem(one.value, one.kind, one.help or None) for one in getattr(choices, kind)(asked)]

    return complete


#: The options as `mibyan` itself has them.
SHOWN = _common_options(hidden=False)
#: The same options for commands, whose help doesn't repeat them.
HIDDEN = _common_options(hidden=True)


class Command(_Helpful):
    """A command that takes the options of `mibyan` beside its own and returns its exit code (`None`: 0)."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        settings.setdefault("epilog", _EPILOG)
        super().__init__(*args, **settings)
        self.params = [*self.params, *HIDDEN]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what other code prints meanwhile isn't data."""
        invocation = ctx.find_root().ensure_object(Invocation)
        with invocation.out.apart():
            return super().invoke(ctx)


class Group(_Helpful, click.Group):
    """A group whose commands are imported when they are needed.

    Args:
        lazy: Where each command is, as `module:attribute`, in the order of the help.
        is_root: Whether it is `mibyan` itself, whose help tells its options.
    """

    command_class = Command

    def __init__(
        self, *args: Any, lazy: Mapping[str, str] | None = None, is_root: bool = False, **settings: Any
    ) -> None:
        settings.setdefault("no_args_is_help", False)
        settings.setdefault("epilog", None if is_root else _EPILOG)
        super().__init__(*args, **settings)
        self.params = [*self.params, *(SHOWN if is_root else HIDDEN)]
        self._lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order they were given."""
        del ctx
        return [*self._lazy, *self.commands]

    def known_names(self, ctx: click.Context) -> list[str]:
        """The names among which an unknown one's neighbour is looked for."""
        return self.list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, imported now."""
        where = self._lazy.get(cmd_name)
        if where is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = where.partition(":")
        return of_click(getattr(import_module(module), attribute))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant.

        Raises:
            click.UsageError: There is none, with the one that was probably meant.
        """
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            names = self.known_names(ctx)
            meant = suggest(name, names)
            hint = f" Did you mean {meant!r}?" if meant else f" There are: {', '.join(names)}."
            raise click.UsageError(f"No such command {one_line(name, 60)!r}.{hint}", ctx)
        if ctx.resilient_parsing and self.get_command(ctx, name) is None:
            return name, click.Command(name, add_help_option=False), []  # there is nothing to complete behind it
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named.

        Raises:
            MissingCommand: None was.
        """
        # click 8.1 calls it protected_args; 8.2 hides it and complains about who asks for it by that name.
        held = vars(ctx).get("_protected_args") or vars(ctx).get("protected_args") or []
        words = [*held, *ctx.args]
        if not words:
            raise MissingCommand(ctx.get_help(), ctx)
        return super().invoke(ctx)


def of_click(what: Any) -> click.Command:
    """Click's command or group of a declared one; what is click's already stays as it is."""
    if isinstance(what, declaring.Group):
        made = Group(what.name, help=cleandoc(what.text))
        for one in what.commands.values():
            made.add_command(of_click(one))
        return made
    return _Declared(what) if isinstance(what, declaring.Command) else what


class _Declared(Command):
    """A declared command."""

    def __init__(self, declared: declaring.Command) -> None:
        super().__init__(
            declared.name, params=[_parameter(one, raw=declared.raw) for one in declared.parameters],
            help=cleandoc(declared.body.__doc__ or ""), context_settings={"ignore_unknown_options": declared.raw},
        )  # fmt: skip
        self._declared = declared

    def invoke(self, ctx: click.Context) -> Any:
        """Run the declared command."""
        try:
            return self._declared.run(ctx.find_root().ensure_object(Invocation), ctx.params)
        except UsageError as error:
            raise click.UsageError(error.message, ctx) from error


def _parameter(one: declaring.Option | declaring.Argument, *, raw: bool) -> click.Parameter:
    """Click's parameter of a declared one."""
    if isinstance(one, declaring.Argument):
        return click.Argument(
            [one.name],
            nargs=-1 if one.rest else 1,
            type=click.UNPROCESSED if raw else None,
            metavar=one.metavar,
            shell_complete=completed(one.choices) if one.choices else None,
        )
    return click.Option(
        [one.flag, one.name], metavar=one.metavar, help=one.help, is_flag=True if one.metavar is None else None,
        multiple=one.multiple, default=one.nothing, show_default=one.default is not None,
        callback=None if one.convert is None else _converting(one.convert),
        shell_complete=completed(one.choices) if one.choices else None,
    )  # fmt: skip


def _converting(convert: Callable[[Any], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def callback(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        try:
            return convert(value)
        except UsageError as error:
            raise click.BadParameter(error.message, context, parameter) from error

    return callback
