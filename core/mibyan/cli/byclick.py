"""`run_by_click`: commands that click reads, because their words aren't plain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mibyan.cli import exits
from mibyan.cli.framework import MissingCommand
from mibyan.cli.output import say
from mibyan.cli.root import root

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.cli.invocation import Invocation


def run_by_click(words: Sequence[str], invocation: Invocation) -> int:
    """Run a command; the exit code.

    Raises:
        UsageError: The words can't be understood.
        BaseException: What the command raises, but click's own exceptions.
    """
    try:
        with root.make_context("mibyan", list(words), obj=invocation) as context:
            code = root.invoke(context)
    except click.exceptions.Exit as leaving:  # --help
        return leaving.exit_code
    except MissingCommand as error:
        say(error.message)
        return exits.USAGE
    except click.ClickException as error:
        where: click.Context | None = getattr(error, "ctx", None)
        path = where.command_path if where is not None else ""
        raise exits.UsageError(error.format_message(), path) from error
    return code if isinstance(code, int) else exits.OK
