"""`mibyan.plugins.sources.order`: one total order, the same in every process (plugins.F1)."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from mibyan.plugins.candidate import Candidate
from mibyan.plugins.manifest import Manifest
from mibyan.plugins.sources.ids import key
from mibyan.plugins.sources.order import ordered, shadowed, tier


def plugin(plugin_id: str, *after: str, source: str = "user", origin: str = "", **rest: object) -> Candidate:
    manifest = Manifest(after=after)
    return Candidate(plugin_id, source, origin or f"/{source}/{plugin_id}", manifest=manifest, **rest)  # type: ignore[arg-type]


def ids_of(*candidates: Candidate) -> list[str]:
    return [candidate.id for candidate in ordered(candidates)[0]]


def test_tiers_come_before_ids() -> None:
    """plugins.F1: builtin < pip < user < project < tools directory, whatever the ids."""
    sources = ["tools", "project", "user", "pip", "builtin"]
    found = [plugin(f"{index}", source=source) for index, source in enumerate(sources)]
    assert ids_of(*found) == ["4", "3", "2", "1", "0"]


def test_the_users_tool_files_come_before_the_projects() -> None:
    """architecture: inside the last tier the home's tools directory stands before the project's."""
    found = [plugin("project-tools.a", source="tools"), plugin("tools.b", source="tools")]
    assert ids_of(*found) == ["tools.b", "project-tools.a"]


def test_inside_a_tier_after_comes_before_id() -> None:
    """plugins.F1: an edge moves a plugin just behind the one it names, in any spelling; else the id decides."""
    assert ids_of(plugin("a", "C_c"), plugin("b"), plugin("c-c")) == ["b", "c-c", "a"]
    assert ids_of(plugin("a", "mibyan-plugin-z"), plugin("m"), plugin("z")) == ["m", "z", "a"]


def test_edges_to_other_tiers_and_unknown_ids_dont_count() -> None:
    """plugins.F1: `after:` orders inside a tier only, and names that nobody has are no obstacle."""
    found = [plugin("a", "late", "nobody", "a"), plugin("b"), plugin("late", source="project")]
    assert ids_of(*found) == ["a", "b", "late"]


def test_a_circle_is_broken_and_reported() -> None:
    """plugins.W6: a cycle of `after:` is one note that names it; its smallest id comes first."""
    candidates, notes = ordered([plugin("c", "a"), plugin("a", "b"), plugin("b", "c"), plugin("d", "b")])
    assert [candidate.id for candidate in candidates] == ["a", "c", "b", "d"]
    assert [note.text for note in notes] == ["`after:` goes in a circle: a after b after c after a; a doesn't wait"]


def test_a_broken_circle_keeps_the_other_edges() -> None:
    """plugins.F1: only the edge that closes the circle is dropped."""
    candidates, _ = ordered([plugin("a", "b", "z"), plugin("b", "a"), plugin("z")])
    assert [candidate.id for candidate in candidates] == ["z", "a", "b"]


IDS = st.sampled_from("abcdefgh")
GRAPHS = st.dictionaries(IDS, st.lists(IDS, max_size=4), max_size=8)


@given(GRAPHS, st.randoms(use_true_random=False))
def test_the_order_is_total_and_doesnt_depend_on_the_order_of_finding(
    graph: dict[str, list[str]], shuffle: random.Random
) -> None:
    """plugins.F1: any set of plugins has one order, with each plugin once, in whatever order they are found."""
    found = [plugin(name, *after) for name, after in sorted(graph.items())]
    mixed = list(found)
    shuffle.shuffle(mixed)
    result = ordered(found)
    assert ordered(mixed) == result
    assert sorted(candidate.id for candidate in result[0]) == sorted(graph)


@given(GRAPHS)
def test_edges_hold_where_there_is_no_circle(graph: dict[str, list[str]]) -> None:
    """plugins.F1: without a circle every plugin stands behind all that it names."""
    acyclic = {name: [other for other in after if other < name] for name, after in graph.items()}
    candidates, notes = ordered([plugin(name, *after) for name, after in acyclic.items()])
    place = {candidate.id: index for index, candidate in enumerate(candidates)}
    assert not notes
    assert all(place[other] < place[name] for name, after in acyclic.items() for other in after if other in place)


def test_the_first_of_one_id_shadows_the_others() -> None:
    """plugins.L1: the other is marked with the origin of the one that takes its place."""
    first, second = plugin("my-plugin", source="pip"), plugin("My_Plugin", source="user")
    assert [one.shadowed_by for one in shadowed([first, second])] == [None, first.origin]


def test_a_plugin_that_is_off_shadows_nothing() -> None:
    """plugins.L1: disabled, untrusted and incompatible plugins never shadow anything."""
    first, second = plugin("x", source="pip"), plugin("x", source="user")
    assert [one.shadowed_by for one in shadowed([first, second], lambda one: one is first)] == [None, None]


def test_a_shadowed_distribution_shadows_nothing() -> None:
    """plugins.F3: what lies behind another copy takes nobody's place."""
    first = plugin("x", source="pip", shadowed_by="/elsewhere")
    second = plugin("x", source="user")
    assert [one.shadowed_by for one in shadowed([first, second])] == ["/elsewhere", None]


@given(st.lists(st.tuples(st.sampled_from(["a", "A", "b_c", "b-c"]), st.sampled_from(["pip", "user", "project"]))))
def test_one_plugin_of_each_id_is_left(pairs: list[tuple[str, str]]) -> None:
    """plugins.F2: among plugins without problems exactly one of each id may be loaded."""
    found = [plugin(name, source=source, origin=f"/{n}") for n, (name, source) in enumerate(pairs)]
    usable = [candidate for candidate in shadowed(ordered(found)[0]) if candidate.usable]
    assert sorted(key(candidate.id) for candidate in usable) == sorted({key(name) for name, _ in pairs})
    assert usable == sorted(usable, key=tier)
