"""The read-only values of registry.R3."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from mibyan.schema.frozen import MAX_DEPTH, FrozenDict, FrozenList, freeze, thaw

PLAIN = {"name": "x", "parameters": {"required": ["a", "b"], "n": 1, "deep": [{"k": None}]}}


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.__setitem__("a", 1),
        lambda d: d.__delitem__("name"),
        lambda d: d.__ior__({"a": 1}),
        lambda d: d.clear(),
        lambda d: d.pop("name"),
        lambda d: d.popitem(),
        lambda d: d.setdefault("a", 1),
        lambda d: d.update(a=1),
        lambda d: d.extra,
    ],
)
def test_R3_no_mutator_of_a_dict_works(change):
    """registry.R3: mutators of a frozen dict raise and change nothing."""
    frozen = freeze(PLAIN)
    with pytest.raises((TypeError, AttributeError)):
        change(frozen)
    assert frozen == PLAIN


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.__setitem__(0, 1),
        lambda v: v.__delitem__(0),
        lambda v: v.__iadd__([1]),
        lambda v: v.__imul__(2),
        lambda v: v.append(1),
        lambda v: v.clear(),
        lambda v: v.extend([1]),
        lambda v: v.insert(0, 1),
        lambda v: v.pop(),
        lambda v: v.remove("a"),
        lambda v: v.reverse(),
        lambda v: v.sort(),
    ],
)
def test_R3_no_mutator_of_a_list_works(change):
    """registry.R3: mutators of a frozen list raise TypeError and change nothing."""
    frozen = freeze(PLAIN)["parameters"]["required"]
    with pytest.raises(TypeError, match="read-only"):
        change(frozen)
    assert frozen == ["a", "b"]


def test_R3_every_mutator_is_covered():
    """registry.R3: what `dict` and `list` can do beyond reading is refused; a new Python's mutator would show here."""
    reading = {"get", "items", "keys", "values", "fromkeys", "copy", "count", "index"}
    for frozen in (FrozenDict(), FrozenList()):
        for name in set(dir(frozen)) - reading:
            if not name.startswith("_"):
                with pytest.raises(TypeError, match="read-only"):
                    getattr(frozen, name)()


def test_R3_the_original_may_change_afterwards():
    """registry.R3: nothing done later to what was frozen shows in the frozen value."""
    original = copy.deepcopy(PLAIN)
    frozen = freeze(original)
    original["parameters"]["required"].append("c")
    original["parameters"]["deep"][0]["k"] = 1
    assert frozen == PLAIN


@pytest.mark.parametrize("copied", [copy.deepcopy, thaw, lambda v: json.loads(json.dumps(v))])
def test_R3_deep_copies_are_plain(copied):
    """registry.R3: deepcopy, thaw and json give plain containers all the way down, which may be changed."""
    made = copied(freeze(PLAIN))
    made["parameters"]["deep"][0]["k"] = 2
    made["parameters"]["required"].append("c")
    assert type(made) is dict
    assert type(made["parameters"]["required"]) is list
    assert freeze(PLAIN) == PLAIN


def test_R3_shallow_copies_are_plain():
    """registry.R3: `copy()`, `dict()`, `list()`, `|`, `+` and slices give plain containers."""
    frozen, items = freeze(PLAIN), freeze([1, 2])
    assert {type(made) for made in (frozen.copy(), copy.copy(frozen), dict(frozen), frozen | {})} == {dict}
    assert {type(made) for made in (items.copy(), copy.copy(items), list(items), items[:], items + [3])} == {list}  # noqa: RUF005 - `+` is meant


def test_R3_pickle_gives_a_frozen_value():
    """registry.R3: pickle works, and what comes out is read-only too."""
    again = pickle.loads(pickle.dumps(freeze(PLAIN)))
    assert again == PLAIN
    assert type(again) is FrozenDict
    assert type(again["parameters"]["required"]) is FrozenList


def test_freezing_the_frozen_costs_nothing():
    """A frozen value is returned as it is."""
    frozen = freeze(PLAIN)
    assert freeze(frozen) is frozen


@pytest.mark.parametrize("change", [freeze, thaw])
def test_depth_is_bounded(change):
    """Too deep and cyclic values raise ValueError, not RecursionError; the limit itself is fine."""
    value: list = []
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    assert change(value) == value
    cyclic: list = []
    cyclic.append(cyclic)
    for bad in ([value], cyclic):
        with pytest.raises(ValueError, match="levels deep"):
            change(bad)
