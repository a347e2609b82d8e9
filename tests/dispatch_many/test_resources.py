"""Where paths lead, and whether two calls touch the same (dispatch.P2)."""

# ruff: noqa: PTH118 - texts as tools write them; `pathlib` would tidy them

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mibyan.dispatch.resources import resolve
from mibyan.dispatch.resources_paths import MAX_LINKS, follow, places


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A file, a directory, and links to both, to a link, to themselves, to nothing and from outside."""
    root = tmp_path / "tree"
    (root / "d" / "e").mkdir(parents=True)
    (root / "a").write_text("a")
    (root / "d" / "b").write_text("b")
    (root / "to_a").symlink_to("a")
    (root / "to_to_a").symlink_to("to_a")
    (root / "to_d").symlink_to(root / "d")
    (root / "d" / "up").symlink_to("..")
    (root / "loop").symlink_to("loop")
    (root / "nowhere").symlink_to("not/there")
    os.link(root / "a", root / "hard_a")
    (tmp_path / "alias").symlink_to("tree")
    return root


SAME = [
    ("a", "a"),
    ("a", "./a"),
    ("a", "d/../a"),
    ("a", "{root}/a"),
    ("a", "{root}/../alias/a"),
    ("a", "to_a"),
    ("a", "to_to_a"),
    ("to_a", "to_to_a"),
    ("a", "d/up/a"),
    ("a", "to_d/up/d/up/a"),
    ("a", "hard_a"),
    ("d", "d/b"),
    ("d", "d/e/not/yet"),
    ("d", "to_d/b"),
    (".", "a"),
    ("{root}/..", "a"),
    ("/", "a"),
    ("d/b", "to_d/b"),
    ("d/b", "to_d/../d/b"),
    ("new", "new/below"),
    ("not/there", "nowhere"),
    ("nowhere", "not/there/below"),
    ("to_d", "to_d/b"),
    ("loop", "loop/x"),
    ("~/x", "{home}/x"),
    ("~/x", "./~/x"),
    ("~nobody-has-this-name", "./~nobody-has-this-name"),
    ("to_d/../a", "a"),
    ("db:users", "db:users"),
    ("https://host/a", "https://host/a/b"),
]

APART = [
    ("a", "d"),
    ("a", "aa"),
    ("d/b", "d/e"),
    ("d", "dd"),
    ("new/x", "new/y"),
    ("to_a", "d"),
    ("db:users", "db:orders"),
    ("nowhere", "not/else"),
]


def filled(name: str, root: Path) -> str:
    return name.format(root=root, home=os.environ["HOME"])


@pytest.mark.parametrize(("one", "other"), [*SAME, *[(b, a) for a, b in SAME]])
def test_dispatch_P2_one_place_however_it_is_written(tree, one, other):
    """dispatch.P2: relative forms, links, `..`, `~`, hard links, directories: who writes it excludes the other."""
    one, other = filled(one, tree), filled(other, tree)
    writer, reader = resolve([], [one], str(tree)), resolve([other], [], str(tree))
    assert writer.excludes(reader)
    assert reader.excludes(writer)
    assert writer.excludes(resolve([], [other], str(tree)))


@pytest.mark.parametrize(("one", "other"), APART)
def test_dispatch_P2_other_places_are_free(tree, one, other):
    """dispatch.P2: two writers of different places may run together."""
    writer, other_writer = resolve([], [one], str(tree)), resolve([], [other], str(tree))
    assert writer.excludes(other_writer) is None
    assert other_writer.excludes(writer) is None


@pytest.mark.parametrize(("one", "other"), SAME)
def test_dispatch_P2_readers_share(tree, one, other):
    """dispatch.P2: readers of one place may run together."""
    one, other = filled(one, tree), filled(other, tree)
    assert resolve([one], [], str(tree)).excludes(resolve([other], [], str(tree))) is None


@pytest.mark.parametrize(
    ("writes", "reads", "replaces", "bends"),
    [
        ("to_d", "to_d/b", True, True),  # the link on the way
        ("to_to_a", "to_to_a", True, True),
        ("to_a", "to_to_a", True, True),  # a link behind the link
        ("d", "to_d/b", True, True),  # where it leads to
        ("new", "new/x", True, True),  # what isn't there yet may become a link
        ("d", "d/../a", True, True),  # without the directory the path leads nowhere
        ("a", "a", True, False),  # what is written is a thing, not a link
        ("new", "new", True, False),
        ("d/b", "d", False, False),  # what is in a directory doesn't move the directory
        ("d/b", "a", False, False),
    ],
)
def test_what_may_change_where_a_path_leads(tree, writes, reads, replaces, bends):
    """A call that writes something on the way of another's path may make it lead elsewhere, or anywhere."""
    writer, reader = resolve([], [writes], str(tree)), resolve([reads], [], str(tree))
    assert (writer.replaces(reader), writer.bends(reader)) == (replaces, bends)
    assert not replaces or writer.excludes(reader)


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("to_to_a", "a"),
        ("to_d/up/to_d/b", "d/b"),
        ("d/./e/..//b", "d/b"),
        ("a/..", ""),
        ("nowhere/x", "not/there/x"),
        ("d/up/..", ".."),
    ],
)
def test_paths_are_followed_as_the_system_does(tree, name, end):
    """`follow` ends where `os.path.realpath` does, also where nothing is."""
    path = os.path.join(tree, name)
    assert follow(path).end == os.path.realpath(path) == os.path.realpath(os.path.join(tree, end))


def test_links_that_lead_to_themselves_end(tree):
    """A circle of links is followed as often as the system would, and no longer."""
    place = follow(f"{tree}/loop/x")
    assert place.end == f"{tree}/loop/x"
    assert len(place.way) + len(place.last_links) == MAX_LINKS


def test_a_name_with_a_nul_is_no_path(tree):
    """What can't be a path isn't taken for one."""
    with pytest.raises(ValueError, match="null"):
        places("a\0b", str(tree))


def test_case_counts_as_the_system_has_it(tree, monkeypatch):
    """Where the file system takes two spellings for one name, they are one."""
    assert resolve([], ["New"], str(tree)).excludes(resolve([], ["new"], str(tree))) is None
    monkeypatch.setattr("sys.platform", "darwin")
    assert resolve([], ["New"], str(tree)).excludes(resolve([], ["new"], str(tree)))
    assert resolve([], ["caf\u00e9"], str(tree)).excludes(resolve([], ["cafe\u0301"], str(tree)))
