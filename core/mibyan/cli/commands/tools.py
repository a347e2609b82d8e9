"""`mibyan tools`: what there is, one tool, and the definitions a model would get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.cli import exits
from mibyan.cli.declaring import argument, group, option
from mibyan.cli.exits import UsageError
from mibyan.cli.loaded import is_strictly_fine, loaded
from mibyan.cli.output import say
from mibyan.cli.tables import Column, show_fields, show_table
from mibyan.cli.toolview import describe, parameters, summary
from mibyan.errors import MibyanError
from mibyan.text import did_you_mean, one_line, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mibyan.cli.invocation import Invocation
    from mibyan.explain.answer import Answer
    from mibyan.runtime import Runtime
    from mibyan.tools.entry import ToolEntry

_LIST = (Column("NAME"), Column("TOOLSET"), Column("PLUGIN"), Column("DESCRIPTION"))
_MISSING = (Column("NOT AVAILABLE"), Column("TOOLSET"), Column("PLUGIN"), Column("WHY"))
_PARAMETERS = (Column("PARAMETER"), Column("TYPE"), Column("REQUIRED"), Column("DESCRIPTION"))


def _format(value: str) -> str:
    """The name of a provider's format, if there is such a format."""
    from mibyan.schema.formats import FORMATS

    if value in FORMATS:
        return value
    meant = suggest(value, FORMATS)
    hint = f"Did you mean {meant!r}?" if meant else f"There are: {', '.join(FORMATS)}."
    raise UsageError(f"No such format {one_line(value, 60)!r}. {hint}")


def _optional_format(value: str | None) -> str | None:
    """The same, where it may be left out."""
    return None if value is None else _format(value)


def _names(value: tuple[str, ...]) -> list[str] | None:
    """`A,B`, given once or more; `None` where it isn't given (an empty text is an empty list)."""
    if not value:
        return None
    return [name for part in value for word in part.split(",") if (name := word.strip())]


