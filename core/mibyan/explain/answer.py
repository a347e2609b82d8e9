"""`Claim` and `Answer`: who wants a tool's name, what became of it, and what would change it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from mibyan.records import as_dict, field, record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mibyan.report import Decision

#: What became of a claim. `ready`: it answers, and the session sees it; `unchecked`: likewise, if its check passes, which
#: only its plugin's code can tell; `hidden`: by the toolsets; `left_out`: of the
#: format; `displaced`: by an override; `rejected`: the name is another's; `rolled_back`: its plugin failed while loading;
#: `unregistered`: its plugin is loaded without having registered it; `near_miss`: a file that looks like a tool and isn't one; the others are the
#: states of its plugin.
ClaimState: TypeAlias = Literal[
    "ready", "unchecked", "hidden", "unavailable", "left_out", "displaced", "rejected", "rolled_back", "unregistered", "near_miss",
    "found", "disabled", "untrusted", "incompatible", "needs", "failed", "shadowed",
]  # fmt: skip

#: The states in which the claim has the name.
HOLDING: Final = frozenset({"ready", "unchecked", "hidden", "unavailable", "left_out"})


@record
class Claim:
    """One candidate for a name."""

    #: The tool's own name; `name` of the answer may be its alias.
    tool: str
    state: ClaimState
    #: Why, in one sentence.
    reason: str
    #: The rule that decided, such as `registry.R4`.
    rule: str
    #: The plugin's id, `host`, or `None` where the code belongs to no plugin.
    plugin: str | None = None
    #: `builtin`, `pip`, `user`, `project`, `tools`; `None` for the host.
    source: str | None = None
    toolset: str | None = None
    #: `file:line`, or the path of what is nearest to it.
    origin: str | None = None
    #: The configuration line that decided, with its key.
    decided_by: str | None = None
    #: The command or line that would change it.
    fix: str | None = None

    @property
    def holds(self) -> bool:
        """Whether it has the name."""
        return self.state in HOLDING

    def to_dict(self) -> dict[str, Any]:
        """The claim as a JSON object."""
        return as_dict(self)


@record
class Answer:
    """Why a name means what it means."""

    name: str
    #: The state of the claim that has the name; `absent`: somebody wants it, nobody has it; `unknown`: nobody wants it.
    state: str
    #: The whole in one sentence.
    sentence: str
    #: Whoever has the name comes first.
    claims: tuple[Claim, ...] = ()
    #: Formats that can't express the tool, each with the reason.
    left_out: Mapping[str, str] = field(default_factory=dict)
    #: What can't be known without running plugins' code.
    open_questions: tuple[str, ...] = ()
    #: The names that were probably meant.
    suggestions: tuple[str, ...] = ()
    #: Where such a tool could come from.
    ways: tuple[str, ...] = ()
    #: What keeps calls of it from running although it is there: policies that block, with the way out.
    obstacles: tuple[str, ...] = ()
    #: What the report has about the tool.
    decisions: tuple[Decision, ...] = ()

    @property
    def holder(self) -> Claim | None:
        """The claim that has the name."""
        return self.claims[0] if self.claims and self.claims[0].holds else None

    def to_dict(self) -> dict[str, Any]:
        """The answer as a JSON object."""
        return {
            "name": self.name, "state": self.state, "sentence": self.sentence,
            "candidates": [claim.to_dict() for claim in self.claims], "left_out": dict(self.left_out),
            "unknown": list(self.open_questions), "suggestions": list(self.suggestions), "ways": list(self.ways), "obstacles": list(self.obstacles),
            "decisions": [decision.to_dict() for decision in self.decisions],
        }  # fmt: skip
