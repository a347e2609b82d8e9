"""The registry under load: nothing is lost, snapshots are whole, readers wait for nobody (registry.R9)."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from mibyan.tools.owner import Owner
from mibyan.tools.registry import ToolRegistry
from mibyan.tools.store import RegistryStore, Toolset

from .world import SCHEMA, SOON

THREADS = 16


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Thousands of registrations needn't be told."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(autouse=True)
def restless() -> Iterator[None]:
    """Threads take turns fifty times as often as usual: more is seen half done, and nobody waits long for a turn."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(interval)


def view(store: RegistryStore, owner: Owner) -> ToolRegistry:
    return ToolRegistry._bound(store, owner)


def together(*work: Callable[[], Any]) -> list[Any]:
    """Run functions at the same time; their results, or the first error."""
    barrier = threading.Barrier(len(work))

    def begin(one: Callable[[], Any]) -> Any:
        barrier.wait(SOON)
        return one()

    with ThreadPoolExecutor(len(work)) as pool:
        return [future.result(SOON * 2) for future in [pool.submit(begin, one) for one in work]]


def test_registry_R9_nothing_is_lost() -> None:
    """registry.R9: of thousands of registrations, overrides and removals in sixteen threads each counts once."""
    store = RegistryStore()
    host = view(store, Owner("host", "host"))
    contested = [f"contested{n}" for n in range(8)]

    def work(number: int) -> int:
        owner = Owner(f"p{number}", "plugin", "pip", allow_override=True)
        mine, mutations = view(store, owner), 0
        for turn in range(100):
            name = f"t{number}_{turn}"
            mutations += mine.register(name, "own", SCHEMA, len, aliases=[f"{name}_a", f"{name}_b"]) is not None
            if turn % 3 == 0:
                mutations += mine.register(name, "own", SCHEMA, len) is not None
            if turn % 2:
                mutations += mine.deregister(name)
            mutations += mine.register(contested[turn % 8], f"set{number}", SCHEMA, len, override=True) is not None
        for name in contested:
            mutations += mine.deregister(name)
        return mutations

    stop, seen = threading.Event(), []

    def read() -> None:
        generation = 0
        while not stop.is_set():
            snapshot = host.snapshot
            seen.append(snapshot.generation >= generation)
            generation = snapshot.generation

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    mutations = sum(together(*(lambda n=n: work(n) for n in range(THREADS))))
    stop.set()
    for reader in readers:
        reader.join(SOON)
    assert all(seen)
    assert store.generation == mutations
    assert set(store.snapshot.entries) == {f"t{n}_{turn}" for n in range(THREADS) for turn in range(0, 100, 2)}
    assert not any(name.startswith("t") for name in store._acts)
    assert all(len(acts) <= THREADS + 256 for acts in store._acts.values())


def test_registry_R9_a_snapshot_is_never_half_a_change() -> None:
    """registry.R9: a tool and its aliases, and all tools of an owner, come and go at once."""
    store = RegistryStore()
    stop = threading.Event()

    def aliases() -> None:
        mine = view(store, Owner("a", "plugin", "pip"))
        for _ in range(400):
            mine.register("x", "A", SCHEMA, len, aliases=["y", "z"])
            mine.deregister("x")

    def owners() -> None:
        for _ in range(100):
            owner = Owner("b", "plugin", "pip")
            for number in range(5):
                view(store, owner).register(f"n{number}", "B", SCHEMA, len, aliases=[f"m{number}"])
            store.remove_owner(owner)
        stop.set()

    def read() -> set[tuple[int, int]]:
        halves = set()
        while not stop.is_set():
            snapshot = store.snapshot
            whole = {name in snapshot.entries or name in snapshot.aliases for name in ("x", "y", "z")}
            count = (
                sum(f"n{n}" in snapshot.entries for n in range(5)),
                sum(f"m{n}" in snapshot.aliases for n in range(5)),
            )
            if len(whole) == 2 or count[0] != count[1]:
                halves.add(count)
        return halves

    results = together(aliases, owners, *[read] * 4)
    assert results[2:] == [set()] * 4
    assert not store.snapshot.entries
    assert not store.snapshot.aliases


