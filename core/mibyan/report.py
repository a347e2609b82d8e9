"""Decisions are data: every one is a record with who, what, why, and the sentence that would change it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from mibyan.records import as_dict, field, record

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator


@record
class Decision:
    """One decision that the runtime took."""

    #: What was decided: `loaded`, `failed`, `rejected`, `overridden`, `replaced`, `hidden`, `unavailable`, `denied`,
    #: `blocked`, `shadowed`, `disabled`, `untrusted`, `incompatible`, `unknown`, `skipped`, `warning`.
    kind: str
    #: What it is about: `tool:NAME`, `toolset:NAME`, `plugin:ID`, `hook:NAME`, `config:KEY`, `lock:ID`
    #: (a plugin that isn't as it is locked).
    subject: str
    #: Why, in one sentence.
    reason: str
    #: The plugin whose doing it concerns, if any.
    plugin_id: str | None = None
    #: Where it came from: a path, `file:line`, or a distribution.
    origin: str | None = None
    #: The exact command or configuration line that would change it.
    fix: str | None = None
    #: Whether an operator would want to know (it is listed in `Report.problems`).
    problem: bool = False
    #: The rule that decided: `registry.R4`, `plugins.L6`.
    rule: str | None = None
    #: The configuration line that decided, with its key: `/home/me/.mibyan/config.yaml:3: plugins.disabled[0]`.
    decided_by: str | None = None
    #: More than a sentence can hold: a unified diff.
    detail: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The record as a JSON object; empty fields are left out."""
        return {key: value for key, value in as_dict(self).items() if value is not None}


def turn_off(plugin_id: str | None) -> str | None:
    """The command that turns a plugin off; `None` where it is nobody's doing that could be."""
    return None if plugin_id is None else f"mibyan plugins disable {plugin_id}"


@record
class Report:
    """What a runtime has decided so far, oldest first."""

    decisions: tuple[Decision, ...] = field(default=())

    @property
    def problems(self) -> tuple[Decision, ...]:
        """The decisions an operator would want to know about."""
        return tuple(decision for decision in self.decisions if decision.problem)

    def about(self, subject: str) -> tuple[Decision, ...]:
        """The decisions about one subject, such as `tool:terminal`."""
        return tuple(decision for decision in self.decisions if decision.subject == subject)

    def to_dict(self) -> dict[str, Any]:
        """`{"decisions": [...], "problems": [...]}`, JSON objects in both."""
        return {
            "decisions": [decision.to_dict() for decision in self.decisions],
            "problems": [decision.to_dict() for decision in self.problems],
        }


class DecisionLog:
    """The records of one runtime: appended from any thread, each distinct one kept once."""

    #: A runaway plugin must not fill the memory: the oldest records beyond this number are dropped.
    LIMIT = 10_000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._decisions: dict[Decision, None] = {}

    def add(self, decision: Decision) -> bool:
        """Keep `decision`; false when the same one was there already."""
        with self._lock:
            if decision in self._decisions:
                return False
            if len(self._decisions) >= self.LIMIT:
                del self._decisions[next(iter(self._decisions))]
            self._decisions[decision] = None
            return True

    def forget(self, subject: str, origin: str | None = None) -> None:
        """Drop what was said about `subject` (it is about to be decided anew); with an origin only of what is there."""
        self._drop(lambda decision: decision.subject == subject and origin in {None, decision.origin})

    def retract(self, plugin_id: str, kinds: Collection[str]) -> None:
        """Drop the decisions of some kinds that came of what a plugin did: it is gone, and they aren't so any more."""
        self._drop(lambda decision: decision.plugin_id == plugin_id and decision.kind in kinds)

    def take_back(self, decision: Decision) -> None:
        """Drop one decision: it isn't so any more."""
        self._drop(lambda one: one is decision)

    def _drop(self, is_over: Callable[[Decision], bool]) -> None:
        # Nearly always there is none: then nothing is hashed again.
        with self._lock:
            for decision in [one for one in self._decisions if is_over(one)]:
                del self._decisions[decision]

    def after_fork(self) -> None:
        """In a child process: nobody else writes."""
        self._lock = threading.Lock()

    def report(self) -> Report:
        """A snapshot."""
        with self._lock:
            return Report(tuple(self._decisions))

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.report().decisions)
