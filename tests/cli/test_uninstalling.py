"""plugins.W4: what an id means to `plugins uninstall`, what is the operator's to remove, and the trash."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import MANIFEST, PLUGIN, add_plugin

from mibyan.cli.install.files import files_of, is_installers, trash
from mibyan.errors import MibyanError


def test_plugins_W4_a_folder_plugin_goes_to_the_trash(bench: Path, run) -> None:
    """Nothing is lost: its folder lies in trash/ as it was, its state and its words in config.yaml stay, and that is told."""
    (bench / "config.yaml").write_text("plugins:\n  disabled: [other, Bench]  # mine\n")
    (bench / "state" / "bench").mkdir(parents=True)
    refused = run("plugins", "uninstall", "bench")
    assert (refused.code, "--yes" in refused.err, (bench / "plugins" / "bench").exists()) == (3, True, True)
    done = run("plugins", "uninstall", "BENCH", "--yes", "--json")
    assert (done.code, done.data["removed"], done.data["source"]) == (0, True, "user")
    assert (Path(done.data["trash"]) / "bench" / "__init__.py").read_text() == PLUGIN
    assert not (bench / "plugins" / "bench").exists()
    assert [one["command"].split()[1:3] for one in done.data["left"]] == [
        ["config", "set"],
        ["-r", str(bench / "state" / "bench")],
    ]
    assert "# mine" in (bench / "config.yaml").read_text()
    assert run("plugins", "uninstall", "bench", "--yes").code == 2


def test_plugins_W4_two_of_one_name_in_the_trash(home: Path) -> None:
    """Each goes to a folder of its own; a link goes itself, what it leads to stays."""
    places = []
    for number in range(2):
        root = add_plugin(home, "twice", PLUGIN, MANIFEST)
        (root / "number").write_text(str(number))
        places.append(trash(home, "twice", [str(root)]))
    assert [(place / "twice" / "number").read_text() for place in places] == ["0", "1"]
    (home / "linked").symlink_to(places[0])
    moved = trash(home, "linked", [str(home / "linked")])
    assert (moved / "linked").is_symlink()
    assert places[0].is_dir()


def test_plugins_W4_the_trash_takes_all_or_nothing(home: Path) -> None:
    """One that can't be moved: the others are where they were."""
    root = add_plugin(home, "whole", PLUGIN, MANIFEST)
    with pytest.raises(MibyanError, match="nothing was removed"):
        trash(home, "whole", [str(root), str(home / "nothing")])
    assert (root / "__init__.py").exists()
    assert list((home / "trash").iterdir()) == []


def test_plugins_W4_a_tool_file_goes_too(home: Path, run) -> None:
    """A file of the tools folder is removed by its id."""
    (home / "tools").mkdir()
    (home / "tools" / "mine.py").write_text("from mibyan import registry\nregistry.register('a', 'b', {}, print)\n")
    done = run("plugins", "uninstall", "tools.mine", "--yes", "--json")
    assert (done.code, (home / "tools" / "mine.py").exists()) == (0, False)
    assert (Path(done.data["trash"]) / "mine.py").exists()


def test_plugins_W4_what_isnt_the_operators_stays(project: Path, run) -> None:
    """Built-in plugins and a project's are refused, each with what can be done instead; an unknown id has a suggestion."""
    for plugin_id, hint in (
        ("files", "plugins disable files"),
        ("deploy", "plugins untrust deploy"),
        ("termina", "terminal"),
    ):
        done = run("plugins", "uninstall", plugin_id, "--yes")
        assert (done.code, hint in done.err) == (2, True), done.err
    assert (project / ".mibyan" / "plugins" / "deploy").is_dir()


def dist_info(site: Path, name: str, **files: str) -> Path:
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    for file, text in files.items():
        (info / file).write_text(text)
    return info


def test_plugins_W4_the_files_of_a_leftover(tmp_path: Path) -> None:
    """By RECORD, never beyond the environment; without one by the modules it names that nobody else has."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "__init__.py").write_text("")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "__init__.py").write_text("")
    stranger = tmp_path.parent / "stranger.txt"
    stranger.write_text("")
    listed = dist_info(
        tmp_path, "listed", RECORD="own/__init__.py,,\nshared/__init__.py,,\n../stranger.txt,,\n/etc/hostname,,\n"
    )
    assert not is_installers(str(listed))
    assert files_of(str(listed), "pip") == sorted(map(str, [listed, tmp_path / "own", tmp_path / "shared"]))
    (tmp_path / "__pycache__").mkdir()
    for module in ("alone", "neighbour"):
        (tmp_path / "__pycache__" / f"{module}.cpython-311.pyc").write_bytes(b"")
    alone = dist_info(tmp_path, "alone", RECORD="__pycache__/alone.cpython-311.pyc,,\n")
    assert files_of(str(alone), "pip") == sorted(map(str, [alone, tmp_path / "__pycache__" / "alone.cpython-311.pyc"]))
    guessed = dist_info(tmp_path, "guessed", **{"top_level.txt": "shared\nfree\n../up\n", "METADATA": ""})
    (tmp_path / "free.py").write_text("")
    assert files_of(str(guessed), "pip") == sorted(map(str, [guessed, tmp_path / "free.py"]))
    with pytest.raises(MibyanError, match="archive"):
        files_of(str(tmp_path / "a.zip" / "x-1.0.dist-info"), "pip")
