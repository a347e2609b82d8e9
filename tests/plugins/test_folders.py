"""`mibyan.plugins.sources.folders`: `<root>/<id>/plugin.yaml` (plugins.F5)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from mibyan.plugins.candidate import Candidate, Discovery, Target
from mibyan.plugins.sources import folders
from mibyan.plugins.sources.cache import ContentCache
from mibyan.plugins.sources.folders import find_folders

if TYPE_CHECKING:
    from pathlib import Path


def find(root: Path) -> Discovery:
    return find_folders(root, "user", ContentCache())


def write(folder: Path, manifest: str | bytes = "", *files: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_bytes(manifest if isinstance(manifest, bytes) else manifest.encode())
    for name in files or ("__init__.py",):
        (folder / name).write_text("raise SystemExit('a plugin is never imported to be found')\n")
    return folder


def only(found: Discovery) -> Candidate:
    (candidate,) = found
    return candidate


def test_a_folder_with_a_manifest_is_a_plugin(tmp_path: Path) -> None:
    """plugins.F5, F2: the folder's name is the id, its package what is imported."""
    folder = write(tmp_path / "weather", "id: weather\nversion: '1.2'\n")
    candidate = only(find(tmp_path))
    assert (candidate.id, candidate.source, candidate.version, candidate.root) == ("weather", "user", "1.2", folder)
    assert candidate.target == Target("package_dir", str(folder), folder)
    assert candidate.usable


def test_a_manifest_may_name_a_single_file(tmp_path: Path) -> None:
    """plugins.F5: a single `.py` named in the manifest is what is imported."""
    folder = write(tmp_path / "weather", "module: main.py\n", "main.py", "__init__.py")
    assert only(find(tmp_path)).target == Target("file", str(folder / "main.py"), folder / "main.py")


def test_one_level_of_categories_is_searched(tmp_path: Path) -> None:
    """plugins.F5: plugins may lie in a folder that is none itself, not deeper."""
    write(tmp_path / "science" / "weather")
    write(tmp_path / "science" / "deep" / "deeper")
    write(tmp_path / "plain")
    write(tmp_path / "plain" / "inner")
    assert [candidate.id for candidate in find(tmp_path)] == ["plain", "weather"]


def test_hidden_dunder_and_other_things_are_skipped_quietly(tmp_path: Path) -> None:
    """plugins.F5: hidden and dunder directories, files and links to nowhere aren't plugins and aren't reported."""
    for name in (".hidden", "__pycache__", "__main__", "science/.hidden"):
        write(tmp_path / name)
    (tmp_path / "file").touch()
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").mkdir()
    assert find(tmp_path) == Discovery()


@pytest.mark.parametrize("place", ["locked", "locked/inner"])
def test_an_unreadable_directory_hides_nothing_else(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """plugins.F5: a directory that can't be read is skipped (root reads everything, hence the double)."""
    write(tmp_path / "weather")
    (tmp_path / place).mkdir(parents=True)

    def names_in(folder: Path) -> list[str]:
        if folder == tmp_path / "locked":
            raise PermissionError(13, "Permission denied")
        return sorted(path.name for path in folder.iterdir())

    monkeypatch.setattr(folders, "names_in", names_in)
    assert [candidate.id for candidate in find(tmp_path)] == ["weather"]


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_root_that_isnt_a_directory_has_no_plugins(tmp_path: Path, kind: str) -> None:
    """plugins.F5: no plugins folder is the normal case; a file in its place is a note."""
    root = tmp_path / "plugins"
    if kind == "file":
        root.touch()
    found = find(root)
    assert len(found) == 0
    assert [note.kind for note in found.notes] == ([] if kind == "missing" else ["unreadable"])
    assert all(note.hint for note in found.notes)


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (b"id: [", "plugin.yaml:"),
        (b"- a\n- b\n", "expected a mapping"),
        (b"version: 1.0\n", "plugin.yaml:1: key 'version': expected text, got 1.0; put it in quotes"),
        ("author: Müller\n".encode("latin-1"), "not UTF-8"),
        ("id: weather\n".encode("utf-16"), "not UTF-8"),
        (b"id: other\n", "the manifest says 'other', but the plugin's id is 'weather'"),
        (b"module: ../evil.py\n", "must be the name of a .py file in the folder"),
        (b"module: weather\n", "must be the name of a .py file in the folder"),
        (b"module: gone.py\n", "names 'gone.py', which isn't there"),
    ],
)
def test_a_bad_manifest_is_one_record_for_that_plugin(tmp_path: Path, manifest: bytes, said: str) -> None:
    """plugins.F5: a bad manifest is a problem of its plugin, with a hint, and nothing else."""
    write(tmp_path / "weather", manifest)
    write(tmp_path / "good", "id: good\n")
    good, weather = find(tmp_path)
    assert good.usable
    assert weather.target is None
    assert weather.problem is not None
    assert said in weather.problem
    assert weather.hint == f"mend {tmp_path / 'weather' / 'plugin.yaml'}, or take the folder away"


