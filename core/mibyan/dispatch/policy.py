"""What the `pre_tool_call` hooks decide: block beats ask beats modify, whatever their order (dispatch.H1, H2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.arguments import copy_arguments
from mibyan.hooks.decisions import Ask, Block, Modify, read_decision

if TYPE_CHECKING:
    from mibyan.dispatch.call import Call
    from mibyan.dispatch.chains import ChainRunner
    from mibyan.hooks.table import Implementation


@dataclass(slots=True)
class Ballot:
    """The decisions of one call, in the order of the implementations."""

    call: Call
    runner: ChainRunner
    blocks: list[tuple[str, Block]] = field(default_factory=list)
    asks: list[tuple[str, Ask]] = field(default_factory=list)
    changes: list[tuple[str, Modify]] = field(default_factory=list)

    def take(self, implementation: Implementation, answer: Any) -> None:
        """Count an answer.

        Raises:
            TypeError: It isn't a decision.
        """
        match read_decision(answer):
            case Block() as block:
                self.blocks.append((_who(implementation), block))
                self.call.note("hook", hook=implementation.label, decision="block")
            case Ask() as ask:
                self.asks.append((_who(implementation), ask))
                self.call.note("hook", hook=implementation.label, decision="ask")
            case Modify() as change:
                copied = Modify(copy_arguments(dict(change.args)), replace=change.replace)
                self.changes.append((_who(implementation), copied))
                self.call.note("hook", hook=implementation.label, decision="modify", keys=sorted(change.args))

    def fail(self, implementation: Implementation, how: str) -> None:
        """An implementation failed: its plugin can't say whether the call may run, so it may not."""
        if implementation.observer:
            self.runner.complain(implementation, how)
            return
        message = f"Blocked: {implementation.label} failed ({how}), and a policy that fails doesn't let calls through."
        self.blocks.append((_who(implementation), Block(message)))

    def modified(self) -> dict[str, Any]:
        """The arguments with all modifications; where two change one key the later plugin's counts."""
        args = copy_arguments(self.call.args)
        changed: dict[str, str] = {}
        for who, change in self.changes:
            if change.replace:
                args = {}
            for key, value in change.args.items():
                if key in changed and changed[key] != who:
                    self.call.note("modified_twice", key=key, by=[changed[key], who], wins=who)
                changed[key] = who
                args[key] = value
        return args


def _who(implementation: Implementation) -> str:
    return str(implementation.owner.id)
