"""The commands, a module for each group."""

from __future__ import annotations

#: Where the commands are, in the order of the help; each module is imported when one of its commands is named. Those
#: declared with `mibyan.cli.declaring` start quickly; a command may also be one of click's.
COMMANDS = {
    "call": "mibyan.cli.commands.call:call",
    "tools": "mibyan.cli.commands.tools:tools",
    "toolsets": "mibyan.cli.commands.toolsets:toolsets",
    "plugins": "mibyan.cli.commands.plugins:plugins",
    "command": "mibyan.cli.commands.command:command",
    "approvals": "mibyan.cli.commands.approvals:approvals",
    "config": "mibyan.cli.commands.config:config",
    "doctor": "mibyan.cli.commands.doctor:doctor",
    "completion": "mibyan.cli.commands.completion:completion",
}
