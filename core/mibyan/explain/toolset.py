"""`explain_toolset`: what a toolset's name stands for, by which way each tool gets in, and what keeps others out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.explain import session
from mibyan.explain.places import code_of, place_of_tool
from mibyan.explain.registered import Registered
from mibyan.explain.sources import registrations_in
from mibyan.explain.tool import explain_tool
from mibyan.plugins.state import RULES, standing
from mibyan.records import as_dict, record
from mibyan.text import did_you_mean
from mibyan.toolsets.bundles import BUNDLES, EVERYTHING, home_of, is_taken

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mibyan.parts import Parts
    from mibyan.plugins.state import PluginRecord
    from mibyan.runtime import Runtime
    from mibyan.tools.entry import ToolEntry
    from mibyan.toolsets.expansion import Expansion

#: Why a tool that is there is there.
_THERE = "it is registered, nothing hides it, and it is available"


@record
class Member:
    """One tool that a toolset's name stands for, or would."""

    name: str
    #: `available`, `denied`, `not enabled`, `unavailable`, `not registered`, `absent` (its plugin isn't loaded), `kept out`
    #: (by a preset's rule).
    state: str
    #: The toolsets that lead to it: `mibyan-cli > core > web`.
    via: str
    why: str = ""
    rule: str = ""
    plugin: str | None = None
    origin: str | None = None
    decided_by: str | None = None
    fix: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The member as a JSON object; the state with its reason, where there is one to give."""
        state = f"{self.state}: {self.why}" if self.state in {"unavailable", "absent"} else self.state
        return {**as_dict(self), "state": state}


def explain_toolset(runtime: Runtime, name: str) -> tuple[Member, ...]:
    """The tools of a toolset: those that it stands for, by name; then those that would belong to it.

    Args:
        runtime: The runtime; frozen plugins aren't imported.
        name: A toolset that there is.
    """
    parts = runtime._parts
    parts.load()
    records = parts.plugins.all_records()
    expansion = parts.toolsets.expansion(name)
    registered = Registered(parts.store, records)
    there = [_member(runtime, registered, expansion, tool) for tool in expansion.tools]
    kept_out = [_kept_out(registered, expansion, tool) for tool in sorted(expansion.dropped)]
    known = {member.name for member in there}
    return (*there, *kept_out, *(one for one in _absent(records, expansion) if one.name not in known))


def where_missing(expansion: Expansion, suggest: Any) -> list[dict[str, Any]]:
    """The unknown names that are included somewhere: `{"name", "included_by", "suggestion"}`."""
    return [{"name": name, "included_by": includer, "suggestion": suggest(name)}
            for name, includer in sorted(expansion.missing.items())]  # fmt: skip


def _member(runtime: Runtime, registered: Registered, expansion: Expansion, tool: str) -> Member:
    via = " > ".join(expansion.via(tool))
    entry = registered.holder(tool)
    if entry is None:
        return _unregistered(runtime, tool, via)
    found = session.judge(entry, runtime._parts, session.Asked(load=True), {})
    why = _THERE if found.state == "ready" else found.reason
    return Member(tool, _state(found, runtime._parts, entry), via, why, found.rule, entry.owner.id,
                  registered.place(entry), found.decided_by, found.fix)  # fmt: skip


def _state(found: session.Finding, parts: Parts, entry: ToolEntry) -> str:
    if found.state == "hidden":
        denied = dict(parts.toolsets.select().denied)
        return "denied" if entry.name in denied else "not enabled"
    return "available" if found.state == "ready" else found.state


def _unregistered(runtime: Runtime, tool: str, via: str) -> Member:
    answer = explain_tool(runtime, tool)
    if not answer.claims:
        meant = did_you_mean(next(iter(answer.suggestions), None))
        return Member(tool, "not registered", via, f"no plugin has it{meant}", "registry.T2",
                      fix=f"mibyan tools why {tool}")  # fmt: skip
    first = answer.claims[0]
    return Member(tool, "not registered", via, first.reason, first.rule, first.plugin, first.origin, first.decided_by,
                  first.fix)  # fmt: skip


def _kept_out(registered: Registered, expansion: Expansion, tool: str) -> Member:
    bundle, rule = expansion.dropped[tool]
    entry = registered.holder(tool)
    plugin, place = (None, None) if entry is None else (entry.owner.id, registered.place(entry))
    why = f"{bundle!r} takes {rule.value}"
    return Member(
        tool, "kept out", bundle, why, "registry.T3", plugin, place, None, f"Enable its own toolset, not {bundle!r}."
    )


def _absent(records: Sequence[PluginRecord], expansion: Expansion) -> Iterator[Member]:
    """The tools that plugins would add to the toolset, if they were loaded."""
    for one in records:
        if one.is_usable:
            continue
        for tool, toolset, place in _offered(one):
            way = _way(expansion, home_of(toolset))
            if way is not None:
                why = f"plugin {one.id!r} {standing(one.state, one.reason)}"
                yield Member(tool, "absent", " > ".join(way), why, one.rule or RULES[one.state], one.id, place,
                             one.decided_by, one.hint)  # fmt: skip


def would_bring(runtime: Runtime, toolset: str) -> PluginRecord | None:
    """A plugin that isn't loaded and would register tools under a toolset's name, if there is one."""
    for one in runtime._parts.plugins.all_records():
        if not one.is_usable and any(home_of(found) == toolset for _, found, _ in _offered(one)):
            return one
    return None


def _offered(one: PluginRecord) -> Iterator[tuple[str, str, str]]:
    """Name, toolset and place of the tools that a plugin would register, as far as its text tells."""
    manifest = one.candidate.manifest
    if manifest is not None and manifest.frozen:
        yield from ((tool.name, tool.toolset, place_of_tool(one.candidate, tool)) for tool in manifest.tools)
        return
    for found in registrations_in(code_of(one.candidate)).found:
        if found.name and found.toolset:
            yield found.name, found.toolset, found.place


def _way(expansion: Expansion, toolset: str) -> tuple[str, ...] | None:
    """The way from the expanded toolset to one that it includes, or would if there were tools in it."""
    if toolset in expansion.toolsets:
        return expansion.way(toolset)
    for name in expansion.toolsets:
        takes_all = name == EVERYTHING or (name in BUNDLES and BUNDLES[name].plugins and not is_taken(toolset))
        if takes_all:
            return (*expansion.way(name), toolset)
    return None
