"""`mibyan completion`: the script that teaches a shell to complete `mibyan`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.cli import exits
from mibyan.cli.completion_scripts import SCRIPTS
from mibyan.cli.declaring import argument, command
from mibyan.text import one_line

if TYPE_CHECKING:
    from mibyan.cli.invocation import Invocation


@command("completion")
@argument("shell", metavar="{bash|zsh|fish}", choices="shells")
def completion(invocation: Invocation, shell: str) -> int:
    """Print the script that teaches a shell to complete mibyan.

    For bash: eval "$(mibyan completion bash)" in ~/.bashrc. For zsh: eval "$(mibyan completion zsh)" in ~/.zshrc. For
    fish: mibyan completion fish > ~/.config/fish/completions/mibyan.fish. Commands, options, tools, toolsets, plugins and
    keys of the configuration are completed; no plugin is run for it. With --json: {"shell", "script"}.
    """
    script = SCRIPTS.get(shell)
    if script is None:
        raise exits.UsageError(f"No script for the shell {one_line(shell, 60)!r}. There are: {', '.join(SCRIPTS)}.")
    if invocation.options.as_json:
        invocation.out.document({"shell": shell, "script": script})
    else:
        invocation.out.write(script)
    return exits.OK
