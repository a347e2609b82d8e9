"""`root`: click's group of all commands, those that plugins add too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mibyan.cli.commands import COMMANDS
from mibyan.cli.framework import Group
from mibyan.cli.invocation import Invocation
from mibyan.errors import MibyanError
from mibyan.text import one_line

if TYPE_CHECKING:
    from mibyan.plugins.foreseen import Foreseen

#: Characters of a plugin's description in the help.
_LIMIT = 100


class Root(Group):
    """`mibyan`: its own commands, and those that the manifests of plugins name. Looking for them imports no plugin."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name: Mibyan's own, else a plugin's."""
        found = super().get_command(ctx, cmd_name)
        if found is not None or cmd_name.startswith("-") or ctx.resilient_parsing:
            return found
        from mibyan.cli.adding import added

        return added(_foreseen(ctx), cmd_name)

    def known_names(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return [*super().known_names(ctx), *sorted(_foreseen(ctx).cli)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands into the help, those of plugins behind."""
        super().format_commands(ctx, formatter)
        found = _foreseen(ctx).cli
        rows = [(name, _told(found[name].plugin.id, found[name].description)) for name in sorted(found)]
        if rows:
            with formatter.section("Commands of plugins"):
                formatter.write_dl(rows)


def _foreseen(ctx: click.Context) -> Foreseen:
    """The commands of plugins; none where the configuration can't be used, which is no reason to refuse help."""
    try:
        return ctx.find_root().ensure_object(Invocation).foreseen
    except MibyanError:
        from mibyan.plugins.foreseen import Foreseen

        return Foreseen()


def _told(plugin_id: str, description: str) -> str:
    return one_line(f"{description.strip()} ({plugin_id})" if description.strip() else plugin_id, _LIMIT)


@click.group(
    "mibyan",
    cls=Root,
    lazy=COMMANDS,
    is_root=True,
    context_settings={"max_content_width": 100},
)
@click.option("--version", is_flag=True, expose_value=False, help="Print the version and exit.")
def root() -> None:
    """The tools runtime of an AI agent: which tools may the model see, and run this call."""
