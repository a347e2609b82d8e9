"""A broker of approvals, and a question for it."""

from __future__ import annotations

import itertools

import pytest

from mibyan.approvals import Approvals
from mibyan.approvals.policy import Subject
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
    """Makes a question of a broker's; each is another one, unless `args` are the same."""
    number = itertools.count()

    def make(broker: Approvals, session: str = "s1", args=None, reason: str = "sure?"):
        given = {"n": next(number)} if args is None else args
        return broker.rule(Subject(None, session, "x", given, (("host", Ask(reason)),))).question

    return make
