"""`mibyan plugins list` and `show`: what was found. No plugin is imported, but for `list --load`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.cli import exits
from mibyan.cli.commands.plugins.group import found_plugins, plugins
from mibyan.cli.declaring import argument, option
from mibyan.cli.output import say
from mibyan.cli.pluginview import details, print_details, print_list
from mibyan.cli.strictness import unready

if TYPE_CHECKING:
    from mibyan.cli.invocation import Invocation


@plugins.command("list")
@option("--load", help="Load them now, and tell what became of each.")
def list_plugins(invocation: Invocation, load: bool) -> int:  # noqa: FBT001 - it comes by name
    """List the plugins: what each offers, or why it doesn't.

    Without --load none is imported: then each is as its last load left it, at that time. One that wasn't loaded since it
    changed is `found`, with what its manifest says. With --json: {"plugins": [{id source version state reason hint decided_by origin
    tools hooks overrides import_ms schema_tokens loaded_at}], "problems": [...]}.
    """
    with found_plugins(invocation, load=load) as found:
        objects, problems = found.objects(), found.problems()
        if invocation.options.as_json:
            invocation.out.document({"plugins": objects, "problems": problems})
        else:
            print_list(invocation.out, objects, problems)
        objections = unready(found.records, loaded=found.loaded) if invocation.options.strict else []
        for objection in objections:
            say(f"mibyan: strict: {objection}")
        return exits.REFUSED if objections else exits.OK


@plugins.command("show")
@argument("plugin_id", metavar="ID", choices="plugins")
def show(invocation: Invocation, plugin_id: str) -> int:
    """Show one plugin: its state and why, origin, manifest.

    With --json: the object of `plugins list` with its manifest.
    """
    from mibyan.plugins.manage import find_record

    with found_plugins(invocation) as found:
        told = details(find_record(plugin_id, found.records))
        if invocation.options.as_json:
            invocation.out.document(told)
        else:
            print_details(invocation.out, told)
        return exits.OK
