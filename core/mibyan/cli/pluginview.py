"""Plugins as they are shown to people and told as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mibyan.cli.tables import Column, show_fields, show_table
from mibyan.errors import MibyanError
from mibyan.plugins.rows import day, row
from mibyan.plugins.state import DISABLED, FOUND, PROBLEMS, RULES
from mibyan.records import record, replace
from mibyan.report import Decision, DecisionLog
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.cli.output import Output
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


def print_list(out: Output, objects: Sequence[dict[str, Any]], problems: Sequence[dict[str, Any]]) -> None:
    """The table of the plugins, and below it what isn't as somebody might expect."""
    show_table(out, _LIST, [_row(one) for one in objects])
    told = [*(_sentences(one["subject"].partition(":")[2], one) for one in problems), *_disabled(objects)]
    if told:
        out.line("")
    for lines in told:
        out.line(lines)


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
            {"kind": one["state"], "reason": one["reason"], "fix": one["hint"], "decided_by": one["decided_by"]},
        )
        for one in objects
        if one["state"] == DISABLED
    ]


def _sentences(who: str, problem: dict[str, Any]) -> str:
    more = [problem.get("decided_by"), problem.get("fix")]
    fix = "".join(f"\n    {one_line(line, 500)}" for line in more if line)
    return f"{one_line(who, 200)}: {problem['kind']}: {one_line(problem['reason'], 1000)}{fix}"


def details(record: PluginRecord) -> dict[str, Any]:
    """One plugin as a JSON object, with its manifest."""
    manifest = record.candidate.manifest
    ruled = {"rule": record.rule or RULES[record.state], "decided_by": record.decided_by}
    return {**_object(record, None), **ruled, "manifest": None if manifest is None else manifest.to_data()}


def print_details(out: Output, told: dict[str, Any]) -> None:
    """One plugin for people."""
    manifest = told["manifest"] or {}
    said = ("description", "author", "homepage", "license", "requires_mibyan", "role")
    lists = ("tools", "hooks", "overrides")
    show_fields(out, {
        **{key: told[key] for key in ("id", "source", "version", "state", "reason")},
        "loaded at": told["loaded_at"] or "",
        "next": told["hint"] or "",
        "rule": told["rule"],
        "decided by": told["decided_by"] or "",
        "origin": told["origin"],
        **{key: str(manifest.get(key, "")) for key in said},
        **{key: ", ".join(manifest.get(key, ())) for key in ("requires_plugins", "after", "permissions")},
        **{key: ", ".join(told[key]) for key in lists},
    })  # fmt: skip
