"""What the `pre_tool_call` hooks decide: block beats ask beats modify, whatever their order (dispatch.H1, H2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mibyan.dispatch.arguments import copy_arguments
from mibyan.hooks.decisions import Ask, Block, Modify, PreDecision, read_decision
from mibyan.records import field, record
from mibyan.text import plain_text

if TYPE_CHECKING:
    from mibyan.dispatch.call import Call
    from mibyan.dispatch.chains import ChainRunner
    from mibyan.hooks.table import Implementation


@record(frozen=False)
class Ballot:
    """The decisions of one call, in the order of the implementations."""

    call: Call
    runner: ChainRunner
    blocks: list[tuple[str, Block]] = field(default_factory=list)
    asks: list[tuple[str, Ask]] = field(default_factory=list)
    changes: list[tuple[str, Modify]] = field(default_factory=list)

    def take(self, implementation: Implementation, decision: PreDecision) -> None:
        """Count a decision."""
        who, what = _who(implementation), type(decision).__name__.lower()
        facts: dict[str, Any] = {}
        match decision:
            case Block():
                self.blocks.append((who, decision))
                self.runner.tell_block(implementation, self.call)
            case Ask():
                self.asks.append((who, decision))
            case Modify():
                self.changes.append((who, decision))
                facts = {"keys": sorted(decision.args)}
            case None:
                return
        self.call.note("hook", hook=implementation.label, decision=what, **facts)

    def fail(self, implementation: Implementation, how: str) -> None:
        """An implementation failed: its plugin can't say whether the call may run, so it may not."""
        if implementation.observer:
            self.runner.complain(implementation, how)
            return
        message = f"Blocked: {implementation.label} failed ({how}), and a policy that fails doesn't let calls through."
        self.blocks.append((_who(implementation), Block(message)))
        self.runner.tell_block(implementation, self.call, failed=True)

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


def read_answer(answer: Any) -> PreDecision:
    """The decision in an implementation's answer, in plain types of our own; what it changes is copied.

    Raises:
        BaseException: It isn't a decision.
    """
    match read_decision(answer):
        case Block(message):
            return Block(plain_text(message))
        case Ask(reason, key):
            return Ask(plain_text(reason), None if key is None else plain_text(key))
        case Modify(args, replace):
            return Modify(copy_arguments(dict(args)), replace=replace is True)
    return None


def _who(implementation: Implementation) -> str:
    return str(implementation.owner.id)


def read_approval(answer: Any) -> Any:
    """What a tool's own approval says: `None`, `Ask`, `Block` or a `Verdict`, in plain types of our own.

    Raises:
        TypeError: It is none of these.
    """
    if answer is not None and not isinstance(answer, Ask | Block | Modify | Mapping):
        from mibyan.approvals.verdict import Verdict, plain_verdict

        if isinstance(answer, Verdict):
            return plain_verdict(answer)
    decision = read_answer(answer)
    if isinstance(decision, Modify):
        msg = "expected None, Ask, Block or Verdict, got Modify"
        raise TypeError(msg)
    return decision
