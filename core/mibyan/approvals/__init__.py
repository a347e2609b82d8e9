"""Approvals: which commands need one, who may say yes, and to what.

Names load lazily: what only asks needs no judge, and what only judges no broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mibyan.approvals.allowlist import AllowEntry, Allowlist
    from mibyan.approvals.broker import Approvals
    from mibyan.approvals.channel import ApprovalQueue
    from mibyan.approvals.evaluate import detect_dangerous_command, evaluate_command
    from mibyan.approvals.foreground import foreground_commands
    from mibyan.approvals.operator_rules import OperatorRule, operator_rule
    from mibyan.approvals.patterns import DANGEROUS_PATTERNS
    from mibyan.approvals.python_code import evaluate_code
    from mibyan.approvals.requests import ANSWERS, Approval, ApprovalRequest
    from mibyan.approvals.verdict import CommandContext, Finding, Verdict

_PLACES = {
    "AllowEntry": "allowlist", "Allowlist": "allowlist",
    "ANSWERS": "requests", "DANGEROUS_PATTERNS": "patterns", "foreground_commands": "foreground", "Approval": "requests", "ApprovalRequest": "requests", "ApprovalQueue": "channel", "Approvals": "broker", "detect_dangerous_command": "evaluate",
    "evaluate_code": "python_code", "evaluate_command": "evaluate", "OperatorRule": "operator_rules", "operator_rule": "operator_rules", "CommandContext": "verdict", "Finding": "verdict",
    "Verdict": "verdict",
}  # fmt: skip

__all__ = [
    "ANSWERS",
    "DANGEROUS_PATTERNS",
    "AllowEntry",
    "Allowlist",
    "Approval",
    "ApprovalQueue",
    "ApprovalRequest",
    "Approvals",
    "CommandContext",
    "Finding",
    "OperatorRule",
    "Verdict",
    "detect_dangerous_command",
    "evaluate_code",
    "evaluate_command",
    "foreground_commands",
    "operator_rule",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{place}"), name)
