"""A broker of approvals, and a question for it."""

from __future__ import annotations

import pytest

from mibyan.approvals import Approvals
from mibyan.hooks.decisions import Ask
from mibyan.report import DecisionLog


@pytest.fixture
def log() -> DecisionLog:
    return DecisionLog()


@pytest.fixture
def broker(log: DecisionLog) -> Approvals:
    return Approvals(20.0, log=log)


@pytest.fixture
def request_for():
    """Makes a question of a broker's."""

    def make(broker: Approvals, session: str = "s1", args=None, reason: str = "sure?"):
        return broker.request(session, "x", {"n": 1} if args is None else args, Ask(reason))

    return make