def mutate(store: RegistryStore, what: str) -> None:
    """One change of a registry in which owner `a` has two tools, an alias each, and a toolset alias."""
    a, b = A, Owner("b", "plugin", "pip", allow_override=True)
    match what:
        case "register":
            view(store, b).register("new", "B", SCHEMA, len)
        case "register with aliases":
            view(store, b).register("new", "B", SCHEMA, len, aliases=["one", "two", "three"])
        case "register again":
            view(store, a).register("x", "A", SCHEMA, len, aliases=["other"])
        case "override":
            view(store, b).register("x", "B", SCHEMA, len, override=True, aliases=["xa"])
        case "deregister":
            view(store, a).deregister("x")
        case "unload":
            store.remove_owner(a)
        case "unload, to return":
            store.remove_owner(a, returns=True)
        case "toolset alias":
            view(store, b).register_toolset_alias("bees", "B")
        case "toolset":
            store.declare_toolset(Toolset("bundle", ("x",), owner=b))


A = Owner("a", "plugin", "pip")


def held() -> RegistryStore:
    store = RegistryStore()
    for name in ("x", "y"):
        view(store, A).register(name, "A", SCHEMA, len, aliases=[f"{name}a"])
    view(store, A).register_toolset_alias("ayes", "A")
    return store


@pytest.mark.parametrize("what", ["register", "register with aliases", "register again", "override", "deregister", "unload",
                                  "unload, to return", "toolset alias", "toolset"])  # fmt: skip
def test_registry_R9_each_mutation_is_one_generation(what: str) -> None:
    """registry.R9: the generation grows by exactly one with each mutation, and the next snapshot has it."""
    store = held()
    before, generation = store.snapshot, store.generation
    mutate(store, what)
    assert store.generation == generation + 1
    assert store.snapshot is not before
    assert store.snapshot.generation == store.generation
    assert store.snapshot is store.snapshot


REFUSED: dict[str, Callable[[RegistryStore, Owner], object]] = {
    "a held name": lambda store, owner: view(store, owner).register("x", "B", SCHEMA, len),
    "override without opt-in": lambda store, owner: view(store, owner).register("x", "B", SCHEMA, len, override=True),
    "a reserved name": lambda store, owner: view(store, owner).register("memory", "B", SCHEMA, len),
    "a bad schema": lambda store, owner: view(store, owner).register("new", "B", {"parameters": 5}, len),
    "another's tool": lambda store, owner: view(store, owner).deregister("x"),
    "no tool": lambda store, owner: view(store, owner).deregister("nothing"),
    "a held toolset alias": lambda store, owner: view(store, owner).register_toolset_alias("ayes", "B"),
    "an owner without anything": lambda store, owner: store.remove_owner(owner),
}


@pytest.mark.parametrize("what", REFUSED)
def test_registry_R4_what_is_refused_changes_nothing(what: str) -> None:
    """registry.R4: what doesn't take effect leaves generation and snapshot as they are."""
    store = held()
    before, generation = store.snapshot, store.generation
    with suppress(PermissionError, ValueError, TypeError):
        REFUSED[what](store, Owner("c", "plugin", "pip"))
    assert store.generation == generation
    assert store.snapshot is before


class SlowSchema(dict):
    """A schema that takes its time when it is read."""

    def __init__(self, reading: threading.Event, go: threading.Event) -> None:
        super().__init__(SCHEMA)
        self.reading, self.go = reading, go

    def items(self) -> Any:
        self.reading.set()
        assert self.go.wait(SOON)
        return super().items()


def test_registry_R9_slow_validation_holds_nobody_up() -> None:
    """registry.R9: while a registration's schema is being read, others read and register."""
    store, reading, go = held(), threading.Event(), threading.Event()
    slow = threading.Thread(target=lambda: view(store, A).register("slow", "A", SlowSchema(reading, go), len))
    slow.start()
    assert reading.wait(SOON)
    try:
        (done,) = together(lambda: (store.snapshot, store.find("x"), view(store, A).register("z", "A", SCHEMA, len)))
        assert all(done)
        assert store.find("slow") is None
    finally:
        go.set()
        slow.join(SOON)
    assert store.find("slow") is not None


def test_registry_R9_a_slow_check_holds_nobody_up(bare: Callable[..., Any]) -> None:
    """registry.V4: while a check is asked, others register, read, call and are asked for definitions without it."""
    rt, asked, go = bare(), threading.Event(), threading.Event()

    def check() -> bool:
        asked.set()
        return go.wait(SOON)

    rt.registry.register("slow", "slow", SCHEMA, lambda args: "slow", check_fn=check)
    prober = threading.Thread(target=rt.definitions)
    prober.start()
    assert asked.wait(SOON)
    try:
        assert rt.registry.register("quick", "quick", SCHEMA, lambda args: "quick") is not None
        assert rt.call("quick", {}) == "quick"
        assert len(rt.definitions(["quick"])) == 1
        assert rt.registry.is_toolset_available("quick")
    finally:
        go.set()
        prober.join(SOON)