def test_a_plugin_without_code_has_a_problem(tmp_path: Path) -> None:
    """plugins.F5: a manifest alone can't be loaded."""
    write(tmp_path / "weather", "id: weather\n", "helpers.py")
    assert only(find(tmp_path)).problem == "has no __init__.py, and its manifest names no file (`module: NAME.py`)"


@pytest.mark.parametrize("kind", ["directory", "fifo", "link to nowhere"])
def test_a_manifest_that_isnt_a_file_is_a_problem(tmp_path: Path, kind: str) -> None:
    """plugins.F5: a pipe isn't waited for, a broken link isn't overlooked."""
    path = tmp_path / "weather" / "plugin.yaml"
    path.parent.mkdir()
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "missing")
    problem = only(find(tmp_path)).problem
    assert problem is not None
    assert problem.startswith("plugin.yaml can't be read: ")


def test_links_are_followed(tmp_path: Path) -> None:
    """plugins.F5: a user's plugin may be a link to where it is worked on; the link's name is the id."""
    write(tmp_path / "src" / "weather-dev")
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "weather").symlink_to(tmp_path / "src" / "weather-dev")
    candidate = only(find(tmp_path / "plugins"))
    assert (candidate.id, candidate.problem) == ("weather", None)


@pytest.mark.parametrize("name", ["a b", "-x", "project-tools", "tools.x"])
def test_a_folders_name_must_be_an_id(tmp_path: Path, name: str) -> None:
    """plugins.L5: a folder whose name can't be an id is refused at scan."""
    write(tmp_path / name)
    assert only(find(tmp_path)).problem


@pytest.mark.parametrize(("one", "other"), [("a-b", "a_b"), ("a.b", "A-b"), ("x/same", "y/same")])
def test_ids_that_would_collide_are_refused(tmp_path: Path, one: str, other: str) -> None:
    """plugins.L5: two folders with one module name are both off, and each says what the other is."""
    first, second = write(tmp_path / one), write(tmp_path / other)
    write(tmp_path / "good")
    found = {candidate.root: candidate for candidate in find(tmp_path)}
    assert str(second) in (found[first].problem or "")
    assert str(first) in (found[second].problem or "")
    assert found[tmp_path / "good"].usable


@pytest.mark.parametrize(
    ("name", "hint"),
    [("plugin.yml", "rename it to plugin.yaml"), (None, "write a plugin.yaml with at least `id: weather`")],
)
@pytest.mark.parametrize("place", ["weather", "science/weather"])
def test_a_package_without_a_manifest_is_a_near_miss(tmp_path: Path, place: str, name: str | None, hint: str) -> None:
    """plugins.W6: doctor can tell what was probably meant to be a plugin."""
    folder = tmp_path / place
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    if name is not None:
        (folder / name).touch()
    found = find(tmp_path)
    assert len(found) == 0
    assert [(note.kind, note.origin, note.hint) for note in found.notes] == [("near_miss", str(folder), hint)]


def test_the_order_of_making_doesnt_matter(tmp_path: Path) -> None:
    """plugins.F1: the result is the same whatever order the file system keeps."""
    names = ["b", "a", "d", "c/e", "c/a1"]
    for number, order in enumerate([names, names[::-1]]):
        for name in order:
            write(tmp_path / str(number) / name)
    one, other = (find(tmp_path / number) for number in ("0", "1"))
    assert [candidate.id for candidate in one] == [candidate.id for candidate in other] == ["a", "a1", "b", "d", "e"]
