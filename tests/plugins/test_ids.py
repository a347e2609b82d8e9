"""`mibyan.plugins.sources.ids`: one id for each plugin, any spelling accepted (plugins.F2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.plugins.sources import ids

NAMES = st.text(alphabet="aB1-_.", min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("name", "plugin_id"),
    [
        ("mibyan-plugin-weather", "weather"),
        ("Mibyan_Plugin.Weather", "weather"),
        ("mibyan_plugin_a__b..c", "a-b-c"),
        ("weather", "weather"),
        ("Weather.Tools", "weather-tools"),
        ("mibyan-plugin-", "mibyan-plugin-"),
        ("mibyan-plugin", "mibyan-plugin"),
        ("mibyan-plugin-mibyan-plugin-x", "mibyan-plugin-x"),
    ],
)
def test_a_wheels_id_is_its_canonical_name_without_the_prefix(name: str, plugin_id: str) -> None:
    """plugins.F2: PEP 503, without `mibyan-plugin-`."""
    assert ids.distribution_id(name) == plugin_id


@pytest.mark.parametrize("spelling", ["my-plugin", "my_plugin", "My.Plugin", "mibyan-plugin-my_plugin", "MY--PLUGIN"])
def test_any_spelling_is_accepted(spelling: str) -> None:
    """plugins.F2: every spelling of an id finds the plugin."""
    assert ids.resolve(spelling, ["other", "my_plugin"]) == "my_plugin"


def test_an_exact_spelling_wins() -> None:
    """plugins.F2: where two tool files differ only in spelling, each is found by its own."""
    known = ["tools.a_b", "tools.a-b"]
    assert [ids.resolve(name, known) for name in known] == known
    assert ids.resolve("tools.A.b", known) == "tools.a_b"


@pytest.mark.parametrize(
    ("word", "plugin_id", "covered"),
    [
        ("project-tools", "project-tools.x", True),
        ("Project_Tools", "project-tools.x", True),
        ("project-tools.x", "project-tools.x", True),
        ("project-tools.y", "project-tools.x", False),
        ("project-tools", "tools.x", False),
        ("tools.my-tool", "tools.my_tool", True),
        ("tools-x", "tools.x", False),
        ("tools.x", "project-tools.x", False),
        ("x", "tools.x", False),
    ],
)
def test_tool_files_are_covered_by_their_ids_and_the_directorys(word: str, plugin_id: str, covered: bool) -> None:
    """plugins.S1: `project-tools` stands for the whole directory; a stem may be spelled in any way."""
    assert ids.covers(word, plugin_id) is covered


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wether", "there is no plugin 'wether' (did you mean 'weather'?)"),
        ("mibyan-plugin-wether", "there is no plugin 'mibyan-plugin-wether' (did you mean 'weather'?)"),
        ("project-tools.gre", "there is no plugin 'project-tools.gre' (did you mean 'project-tools.grep'?)"),
        ("zzz", "there is no plugin 'zzz'"),
        ("a\x1b[31m", "there is no plugin 'a\\\\x1b[31m'"),
    ],
)
def test_an_unknown_id_gets_a_suggestion(name: str, said: str) -> None:
    """plugins.F2: an unknown id is answered with the one that was probably meant."""
    assert ids.unknown(name, ["weather", "files", "project-tools.grep"]) == said


@pytest.mark.parametrize("name", ["weather", "a", "7zip", "my_plugin", "My-Plugin.2", "wetter-münchen", "天気"])
def test_odd_but_legal_names_are_ids(name: str) -> None:
    """plugins.F2: letters and digits of any script, with `-`, `_` and `.` between them."""
    assert ids.name_problem(name) is None


@pytest.mark.parametrize(
    "name",
    ["", "a b", "-a", "a-", "_", ".", "a/b", "a:b", "a\n", "no:x", "x" * 101, "project-tools", "Project_Hooks",
     "tools.x", "project-tools.x", "a\u202eb"],
)  # fmt: skip
def test_names_that_cant_be_ids_are_refused(name: str) -> None:
    """plugins.L5, S1: what can't be typed, or already means something else, is no id."""
    assert ids.name_problem(name)


@given(NAMES, NAMES)
def test_ids_with_one_module_name_are_spellings_of_one_id(one: str, other: str) -> None:
    """plugins.L5: two ids collide as module names exactly when they are spellings of one id."""
    assert (ids.module_name(one) == ids.module_name(other)) == (ids.key(one) == ids.key(other))


@given(st.text(min_size=1, max_size=20), st.sampled_from(["", "tools.", "project-tools."]))
def test_a_module_name_is_an_identifier(name: str, prefix: str) -> None:
    """plugins.L5: whatever the id, the private package has a name that can be imported."""
    assert ids.module_name(prefix + name).isidentifier()


@given(st.text(max_size=10), st.text(max_size=10))
def test_different_tool_files_have_different_module_names(one: str, other: str) -> None:
    """plugins.F6: the stem of a tool file counts letter by letter, and user and project files never meet."""
    assert (ids.module_name(f"tools.{one}") == ids.module_name(f"tools.{other}")) == (one == other)
    assert ids.module_name(f"tools.{one}") != ids.module_name(f"project-tools.{other}")


@given(st.text(max_size=15))
def test_spelling_functions_are_total(name: str) -> None:
    """plugins.F2: any text may be asked for."""
    assert ids.same(name, name)
    assert ids.canonical(ids.canonical(name)) == ids.canonical(name)
    assert ids.unknown(name, ["weather"]).startswith("there is no plugin")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("geo", ("geo", "")),
        ("geo>=1.2", ("geo", ">=1.2")),
        (" my_plugin  >=1, <2 ", ("my_plugin", ">=1, <2")),
        ("geo ~=1.4.2", ("geo", "~=1.4.2")),
        ("", ("", "")),
    ],
)
def test_a_requirement_is_an_id_and_a_range(text: str, parts: tuple[str, str]) -> None:
    """plugins.M3: `requires_plugins` has ids with an optional PEP 440 range."""
    assert ids.split_requirement(text) == parts


@pytest.mark.parametrize(("said", "ok"), [("", True), ("my_plugin", True), ("My.Plugin", True), ("other", False)])
def test_a_differing_name_is_an_error_that_says_so(said: str, ok: bool) -> None:
    """plugins.F2: another name in the manifest or entry point is an error with both names."""
    problem = ids.differing(said, "my-plugin", "manifest")
    assert (problem is None) is ok
    assert ok or problem == "the manifest says 'other', but the plugin's id is 'my-plugin'"