def _toolset_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--enable A,B` and `--disable A,B`."""
    enable = option("--enable", "enabled", multiple=True, metavar="A,B", convert=_names, choices="toolset_list",
                          help="These toolsets instead of everything that is available.")  # fmt: skip
    disable = option("--disable", "disabled", multiple=True, metavar="A,B", convert=_names, choices="toolset_list",
                           help="Take these toolsets away; that always wins.")  # fmt: skip
    return enable(disable(function))


@group("tools")
def tools() -> None:
    """What there is, one tool, and the definitions a model would get."""


@tools.command("list", lasting=True)
@_toolset_options
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
@argument("name", choices="any_tools")
def show_tool(invocation: Invocation, name: str) -> int:
    """Show one tool: its origin, availability, parameters, and who else wants its name.

    With --json: an object with all of that and the schema as the model sees it.
    """
    with invocation.runtime() as runtime:
        loaded(invocation, runtime)
        answer = _explained(runtime, name)
        entry = _found(runtime, name, answer)
        verdict = runtime.availability.verdicts([entry])[entry.name]
        reason = None if verdict.available else verdict.reason or ""
        described = {**describe(entry, reason), "origin": answer.claims[0].origin}
        if invocation.options.as_json:
            candidates = [claim.to_dict() for claim in answer.claims]
            invocation.out.document({**described, "schema": entry.schema, "candidates": candidates})
        else:
            _print_tool(invocation, entry, described, answer)
        return exits.OK if is_strictly_fine(invocation, runtime) else exits.REFUSED


def _explained(runtime: Runtime, name: str) -> Answer:
    from mibyan.explain.tool import explain_tool

    return explain_tool(runtime, name)


def _found(runtime: Runtime, name: str, answer: Answer) -> ToolEntry:
    """The tool of a name or alias.

    Raises:
        MibyanError: There is none: why not, or the one that was probably meant.
    """
    entry = runtime.registry.get_entry(name)
    if entry is None and answer.claims:
        first = answer.claims[0]
        place = f"{first.origin} has one" if first.origin else "somebody has one"
        hint = f"{first.fix}\n" if first.fix else ""
        raise MibyanError(f"there is no tool {one_line(name, 60)!r}, but {place}: {one_line(first.reason, 500)}",
                          hint=f"{hint}`mibyan tools why {one_line(name, 60)}` tells all of it.")  # fmt: skip
    if entry is None:
        meant = next(iter(answer.suggestions), None)
        raise MibyanError(f"there is no tool {one_line(name, 60)!r}{did_you_mean(meant)}",
                          hint=f"`mibyan tools list` shows what there is, `mibyan tools why {one_line(name, 60)}` where one could come from.")  # fmt: skip
    return entry


@tools.command("why")
@argument("name", choices="any_tools")
@_toolset_options
@option(
    "--platform", metavar="PLATFORM", choices="platforms", help="As for a session on this platform: cli, telegram, …"
)
@option(
    "--format",
    "form",
    metavar="FORMAT",
    choices="formats",
    convert=_optional_format,
    help="Whether this provider's format has it too.",
)
@option("--load", help="Import the plugin that has the name, to ask its check too.")
def why(
    invocation: Invocation, name: str, enabled: list[str] | None, disabled: list[str] | None, platform: str | None,
    form: str | None, load: bool,  # noqa: FBT001 - it comes by name
) -> int:  # fmt: skip
    """Tell why a tool is there, or why it isn't.

    Every candidate for NAME, whoever has it first: where it is (file:line), the rule that decided, the line of the
    configuration if it was one, and what would change it. No plugin with frozen definitions is imported, except with
    --load. With --json: {"name", "state", "sentence", "candidates": [{tool state reason rule plugin source toolset origin
    decided_by fix}], "left_out", "unknown", "suggestions", "ways", "obstacles", "decisions"}; the state is ready, unchecked, hidden, unavailable,
    left_out, absent or unknown.
    """
    from mibyan.cli.whyview import print_answer
    from mibyan.explain.session import Asked
    from mibyan.explain.tool import explain_tool

    with invocation.runtime() as runtime:
        loaded(invocation, runtime)
        asked = Asked(enabled, disabled, platform, form, load)
        answer = explain_tool(runtime, name, asked)
        if invocation.options.as_json:
            invocation.out.document(answer.to_dict())
        else:
            print_answer(invocation.out, answer)
        selection = runtime.toolsets.select(enabled, disabled, platform=platform)
        return exits.OK if is_strictly_fine(invocation, runtime, [selection]) else exits.REFUSED


@tools.command("diff")
@argument("words", rest=True, metavar="[LOCK_A] [LOCK_B]", choices="files")
def diff(invocation: Invocation, words: tuple[str, ...]) -> int:
    """Show how the tools' texts differ: two lock files, or one and what there is now.

    Without a word it is the home's mibyan.lock and now. A unified diff for each tool whose description, schema, toolset or plugin is
    another, that came or went; what a screen would hide is written as escapes. Two files are compared without loading anything. Ends with 1 if a tool
    differs. With --json: {"from" "to" "differs" "plugins": [{id change what before after}], "tools": [{name change plugin what diff}]}.
    """
    from mibyan.cli import locking

    return locking.diff(invocation, words)


def _print_tool(invocation: Invocation, entry: ToolEntry, told: dict[str, Any], answer: Answer) -> None:
    from mibyan.cli.whyview import print_claims

    show_fields(invocation.out, {
        "name": f"{entry.emoji} {entry.name}".strip(),
        "toolset": entry.toolset,
        "plugin": f"{entry.owner.id} ({entry.owner.source})" if entry.owner.source else entry.owner.id,
        "origin": told["origin"] or "",
        "available": "yes" if told["available"] else f"no: {told['reason']}",
        "aliases": ", ".join(entry.aliases),
        "hints": ", ".join(told["hints"]),
        "description": told["description"],
    })  # fmt: skip
    held, *others = answer.claims
    if held.state == "hidden":
        invocation.out.line(f"\nIt is hidden: {held.reason}.\n    {held.fix}")
    rows = parameters(entry)
    if rows:
        invocation.out.line("")
        show_table(invocation.out, _PARAMETERS, rows)
    if others:
        invocation.out.line("\nWho else wants the name:")
        print_claims(invocation.out, others)


@tools.command("schema", lasting=True)
@_toolset_options
@option("--format", "form", metavar="FORMAT", choices="formats", convert=_format, default="openai",
              help="openai, openai-responses, anthropic, gemini or mcp.")  # fmt: skip
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
