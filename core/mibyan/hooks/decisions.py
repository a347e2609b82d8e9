"""What a `pre_tool_call` implementation may answer: `None`, `Block`, `Ask` or `Modify`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from mibyan.records import record


@record
class Block:
    """The call must not run.

    Args:
        message: Why, for the model.
    """

    message: str


@record
class Ask:
    """A person must approve the call first.

    Args:
        reason: What the person is told.
        key: The grant's name: a `session` answer covers later calls that ask with the same key.
    """

    reason: str
    key: str | None = None


@record
class Modify:
    """Change the arguments.

    Args:
        args: The changed keys; with `replace=True` all arguments.
        replace: Whether `args` stands for all arguments.
    """

    args: Mapping[str, Any]
    replace: bool = False


PreDecision: TypeAlias = Block | Ask | Modify | None


def read_decision(answer: Any) -> PreDecision:
    """The decision in a `pre_tool_call` implementation's answer.

    The dicts of other plugin systems are read too: `{"action": "block", "message": ...}`,
    `{"action": "approve", "message": ..., "rule_key": ...}`, `{"action": "modify", "args": ...}`.

    Raises:
        TypeError: `answer` is none of these.
    """
    if answer is None or isinstance(answer, Block | Ask | Modify):
        return _checked(answer)
    if isinstance(answer, Mapping):
        match answer.get("action"):
            case "block":
                return _checked(Block(answer.get("message") or "blocked by policy"))
            case "approve":
                reason = answer.get("message") or answer.get("reason") or "approval required"
                return _checked(Ask(reason, answer.get("rule_key") or answer.get("key")))
            case "modify":
                return _checked(Modify(answer.get("args") or {}, replace=answer.get("replace", False) is True))
            case "allow":
                return None
    msg = f"expected None, Block, Ask, Modify or an action dict, got {type(answer).__name__}"
    raise TypeError(msg)


def _checked(decision: PreDecision) -> PreDecision:
    """`decision`, if its parts have the right types."""
    match decision:
        case Block(message) if not isinstance(message, str):
            msg = "Block(message) takes text"
        case Ask(reason, key) if not isinstance(reason, str) or not isinstance(key, str | None):
            msg = "Ask(reason, key) takes text"
        case Modify(args) if not isinstance(args, Mapping) or not all(isinstance(key, str) for key in args):
            msg = "Modify(args) takes a mapping with text keys"
        case _:
            return decision
    raise TypeError(msg)
