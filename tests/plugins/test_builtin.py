"""`mibyan.plugins.sources.builtin`: Mibyan's own plugins, found through their manifests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mibyan.plugins.candidate import Target
from mibyan.plugins.manifest import check_manifest
from mibyan.plugins.sources.builtin import builtin_folder, find_builtin

if TYPE_CHECKING:
    from pathlib import Path


def write(package: Path, name: str, **manifest: object) -> None:
    folder = package / name
    folder.mkdir(parents=True)
    (folder / "mibyan.json").write_text(json.dumps(manifest))


def test_each_folder_with_a_manifest_is_a_plugin(tmp_path: Path) -> None:
    """architecture: built-ins are found through their manifests; the manifest's id is the plugin's."""
    write(tmp_path, "web", id="web", tools=[])
    write(tmp_path, "files", id="files", version="1")
    write(tmp_path, "todo", id="planning", module="mibyan_builtin.todo.plugin")
    (tmp_path / "shared").mkdir()
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__init__.py").touch()
    found = find_builtin(tmp_path)
    assert [candidate.id for candidate in found] == ["files", "planning", "web"]
    assert [candidate.target for candidate in found] == [
        Target("module", "mibyan_builtin.files"),
        Target("module", "mibyan_builtin.todo.plugin"),
        Target("module", "mibyan_builtin.web"),
    ]
    assert {candidate.source for candidate in found} == {"builtin"}
    assert not found.notes


@pytest.mark.parametrize("content", ["{", "[]", "3", '{"tools": [3]}', "\x00"])
def test_a_damaged_manifest_is_a_problem_of_that_plugin(tmp_path: Path, content: str) -> None:
    """plugins.L2: a damaged file of one plugin leaves the others alone, and the hint says what to do."""
    write(tmp_path, "web", id="web")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "mibyan.json").write_text(content)
    files, web = find_builtin(tmp_path)
    assert (files.id, web.problem) == ("files", None)
    assert files.problem
    assert files.hint == "Mibyan's own files are damaged: install it again"


def test_a_package_that_isnt_there_is_a_note(tmp_path: Path) -> None:
    """Without built-ins Mibyan says so and goes on."""
    found = find_builtin(tmp_path / "nowhere")
    assert len(found) == 0
    assert [note.kind for note in found.notes] == ["unreadable"]


def test_the_installed_package_is_found_without_importing_it() -> None:
    """architecture, never 1: `mibyan` never imports `mibyan_builtin`; finding reads JSON only."""
    code = (
        "import sys; from mibyan.plugins.sources.builtin import find_builtin; found = find_builtin();"
        "print([note.text for note in found.notes], [one.problem for one in found if one.problem],"
        " [name for name in ('mibyan_builtin', 'pydantic', 'yaml', 'importlib.metadata') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout == "[] [] []\n"


def test_the_shipped_manifests_are_valid() -> None:
    """plugins.M1: built-in manifests aren't checked when they are read, so they are here."""
    folder = builtin_folder()
    assert folder is not None
    for path in sorted(folder.glob("*/mibyan.json")):
        data = json.loads(path.read_bytes())
        _, warnings = check_manifest(data, str(path))
        assert not warnings
        assert data.get("id")
