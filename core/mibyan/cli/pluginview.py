"""Plugins as they are shown to people and told as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mibyan.cli.tables import Column, show_fields, show_table
from mibyan.errors import MibyanError
from mibyan.plugins.rows import day, row, tool_tokens
from mibyan.plugins.state import DISABLED, FOUND, PROBLEMS, RULES, USABLE, rejection
from mibyan.records import record, replace
from mibyan.report import Decision, DecisionLog
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mibyan.cli.output import Output
    from mibyan.plugins.lessons import Lessons
    from mibyan.plugins.state import PluginRecord
    from mibyan.runtime import Runtime
    from mibyan.tools.store import RegistrySnapshot

_STYLES: Final = {"active": "green", "ready": "green", "failed": "red", "incompatible": "red", "needs": "yellow",
                  "untrusted": "yellow", "shadowed": "dim", "disabled": "dim"}  # fmt: skip
_LIST: Final = (
    Column("ID"), Column("SOURCE"), Column("VERSION"), Column("STATE", styles=_STYLES), Column("TOOLS", right=True),
    Column("HOOKS", right=True), Column("OVERRIDES", right=True), Column("IMPORT MS", right=True),
    Column("TOKENS", right=True), Column("LOADED"),
)  # fmt: skip
#: The states whose tools count: usable, or not looked at further.
_COUNTED: Final = USABLE | {FOUND}
#: What `plugins list --sort` takes, and the number that it sorts by.
SORT_KEYS: Final[dict[str, Callable[[dict[str, Any]], float]]] = {
    "tokens": lambda one: one["schema_tokens"],
    "import": lambda one: one["import_ms"] or 0.0,
    "tools": lambda one: len(one["tools"]),
}


def off(record: PluginRecord) -> PluginRecord:
    """The record of a plugin that is off because the configuration can't be used (plugins.L6)."""
    if record.state != FOUND and record.loaded_at is None:
        return record
    reason = "the configuration can't be used, and until it is mended plugins are off"
    return replace(
        record, state=DISABLED, reason=reason, hint="mibyan config validate", loaded_at=None, rule="", decided_by=None
    )


@record
class Found:
    """The plugins that a command was run for."""

    runtime: Runtime
    records: Sequence[PluginRecord]
    #: Whether they were loaded.
    loaded: bool = False

    def objects(self) -> list[dict[str, Any]]:
        """The plugins as JSON objects."""
        snapshot = self.runtime.registry.snapshot if self.loaded else None
        return [_object(record, snapshot) for record in self.records]

    def problems(self) -> list[dict[str, Any]]:
        """What an operator would want to know, as JSON objects."""
        if self.loaded:
            return [problem.to_dict() for problem in self.runtime.report().problems]
        from mibyan.plugins.telling import tell_notes

        log = DecisionLog()
        for one in self.records:
            if one.state in PROBLEMS:
                log.add(Decision(one.state, f"plugin:{one.id}", one.reason, one.id, one.origin, one.hint, problem=True,
                                 rule=one.rule or RULES[one.state], decided_by=one.decided_by))  # fmt: skip
        tell_notes(self.runtime.plugins.notes, log)
        return [problem.to_dict() for problem in log.report().problems]


def _object(record: PluginRecord, snapshot: RegistrySnapshot | None) -> dict[str, Any]:
    try:
        return row(record, snapshot)
    except MibyanError:  # A typed function whose schema can't be made: it costs nothing, as no model sees it.
        return row(record)


def in_order(objects: Sequence[dict[str, Any]], by: str | None) -> list[dict[str, Any]]:
    """Plugins as they are in order, or by one of `SORT_KEYS`, the dearest first."""
    return list(objects) if by is None else sorted(objects, key=lambda one: -SORT_KEYS[by](one))


def print_list(out: Output, objects: Sequence[dict[str, Any]], problems: Sequence[dict[str, Any]]) -> None:
    """The table of the plugins, what they cost in all, and below that what isn't as somebody might expect."""
    show_table(out, _LIST, [_row(one) for one in objects])
    out.line(f"\n{totals(objects)}")
    told = [*(_sentences(one["subject"].partition(":")[2], one) for one in problems), *_disabled(objects)]
    told += _rejected(objects, {one["subject"] for one in problems if one["kind"] == "rejected"})
    if told:
        out.line("")
    for lines in told:
        out.line(lines)


def totals(objects: Sequence[dict[str, Any]]) -> str:
    """What the plugins cost that nothing speaks against, in a sentence."""
    usable = [one for one in objects if one["state"] in _COUNTED]
    tools, tokens = sum(len(one["tools"]) for one in usable), sum(one["schema_tokens"] for one in usable)
    told = f"{len(usable)} of {len(objects)} plugins can be used: {tools} tools, whose definitions are about {tokens:,} tokens"
    imported = [one for one in usable if one["import_ms"] is not None]
    slowest = max(imported, key=lambda one: (one["import_ms"], one["id"]), default=None)
    return f"{told}; slowest import: {slowest['id']}, {slowest['import_ms']:g} ms." if slowest else f"{told}."


def _row(one: dict[str, Any]) -> list[str]:
    counts = [str(len(one[key])) if one[key] else "" for key in ("tools", "hooks", "overrides")]
    import_ms = "" if one["import_ms"] is None else f"{one['import_ms']:g}"
    tokens = str(one["schema_tokens"] or "")
    return [one["id"], one["source"], one["version"], one["state"], *counts, import_ms, tokens, day(one["loaded_at"])]


