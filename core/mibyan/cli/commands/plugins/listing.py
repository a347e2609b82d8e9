"""`mibyan plugins list` and `show`: what was found. No plugin is imported, but for `list --load`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.cli import exits
from mibyan.cli.commands.plugins.group import found_plugins, plugins
from mibyan.cli.declaring import argument, option
from mibyan.cli.output import say
from mibyan.cli.pluginview import SORT_KEYS, details, in_order, print_details, print_list
from mibyan.cli.strictness import unready
from mibyan.text import one_line

if TYPE_CHECKING:
    from mibyan.cli.invocation import Invocation


def _sort_key(value: str | None) -> str | None:
    if value is None or value in SORT_KEYS:
        return value
    raise exits.UsageError(f"There is no {one_line(value, 60)!r} to sort by. There are: {', '.join(SORT_KEYS)}.")


@plugins.command("list")
@option("--load", help="Load them now, and tell what became of each.")
@option("--sort", metavar="KEY", convert=_sort_key, choices="sort_keys",
        help="By what they cost, the dearest first: tokens, import or tools; else in the order in which they load.")  # fmt: skip
def list_plugins(invocation: Invocation, load: bool, sort: str | None) -> int:  # noqa: FBT001 - it comes by name
    """List the plugins: what each offers and costs, or why it doesn't.

    Without --load none is imported: then each is as its last load left it, at that time. One that wasn't loaded since it
    changed is `found`, with what its manifest says. IMPORT MS is what its import took when it was last imported; TOKENS is about
    what the definitions of its tools take of each request (a quarter of their characters). With --json: {"plugins": [{id source version state reason fix decided_by origin
    tools hooks overrides rejected import_ms schema_tokens loaded_at}], "problems": [...]}.
    """
    with found_plugins(invocation, load=load) as found:
        objects, problems = in_order(found.objects(), sort), found.problems()
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
    """Show one plugin: its state and why, where it is, what it offers, costs and needs.

    Of tools what each costs, whose it overrides, and which aren't its own because others have the names; commands, skills and
    terminal backends as its manifest says them or as they were learned. With --json: the object of `plugins list` with {"rule",
    "commands": [{name description args_hint}], "cli": [names], "tool_tokens": {tool: tokens}, "displaced": {tool: plugin, or
    null if nobody's is known}, "manifest"}.
    """
    from mibyan.plugins.foreseen import lessons_of
    from mibyan.plugins.manage import find_record

    with found_plugins(invocation) as found:
        lessons = lessons_of(found.runtime._parts.config, invocation.home)
        told = details(find_record(plugin_id, found.records), found.records, lessons)
        if invocation.options.as_json:
            invocation.out.document(told)
        else:
            print_details(invocation.out, told)
        return exits.OK
