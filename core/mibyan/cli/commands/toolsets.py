"""`mibyan toolsets`: the bundles of tools, resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.cli import exits
from mibyan.cli.declaring import argument, group
from mibyan.cli.loaded import is_strictly_fine, loaded
from mibyan.cli.tables import Column, show_fields, show_table
from mibyan.errors import MibyanError
from mibyan.plugins.state import standing
from mibyan.text import did_you_mean, one_line

if TYPE_CHECKING:
    from mibyan.cli.invocation import Invocation
    from mibyan.runtime import Runtime
    from mibyan.tools.store import Toolset

_LIST = (Column("NAME"), Column("KIND"), Column("TOOLS", right=True), Column("DESCRIPTION"))
_TOOLS = (Column("TOOL"), Column("STATE"), Column("PLUGIN"), Column("BY WAY OF"))


@group("toolsets")
def toolsets() -> None:
    """The bundles of tools, resolved to what they stand for."""


@toolsets.command("list", lasting=True)
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


@toolsets.command("show", lasting=True)
@argument("name", choices="toolsets")
def show_toolset(invocation: Invocation, name: str) -> int:
    """Show the tools that a toolset stands for, and why.

    Each tool: whether it is there, by way of which toolsets it gets in, and what keeps it away; also those that plugins
    which aren't loaded would add, and those that a preset's rule keeps out. With --json: an object with the toolset's
    "aliases", its "members" {name state via why rule plugin origin decided_by fix} and the "missing" names it includes.
    """
    from mibyan.explain.toolset import explain_toolset, where_missing

    with invocation.runtime() as runtime:
        loaded(invocation, runtime)
        _require(runtime, name)
        missing = where_missing(runtime.toolsets.expansion(name), runtime.toolsets.suggest)
        described = {
            **_described(runtime, name), "aliases": _other_names(runtime, name), "denied_by": _denied_by(runtime, name),
            "members": [member.to_dict() for member in explain_toolset(runtime, name)], "missing": missing,
        }  # fmt: skip
        if invocation.options.as_json:
            invocation.out.document(described)
        else:
            _print(invocation, described)
        return _code(invocation, runtime)


def _other_names(runtime: Runtime, name: str) -> list[str]:
    """The other names of the toolset: aliases, legacy names; of an alias, those of what it means."""
    aliases = runtime.toolsets.aliases()
    meaning = aliases.get(name, name)
    return [alias for alias, target in aliases.items() if target == meaning and alias != name]


def _denied_by(runtime: Runtime, name: str) -> list[str]:
    """Where the configuration denies the toolset by one of its names."""
    names = {name, runtime.toolsets.aliases().get(name, name), *_other_names(runtime, name)}
    found = [(index, word) for index, word in enumerate(runtime.config.toolsets.disabled) if word in names]
    lines = [runtime.loaded_config.line_of(("toolsets", "disabled", index)) for index, _ in found]
    return [line or f"toolsets.disabled[{index}]" for line, (index, _) in zip(lines, found, strict=True)]


def _code(invocation: Invocation, runtime: Runtime) -> int:
    return exits.OK if is_strictly_fine(invocation, runtime, [runtime.toolsets.select()]) else exits.REFUSED


def _tell_who_would_bring(runtime: Runtime, name: str) -> None:
    """Raise, if a plugin that isn't loaded would bring the toolset.

    Raises:
        MibyanError: One would.
    """
    from mibyan.explain.toolset import would_bring

    one = would_bring(runtime, name)
    if one is not None:
        reason = f"there is no toolset {one_line(name, 60)!r}: plugin {one.id!r}, which would bring it, {standing(one.state)}"
        raise MibyanError(f"{reason}: {one_line(one.reason, 500)}", origin=one.decided_by, hint=one.hint)


def _require(runtime: Runtime, name: str) -> Toolset:
    """The toolset of a name.

    Raises:
        MibyanError: There is none, with the one that was probably meant.
    """
    toolset = runtime.toolsets.get(name)
    if toolset is None:
        _tell_who_would_bring(runtime, name)
        raise MibyanError(
            f"there is no toolset {one_line(name, 60)!r}{did_you_mean(runtime.toolsets.suggest(name))}",
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


def _print(invocation: Invocation, described: dict[str, Any]) -> None:
    missing = [f"{one['name']} (in {one['included_by']}" + (f"; did you mean {one['suggestion']!r}?)" if one["suggestion"] else ")")
               for one in described["missing"]]  # fmt: skip
    show_fields(invocation.out, {
        "name": described["name"], "kind": described["kind"], "origin": described["origin"] or "",
        "includes": ", ".join(described["includes"]), "other names": ", ".join(described["aliases"]),
        "denied by": "\n".join(described["denied_by"]), "unknown": "\n".join(missing),
        "description": described["description"],
    })  # fmt: skip
    members = described["members"]
    if members:
        invocation.out.line("")
        show_table(
            invocation.out, _TOOLS, [[one["name"], one["state"], one["plugin"] or "", one["via"]] for one in members]
        )
    for names, one in _alike(members).values():
        invocation.out.line(f"\n{_sentences(names, one)}")


def _alike(members: list[dict[str, Any]]) -> dict[tuple[str | None, ...], tuple[list[str], dict[str, Any]]]:
    """The members that aren't there, those with one reason together."""
    found: dict[tuple[str | None, ...], tuple[list[str], dict[str, Any]]] = {}
    for one in members:
        if one["state"] != "available":
            reason = tuple(one[key] for key in ("why", "rule", "decided_by", "fix"))
            found.setdefault(reason, ([], one))[0].append(one["name"])
    return found


def _sentences(names: list[str], one: dict[str, Any]) -> str:
    """Why some members aren't there, and what would change it."""
    lines = [f"{', '.join(names)}: {one_line(one['why'], 500)} ({one['rule']})", one["decided_by"], one["fix"]]
    return "\n    ".join(one_line(line, 2000) for line in lines if line)
