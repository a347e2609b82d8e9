"""`mibyan toolsets`: the bundles of tools, resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mibyan.cli import exits
from mibyan.cli.framework import Group
from mibyan.cli.loaded import is_strictly_fine, loaded
from mibyan.cli.tables import Column, show_fields, show_table
from mibyan.errors import MibyanError
from mibyan.text import one_line

if TYPE_CHECKING:
    from mibyan.cli.invocation import Invocation
    from mibyan.runtime import Runtime
    from mibyan.tools.store import Toolset

_LIST = (Column("NAME"), Column("KIND"), Column("TOOLS", right=True), Column("DESCRIPTION"))
_TOOLS = (Column("TOOL"), Column("STATE"), Column("BY WAY OF"))


@click.group("toolsets", cls=Group)
def toolsets() -> None:
    """The bundles of tools, resolved to what they stand for."""


@toolsets.command("list")
@click.pass_obj
def list_toolsets(invocation: Invocation) -> int:
    """List the toolsets and how many tools each stands for.

    With --json: {"toolsets": [...], "aliases": {...}, "problems": [...]}.
    """
    with invocation.runtime() as runtime:
        loaded(invocation, runtime)
        found = [_described(runtime, name) for name in runtime.toolsets.names()]
        if invocation.options.as_json:
            problems = [problem.to_dict() for problem in runtime.report().problems]
            aliases = dict(runtime.toolsets.aliases())
            invocation.out.document({"toolsets": found, "aliases": aliases, "problems": problems})
        else:
            rows = [[one["name"], one["kind"], str(len(one["tools"])), one["description"]] for one in found]
            show_table(invocation.out, _LIST, rows)
        return _code(invocation, runtime)


@toolsets.command("show")
@click.argument("name")
@click.pass_obj
def show_toolset(invocation: Invocation, name: str) -> int:
    """Show the tools that a toolset stands for, and why.

    Each tool, whether it is there, and the toolsets that lead to it. With --json: an object whose "members" have each tool's name, state and way.
    """
    with invocation.runtime() as runtime:
        loaded(invocation, runtime)
        _require(runtime, name)
        described = {**_described(runtime, name), "members": _members(runtime, name)}
        if invocation.options.as_json:
            invocation.out.document(described)
        else:
            _print(invocation, described)
        return _code(invocation, runtime)


def _code(invocation: Invocation, runtime: Runtime) -> int:
    return exits.OK if is_strictly_fine(invocation, runtime, [runtime.toolsets.select()]) else exits.REFUSED


def _require(runtime: Runtime, name: str) -> Toolset:
    """The toolset of a name.

    Raises:
        MibyanError: There is none, with the one that was probably meant.
    """
    toolset = runtime.toolsets.get(name)
    if toolset is None:
        meant = runtime.toolsets.suggest(name)
        raise MibyanError(
            f"there is no toolset {one_line(name, 60)!r}" + (f"; did you mean {meant!r}?" if meant else ""),
            hint="`mibyan toolsets list` shows what there is.",
        )
    return toolset


def _described(runtime: Runtime, name: str) -> dict[str, Any]:
    """A toolset as a JSON object; `tools` are those that are registered."""
    toolset = _require(runtime, name)
    registered = runtime.registry.snapshot.entries
    return {
        "name": toolset.name, "kind": toolset.kind, "description": toolset.description, "origin": toolset.origin,
        "includes": list(toolset.includes), "tools": [tool for tool in runtime.toolsets.resolve(name) if tool in registered],
    }  # fmt: skip


def _members(runtime: Runtime, name: str) -> list[dict[str, str]]:
    """Each tool that the name stands for: whether it is there, and how it got in."""
    entries = runtime.registry.snapshot.entries
    explained = runtime.toolsets.explain(name)
    verdicts = runtime.availability.verdicts([entries[tool] for tool, _ in explained if tool in entries])
    return [{"name": tool, "state": _state(verdicts.get(tool)), "via": via} for tool, via in explained]


def _state(verdict: Any) -> str:
    if verdict is None:
        return "not registered"
    return "available" if verdict.available else f"unavailable: {verdict.reason}"


def _print(invocation: Invocation, described: dict[str, Any]) -> None:
    show_fields(invocation.out, {
        "name": described["name"], "kind": described["kind"], "origin": described["origin"] or "",
        "includes": ", ".join(described["includes"]), "description": described["description"],
    })  # fmt: skip
    if described["members"]:
        invocation.out.line("")
        rows = [[one["name"], one["state"], one["via"]] for one in described["members"]]
        show_table(invocation.out, _TOOLS, rows)
