"""`mibyan plugins bisect`: which plugin it is that makes something go wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.cli.commands.plugins.group import found_plugins, plugins
from mibyan.cli.declaring import option

if TYPE_CHECKING:
    from mibyan.cli.invocation import Invocation


def _seconds(value: str | None) -> float | None:
    from mibyan.cli.arguments import read_seconds

    return read_seconds(value)


@plugins.command("bisect")
@option("--command", metavar="COMMAND", help="What tells by its exit code: 0 good, 125 can't tell, else bad.")
@option(
    "--timeout",
    metavar="SECONDS",
    help="Seconds for one round, a longer one is bad; 300 if not given.",
    convert=_seconds,
)
def bisect(invocation: Invocation, command: str | None, timeout: float | None) -> int:
    """Find the plugin that makes something go wrong.

    Turns off half of the plugins, runs COMMAND in a shell, turns off the other half, and so on, until one plugin is left, or
    those that it takes together. `mibyan` in COMMAND is this one. Without --command you are asked at the terminal; a round in which loading
    the plugins ends or holds up the process is bad without asking. Each round is a process of its own: config.yaml stays as it is, and
    the other plugins are off by MIBYAN_PLUGINS. Ends with 0 if something was found, else with 1. With --json:
    {"verdict" ("found" "good" "outside" "unclear") "message" "plugins": [{id source version origin}] "commands" "rounds": [{on off verdict why seconds}]}.
    """
    from mibyan.cli.bisect import bisecting

    _ = invocation.config  # one that can't be used ends this: no round would get anywhere
    with found_plugins(invocation) as found:
        return bisecting.run(invocation, found.records, command=command, timeout=timeout)
