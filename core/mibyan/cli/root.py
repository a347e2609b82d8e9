"""`root`: click's group of all commands."""

from __future__ import annotations

import click

from mibyan.cli.commands import COMMANDS
from mibyan.cli.framework import Group


@click.group(
    "mibyan",
    cls=Group,
    lazy=COMMANDS,
    is_root=True,
    context_settings={"max_content_width": 100},
)
@click.option("--version", is_flag=True, expose_value=False, help="Print the version and exit.")
def root() -> None:
    """The tools runtime of an AI agent: which tools may the model see, and run this call."""
