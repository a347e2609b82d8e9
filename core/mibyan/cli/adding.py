"""Commands that plugins add to the command line with `mibyan_cli(group)`: found by their manifests, run as the plugins made them."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

import click

from mibyan.cli import exits
from mibyan.cli.commanding import tell_raised
from mibyan.cli.invocation import Invocation
from mibyan.cli.loaded import enforce_strictness, loaded
from mibyan.cli.output import say
from mibyan.errors import MibyanError, PluginError
from mibyan.plugins.state import standing
from mibyan.report import Decision
from mibyan.text import describe_exception, one_line
from mibyan.tools.current import acting_as

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.plugins.foreseen import Foreseen, ForeseenCommand
    from mibyan.plugins.offers import Offer
    from mibyan.runtime import Runtime

_FAULTS = (click.exceptions.Exit, click.ClickException, click.Abort, SystemExit, BrokenPipeError)


def added(found: Foreseen, name: str) -> click.Command | None:
    """The command that a plugin adds under a name; its plugin is imported when it runs."""
    one = found.cli.get(name) or found.closed_cli.get(name)
    return None if one is None else _Added(one)


class _Added(click.Command):
    """Stands for a plugin's command until that is needed: takes every word as it is."""

    def __init__(self, one: ForeseenCommand) -> None:
        super().__init__(one.name, help=one.description, add_help_option=False)
        self._one = one

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave the words to the plugin's own command."""
        ctx.args = list(args)
        return ctx.args

    def invoke(self, ctx: click.Context) -> int:
        """Run the plugin's own command; the exit code."""
        return run_added(ctx.find_root().ensure_object(Invocation), self._one, ctx.args)


def run_added(invocation: Invocation, one: ForeseenCommand, words: Sequence[str]) -> int:
    """Import the plugin and run its command.

    Args:
        invocation: This run of the command line.
        one: The command.
        words: The words behind its name.

    Returns:
        What the command ends with (`ctx.exit(n)`, `sys.exit(n)`), 1 if it raises.

    Raises:
        UsageError: It doesn't understand the words.
        RefusedError: The plugin can't be used.
        KeyboardInterrupt: It came meanwhile.
    """
    with invocation.runtime() as runtime:
        with invocation.out.apart():
            loaded(invocation, runtime)
            enforce_strictness(invocation, runtime)
            offer = _offer(runtime, one)
            made = _made(invocation, runtime, offer)
        return exits.FAILED if made is None else _run(invocation, runtime, offer, made, words)


def _offer(runtime: Runtime, one: ForeseenCommand) -> Offer:
    """The plugin's offer, its code imported.

    Raises:
        RefusedError: It can't be used.
    """
    offer = runtime.plugins.offers.cli.get(one.name)
    if offer is None:
        record = runtime.plugins.get(one.plugin.id)
        raise exits.RefusedError(
            f"{one.name} is a command of plugin {record.id}, which {standing(record.state, record.reason)}",
            hint=record.hint,
        )
    try:
        runtime.plugins.activate(offer.owner.id)
    except PluginError as error:
        raise exits.RefusedError(str(error)) from error
    return offer


def _made(invocation: Invocation, runtime: Runtime, offer: Offer) -> click.Command | None:
    """The command that the plugin's hook makes; `None`: that failed, which has been said.

    Raises:
        KeyboardInterrupt: It came meanwhile.
    """
    group = click.Group("mibyan")
    try:
        for one in runtime.hooks.of_owner(offer.owner, "mibyan_cli"):
            with acting_as(runtime._parts.store, offer.owner):
                _awaited(runtime, one.function(**({"group": group} if "group" in one.names else {})))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raised = runtime._parts.clean(describe_exception(error))
        tell_raised(invocation, f"plugin {offer.owner.id!r}: its hook mibyan_cli", raised)
        return None
    _tell_unnamed(runtime, offer, group)
    made = group.commands.get(offer.name)
    if not isinstance(made, click.Command):
        say(f"mibyan: error: plugin {offer.owner.id!r}: its manifest names the command {offer.name!r}, "
            "which its hook mibyan_cli doesn't add to the group")  # fmt: skip
        return None
    return made


def _tell_unnamed(runtime: Runtime, offer: Offer, group: click.Group) -> None:
    """What a hook adds beside what the manifest names isn't reachable: its author should know why."""
    record = runtime.plugins.get(offer.owner.id)
    named = record.candidate.manifest.cli if record.candidate.manifest is not None else ()
    extra = sorted(set(group.commands) - set(named))
    if extra:
        reason = f"its hook mibyan_cli adds {', '.join(map(repr, extra))}, which its manifest doesn't name under cli:"
        logging.getLogger("mibyan.plugins").warning("Plugin %r: %s", record.id, one_line(reason, 300))
        runtime._parts.log.add(
            Decision("warning", f"plugin:{record.id}", reason, record.id, record.origin,
                     "the plugin's author can mend it: cli: [NAME] in the manifest", problem=True)
        )  # fmt: skip


def _run(invocation: Invocation, runtime: Runtime, offer: Offer, made: click.Command, words: Sequence[str]) -> int:
    what = f"plugin {offer.owner.id!r}: its command {offer.name!r}"
    try:
        with acting_as(runtime._parts.store, offer.owner):
            with made.make_context(f"mibyan {offer.name}", list(words)) as ctx:
                _awaited(runtime, made.invoke(ctx))
            sys.stdout.flush()
    except KeyboardInterrupt:
        raise
    except _FAULTS as fault:
        return _ended(invocation, fault)
    except MibyanError as error:
        tell_raised(invocation, what, runtime._parts.clean(str(error)))
        return exits.FAILED
    except BaseException as error:
        tell_raised(invocation, what, runtime._parts.clean(describe_exception(error)))
        return exits.FAILED
    return exits.OK


def _ended(invocation: Invocation, fault: BaseException) -> int:
    """What a command ends with that ends in one of click's ways, or the process's.

    Raises:
        UsageError: It doesn't understand its words.
    """
    match fault:
        case click.exceptions.Exit():
            return fault.exit_code
        case click.UsageError():
            return _told_usage(fault)
        case click.ClickException():
            say(f"mibyan: error: {fault.format_message()}")
            return fault.exit_code
        case SystemExit():
            if fault.code is None or isinstance(fault.code, int):
                return int(fault.code or 0)
            say(str(fault.code))
            return exits.FAILED
        case BrokenPipeError():
            invocation.out._abandon()
            return exits.OK
    say("mibyan: aborted")
    return exits.FAILED


def _told_usage(fault: click.UsageError) -> int:
    message, path = fault.format_message(), fault.ctx.command_path if fault.ctx is not None else ""
    if type(fault).__name__ == "NoArgsIsHelpError":  # click 8.2: a group without one of its commands
        say(message)
        return exits.USAGE
    raise exits.UsageError(message, path) from fault


def _awaited(runtime: Runtime, answer: Any) -> Any:
    return runtime._parts._run_async(answer) if hasattr(answer, "__await__") else answer
