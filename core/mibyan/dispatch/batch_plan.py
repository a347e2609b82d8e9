"""`BatchPlan`: what of several calls runs together, what waits for what, and what asks (dispatch.P1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.once import once
from mibyan.records import record
from mibyan.text import one_line

if TYPE_CHECKING:
    from mibyan.dispatch.batch_plan_order import Wait
    from mibyan.dispatch.resources_needs import Kind


@record
class PlannedCall:
    """One call of a plan."""

    #: Its position among the calls, from 0.
    index: int
    id: str | None
    #: The tool's own name where it is known, else the name that was asked for.
    name: str
    #: `free`: beside all but barriers; `named`: beside those that touch other things; `barrier`: alone. `None`: it
    #: is refused before it would run.
    kind: Kind | None
    #: Why it is a barrier, or why it is refused.
    why: str = ""
    #: Whether it does more than read.
    effects: bool = False
    #: What it reads and writes: absolute paths, without symbolic links.
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    #: The earlier calls that it waits for.
    waits: tuple[Wait, ...] = ()
    #: What a person would be asked; `None`: its tool doesn't ask.
    asks: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON object with every field."""
        waits = [{"on": wait.on, "why": wait.why, "what": wait.what} for wait in self.waits]
        return {
            "index": self.index, "id": self.id, "name": self.name, "kind": self.kind, "why": self.why,
            "effects": self.effects, "reads": list(self.reads), "writes": list(self.writes), "waits": waits,
            "asks": self.asks,
        }  # fmt: skip


@record(slots=False)
class BatchPlan:
    """The plan of several calls, made without running one.

    What `pre_tool_call` hooks will say isn't known: `call_many` plans with the arguments that they leave.
    """

    calls: tuple[PlannedCall, ...]
    #: Calls that run at once, at most.
    max_workers: int
    #: The `pre_tool_call` implementations that will be asked, as people find them.
    hooks: tuple[str, ...] = ()
    #: The session's working directory, from which paths are shown.
    cwd: str = ""

    @once
    def waves(self) -> tuple[tuple[int, ...], ...]:
        """The positions of the calls in the order of their start, if all took equally long; refused ones left out."""
        level: dict[int, int] = {}
        for call in self.calls:
            if call.kind is not None:
                level[call.index] = 1 + max((level[wait.on] for wait in call.waits), default=-1)
        waves: list[list[int]] = [[] for _ in range(1 + max(level.values(), default=-1))]
        for index, at in level.items():
            waves[at].append(index)
        return tuple(tuple(wave) for wave in waves)

    def explain(self) -> str:
        """The plan in words, for people: several lines, without a line break at the end."""
        lines = [self._summary()]
        for number, wave in enumerate(self.waves, 1):
            lines.append(f"{number}. {'together' if len(wave) > 1 else 'alone'}:")
            lines += [line for index in wave for line in self._told(self.calls[index])]
        refused = [call for call in self.calls if call.kind is None]
        if refused:
            lines += ["Answered without running:", *(f"   {self._name(call)}: {call.why}" for call in refused)]
        return "\n".join([*lines, *self._asking()])

    def to_dict(self) -> dict[str, Any]:
        """A JSON object: `calls`, `waves`, `max_workers`, `hooks`."""
        return {
            "calls": [call.to_dict() for call in self.calls], "waves": [list(wave) for wave in self.waves],
            "max_workers": self.max_workers, "hooks": list(self.hooks),
        }  # fmt: skip

    # In words ----------------------------------------------------------------------------------------------------

    def _summary(self) -> str:
        count, waves = len(self.calls), len(self.waves)
        return (
            f"{count} call{'' if count == 1 else 's'} in {waves} step{'' if waves == 1 else 's'}, "
            f"at most {self.max_workers} at once:"
        )

    def _told(self, call: PlannedCall) -> list[str]:
        touches = [f"{verb} {self._paths(paths)}" for verb, paths in (("reads", call.reads), ("writes", call.writes))
                   if paths]  # fmt: skip
        kind = {"free": "touches nothing that others write", "barrier": f"beside no other: {call.why}"}.get(
            str(call.kind)
        )
        lines = [f"   {self._name(call)}: {'; '.join(touches) or kind or 'touches nothing'}"]
        for reason, on in self._reasons(call).items():
            lines.append(f"      waits for {', '.join(self._name(self.calls[index]) for index in on)}: {reason}")
        return lines

    def _reasons(self, call: PlannedCall) -> dict[str, list[int]]:
        """Why a call waits, with those it waits for; without those that one of them waits for anyway."""
        implied = {index for wait in call.waits for index in self._before[wait.on]}
        reasons: dict[str, list[int]] = {}
        for wait in call.waits:
            if wait.on not in implied:
                reasons.setdefault(self._reason(wait), []).append(wait.on)
        return reasons

    @once
    def _before(self) -> list[set[int]]:
        """For each call, all that end before it begins."""
        before: list[set[int]] = []
        for call in self.calls:
            direct = {wait.on for wait in call.waits}
            before.append(direct.union(*(before[index] for index in direct)))
        return before

    def _reason(self, wait: Wait) -> str:
        if wait.why == "same":
            return f"both touch {self._shown(wait.what)}"
        if wait.why == "barrier":
            return f"{'that one' if wait.of == wait.on else 'it'} runs beside no other"
        return f"where the paths of {self._name(self.calls[wait.of])} lead isn't known before"

    def _asking(self) -> list[str]:
        asking = [call for call in self.calls if call.asks is not None]
        lines = [f"   {self._name(call)}: {call.asks}" for call in asking]
        if lines:
            lines.insert(0, "Asks, before any call with effects starts:")
        if self.hooks:
            lines.append(f"Hooks may block, ask or change arguments: {', '.join(self.hooks)}.")
        return lines

    def _name(self, call: PlannedCall) -> str:
        shown = f" ({one_line(call.id, 60)})" if call.id else ""
        return f"{call.index + 1} {one_line(call.name, 80)}{shown}"

    def _paths(self, paths: tuple[str, ...]) -> str:
        more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
        return ", ".join(self._shown(path) for path in paths[:5]) + more

    def _shown(self, path: str) -> str:
        short = path.removeprefix(f"{self.cwd}/") if self.cwd else path
        return one_line("." if path == self.cwd else short, 200)
