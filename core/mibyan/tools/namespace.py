"""The namespace policy: who holds a name, decided from what every owner has done about it.

A name's history is a short list of `Act`s. `replay` says who holds the name after them; removing an owner is
replaying what the others did. So a registry always looks as if only the owners that are still there had ever acted.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.owner import Owner

#: registry.R11: the tool-search bridge and the agent-level tools.
RESERVED: frozenset[str] = frozenset({
    "tool_search", "tool_describe", "tool_call",
    "todo_list", "todo", "memory", "session_search", "delegate_task",
})  # fmt: skip

#: Acts of one contested name, after which those that don't matter any more are dropped: a plugin that registers and
#: removes it for ever must not fill the memory.
_HISTORY = 256


class Verdict(Enum):
    """What the policy says of one registration."""

    #: The name was free.
    TAKEN = "taken"
    #: The same owner registered it again in the same toolset.
    REPLACED = "replaced"
    #: Another's tool is displaced: both keys were there.
    OVERRIDDEN = "overridden"
    #: Another's tool is displaced: `namespace.collisions` is `last_wins`.
    LAST_WINS = "last_wins"
    #: The name is another's.
    REJECTED = "rejected"
    #: `override=True` without the operator's opt-in.
    REFUSED = "refused"
    #: The name is kept for the runtime itself.
    RESERVED = "reserved"
    #: It isn't what `mibyan.lock` has, and the lock counts (`mibyan.tools.lockguard`).
    LOCKED_OUT = "locked_out"

    @property
    def accepted(self) -> bool:
        """Whether the registration takes effect."""
        return self in _ACCEPTED


_ACCEPTED = {Verdict.TAKEN, Verdict.REPLACED, Verdict.OVERRIDDEN, Verdict.LAST_WINS}


@record(frozen=False, eq=False)
class Act:
    """One thing an owner did about a name: registered an entry, or (`entry=None`) removed it."""

    owner: Owner
    entry: ToolEntry | None
    override: bool = False


@record
class Policy:
    """The operator's rules.

    Args:
        last_wins: Whether `namespace.collisions` is `last_wins`.
        may_override: Whether the operator lets an owner override a tool.
    """

    last_wins: bool
    may_override: Callable[[Owner, str], bool]

    def decide(self, name: str, held: ToolEntry | None, act: Act) -> Verdict:
        """What becomes of `act`, which registers an entry, when `held` holds `name`."""
        owner, entry = act.owner, act.entry
        if name in RESERVED and not (owner.is_host or owner.is_builtin):
            return Verdict.RESERVED
        if held is None:
            return Verdict.TAKEN
        if held.owner is owner and entry is not None and held.toolset == entry.toolset:
            return Verdict.REPLACED
        if act.override:
            return Verdict.OVERRIDDEN if owner.is_host or self.may_override(owner, name) else Verdict.REFUSED
        return Verdict.LAST_WINS if self.last_wins and self._level(held.owner, owner) else Verdict.REJECTED

    @staticmethod
    def _level(held: Owner, new: Owner) -> bool:
        """Whether the two stand on one side of the border between plugins and what the operator started with."""
        return new.is_host or (new.kind == "plugin" and not new.is_builtin and _is_plugin(held)) or held is new


def _is_plugin(owner: Owner) -> bool:
    return owner.kind == "unattributed" or (owner.kind == "plugin" and not owner.is_builtin)


@record(frozen=False)
class Holding:
    """Who holds a name: the stack of accepted entries, the holder last."""

    stack: list[ToolEntry]
    #: What was said of each registration that didn't take effect.
    losers: list[tuple[Act, Verdict]]

    @property
    def holder(self) -> ToolEntry | None:
        """The entry that answers."""
        return self.stack[-1] if self.stack else None

    def lost_by(self, owner: Owner) -> ToolEntry | None:
        """What `owner` wanted to register last, and couldn't."""
        return next((act.entry for act, _ in reversed(self.losers) if act.owner is owner), None)


def replay(name: str, acts: Iterable[Act], policy: Policy) -> Holding:
    """Who holds `name` after `acts`."""
    holding = Holding([], [])
    for act in acts:
        perform(name, holding, act, policy)
    return holding


def perform(name: str, holding: Holding, act: Act, policy: Policy) -> Verdict:
    """Let `act` take effect on `holding`; what the policy said of it."""
    if act.entry is None:
        _remove(holding, act.owner)
        return Verdict.REPLACED
    verdict = policy.decide(name, holding.holder, act)
    if verdict is Verdict.REPLACED:
        holding.stack[-1] = act.entry
    elif verdict.accepted:
        # What the same owner had further down could never come back: it goes with this one.
        holding.stack[:] = [entry for entry in holding.stack if entry.owner is not act.owner]
        holding.stack.append(act.entry)
    else:
        _renew(holding, act)
        holding.losers.append((act, verdict))
    return verdict


def _remove(holding: Holding, owner: Owner) -> None:
    """Take away what `owner` holds; the host takes away what is on top."""
    target = holding.stack[-1].owner if owner.is_host and holding.stack else owner
    holding.stack[:] = [entry for entry in holding.stack if entry.owner is not target]
    holding.losers[:] = [(act, verdict) for act, verdict in holding.losers if act.owner is not target]


def _renew(holding: Holding, act: Act) -> None:
    """An owner whose entry is displaced keeps its place with the newer entry."""
    for index, entry in enumerate(holding.stack):
        if act.entry is not None and entry.owner is act.owner and entry.toolset == act.entry.toolset:
            holding.stack[index] = act.entry
            return


def noted(name: str, acts: list[Act], policy: Policy) -> list[Act]:
    """`acts` without what doesn't matter any more: a removal right after a removal; where there are many, much more."""
    if len(acts) > 1 and acts[-1].entry is None and acts[-2].entry is None and acts[-1].owner is acts[-2].owner:
        acts = acts[:-1]
    return acts if len(acts) < _HISTORY else trimmed(name, acts, policy)


def trimmed(name: str, acts: Iterable[Act], policy: Policy) -> list[Act]:
    """Fewer acts after which the same owners hold `name`: those in the stack, and the last claim of each loser."""
    holding, kept, rebuilt = replay(name, acts, policy), [], Holding([], [])
    for entry in holding.stack:
        act = Act(entry.owner, entry)
        if not policy.decide(name, rebuilt.holder, act).accepted:
            act = Act(entry.owner, entry, override=True)
        perform(name, rebuilt, act, policy)
        kept.append(act)
    return [*kept, *{act.owner: act for act, _ in holding.losers}.values()]