def _disabled(objects: Sequence[dict[str, Any]]) -> list[str]:
    """A plugin that is off is no problem, but its reader may wonder."""
    return [
        _sentences(
            one["id"],
            {"kind": one["state"], "reason": one["reason"], "fix": one["fix"], "decided_by": one["decided_by"]},
        )
        for one in objects
        if one["state"] == DISABLED
    ]


def _rejected(objects: Sequence[dict[str, Any]], subjects: set[str]) -> list[str]:
    """A plugin that works, but hasn't all the names that it wants; what was told of a tool isn't told again."""
    return [
        _sentences(one["id"], {"kind": one["state"], "reason": rejection(one["rejected"]),
                               "fix": f"mibyan tools why {one['rejected'][0]}"})
        for one in objects
        if one["rejected"] and not {f"tool:{name}" for name in one["rejected"]} <= subjects
    ]  # fmt: skip


def _sentences(who: str, problem: dict[str, Any]) -> str:
    more = [problem.get("decided_by"), problem.get("fix")]
    fix = "".join(f"\n    {one_line(line, 500)}" for line in more if line)
    return f"{one_line(who, 200)}: {problem['kind']}: {one_line(problem['reason'], 1000)}{fix}"


def details(record: PluginRecord, records: Sequence[PluginRecord], lessons: Lessons) -> dict[str, Any]:
    """One plugin as a JSON object, with its manifest, its commands, what each tool costs, and whose tools it overrides.

    Args:
        record: The plugin.
        records: All plugins, in order.
        lessons: What was learned of them.
    """
    from mibyan.plugins.foreseen import foresee

    manifest = record.candidate.manifest
    seen = foresee((record,), lessons)
    commands, cli = seen.commands or seen.closed_commands, seen.cli or seen.closed_cli
    return {
        **_object(record, None),
        "rule": record.rule or RULES[record.state],
        "commands": [
            {"name": one.name, "description": one.description, "args_hint": one.args_hint} for one in commands.values()
        ],
        "cli": list(cli),
        "tool_tokens": tool_tokens(record),
        "displaced": {name: _other_owner(name, record, records) for name in record.overrides},
        "manifest": None if manifest is None else manifest.to_data(),
    }


def _other_owner(name: str, record: PluginRecord, records: Sequence[PluginRecord]) -> str | None:
    """The plugin that would have a tool if `record` didn't override it, as far as that is known without loading."""
    others = (one for one in records if one is not record and one.state in _COUNTED and name in one.tools)
    return next((one.id for one in others), None)


def print_details(out: Output, told: dict[str, Any]) -> None:
    """One plugin for people."""
    manifest = told["manifest"] or {}
    said = ("description", "author", "homepage", "license", "requires_mibyan", "role")
    show_fields(out, {
        **{key: told[key] for key in ("id", "source", "version", "state", "reason")},
        "to change it": told["fix"] or "",
        "loaded at": told["loaded_at"] or "",
        "import": "" if told["import_ms"] is None else f"{told['import_ms']:g} ms",
        "rule": told["rule"],
        "decided by": told["decided_by"] or "",
        "origin": told["origin"],
        **{key: str(manifest.get(key, "")) for key in said},
        **{key: ", ".join(manifest.get(key, ())) for key in ("requires_plugins", "after")},
        **_offers(told, manifest),
        "tokens": str(told["schema_tokens"] or ""),
        "settings": ", ".join((manifest.get("config_schema") or {}).get("properties", ())),
        **{f"needs {what}": ", ".join(names) for what, names in needs(manifest).items()},
        "permissions": ", ".join(manifest.get("permissions", ())),
    })  # fmt: skip


def _offers(told: dict[str, Any], manifest: dict[str, Any]) -> dict[str, str]:
    """What a plugin offers, a line each."""
    tokens: dict[str, int] = told["tool_tokens"]
    tools = [f"{name} ({tokens[name]} tokens)" if tokens.get(name) else name for name in told["tools"]]
    overrides = [f"{name} (of plugin {owner})" if owner else name for name, owner in told["displaced"].items()]
    lists = {"tools": tools, "overrides": overrides, "rejected": told["rejected"], "hooks": told["hooks"],
             "commands": [_command(one) for one in told["commands"]], "cli": told["cli"], "skills": manifest.get("skills", ()),
             "environments": manifest.get("environments", ())}  # fmt: skip
    return {what: "\n".join(names) for what, names in lists.items()}


def _command(one: dict[str, str]) -> str:
    usage = f"{one['name']} {one['args_hint']}".rstrip()
    return one_line(f"{usage}: {one['description']}" if one["description"] else usage)


def needs(manifest: dict[str, Any]) -> dict[str, list[str]]:
    """What a plugin's manifest and its tools' entries there say that they need: variables, programs and modules, sorted."""
    every = [manifest.get("requires") or {}, *(one.get("requires") or {} for one in manifest.get("tools") or ())]
    kinds = {"variables": "env", "programs": "bins", "modules": "modules"}
    return {what: sorted({name for one in every for name in one.get(key, ())}) for what, key in kinds.items()}
