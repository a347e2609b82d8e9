"""`run`: from the words to an exit code; whatever goes wrong ends in a sentence."""

from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING

import click

from mibyan.cli import exits
from mibyan.cli.framework import MissingCommand
from mibyan.cli.invocation import Invocation
from mibyan.cli.output import OutputError, say
from mibyan.cli.root import root
from mibyan.cli.signals import ends_cleanly
from mibyan.errors import MibyanError
from mibyan.text import bounded, describe_exception

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Characters of a message: an argument that is part of it can be of any length.
_LIMIT = 20_000


def run(words: Sequence[str]) -> int:
    """Run a command.

    Args:
        words: The words after the program's name.

    Returns:
        What to exit with; everything that is to be said has been said.

    Raises:
        KeyboardInterrupt: It came meanwhile.
    """
    invocation = Invocation()
    try:
        with ends_cleanly(), root.make_context("mibyan", list(words), obj=invocation) as context:
            code = root.invoke(context)
    except click.exceptions.Exit as leaving:  # --help
        return leaving.exit_code
    except KeyboardInterrupt:
        if invocation.options.debug:
            say(traceback.format_exc())
        raise
    except BaseException as error:  # the border: nothing leaves but an exit code
        if invocation.options.debug:
            say(traceback.format_exc(), end="")
        return _told(error)
    return code if isinstance(code, int) else exits.OK


def _told(error: BaseException) -> int:
    """Say what went wrong; the exit code."""
    match error:
        case MissingCommand():
            say(error.message)
            return exits.USAGE
        case click.ClickException():
            return _told_usage(error)
        case exits.RefusedError():
            code = exits.REFUSED
        case OutputError():
            code = exits.FAILED
        case MibyanError():
            code = exits.USAGE
        case OSError():
            return _told_system(error)
        case _:
            return _told_fault(error)
    say(bounded(f"mibyan: error: {error}", _LIMIT))
    return code


def _told_usage(error: click.ClickException) -> int:
    say(bounded(f"mibyan: error: {error.format_message()}", _LIMIT))
    context = getattr(error, "ctx", None)
    if context is not None:
        say(f"Try `{context.command_path} --help`.")
    return exits.USAGE


def _told_system(error: OSError) -> int:
    """What the operating system refused, where nothing closer had words for it."""
    why = os.strerror(error.errno).lower() if error.errno else str(error)
    where = f"{error.filename}: " if isinstance(error.filename, str) else ""
    say(bounded(f"mibyan: error: {where}{why}", _LIMIT))
    return exits.USAGE


def _told_fault(error: BaseException) -> int:
    say(bounded(f"mibyan: error: internal fault: {describe_exception(error)}", _LIMIT))
    say("That is Mibyan's own doing: please report it, with what `--debug` shows.")
    return exits.FAILED