def test_registry_R9_a_slow_schema_source_holds_nobody_up() -> None:
    """A typed function whose schema takes its time to be worked out holds no registration up."""
    from mibyan import tool

    store, reading, go = held(), threading.Event(), threading.Event()

    class Slow:
        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
            reading.set()
            assert go.wait(SOON)
            from pydantic_core import core_schema

            return core_schema.str_schema()

    def slow(x: Any) -> str:
        return ""

    slow.__annotations__["x"] = Slow
    adding = threading.Thread(target=lambda: view(store, A).add(tool(toolset="A")(slow)))
    adding.start()
    assert reading.wait(SOON)
    try:
        assert view(store, A).register("z", "A", SCHEMA, len) is not None
        assert len(store.snapshot.entries) == 3
    finally:
        go.set()
        adding.join(SOON)
    assert store.find("slow") is not None


@pytest.mark.parametrize("claims", [10, 255, 256, 257, 1000])
@pytest.mark.parametrize("override", [True, False])
def test_registry_R4_no_number_of_claims_gets_a_name(claims: int, override: bool) -> None:
    """registry.R4: however often a name is claimed in vain, its holder stays; when that goes, the claimant comes."""
    store = held()
    claimant = Owner("c", "plugin", "pip")
    before = store.find("x")
    for number in range(claims):
        try:
            view(store, claimant).register("x", f"B{number % 3}", SCHEMA, len, override=override)
        except PermissionError:
            continue
    assert store.find("x") is before
    assert len(store._acts["x"]) <= 256
    store.remove_owner(A)
    assert store.find("x").owner is claimant
    store.remove_owner(claimant)
    assert store.find("x") is None


def test_registry_R5_no_number_of_overrides_hides_what_was_displaced() -> None:
    """registry.R5: an owner that overrides again and again, from toolset to toolset, gives the name back when it goes."""
    store = held()
    before, owner = store.find("x"), Owner("c", "plugin", "pip", allow_override=True)
    for number in range(1000):
        assert view(store, owner).register("x", f"B{number % 2}", SCHEMA, len, override=True) is not None
    assert len(store.candidates("x").stack) == 2
    assert view(store, owner).deregister("x")
    assert store.find("x") is before


def test_registry_R8_a_toolset_alias_is_its_first_owners() -> None:
    """registry.R8: asking for the alias that another has changes nothing, also in two steps; it goes with its owner."""
    store, other = held(), Owner("c", "plugin", "pip")
    assert view(store, other).register_toolset_alias("ayes", "A")
    assert not view(store, other).register_toolset_alias("ayes", "C")
    assert store.snapshot.toolset_aliases == {"ayes": "A"}
    store.remove_owner(other)
    assert store.snapshot.toolset_aliases == {"ayes": "A"}
    assert not view(store, Owner("d", "plugin", "pip")).register_toolset_alias("ayes", "D")
    store.remove_owner(A)
    assert store.snapshot.toolset_aliases == {"ayes": "D"}


def test_registry_R7_an_alias_that_is_a_tool_of_its_own_stays() -> None:
    """Removing a tool doesn't remove another tool of the same owner that has meanwhile taken the alias's name."""
    store = held()
    own = view(store, A).register("xa", "A", SCHEMA, len)
    assert view(store, A).deregister("x")
    assert store.find("xa") is own


def test_plugins_L7_a_plugin_that_is_loaded_anew_keeps_its_names() -> None:
    """plugins.L7: between unload and load its names answer to nobody; afterwards what it didn't take again is free."""
    store, squatter = held(), Owner("c", "plugin", "pip")
    for name in ("x", "y"):
        view(store, squatter).register(name, "C", SCHEMA, len)
    store.remove_owner(A, returns=True)
    assert store.find("x") is store.find("y") is None
    assert view(store, squatter).register("x", "C", SCHEMA, len) is None
    again = Owner("a", "plugin", "pip")
    entry = view(store, again).register("x", "A", SCHEMA, len, aliases=["xa"])
    assert store.find("x") is store.find("xa") is entry
    store.forget_places(A)
    assert store.find("x") is entry
    assert store.find("y").owner is squatter
    assert store.find("ya") is None
