"""Approvals: who may say yes, and to what."""

from __future__ import annotations

from mibyan.approvals.broker import ANSWERS, Approval, ApprovalRequest, Approvals

__all__ = ["ANSWERS", "Approval", "ApprovalRequest", "Approvals"]
