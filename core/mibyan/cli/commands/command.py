"""`mibyan command`: the commands that plugins offer with `ctx.register_command`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.cli import declaring
from mibyan.cli.declaring import argument, option

if TYPE_CHECKING:
    from mibyan.cli.invocation import Invocation


@declaring.command("command", raw=True)
@argument("words", rest=True, choices="plugin_commands", metavar="[NAME [ARGUMENTS…]]")
@option("--list", "listing", help="List the commands; so does no NAME.")
def command(invocation: Invocation, words: tuple[str, ...], listing: bool) -> int:  # noqa: FBT001 - it comes by name
    """Run a plugin's command and print the text that it gives; without NAME, list the commands.

    The command gets its arguments as one text: a single word as it is, several with a blank between them, and where one
    has blanks, quotes or backslashes, or is empty, it is quoted as a shell would quote it. Words behind NAME that look like
    options are arguments too, but the options of mibyan itself; behind -- every word is an argument. What isn't text is
    printed as JSON. With --json: {"command", "plugin", "status", "result"}, and "error", "error_type" if it raised. Ends
    with 1 if the command raises, with 2 if there is none of that name, with 3 if its plugin can't be used.

    The list imports no plugin, so one that was never loaded as it is now, and doesn't say its commands in its manifest, is
    only named. With --json: {"commands": [{name plugin description args_hint}], "untold": [plugin ids]}.
    """
    from mibyan.cli import commanding

    if listing or not words:
        return commanding.list_commands(invocation)
    return commanding.run_command(invocation, words[0], commanding.joined(words[1:]))
