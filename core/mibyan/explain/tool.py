"""`explain_tool`: every candidate for a name, and why the one that answers does (plugins.W5)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mibyan.errors import MibyanError
from mibyan.explain import session, unloaded
from mibyan.explain.answer import Answer
from mibyan.explain.registered import Registered, told
from mibyan.explain.session import Asked
from mibyan.explain.ways import suggested, ways
from mibyan.text import one_line
from mibyan.tools.verdicts import whose

if TYPE_CHECKING:
    from mibyan.explain.answer import Claim
    from mibyan.plugins.state import PluginRecord
    from mibyan.report import Decision
    from mibyan.runtime import Runtime
    from mibyan.tools.entry import ToolEntry


def explain_tool(runtime: Runtime, name: str, asked: Asked | None = None) -> Answer:
    """Why a tool is there or isn't.

    Plugins are loaded as they are for any session: those with frozen definitions aren't imported, unless `asked.load`.

    Args:
        runtime: The runtime.
        name: A tool's name or alias; any text.
        asked: The session that it is asked for; `None`: one without toolsets of its own.
    """
    return _Question(runtime, name, asked or Asked()).answer()


class _Question:
    """One question in the making."""

    def __init__(self, runtime: Runtime, name: str, asked: Asked) -> None:
        self.name = name
        self._asked = asked
        self._parts = runtime._parts
        self._parts.load()
        self._open: list[str] = []
        if asked.load:
            self._import_holder()
        self._records: tuple[PluginRecord, ...] = self._parts.plugins.all_records()
        self._registered = Registered(self._parts.store, self._records)

    def answer(self) -> Answer:
        entry = self._registered.holder(self.name)
        left_out = {} if entry is None else session.formats_without(entry)
        claims = [*([self._held(entry, left_out)] if entry is not None else []), *self._others(entry)]
        suggestions = [] if claims else suggested(self.name, self._parts, self._records)
        self._ask_further(entry, claims)
        return Answer(
            self.name, _state(claims), self._sentence(claims, suggestions), tuple(claims), left_out, tuple(self._open),
            tuple(suggestions), () if claims else tuple(ways(self.name, self._parts)), self._obstacles(),
            self._decisions(),
        )  # fmt: skip

    def _import_holder(self) -> None:
        """Import the plugin that has the name, so that its check can be asked."""
        entry = self._parts.store.find(self.name)
        if entry is None or entry.activate is None:
            return
        try:
            self._parts.plugins.activate(entry.owner.id)
        except MibyanError as error:
            self._open.append(f"plugin {entry.owner.id!r} can't be imported: {one_line(error.message, 500)}")

    def _held(self, entry: ToolEntry, left_out: dict[str, str]) -> Claim:
        found = session.judge(entry, self._parts, self._asked, left_out)
        return self._registered.of(entry, found.state, found.reason, found.rule, found.fix, found.decided_by)

    def _others(self, entry: ToolEntry | None) -> list[Claim]:
        """The candidates that don't have the name."""
        claims = list(self._registered.claims(self.name))
        known = {claim.plugin for claim in claims} | ({entry.plugin_id} if entry is not None else set())
        claims += told(self.name, self._decisions(), known)
        known = {claim.plugin for claim in claims}
        claims += [one for one in unloaded.of_plugins(self.name, self._records) if one.plugin not in known]
        known |= {claim.plugin for claim in claims} | ({entry.plugin_id} if entry is not None else set())
        claims += [one for one in unloaded.unregistered(self.name, self._records) if one.plugin not in known]
        notes, home, project = self._parts.plugins.notes, self._parts.home, self._parts.project
        claims += unloaded.of_files(self.name, self._records, notes, home, project)
        claims += unloaded.cloned(self.name, notes)
        return claims

    def _ask_further(self, entry: ToolEntry | None, claims: list[Claim]) -> None:
        if entry is not None and claims[0].state == "unchecked":
            self._open.append(f"{claims[0].reason}: `{claims[0].fix}` does that")
        if entry is None:
            self._open += unloaded.open_questions(self._records)
        if entry is None and self._parts.safe_mode:
            self._open.append(
                "in safe mode only built-in plugins were looked for: leave --safe-mode out to see the others"
            )

    def _obstacles(self) -> tuple[str, ...]:
        """What blocks calls, of this tool or of all."""
        report = self._parts.log.report()
        blocks = [
            one
            for subject in ("hook:pre_tool_call", f"tool:{self.name}")
            for one in report.about(subject)
            if one.kind == "blocked"
        ]
        return tuple(f"{one.reason} ({one.rule}): {one.fix}" for one in blocks)

    def _decisions(self) -> tuple[Decision, ...]:
        return self._parts.log.report().about(f"tool:{self.name}")

    def _sentence(self, claims: list[Claim], suggestions: list[str]) -> str:
        shown = one_line(self.name, 80)
        if not claims:
            meant = f" Did you mean {suggestions[0]!r}?" if suggestions else ""
            legal = "" if _LEGAL.fullmatch(self.name) else " No tool can have that name (registry.R1)."
            return f"There is no tool {shown!r}, and no plugin that was found has one.{legal}{meant}"
        first = claims[0]
        alias = "" if first.tool == self.name else f" (its alias; the tool is {first.tool!r})"
        entry = self._registered.holder(self.name)
        if entry is not None and first.state == "ready":
            return f"{shown!r} is there: {whose(entry.owner)} has it{alias}."
        if entry is not None and first.state == "unchecked":
            return f"{shown!r} is there if its check passes: {whose(entry.owner)} has it{alias}."
        if entry is not None:
            return f"{shown!r} is {first.state.replace('_', ' ')}{alias}: {one_line(first.reason, 500)}."
        return f"{shown!r} isn't there: {one_line(first.reason, 500)}."


_LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def _state(claims: list[Claim]) -> str:
    if not claims:
        return "unknown"
    return claims[0].state if claims[0].holds else "absent"
