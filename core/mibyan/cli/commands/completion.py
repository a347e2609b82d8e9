"""`mibyan completion`: the script that teaches a shell to complete `mibyan`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mibyan.cli import exits
from mibyan.cli.completion_scripts import SCRIPTS
from mibyan.cli.framework import Command

if TYPE_CHECKING:
    from mibyan.cli.invocation import Invocation


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(list(SCRIPTS)))
@click.pass_obj
def completion(invocation: Invocation, shell: str) -> int:
    """Print the script that teaches a shell to complete mibyan.

    For bash: eval "$(mibyan completion bash)" in ~/.bashrc. For zsh: eval "$(mibyan completion zsh)" in ~/.zshrc. For
    fish: mibyan completion fish > ~/.config/fish/completions/mibyan.fish. Commands, options, tools, toolsets, plugins and
    keys of the configuration are completed; no plugin is run for it. With --json: {"shell", "script"}.
    """
    if invocation.options.as_json:
        invocation.out.document({"shell": shell, "script": SCRIPTS[shell]})
    else:
        invocation.out.write(SCRIPTS[shell])
    return exits.OK
