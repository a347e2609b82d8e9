"""`mibyan tools`: what there is, one tool, and the definitions a model would get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mibyan.cli import exits
from mibyan.cli.framework import Group
from mibyan.cli.loaded import is_strictly_fine, loaded
from mibyan.cli.output import say
from mibyan.cli.tables import Column, show_fields, show_table
from mibyan.cli.toolview import describe, parameters, summary
from mibyan.errors import MibyanError
from mibyan.text import one_line, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mibyan.cli.invocation import Invocation
    from mibyan.runtime import Runtime
    from mibyan.tools.entry import ToolEntry

_LIST = (Column("NAME"), Column("TOOLSET"), Column("PLUGIN"), Column("DESCRIPTION"))
_MISSING = (Column("NOT AVAILABLE"), Column("TOOLSET"), Column("PLUGIN"), Column("WHY"))
_PARAMETERS = (Column("PARAMETER"), Column("TYPE"), Column("REQUIRED"), Column("DESCRIPTION"))


def _format(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """The name of a provider's format, if there is such a format."""
    from mibyan.schema.formats import FORMATS

    if value in FORMATS:
        return value
    meant = suggest(value, FORMATS)
    hint = f"Did you mean {meant!r}?" if meant else f"There are: {', '.join(FORMATS)}."
    raise click.BadParameter(f"No such format {one_line(value, 60)!r}. {hint}", context, parameter)


def _names(_context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> list[str] | None:
    """`A,B`, given once or more; `None` where it isn't given (an empty text is an empty list)."""
    if not value:
        return None
    return [name for part in value for word in part.split(",") if (name := word.strip())]


def _toolset_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--enable A,B` and `--disable C`."""
    enable = click.option("--enable", "enabled", multiple=True, metavar="A,B", callback=_names,
                          help="These toolsets instead of everything that is available.")  # fmt: skip
    disable = click.option("--disable", "disabled", multiple=True, metavar="C", callback=_names,
                           help="Take these toolsets away; that always wins.")  # fmt: skip
    return enable(disable(function))


@click.group("tools", cls=Group)
def tools() -> None:
    """What there is, one tool, and the definitions a model would get."""


@tools.command("list")
@_toolset_options
@click.pass_obj
def list_tools(invocation: Invocation, enabled: list[str] | None, disabled: list[str] | None) -> int:
    """List the available tools, and below them what is missing.

    With --json: {"tools": [...], "unavailable": [...], "problems": [...]}.
    """
    with invocation.runtime() as runtime:
        loaded(invocation, runtime)
        selection = runtime.toolsets.select(enabled, disabled)
        entries = [runtime.registry.snapshot.entries[name] for name in sorted(selection.names)]
        verdicts = runtime.availability.verdicts(entries)
        reasons = {name: verdict.reason or "" for name, verdict in verdicts.items() if not verdict.available}
        if invocation.options.as_json:
            _print_document(invocation, runtime, entries, reasons)
        else:
            _print_tables(invocation, entries, reasons)
        return exits.OK if is_strictly_fine(invocation, runtime, [selection]) else exits.REFUSED


def _print_document(
    invocation: Invocation, runtime: Runtime, entries: list[ToolEntry], reasons: Mapping[str, str]
) -> None:
    described = [describe(entry, reasons.get(entry.name)) for entry in entries]
    invocation.out.document({
        "tools": [one for one in described if one["available"]],
        "unavailable": [one for one in described if not one["available"]],
        "problems": [problem.to_dict() for problem in runtime.report().problems],
    })  # fmt: skip


def _print_tables(invocation: Invocation, entries: list[ToolEntry], reasons: Mapping[str, str]) -> None:
    shown = [_row(entry, summary(entry)) for entry in entries if entry.name not in reasons]
    hidden = [_row(entry, reasons[entry.name]) for entry in entries if entry.name in reasons]
    if shown:
        show_table(invocation.out, _LIST, shown)
    else:
        say("No tool is available.")
    if hidden:
        invocation.out.line("")
        show_table(invocation.out, _MISSING, hidden)


def _row(entry: ToolEntry, last: str) -> list[str]:
    return [entry.name, entry.toolset, entry.owner.id, last]


@tools.command("show")
@click.argument("name")
@click.pass_obj
def show_tool(invocation: Invocation, name: str) -> int:
    """Show one tool: its origin, availability, parameters.

    With --json: an object with all of that and the schema as the model sees it.
    """
    with invocation.runtime() as runtime:
        loaded(invocation, runtime)
        entry = _find(runtime, name)
        verdict = runtime.availability.verdicts([entry])[entry.name]
        reason = None if verdict.available else verdict.reason or ""
        if invocation.options.as_json:
            invocation.out.document({**describe(entry, reason), "schema": entry.schema})
        else:
            _print_tool(invocation, entry, reason)
        return exits.OK if is_strictly_fine(invocation, runtime) else exits.REFUSED


def _find(runtime: Runtime, name: str) -> ToolEntry:
    """The tool of a name or alias.

    Raises:
        MibyanError: There is none, with the one that was probably meant.
    """
    entry = runtime.registry.get_entry(name)
    if entry is None:
        snapshot = runtime.registry.snapshot
        meant = suggest(name, {*snapshot.entries, *snapshot.aliases})
        raise MibyanError(
            f"there is no tool {one_line(name, 60)!r}" + (f"; did you mean {meant!r}?" if meant else ""),
            hint="`mibyan tools list` shows what there is.",
        )
    return entry


def _print_tool(invocation: Invocation, entry: ToolEntry, reason: str | None) -> None:
    told = describe(entry, reason)
    show_fields(invocation.out, {
        "name": f"{entry.emoji} {entry.name}".strip(),
        "toolset": entry.toolset,
        "plugin": f"{entry.owner.id} ({entry.owner.source})" if entry.owner.source else entry.owner.id,
        "origin": entry.origin or "",
        "available": "yes" if reason is None else f"no: {reason}",
        "aliases": ", ".join(entry.aliases),
        "hints": ", ".join(told["hints"]),
        "description": told["description"],
    })  # fmt: skip
    rows = parameters(entry)
    if rows:
        invocation.out.line("")
        show_table(invocation.out, _PARAMETERS, rows)


@tools.command("schema")
@_toolset_options
@click.option("--format", "form", metavar="F", callback=_format, default="openai", show_default=True,
              help="openai, openai-responses, anthropic, gemini or mcp.")  # fmt: skip
@click.pass_obj
def schema(invocation: Invocation, enabled: list[str] | None, disabled: list[str] | None, form: str) -> int:
    """Print the definitions that a model would get.

    A bare JSON array, the same bytes in every process, until something changes.
    """
    with invocation.runtime() as runtime:
        loaded(invocation, runtime)
        invocation.out.document(runtime.definitions(enabled, disabled, format=form))
        return _strict_code(invocation, runtime, enabled, disabled)


def _strict_code(
    invocation: Invocation, runtime: Runtime, enabled: list[str] | None, disabled: list[str] | None
) -> int:
    selection = runtime.toolsets.select(enabled, disabled)
    return exits.OK if is_strictly_fine(invocation, runtime, [selection]) else exits.REFUSED
