"""`root`: the group of all commands."""

from __future__ import annotations

from typing import Final

import click

from mibyan.cli.framework import Group

#: Where the commands are; each module is imported when one of its commands is named.
COMMANDS: Final = {
    "call": "mibyan.cli.commands.call:call",
    "tools": "mibyan.cli.commands.tools:tools",
    "toolsets": "mibyan.cli.commands.toolsets:toolsets",
    "plugins": "mibyan.cli.commands.plugins:plugins",
    "config": "mibyan.cli.commands.config:config",
    "doctor": "mibyan.cli.commands.doctor:doctor",
    "completion": "mibyan.cli.commands.completion:completion",
}


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
