"""Who waits for whom: whatever runs at the same time, the outcome is that of the sequence (dispatch.P1, P2)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mibyan.dispatch.batch_plan_order import Order
from mibyan.dispatch.resources import resolve
from mibyan.dispatch.resources_needs import FREE, Need

from .world import KNOTS, STYLES, Operation, batches, build, chosen, state, styles

BARRIER = Need("barrier", "because")


def named(reads=(), writes=()):
    return Need("named", resources=resolve(reads, writes, "/nowhere"))


def order_of(*needs):
    order = Order()
    for index, need in enumerate(needs):
        order.put(index, need)
    return order


def waits(order, count):
    return [[wait.on for wait in order.waits(index)] for index in range(count)]


A, B, R = named(writes=["a"]), named(writes=["b"]), named(reads=["a"])


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ([FREE, FREE, FREE], [[], [], []]),
        ([R, R, R], [[], [], []]),
        ([A, B], [[], []]),
        ([A, R, R], [[], [0], [0]]),
        ([R, A, R], [[], [0], [1]]),
        ([A, FREE, A], [[], [], [0]]),
        ([BARRIER, FREE, R, A], [[], [0], [0], [0, 2]]),
        ([FREE, R, A, BARRIER], [[], [], [1], [0, 1, 2]]),
        ([BARRIER, BARRIER], [[], [0]]),
        ([A, A, B], [[], [0], []]),
        ([A, A, R, B], [[], [0], [0, 1], []]),
        # Where the path of the second leads isn't known before the first has ended.
        ([A, named(reads=["a/b"]), B], [[], [0], [0]]),
        ([A, named(writes=["a/b"]), named(reads=["b"])], [[], [0], [0]]),
        ([A, named(reads=["a/b"]), named(reads=["b"])], [[], [0], []]),
        ([A, named(reads=["a/b"]), FREE], [[], [0], []]),
    ],
)
def test_dispatch_P2_who_waits_for_whom(needs, expected):
    """dispatch.P2: readers share, a writer excludes, a barrier is alone; the later waits for the earlier."""
    assert waits(order_of(*needs), len(needs)) == expected


def test_an_end_lets_those_behind_go():
    """Nobody waits for a call that has ended; what depended on it is asked again before it, and what it may exclude, runs."""
    order = order_of(A, R, B, named(reads=["b"]))
    assert order.may_run(2)
    order.begin(0)
    order.end(0)
    assert order.stale_before(1) == order.stale_before(2) == [1]
    assert order.stale_before(3) == []
    assert not order.may_run(2)
    order.put(1, R)
    assert order.may_run(1)
    assert order.may_run(2)


def test_a_call_that_did_not_run_changes_nothing():
    """After a call that ended without having begun nobody is asked again."""
    order = order_of(A, R)
    order.end(0)
    assert order.may_run(1)


def test_a_need_that_turns_out_otherwise_counts():
    """A call whose paths lead elsewhere than they did excludes those that are there, and no longer the others."""
    order = order_of(A, R, named(writes=["a"]), named(writes=["c"]))
    order.begin(0)
    order.end(0)
    order.put(1, named(reads=["c"]))
    assert order.stale_before(2) == [2]
    order.put(2, A)
    assert order.may_run(2)
    assert waits_of(order, 3) == [("same", 1)]


def waits_of(order, index):
    return [(wait.why, wait.on) for wait in order.waits(index)]


def test_a_call_refused_meanwhile_holds_nobody():
    """A call that ends without having run, put in or not, is nobody's to wait for."""
    order = order_of(A, A, BARRIER)
    order.end(1)
    order.end(0)
    order.end(7)
    assert waits(order_of(A), 1) == [[]]
    assert waits_of(order, 2) == []


def run_overlapping(operations: list[Operation], root, choose) -> list[str]:
    """Run a batch as the order allows, in an order that Hypothesis makes as bad as it can.

    A call's effect is at one moment between its begin and its end; what may run begins as early, or as late, as it likes.
    """
    order, results = Order(), [""] * len(operations)

    def need(index: int) -> Need:
        operation = operations[index]
        return Need("named", resources=resolve(operation.reads, operation.writes, str(root)))

    for index in range(len(operations)):
        order.put(index, need(index))
    waiting, begun = set(range(len(operations))), []
    while waiting or begun:
        stale = sorted({again for index in waiting for again in order.stale_before(index)})
        ready = sorted(index for index in waiting if order.may_run(index))
        assert stale or ready or begun, "nothing runs, and nothing may"
        index, what = choose(
            [(index, "again") for index in stale] + [(index, "begin") for index in ready]
            + [(index, "end") for index, _ in begun] + [(index, "act") for index, acted in begun if not acted]
        )  # fmt: skip
        if what == "again":
            order.put(index, need(index))
        elif what == "begin":
            order.begin(index)
            waiting.discard(index)
            begun.append((index, False))
        else:
            acted = dict(begun)[index]
            begun = [each for each in begun if each[0] != index]
            if not acted:
                results[index] = operations[index].run(root)
            if what == "end":
                order.end(index)
            else:
                begun.append((index, True))
    return results


@settings(max_examples=400)
@given(batch=batches, style=styles, data=st.data())
def test_dispatch_P2_a_plan_equals_the_sequence(tmp_path_factory, batch, style, data):
    """dispatch.P2: whatever overlaps, the state and the results are those of the sequence, links and moves included."""
    root = tmp_path_factory.getbasetemp() / "order" / "tree"
    check_overlapping(batch, root, lambda choices: chosen(style, choices, data))


@pytest.mark.parametrize("batch", KNOTS)
@pytest.mark.parametrize("style", STYLES)
def test_dispatch_P2_paths_that_move_meanwhile(tmp_path, batch, style):
    """dispatch.P2: links that earlier calls make, move or hide in a directory lead the later ones as in the sequence."""
    check_overlapping(batch, tmp_path / "tree", lambda choices: chosen(style, choices))


def check_overlapping(batch, root, choose):
    build(root)
    expected = [operation.run(root) for operation in batch]
    expected_state = state(root)
    build(root)
    results = run_overlapping(batch, root, choose)
    assert results == expected
    assert state(root) == expected_state
