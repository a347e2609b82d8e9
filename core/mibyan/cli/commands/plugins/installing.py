"""`mibyan plugins install` and `uninstall`: by the environment's own installer. No plugin is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.cli.commands.plugins.group import found_plugins, plugins
from mibyan.cli.declaring import argument, option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.cli.invocation import Invocation


@plugins.command("install")
@argument("words", rest=True, metavar="[SPEC] [-- INSTALLER_ARGUMENTS]", choices="files")
@option(
    "-e",
    "editable",
    metavar="PATH",
    help="Install the project in PATH where it stays, for working on it.",
    choices="directories",
)
@option("--exact", help="SPEC's name is the distribution's own, not a plugin's id.")
@option("--upgrade", help="Replace what is there by the newest version that fits.")
@option("--dry-run", help="Show what would change, and change nothing.")
@option("--yes", help="Don't ask; what changes is shown all the same.")
@option("--installer", metavar="NAME", help="pip, uv or pipx, instead of the one that fits the environment.")
def install(
    invocation: Invocation, words: Sequence[str], editable: str | None, exact: bool, upgrade: bool, dry_run: bool,  # noqa: FBT001 - they come by name
    yes: bool, installer: str | None,  # noqa: FBT001 - it comes by name
) -> int:  # fmt: skip
    """Install a plugin into the environment that Mibyan runs in.

    SPEC is a plugin's name (weather means the distribution mibyan-plugin-weather), a requirement (weather>=1.2), a path to a
    project, a wheel or a source archive, or a URL (git+https://… for a repository). Arguments for the installer come after `--`. Shows what
    changes, with versions, and what the manifests that are at hand say; asks; runs the environment's own installer; then tells,
    by a look of a new process, which plugins have appeared. What would harm Mibyan or what it needs is refused. To find out what
    changes, the installer may build a source, as it does for installing it. Ends with 1 if the installer fails (its last lines are shown) or no
    plugin appears, with 3 if nobody says yes. With --json: {"spec" "understood" "installer": {name why command} "plan": [{name version was removed url
    plugin}] "installed" "plugins" "problems"}.
    """
    from mibyan.cli.install import installers, installing

    with found_plugins(invocation) as found:
        order = installing.read_order(
            words, editable, records=found.records, exact=exact, upgrade=upgrade, yes=yes, dry_run=dry_run
        )  # fmt: skip
        chosen = installers.choose(installers.Environment.running(), installer)
        return installing.run(invocation, order, installing.plugins_before(invocation, found), chosen)


@plugins.command("uninstall")
@argument("plugin_id", metavar="ID", choices="plugins")
@option("--yes", help="Don't ask; what is removed is shown all the same.")
@option("--dry-run", help="Show what would be removed, and remove nothing.")
@option("--installer", metavar="NAME", help="pip, uv or pipx, instead of the one that fits the environment.")
def uninstall(invocation: Invocation, plugin_id: str, yes: bool, dry_run: bool, installer: str | None) -> int:  # noqa: FBT001 - they come by name
    """Remove a plugin, whatever state it is in.

    ID is the plugin's id or its distribution's name, in any spelling. An installed one is removed by the environment's own installer; what that can't
    remove any more (a leftover without RECORD), and what lies in the home's folders, goes to trash/ in the home. Shows
    what is removed and asks. Built-in plugins and those of a project stay. What config.yaml says of it is left, and told.
    Ends with 1 if the installer fails, with 3 if nobody says yes. With --json: {"id" "distribution" "source" "files" "removed"
    "trash" "left": [{key command}]}.
    """
    from mibyan.cli.install import installers, uninstalling

    target = uninstalling.find(invocation, plugin_id)
    environment = installers.Environment.running()
    return uninstalling.run(invocation, target, environment, installer=installer, yes=yes, dry_run=dry_run)
