"""Decisions are data: what a runtime decided, and why."""

from __future__ import annotations

import json
import threading

import pytest

from mibyan.report import Decision, DecisionLog, Report


def test_a_decision_is_a_json_object():
    """Empty fields are left out; the rest is as it was said."""
    decision = Decision("denied", "tool:x", "no", plugin_id="p", fix="do this", problem=True)
    told = decision.to_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["fix"] == "do this"
    assert "origin" not in told


def test_a_report_has_its_problems():
    """`problems` are those decisions that an operator would want to know; `about` those about one subject."""
    good, bad = Decision("loaded", "plugin:a", "fine"), Decision("failed", "plugin:b", "broken", problem=True)
    report = Report((good, bad))
    assert report.problems == (bad,)
    assert report.about("plugin:a") == (good,)
    assert report.to_dict() == {"decisions": [good.to_dict(), bad.to_dict()], "problems": [bad.to_dict()]}


def test_the_same_decision_is_kept_once():
    """`add` says whether it is news."""
    log = DecisionLog()
    assert [log.add(Decision("denied", "tool:x", "no")) for _ in range(2)] == [True, False]
    assert len(list(log)) == 1


def test_what_is_decided_anew_is_forgotten():
    """`forget` drops what was said about one subject."""
    log = DecisionLog()
    for subject in ("tool:x", "tool:y"):
        log.add(Decision("denied", subject, "no"))
    log.forget("tool:x")
    assert [decision.subject for decision in log] == ["tool:y"]


def test_a_log_is_bounded(monkeypatch: pytest.MonkeyPatch):
    """The oldest records go: a runaway plugin doesn't fill the memory."""
    monkeypatch.setattr(DecisionLog, "LIMIT", 3)
    log = DecisionLog()
    for number in range(10):
        log.add(Decision("denied", f"tool:{number}", "no"))
    assert [decision.subject for decision in log] == ["tool:7", "tool:8", "tool:9"]


def test_many_threads_lose_nothing():
    """Records come from any thread."""
    log = DecisionLog()

    def add(who: int) -> None:
        for number in range(100):
            log.add(Decision("denied", f"tool:{who}-{number}", "no"))

    threads = [threading.Thread(target=add, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(log.report().decisions) == 800
